#include "link/grpc_uplink.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "link/grpc_call.h"
#include "link/grpc_channel.h"
#include "link/grpc_connections.h"

namespace orla::link {

namespace {

class ChildCall final : public GrpcCall {
 public:
  ChildCall(GrpcThread& thread, Owner& owner, ConnectionId id, std::string parent, const std::string& target,
            const GrpcOptions& options)
      : GrpcCall(thread, owner, id),
        parent_(std::move(parent)),
        grpc_(std::make_unique<Grpc>(target, thread.queue(), options)) {}

  void start() {
    begun();
    grpc_->stream->StartCall(&started_);
  }

 private:
  struct Grpc {
    Grpc(const std::string& target, grpc::CompletionQueue& queue, const GrpcOptions& options) {
      grpc::ChannelArguments arguments;
      set_up(arguments, options);
      // One channel a connection: trying again really tries again.
      channel = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
      grpc::GenericStub stub(channel);
      stream = stub.PrepareCall(&context, std::string(kConnectMethod), &queue);
    }
    std::shared_ptr<grpc::Channel> channel;  // shared by gRPC's own parts
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::ByteBuffer incoming;
    grpc::Status status;
  };

  void begin_read() override { grpc_->stream->Read(&grpc_->incoming, &read_); }
  void begin_write(Outgoing outgoing) override {
    grpc::WriteOptions options;
    if (outgoing.more_follows) options.set_buffer_hint();
    grpc_->stream->Write(to_buffer(outgoing.marked ? kMark : "", std::move(outgoing.bytes)), options, &written_);
  }
  bool begin_close() override {
    grpc_->stream->WritesDone(&closed_);
    return false;
  }
  void begin_finish(const absl::Status&) override { grpc_->stream->Finish(&grpc_->status, &finished_); }
  void try_cancel() override { grpc_->context.TryCancel(); }
  bool is_caller() const override { return true; }
  void release() override { grpc_.reset(); }

  void on_started(bool ok) {
    if (!ok) return start_done(false);
    grpc_->stream->ReadInitialMetadata(&answered_);
  }
  void on_answered(bool ok) {
    const auto& metadata = grpc_->context.GetServerInitialMetadata();
    answered_as_parent_ = ok && metadata.find(grpc::string_ref(kParentKey.data(), kParentKey.size())) != metadata.end();
    start_done(answered_as_parent_);
  }
  void on_read(bool ok) {
    if (!ok) return read_done(false, {});
    const grpc::Slice bytes = one_slice(grpc_->incoming);
    grpc_->incoming.Clear();
    read_done(true, std::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()));
  }
  void on_finished(bool) {
    absl::Status how = to_absl(grpc_->status);
    if (absl::IsCancelled(how)) how = absl::UnavailableError("the parent has cut the connection");
    if (how.ok() && !answered_as_parent_) how = absl::UnavailableError("who listens there is no parent");
    if (!how.ok()) how = absl::Status(how.code(), fmt::format("{}: {}", parent_, std::string(how.message())));
    finish_done(how);
  }

  const std::string parent_;         // "agg-1 at 127.0.0.1:7411", for messages
  bool answered_as_parent_ = false;  // of the carrier's thread
  std::unique_ptr<Grpc> grpc_;
  GrpcThread::Completion started_ = [this](bool ok) { on_started(ok); };
  GrpcThread::Completion answered_ = [this](bool ok) { on_answered(ok); };
  GrpcThread::Completion read_ = [this](bool ok) { on_read(ok); };
  GrpcThread::Completion written_ = [this](bool ok) { write_done(ok); };
  GrpcThread::Completion closed_ = [this](bool) { close_done(); };
  GrpcThread::Completion finished_ = [this](bool ok) { on_finished(ok); };
};

class GrpcUplink final : public UplinkCarrier {
 public:
  GrpcUplink(base::Loop& loop, base::Logger& logger, GrpcOptions options)
      : loop_(loop),
        options_(options),
        connections_(loop, logger, options, decode_down),
        thread_(std::make_unique<grpc::CompletionQueue>(), options.heartbeat / 4) {}

  ~GrpcUplink() override {
    connections_.set_events({});
    connections_.fail_all(absl::CancelledError("the child has ended"));
    thread_.wait_for_calls();
  }

  void set_events(Events events) override {
    connections_.set_events({std::move(events.connected), std::move(events.message), std::move(events.closed)});
  }

  ConnectionId connect(const std::string& address, const std::string& peer) override {
    const ConnectionId id = connections_.new_id();
    const absl::StatusOr<std::string> target = grpc_target(address);
    if (!target.ok()) {
      connections_.post_closed(id, target.status());
      return id;
    }
    const std::string parent = peer.empty() ? address : fmt::format("{} at {}", peer, address);
    const auto call = std::make_shared<ChildCall>(thread_, connections_, id, parent, *target, options_);
    connections_.add(call);
    call->start();
    const absl::Status late = absl::DeadlineExceededError(
        fmt::format("{}: no answer within {} ms", parent, options_.connect_deadline.count()));
    loop_.post_after(options_.connect_deadline, [weak = std::weak_ptr<GrpcCall>(call), late] {
      if (const std::shared_ptr<GrpcCall> still = weak.lock()) still->fail_unless_open(late);
    });
    return id;
  }

  void send(ConnectionId connection, UpMessage message) override { connections_.send(connection, std::move(message)); }
  std::size_t queued_bytes(ConnectionId connection) const override { return connections_.queued_bytes(connection); }
  void close(ConnectionId connection) override { connections_.close(connection); }

 private:
  base::Loop& loop_;
  const GrpcOptions options_;
  GrpcConnections<DownMessage, UpMessage> connections_;
  GrpcThread thread_;  // last: its calls use the connections
};

}  // namespace

std::unique_ptr<UplinkCarrier> make_grpc_uplink(base::Loop& loop, base::Logger& logger, GrpcOptions options) {
  settle_grpc_log(logger.enabled(base::LogLevel::kDebug));
  return std::make_unique<GrpcUplink>(loop, logger, options);
}

}  // namespace orla::link
