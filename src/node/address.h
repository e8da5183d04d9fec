// HOST:PORT addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace orla::node {

struct HostPort {
  std::string host;  // numeric, without brackets: "127.0.0.1", "::1"
  std::uint16_t port = 0;
};

// "127.0.0.1:80", "[::1]:80", "localhost:80" (which is 127.0.0.1). Another host than loopback is refused: anything over
// another address needs TLS, which does not exist yet.
absl::StatusOr<HostPort> parse_loopback(std::string_view address);
std::string to_string(const HostPort& address);

}  // namespace orla::node
