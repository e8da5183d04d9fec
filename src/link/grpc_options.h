// What both gRPC carriers can be told.
#pragma once

#include <chrono>

namespace orla::link {

// A loop that has run nothing for so long is not spoken for any more: the node counts as dead.
inline constexpr std::chrono::seconds kStallLimit{30};

struct GrpcOptions {
  // How often a peer has to hear something. A carrier says so itself when its loop is too busy to.
  std::chrono::milliseconds heartbeat{500};
  std::chrono::milliseconds stall_limit{kStallLimit};
  // Until a parent has answered a connection; then it is closed with DeadlineExceeded.
  std::chrono::milliseconds connect_deadline{2'000};
  // Until close() has sent what is queued; then the connection is cut.
  std::chrono::milliseconds close_grace{1'000};
  // A connection that has been silent is asked for a sign of life this often, and is dead when none comes, or when the
  // peer's machine takes nothing off us, for the timeout. So long, at most, a frozen peer holds up the end of a
  // carrier.
  std::chrono::milliseconds keepalive_time{10'000};
  std::chrono::milliseconds keepalive_timeout{2'500};
};

// Children of one parent, those included that have not said Hello yet; further ones are sent away.
inline constexpr int kMaxChildConnections = 4'096;

}  // namespace orla::link
