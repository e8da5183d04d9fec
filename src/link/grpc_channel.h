// How this program sets gRPC up, and what it calls things. For the gRPC carriers only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "link/grpc_options.h"
#include "model/address.h"

namespace grpc {
class ByteBuffer;
class ChannelArguments;
class Slice;
class Status;
}  // namespace grpc

namespace orla::link {

// Link.Connect of proto/link.proto.
inline constexpr std::string_view kConnectMethod = "/orla.link.v1.Link/Connect";
// The parent's initial metadata has this key.
inline constexpr std::string_view kParentKey = "orla-link";

// gRPC's memory per carrier: a call that needs more waits.
inline constexpr std::size_t kGrpcMemoryBytes = 256 << 20;

// Both ends' settings: limits, keepalive, no compression, no retries, no proxy.
void set_up(grpc::ChannelArguments& arguments, const GrpcOptions& options);

// "ipv4:127.0.0.1:7411" of a loopback address; InvalidArgument for another.
absl::StatusOr<std::string> grpc_target(std::string_view address);

// Why a server could not listen at `address`, in words that name it.
absl::Status why_not_bound(const model::Address& address);

// A buffer of `head`, which is copied, and of `bytes`, which are not.
grpc::ByteBuffer to_buffer(std::string_view head, std::string bytes);
// All bytes of a buffer in one piece.
grpc::Slice one_slice(grpc::ByteBuffer& buffer);

// Codes are the same numbers.
absl::Status to_absl(const grpc::Status& status);
grpc::Status to_grpc(const absl::Status& status);

}  // namespace orla::link
