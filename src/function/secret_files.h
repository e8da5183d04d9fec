// Secrets on disk: one file "NAME.NAMESPACE" each (mode 0600), and beside it, in "given/", the copy that functions read
// (mode 0400). A change replaces the copy too, so a function that opens it again reads the new value.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_folder.h"
#include "base/logger.h"
#include "function/spec.h"

namespace orla::function {

inline constexpr std::size_t kMaxSecretNameBytes = 128;

// Letters, digits, '-', '_' and '.', which is not first and not doubled.
absl::Status check_secret_name(std::string_view name);

// Thread-safe.
class SecretFiles {
 public:
  struct Limits {
    std::size_t secrets = 10'000;
    std::size_t bytes = 1 << 20;
  };
  // Secrets that a loaded function may read: their copies lie there as long as it lives. They cannot be removed before
  // it is let go. Outlived by the SecretFiles.
  class Lease {
   public:
    Lease(SecretFiles& files, std::vector<FunctionKey> keys) : files_(files), keys_(std::move(keys)) {}
    ~Lease();
    // The function is not deployed any more; replicas of it may still be ending.
    void let_go();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    // Name and file of each.
    std::vector<std::pair<std::string, std::filesystem::path>> files() const;

   private:
    SecretFiles& files_;
    const std::vector<FunctionKey> keys_;
    bool deployed_ = true;  // guarded by the files' mutex
  };

  static absl::StatusOr<std::unique_ptr<SecretFiles>> open(std::filesystem::path folder, const Limits& limits,
                                                           base::Logger& log);

  std::vector<FunctionKey> list(std::string_view space) const;
  absl::Status add(const FunctionKey& key, std::string_view value);
  absl::Status change(const FunctionKey& key, std::string_view value);
  absl::Status remove(const FunctionKey& key);
  // INVALID_ARGUMENT names the one that does not exist.
  absl::StatusOr<std::unique_ptr<Lease>> lease(std::string_view space, const std::vector<std::string>& names);

 private:
  SecretFiles(base::FileFolder kept, base::FileFolder given, const Limits& limits)
      : kept_(std::move(kept)), given_(std::move(given)), limits_(limits) {}
  struct Secret {
    std::size_t deployed = 0;  // leases of deployed functions
    std::size_t leases = 0;    // all
    bool removed = false;      // only its copy is there, for those leases
  };
  Secret* find(const FunctionKey& key);
  absl::Status write(const FunctionKey& key, std::string_view value) const;

  const base::FileFolder kept_;
  const base::FileFolder given_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::map<FunctionKey, Secret> secrets_;
};

}  // namespace orla::function
