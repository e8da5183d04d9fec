#include "node/address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/absl_view.h"

namespace orla::node {

absl::StatusOr<HostPort> parse_loopback(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string_view::npos || !absl::SimpleAtoi(base::absl_view(address.substr(colon + 1)), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", base::absl_view(address), "\": expected HOST:PORT with a port from 0 to 65535"));
  }
  std::string host(address.substr(0, colon));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  if (host != "::1" && !absl::StartsWith(host, "127.")) {
    return absl::InvalidArgumentError(absl::StrCat("address \"", base::absl_view(address),
                                                   "\" is not loopback: other addresses need TLS, which does not exist "
                                                   "yet; use 127.0.0.1, ::1 or localhost"));
  }
  return HostPort{std::move(host), static_cast<std::uint16_t>(port)};
}

std::string to_string(const HostPort& address) {
  if (address.host.find(':') != std::string::npos) return absl::StrCat("[", address.host, "]:", address.port);
  return absl::StrCat(address.host, ":", address.port);
}

}  // namespace orla::node
