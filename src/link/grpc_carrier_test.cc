// What only real connections have: peers that die, freeze, are somebody else or talk nonsense.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <string>

#include "base/file_descriptor.h"
#include "base/logger.h"
#include "base/spawner.h"
#include "base/thread_loop.h"
#include "link.grpc.pb.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
namespace wire = ::orla::link::v1;

GrpcOptions quick_to_give_up() {
  GrpcOptions options;
  options.connect_deadline = milliseconds(400);
  options.close_grace = milliseconds(50);
  options.keepalive_timeout = milliseconds(200);
  return options;
}

class GrpcCarrierTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef ORLA_TSAN
    GTEST_SKIP() << "Debian's gRPC is not instrumented";
#endif
  }
  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  base::SilentLogger logger_;
  base::ThreadLoop loop_;
};

// A child carrier that connects once.
class OneConnection {
 public:
  OneConnection(base::ThreadLoop& loop, base::Logger& logger, GrpcOptions options = {}) : loop_(loop) {
    run([&] {
      carrier_ = make_grpc_uplink(loop, logger, options);
      carrier_->set_events({[this](ConnectionId) { connected_.set_value(); }, [](ConnectionId, const DownMessage&) {},
                            [this](ConnectionId, const absl::Status& why) { closed_.set_value(why); }});
    });
  }
  ~OneConnection() {
    run([&] { carrier_.reset(); });
  }
  void connect(const std::string& address) {
    run([&] { id_ = carrier_->connect(address, "parent-1"); });
  }
  void send(const UpMessage& message) {
    run([&] { carrier_->send(id_, message); });
  }
  void close() {
    run([&] { carrier_->close(id_); });
  }
  bool connected() { return connected_future_.wait_for(seconds(10)) == std::future_status::ready; }
  absl::Status closed() {
    if (closed_future_.wait_for(seconds(20)) != std::future_status::ready) return absl::UnknownError("still open");
    return closed_future_.get();
  }

 private:
  template <typename Task>
  void run(Task task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  base::ThreadLoop& loop_;
  std::promise<void> connected_;
  std::promise<absl::Status> closed_;
  std::future<void> connected_future_ = connected_.get_future();
  std::future<absl::Status> closed_future_ = closed_.get_future();
  std::unique_ptr<UplinkCarrier> carrier_;
  ConnectionId id_{};
};

// Not a test: the process that the next ones start, stop and kill.
TEST_F(GrpcCarrierTest, DISABLED_ListensUntilKilled) {
  std::unique_ptr<DownlinkCarrier> carrier;
  on_loop([&] {
    carrier = make_grpc_downlink(loop_, logger_);
    fmt::print("\nlistening at {}\n", carrier->listen("127.0.0.1:0").value_or("?"));
    std::fflush(stdout);
  });
  std::promise<void>().get_future().wait();
}

// That process, and where it listens.
struct Peer {
  base::SystemSpawner spawner;
  std::unique_ptr<base::ChildProcess> process;
  std::string address;

  Peer() {
    base::ProcessSpec spec;
    spec.argv = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                 "--gtest_filter=GrpcCarrierTest.DISABLED_ListensUntilKilled"};
    spec.output = base::Output::pipe();
    absl::StatusOr<std::unique_ptr<base::ChildProcess>> started = spawner.start(spec);
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return;
    process = *std::move(started);
    const std::string mark = "listening at ";
    while (address.empty()) {
      const auto line = process->read_line(base::ChildProcess::Stream::kOutput, seconds(30));
      if (!line.ok()) break;
      if (line->starts_with(mark)) address = line->substr(mark.size());
    }
  }
};

TEST_F(GrpcCarrierTest, AKilledParentIsNoticed) {
  Peer peer;
  ASSERT_NE(peer.address, "");
  OneConnection connection(loop_, logger_);
  connection.connect(peer.address);
  ASSERT_TRUE(connection.connected());
  peer.process->kill();
  const absl::Status why = connection.closed();
  EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("parent-1 at " + peer.address));
}

TEST_F(GrpcCarrierTest, AFrozenParentDoesNotAnswerInTime) {
  Peer peer;
  ASSERT_NE(peer.address, "");
  peer.process->send_signal(SIGSTOP);
  OneConnection connection(loop_, logger_, quick_to_give_up());
  connection.connect(peer.address);
  const absl::Status why = connection.closed();
  EXPECT_EQ(why.code(), absl::StatusCode::kDeadlineExceeded) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("no answer within 400 ms"));
}

TEST_F(GrpcCarrierTest, AFrozenParentHoldsNoChildUp) {
  Peer peer;
  ASSERT_NE(peer.address, "");
  for (const bool closing : {true, false}) {
    OneConnection connection(loop_, logger_, quick_to_give_up());
    connection.connect(peer.address);
    ASSERT_TRUE(connection.connected());
    peer.process->send_signal(SIGSTOP);
    for (std::uint64_t i = 0; i < 20; ++i) connection.send(FrameMessage{i, {}, std::string(1 << 20, 'x')});
    if (closing) {
      connection.close();
      EXPECT_TRUE(connection.closed().ok());
    }
    peer.process->send_signal(closing ? SIGCONT : SIGSTOP);
  }  // destroyed while it writes
}

TEST_F(GrpcCarrierTest, AChildThatReadsNothingHoldsNoParentUp) {
  std::unique_ptr<DownlinkCarrier> carrier;
  std::promise<ConnectionId> opened;
  std::promise<absl::Status> closed;
  std::string address;
  on_loop([&] {
    carrier = make_grpc_downlink(loop_, logger_, quick_to_give_up());
    carrier->set_events({[&](ConnectionId id) { opened.set_value(id); },
                         {},
                         [&](ConnectionId, const absl::Status& why) { closed.set_value(why); }});
    address = carrier->listen("127.0.0.1:0").value_or("");
  });
  const auto stub = wire::Link::NewStub(grpc::CreateChannel("ipv4:" + address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  const ConnectionId id = opened.get_future().get();
  on_loop([&] {
    for (int i = 0; i < 30; ++i) carrier->send(id, Opened{1, true, {}, {}, {{true, std::string(1 << 20, 'x')}}});
    carrier->close(id);
  });
  EXPECT_TRUE(closed.get_future().get().ok());  // cut after the grace
  on_loop([&] { carrier.reset(); });
  context.TryCancel();
  stream->Finish();
}

TEST_F(GrpcCarrierTest, SomebodyElseWhoListensIsNoParent) {
  const base::FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  OneConnection connection(loop_, logger_, quick_to_give_up());
  connection.connect(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)));
  EXPECT_EQ(connection.closed().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(GrpcCarrierTest, AChildThatTalksNonsenseIsToldWhatWasWrong) {
  std::unique_ptr<DownlinkCarrier> carrier;
  std::promise<absl::Status> closed;
  std::string address;
  on_loop([&] {
    carrier = make_grpc_downlink(loop_, logger_);
    carrier->set_events({[](ConnectionId) {}, [](ConnectionId, const UpMessage&) { ADD_FAILURE() << "delivered"; },
                         [&](ConnectionId, const absl::Status& why) { closed.set_value(why); }});
    address = carrier->listen("127.0.0.1:0").value_or("");
  });
  const auto stub = wire::Link::NewStub(grpc::CreateChannel("ipv4:" + address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  wire::Up up;
  up.mutable_dictionary()->add_ids(1);
  EXPECT_TRUE(stream->Write(up));
  wire::Down down;
  EXPECT_FALSE(stream->Read(&down));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("dictionary.shape_of: found 0 elements, expected 1"));
  EXPECT_EQ(closed.get_future().get().code(), absl::StatusCode::kInvalidArgument);
  on_loop([&] { carrier.reset(); });
}

TEST_F(GrpcCarrierTest, AnotherMethodIsRefused) {
  std::unique_ptr<DownlinkCarrier> carrier;
  std::string address;
  on_loop([&] {
    carrier = make_grpc_downlink(loop_, logger_);
    carrier->set_events({[](ConnectionId) { ADD_FAILURE() << "opened"; }, {}, {}});
    address = carrier->listen("127.0.0.1:0").value_or("");
  });
  const auto channel = grpc::CreateChannel("ipv4:" + address, grpc::InsecureChannelCredentials());
  const grpc::internal::RpcMethod method("/orla.link.v1.Link/Other", nullptr, grpc::internal::RpcMethod::NORMAL_RPC);
  grpc::ClientContext context;
  wire::Up up;
  wire::Down down;
  const grpc::Status status = grpc::internal::BlockingUnaryCall(channel.get(), method, &context, up, &down);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("Link/Other"));
  on_loop([&] { carrier.reset(); });
}

TEST_F(GrpcCarrierTest, IPv6LoopbackWorks) {
  std::unique_ptr<DownlinkCarrier> carrier;
  absl::StatusOr<std::string> address;
  on_loop([&] {
    carrier = make_grpc_downlink(loop_, logger_);
    address = carrier->listen("[::1]:0");
  });
  if (!address.ok()) {
    on_loop([&] { carrier.reset(); });
    GTEST_SKIP() << "no IPv6 here: " << address.status();
  }
  {
    OneConnection connection(loop_, logger_);
    connection.connect(*address);
    EXPECT_TRUE(connection.connected());
  }
  on_loop([&] { carrier.reset(); });
}

}  // namespace
}  // namespace orla::link
