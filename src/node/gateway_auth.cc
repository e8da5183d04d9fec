#include "node/gateway_auth.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/absl_view.h"
#include "base/files.h"

namespace orla::node {

namespace {

constexpr std::size_t kMaxBytes = 4096;
constexpr std::chrono::seconds kLookEvery{1};
constexpr const char* kUserFile = "basic-auth-user";
constexpr const char* kPasswordFile = "basic-auth-password";

// Takes a time that depends on the length of `given` alone.
bool equal(std::string_view given, std::string_view expected) {
  unsigned different = given.size() == expected.size() && !expected.empty() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    different |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return different == 0;
}

absl::StatusOr<std::string> read_line(const std::filesystem::path& path) {
  absl::StatusOr<std::string> text = base::read_file(path, kMaxBytes);
  if (!text.ok()) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return absl::FailedPreconditionError(fmt::format("{} is empty", path.string()));
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GatewayAuth>> GatewayAuth::open(std::filesystem::path folder, const base::Clock& clock) {
  std::unique_ptr<GatewayAuth> auth(new GatewayAuth(std::move(folder), clock));
  if (absl::Status status = auth->read(); !status.ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "gateway_auth: {}; write user and password to the files {} and {}, or leave the setting out",
        base::message(status), (auth->folder_ / kUserFile).string(), (auth->folder_ / kPasswordFile).string()));
  }
  return auth;
}

absl::Status GatewayAuth::read() {
  looked_ = clock_.steady_now();
  expected_.clear();
  std::error_code error;
  written_ = {std::filesystem::last_write_time(folder_ / kUserFile, error),
              std::filesystem::last_write_time(folder_ / kPasswordFile, error)};
  const absl::StatusOr<std::string> user = read_line(folder_ / kUserFile);
  if (!user.ok()) return user.status();
  const absl::StatusOr<std::string> password = read_line(folder_ / kPasswordFile);
  if (!password.ok()) return password.status();
  expected_ = *user + ":" + *password;
  return absl::OkStatus();
}

bool GatewayAuth::allows(std::string_view authorization) {
  const std::lock_guard lock(mutex_);
  if (clock_.steady_now() - looked_ >= kLookEvery) {
    looked_ = clock_.steady_now();
    std::error_code error;
    const std::pair now{std::filesystem::last_write_time(folder_ / kUserFile, error),
                        std::filesystem::last_write_time(folder_ / kPasswordFile, error)};
    if (now != written_ || expected_.empty()) read().IgnoreError();
  }
  constexpr std::string_view kBasic = "Basic ";
  if (authorization.size() > kMaxBytes * 4 ||
      !absl::StartsWithIgnoreCase(base::absl_view(authorization), base::absl_view(kBasic))) {
    return false;
  }
  std::string given;
  if (!absl::Base64Unescape(base::absl_view(authorization.substr(kBasic.size())), &given)) return false;
  return equal(given, expected_);
}

}  // namespace orla::node
