// The connections of one I/O thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "node/gateway_core.h"

namespace orla::node {

// The destructor ends the thread; connections whose call still runs are broken off, and freed at its end.
class ConnectionSet {
 public:
  virtual ~ConnectionSet() = default;
  // Takes a connected socket over; thread-safe. `peer`: "127.0.0.1:50000". Beyond the limit it is answered 503.
  virtual void add(int descriptor, std::string peer) = 0;

  static std::unique_ptr<ConnectionSet> start(std::shared_ptr<GatewayCore> core, std::uint64_t seed);
};

}  // namespace orla::node
