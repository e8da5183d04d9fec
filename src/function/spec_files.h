// What is deployed, on disk: one file "NAME.NAMESPACE.json" per function.
//
// The file is one JSON object {"digest": HEX, "deployed": OBJECT}. `deployed` has "format" (1), "spec" with the fields
// of FunctionSpec under the names of a FunctionDeployment (absent: empty), "replicas" (wanted) and "created"
// (nanoseconds since 1970). `digest` is the 128-bit hash of the text of `deployed` as it is written without spaces,
// keys sorted; a file of which it is not is damaged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_folder.h"
#include "base/logger.h"
#include "function/spec.h"

namespace orla::function {

struct Deployed {
  FunctionSpec spec;
  std::uint32_t replicas = 1;
  base::WallTime created{};
  friend bool operator==(const Deployed&, const Deployed&) = default;
};

inline constexpr std::size_t kMaxSpecBytes = 1 << 20;  // of a file

std::string encode_deployed(const Deployed& deployed);
// DATA_LOSS.
absl::StatusOr<Deployed> decode_deployed(std::string_view text);

// Different functions may be written on different threads.
class SpecFiles {
 public:
  static absl::StatusOr<SpecFiles> open(std::filesystem::path folder);
  // All that can be read; a damaged file is set aside and logged.
  absl::StatusOr<std::vector<Deployed>> load(base::Logger& log) const;
  absl::Status save(const Deployed& deployed) const;
  absl::Status remove(const FunctionKey& key) const;

 private:
  explicit SpecFiles(base::FileFolder folder) : folder_(std::move(folder)) {}
  base::FileFolder folder_;
};

}  // namespace orla::function
