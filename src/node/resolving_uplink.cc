#include "node/resolving_uplink.h"

#include "model/address.h"
#include "node/state_directory.h"

namespace orla::node {

link::ConnectionId ResolvingUplink::connect(const std::string& address, const std::string& peer) {
  const absl::StatusOr<model::Address> parsed = model::parse_address(address);
  if (parsed.ok() && parsed->port == 0) {
    const std::optional<NodeAddresses> real = read_addresses(state_, peer);
    // A parent that has not started yet is one that cannot be reached: port 0 refuses.
    if (real && !real->listen.empty()) return carrier_->connect(real->listen, peer);
  }
  return carrier_->connect(address, peer);
}

}  // namespace orla::node
