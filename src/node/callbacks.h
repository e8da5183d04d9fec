// Where callbacks of queued calls may go, and their sending.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/logger.h"

namespace orla::node {

// Which addresses a node calls back: any public one; loopback, private, link-local and other special ones (IANA's
// special-purpose registries, RFC 6890) only where allowed.
class CallbackPolicy {
 public:
  // Each of `allowed`: an address or a network, "127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8". INVALID_ARGUMENT
  // otherwise.
  static absl::StatusOr<CallbackPolicy> parse(const std::vector<std::string>& allowed);

  // PERMISSION_DENIED says why. `address` is numeric.
  absl::Status check_address(std::string_view address) const;
  // Of a URL as a client gave it: INVALID_ARGUMENT when it is none, or its host is an address that is not allowed. A
  // name's addresses are checked when it is called.
  absl::Status check_url(std::string_view url) const;

 private:
  struct Network {
    bool v6 = false;
    unsigned char bytes[16] = {};
    int bits = 0;
  };
  static absl::StatusOr<Network> parse_network(std::string_view text);
  static bool contains(const Network& network, const Network& address);
  static bool is_special(const Network& address);
  std::vector<Network> allowed_;
};

}  // namespace orla::node
