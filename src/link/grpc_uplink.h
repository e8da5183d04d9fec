// The child's side of production: gRPC over loopback.
#pragma once

#include <memory>

#include "base/logger.h"
#include "base/loop.h"
#include "link/carrier.h"
#include "link/grpc_options.h"

namespace orla::link {

// The loop and the logger outlive the carrier, which has one thread of its own. Nothing is encrypted, so an address
// that is not loopback ends the connection with InvalidArgument. gRPC's own log goes to stderr when the first logger
// given to a carrier of this process has the level debug, else nowhere.
std::unique_ptr<UplinkCarrier> make_grpc_uplink(base::Loop& loop, base::Logger& logger, GrpcOptions options = {});

}  // namespace orla::link
