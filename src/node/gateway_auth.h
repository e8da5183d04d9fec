// HTTP basic authentication against two files, as OpenFaaS mounts them: basic-auth-user and basic-auth-password.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace orla::node {

// Thread-safe. Files that have changed are read again, at most once a second; as long as they cannot be read, nobody is
// let in.
class GatewayAuth {
 public:
  // The files are there and not empty. The newline at their end does not count.
  static absl::StatusOr<std::unique_ptr<GatewayAuth>> open(std::filesystem::path folder, const base::Clock& clock);

  // `authorization`: the header's value; empty: none was sent.
  bool allows(std::string_view authorization);

 private:
  GatewayAuth(std::filesystem::path folder, const base::Clock& clock) : folder_(std::move(folder)), clock_(clock) {}
  absl::Status read();

  const std::filesystem::path folder_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::string expected_;  // "user:password"; empty: nobody
  base::SteadyTime looked_{};
  std::pair<std::filesystem::file_time_type, std::filesystem::file_time_type> written_{};
};

}  // namespace orla::node
