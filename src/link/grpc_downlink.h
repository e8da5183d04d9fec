// The parent's side of production: gRPC over loopback.
#pragma once

#include <memory>

#include "base/logger.h"
#include "base/loop.h"
#include "link/carrier.h"
#include "link/grpc_options.h"

namespace orla::link {

// The loop and the logger outlive the carrier, which has one thread of its own while it listens. Nothing is encrypted,
// so listen() refuses an address that is not loopback. gRPC's own log goes to stderr when the first logger given to a
// carrier of this process has the level debug, else nowhere.
std::unique_ptr<DownlinkCarrier> make_grpc_downlink(base::Loop& loop, base::Logger& logger, GrpcOptions options = {});

}  // namespace orla::link
