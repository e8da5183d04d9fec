// What both gRPC carriers can be told.
#pragma once

#include <chrono>

namespace orla::link {

struct GrpcOptions {
  // Until a parent has answered a connection; then it is closed with DeadlineExceeded.
  std::chrono::milliseconds connect_deadline{2'000};
  // Until close() has sent what is queued; then the connection is cut.
  std::chrono::milliseconds close_grace{1'000};
};

// Children of one parent, those included that have not said Hello yet; further ones are sent away.
inline constexpr int kMaxChildConnections = 4'096;

}  // namespace orla::link
