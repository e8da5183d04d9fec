// Addresses in a fleet file: "127.0.0.1:7411", "[::1]:0", "localhost:8411".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace orla::model {

struct Address {
  std::string host;  // numeric, without brackets; localhost is "127.0.0.1"
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

// Only loopback addresses (127.0.0.0/8, ::1, localhost): whatever leaves the machine needs TLS, which does not exist
// yet. The message of an error is "found; expected ...".
absl::StatusOr<Address> parse_address(std::string_view text);
// "127.0.0.1:7411", "[::1]:7411"
std::string to_string(const Address& address);

}  // namespace orla::model
