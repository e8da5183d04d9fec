#include "link/grpc_channel.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "link/proto_codec.h"

namespace orla::link {

void set_up(grpc::ChannelArguments& arguments, const GrpcOptions& options) {
  grpc::ResourceQuota quota("orla");
  quota.Resize(kGrpcMemoryBytes);
  arguments.SetResourceQuota(quota);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_time.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no bound: data may flow one way for hours
  arguments.SetInt(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                   static_cast<int>(options.keepalive_time.count() / 2));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // a lost connection is the protocol's business
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no backoff inherited from an earlier connection
  arguments.SetInt(GRPC_ARG_ALLOW_REUSEPORT, 0);            // two nodes at one address are an error
}

absl::StatusOr<std::string> grpc_target(std::string_view address) {
  const absl::StatusOr<model::Address> parsed = model::parse_address(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->host.find(':') != std::string::npos) return fmt::format("ipv6:[{}]:{}", parsed->host, parsed->port);
  return fmt::format("ipv4:{}:{}", parsed->host, parsed->port);
}

absl::Status why_not_bound(const model::Address& address) {
  // gRPC only logs the reason, so the kernel is asked again.
  const bool v6 = address.host.find(':') != std::string::npos;
  const base::FileDescriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(address.port);
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &four.sin_addr);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int bound = v6 ? ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six)
                       : ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four);
  const int error = bound == 0 ? 0 : errno;
  const std::string name = fmt::format("{}:{}", v6 ? "[" + address.host + "]" : address.host, address.port);
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(fmt::format(
        "cannot listen at {}: the address is in use; is the node running already? Otherwise choose another port",
        name));
  }
  if (error != 0) return base::errno_status(error, fmt::format("cannot listen at {}", name));
  return absl::UnavailableError(fmt::format("cannot listen at {}, for a moment at least; try again", name));
}

grpc::ByteBuffer to_buffer(std::string_view head, std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  const grpc::Slice slices[] = {
      grpc::Slice(head.data(), head.size()),
      grpc::Slice(
          owned->data(), owned->size(), [](void* kept) { delete static_cast<std::string*>(kept); }, owned)};
  return head.empty() ? grpc::ByteBuffer(slices + 1, 1) : grpc::ByteBuffer(slices, 2);
}

grpc::Slice one_slice(grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.TrySingleSlice(&slice).ok() && !buffer.DumpToSingleSlice(&slice).ok()) return {};
  return slice;
}

absl::Status to_absl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status to_grpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace orla::link
