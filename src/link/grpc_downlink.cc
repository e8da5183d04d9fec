#include "link/grpc_downlink.h"

#include <fmt/format.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <utility>

#include "link/grpc_call.h"
#include "link/grpc_channel.h"
#include "link/grpc_connections.h"
#include "model/address.h"

namespace orla::link {

namespace {

using Connections = GrpcConnections<UpMessage, DownMessage>;

// One child's call. Until a child has called, the listener alone holds it.
class ParentCall final : public GrpcCall {
 public:
  ParentCall(GrpcThread& thread, Connections& owner, std::atomic<int>& children)
      : GrpcCall(thread, owner, owner.new_id()), children_(children) {}

  // Waits for a child to call; `requested` runs then, or with false when none will.
  void request(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
               GrpcThread::Completion& requested) {
    service.RequestCall(&grpc_->context, &grpc_->stream, &queue, &queue, &requested);
  }

  // A child has called.
  void start() {
    begun();
    if (++children_ > kMaxChildConnections) {
      return refuse(
          absl::ResourceExhaustedError(fmt::format("the parent has {} connections already", kMaxChildConnections)));
    }
    if (grpc_->context.method() != kConnectMethod) {
      return refuse(absl::UnimplementedError(
          fmt::format("no method \"{}\", only {}", grpc_->context.method().substr(0, 100), kConnectMethod)));
    }
    grpc_->context.AddInitialMetadata(std::string(kParentKey), "1");
    grpc_->stream.SendInitialMetadata(&answered_);
  }

 private:
  struct Grpc {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer incoming;
  };

  void begin_read() override { grpc_->stream.Read(&grpc_->incoming, &read_); }
  void begin_write(Outgoing outgoing) override {
    grpc::WriteOptions options;
    if (outgoing.more_follows) options.set_buffer_hint();
    grpc_->stream.Write(to_buffer(outgoing.marked ? kMark : "", std::move(outgoing.bytes)), options, &written_);
  }
  bool begin_close() override { return true; }
  void begin_finish(const absl::Status& why) override { grpc_->stream.Finish(to_grpc(why), &finished_); }
  void try_cancel() override { grpc_->context.TryCancel(); }
  bool is_caller() const override { return false; }
  void release() override {
    grpc_.reset();
    --children_;
  }

  void on_read(bool ok) {
    if (!ok) return read_done(false, {});
    const grpc::Slice bytes = one_slice(grpc_->incoming);
    grpc_->incoming.Clear();
    read_done(true, std::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()));
  }
  void on_finished(bool ok) { finish_done(ok ? absl::OkStatus() : absl::UnavailableError("the child is gone")); }

  std::atomic<int>& children_;
  std::unique_ptr<Grpc> grpc_ = std::make_unique<Grpc>();
  GrpcThread::Completion answered_ = [this](bool ok) { start_done(ok); };
  GrpcThread::Completion read_ = [this](bool ok) { on_read(ok); };
  GrpcThread::Completion written_ = [this](bool ok) { write_done(ok); };
  GrpcThread::Completion finished_ = [this](bool ok) { on_finished(ok); };
};

// A server at one address, from start() to stop().
class Listener {
 public:
  Listener(Connections& connections, const GrpcOptions& options) : connections_(connections), options_(options) {}
  ~Listener() { stop(); }

  // The address with the real port.
  absl::StatusOr<std::string> start(const model::Address& address) {
    const std::string host = address.host.find(':') == std::string::npos ? address.host : "[" + address.host + "]";
    const std::string wanted = fmt::format("{}:{}", host, address.port);
    grpc::ServerBuilder builder;
    builder.SetOption(std::make_unique<Arguments>(options_));
    int port = 0;
    builder.AddListeningPort(wanted, grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&service_);
    std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    queue_ = queue.get();
    server_ = builder.BuildAndStart();
    thread_.emplace(std::move(queue), options_.heartbeat / 4);
    if (server_ == nullptr || port == 0) return why_not_bound(address);
    thread_->call_begins();  // the call that waits for the next child
    wait_for_child();
    return fmt::format("{}:{}", host, port);
  }

  void stop() {
    if (!thread_.has_value()) return;
    if (server_ != nullptr) {
      stopping_ = true;
      connections_.fail_all(absl::UnavailableError("the parent has stopped listening"));
      server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
      thread_->wait_for_calls();
    }
    thread_->stop();
    server_.reset();
    thread_.reset();
  }

 private:
  class Arguments final : public grpc::ServerBuilderOption {
   public:
    explicit Arguments(const GrpcOptions& options) : options_(options) {}
    void UpdateArguments(grpc::ChannelArguments* arguments) override { set_up(*arguments, options_); }
    void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

   private:
    const GrpcOptions options_;
  };

  // On the carrier's thread, but for the first time.
  void wait_for_child() {
    waiting_ = std::make_shared<ParentCall>(*thread_, connections_, children_);
    waiting_->request(service_, *queue_, requested_);
  }
  void on_requested(bool ok) {
    const std::shared_ptr<ParentCall> call = std::move(waiting_);
    if (ok) call->start();
    if (ok && !stopping_) {
      wait_for_child();
    } else {
      thread_->call_ends();
    }
  }

  Connections& connections_;
  const GrpcOptions options_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  grpc::ServerCompletionQueue* queue_ = nullptr;  // of thread_
  std::optional<GrpcThread> thread_;
  std::shared_ptr<ParentCall> waiting_;  // of the carrier's thread; held by nobody else until a child calls
  GrpcThread::Completion requested_ = [this](bool ok) { on_requested(ok); };
  std::atomic<bool> stopping_ = false;
  std::atomic<int> children_ = 0;
};

class GrpcDownlink final : public DownlinkCarrier {
 public:
  GrpcDownlink(base::Loop& loop, base::Logger& logger, GrpcOptions options)
      : options_(options), connections_(loop, logger, options, decode_up) {}
  ~GrpcDownlink() override {
    connections_.set_events({});
    listener_.reset();
  }

  void set_events(Events events) override {
    connections_.set_events({std::move(events.opened), std::move(events.message), std::move(events.closed)});
  }

  absl::StatusOr<std::string> listen(const std::string& address) override {
    if (listener_ != nullptr) return absl::FailedPreconditionError("already listening");
    const absl::StatusOr<model::Address> parsed = model::parse_address(address);
    if (!parsed.ok()) return parsed.status();
    auto listener = std::make_unique<Listener>(connections_, options_);
    absl::StatusOr<std::string> real = listener->start(*parsed);
    if (real.ok()) listener_ = std::move(listener);
    return real;
  }

  void send(ConnectionId connection, DownMessage message) override {
    connections_.send(connection, std::move(message));
  }
  void close(ConnectionId connection) override { connections_.close(connection); }
  void shutdown() override { listener_.reset(); }

 private:
  const GrpcOptions options_;
  Connections connections_;
  std::unique_ptr<Listener> listener_;  // last: its calls use the connections
};

}  // namespace

std::unique_ptr<DownlinkCarrier> make_grpc_downlink(base::Loop& loop, base::Logger& logger, GrpcOptions options) {
  settle_grpc_log(logger.enabled(base::LogLevel::kDebug));
  return std::make_unique<GrpcDownlink>(loop, logger, options);
}

}  // namespace orla::link
