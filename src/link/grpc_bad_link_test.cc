// gRPC over links that are slow, flap or go silent, and nodes that are too busy to say that they live.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "base/logger.h"
#include "base/random.h"
#include "link.grpc.pb.h"
#include "link/downlink.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"
#include "link/proto_codec.h"
#include "link/recording_end.h"
#include "link/relay_for_tests.h"
#include "link/uplink.h"
#include "model/address.h"

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
namespace wire = ::orla::link::v1;
using Clock = std::chrono::steady_clock;

GrpcOptions quick(milliseconds heartbeat = milliseconds(100)) {
  GrpcOptions options;
  options.heartbeat = heartbeat;
  options.close_grace = milliseconds(50);
  return options;
}

std::uint16_t port_of(const std::string& address) { return model::parse_address(address)->port; }

class BadLink : public testing::Test {
 protected:
  void SetUp() override {
#ifdef ORLA_TSAN
    GTEST_SKIP() << "Debian's gRPC is not instrumented";
#endif
  }
  std::unique_ptr<Parent> parent(GrpcOptions options = quick()) {
    return std::make_unique<Parent>([&](base::Loop& loop) { return make_grpc_downlink(loop, logger_, options); });
  }
  std::unique_ptr<Child> child(GrpcOptions options = quick()) {
    return std::make_unique<Child>([&](base::Loop& loop) { return make_grpc_uplink(loop, logger_, options); });
  }
  static std::string listen(Parent& parent) {
    return parent.with([](DownlinkCarrier& c) { return c.listen("127.0.0.1:0"); }).value_or("");
  }
  base::SilentLogger logger_;
};

std::string content(std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 2'654'435'761U >> 13);
  return out;
}

// The longest time without a sign of life between two moments.
template <typename Signs>
milliseconds longest_silence(const Signs& signs, Clock::time_point from, Clock::time_point to) {
  Clock::time_point before = from;
  Clock::duration longest{0};
  for (const auto& sign : signs) {
    if (sign.at < from || sign.at > to) continue;
    longest = std::max(longest, sign.at - before);
    before = sign.at;
  }
  return std::chrono::duration_cast<milliseconds>(std::max(longest, to - before));
}

// 50 kB/s, a backlog of three seconds, one way and the other. The numbers of a link of 50 kbit/s with 2 MB of it are
// the same but for the time that it takes.
TEST_F(BadLink, ABacklogOnASlowLinkLeavesRoomForSignsOfLife) {
  constexpr std::size_t kRate = 50'000;
  constexpr std::size_t kBytes = 150'000;
  for (const bool upwards : {true, false}) {
    SCOPED_TRACE(upwards ? "child to parent" : "parent to child");
    const auto up = parent();
    RelayForTests relay(port_of(listen(*up)));
    relay.set_rate(kRate);
    relay.set_delay(milliseconds(20));
    const auto low = child();
    const ConnectionId id = low->with([&](UplinkCarrier& c) { return c.connect(relay.address(), "parent"); });
    low->wait_open(id);
    const ConnectionId at_parent = up->wait_opened();
    low->with([&](UplinkCarrier& c) { c.send(id, Hello{1, 0, "fleet", "child", model::Layer::kEdge}); });
    up->with([&](DownlinkCarrier& c) { c.send(at_parent, Welcome{1, 0, "parent", 100, 1 << 20}); });
    low->wait_messages(id, 1);
    const Clock::time_point begin = Clock::now();
    if (upwards) {
      low->with([&](UplinkCarrier& c) {
        for (int i = 0; i < 2; ++i) c.send(id, FrameMessage{1, {}, content(kBytes / 2)});
      });
    } else {
      up->with([&](DownlinkCarrier& c) {
        for (int i = 0; i < 2; ++i) c.send(at_parent, Opened{1, true, {}, {}, {{true, content(kBytes / 2)}}});
      });
    }
    if (upwards) {
      // Half of it is with the carrier half of the time: neither gRPC nor the kernel has swallowed it.
      while (Clock::now() - begin < seconds(1)) std::this_thread::sleep_for(milliseconds(10));
      EXPECT_GT(low->with([&](UplinkCarrier& c) { return c.queued_bytes(id); }), kBytes / 2);
    }
    if (upwards) {
      const std::vector<UpMessage> got = up->wait_messages(at_parent, 3);
      ASSERT_EQ(got.size(), 3U);
      EXPECT_TRUE(got[1] == UpMessage(FrameMessage{1, {}, content(kBytes / 2)}));
      EXPECT_TRUE(got[2] == got[1]);
    } else {
      const std::vector<DownMessage> got = low->wait_messages(id, 3);
      ASSERT_EQ(got.size(), 3U);
      EXPECT_EQ(std::get<Opened>(got[1]).states.at(0).bytes, content(kBytes / 2));
      EXPECT_TRUE(got[2] == got[1]);
    }
    const Clock::time_point end = Clock::now();
    const double took = std::chrono::duration<double>(end - begin).count();
    EXPECT_GT(took, 0.9 * kBytes / kRate);
    EXPECT_LT(took, 2.0 * kBytes / kRate) << "the link was not used";
    // Both ends heard of the other all the time.
    EXPECT_LT(longest_silence(up->wait_heartbeats(at_parent, 1), begin, end), milliseconds(800));
    EXPECT_LT(longest_silence(low->wait_heartbeats(id, 1), begin, end), milliseconds(800));
  }
}

// The peer of a busy loop hears heartbeats, until the loop has run nothing for the limit.
TEST_F(BadLink, ABusyLoopIsSpokenForWithinTheLimit) {
  for (const bool parent_is_busy : {true, false}) {
    SCOPED_TRACE(parent_is_busy ? "parent" : "child");
    GrpcOptions options = quick(milliseconds(50));
    options.stall_limit = milliseconds(1'000);
    const auto up = parent(options);
    const auto low = child(options);
    const std::string address = listen(*up);
    const ConnectionId id = low->with([&](UplinkCarrier& c) { return c.connect(address, "parent"); });
    const ConnectionId at_parent = up->wait_opened();
    low->with([&](UplinkCarrier& c) { c.send(id, Hello{1, 0, "fleet", "child", model::Layer::kEdge}); });
    up->wait_messages(at_parent, 1);
    up->with([&](DownlinkCarrier& c) { c.send(at_parent, Welcome{1, 0, "parent", 100, 1 << 20}); });
    low->wait_messages(id, 1);
    std::promise<void> release = parent_is_busy ? up->block() : low->block();
    const Clock::time_point begin = Clock::now();
    while (Clock::now() - begin < milliseconds(2'500)) std::this_thread::sleep_for(milliseconds(10));
    release.set_value();
    std::size_t within = 0;
    std::size_t after = 0;
    const auto count = [&](const auto& signs) {
      for (const auto& sign : signs) {
        if (sign.at >= begin && sign.at < begin + milliseconds(1'000)) ++within;
        if (sign.at >= begin + milliseconds(1'600) && sign.at < begin + milliseconds(2'400)) ++after;
      }
    };
    if (parent_is_busy) {
      count(low->wait_heartbeats(id, 1));
    } else {
      count(up->wait_heartbeats(at_parent, 1));
    }
    EXPECT_GE(within, 8U);
    EXPECT_EQ(after, 0U);
  }
}

// Whole sessions, with everything that ends one.
class Sessions : public BadLink {
 protected:
  static constexpr milliseconds kHeartbeat{100};
  static constexpr milliseconds kTimeout{1'000};

  struct Node {
    std::unique_ptr<base::ThreadLoop> loop = std::make_unique<base::ThreadLoop>();
    template <typename Task>
    void on_loop(Task task) {
      std::promise<void> done;
      loop->post([&] {
        task();
        done.set_value();
      });
      done.get_future().wait();
    }
    template <typename T>
    static void tick(Node& node, T& what) {
      what.tick();
      node.loop->post_after(milliseconds(10), [&node, &what] {
        if (!node.stopped) tick(node, what);
      });
    }
    bool stopped = false;  // on the loop
  };

  void start(const std::string& address_of_parent = "") {
    above_.on_loop([&] {
      down_carrier_ = make_grpc_downlink(*above_.loop, logger_, quick(kHeartbeat));
      DownlinkSettings settings;
      settings.fleet = "fleet";
      settings.node = "parent";
      settings.heartbeat = kHeartbeat;
      settings.child_timeout = kTimeout;
      settings.credit_bytes = 1 << 20;
      downlink_ = std::make_unique<Downlink>(
          settings, *down_carrier_, clock_,
          Downlink::Callbacks{[](const DownlinkCore::ChildUp&) {}, [this](const DownlinkCore::ChildDown&) { ++lost_; },
                              [this](ConnectionId from, UpMessage message) {
                                if (auto* frame = std::get_if<FrameMessage>(&message)) answer(from, *frame);
                              }});
      address_ = downlink_->listen("127.0.0.1:0").value_or("");
      Node::tick(above_, *downlink_);
    });
    relay_ = std::make_unique<RelayForTests>(port_of(address_));
    const std::string parent = address_of_parent.empty() ? relay_->address() : address_of_parent;
    below_.on_loop([&] {
      up_carrier_ = make_grpc_uplink(*below_.loop, logger_, quick(kHeartbeat));
      UplinkSettings settings;
      settings.fleet = "fleet";
      settings.node = "child";
      settings.parents = {{{"parent", parent}}};
      settings.heartbeat = kHeartbeat;
      settings.parent_timeout = kTimeout;
      settings.backoff_min = milliseconds(20);
      settings.backoff_max = milliseconds(40);
      uplink_ = std::make_unique<Uplink>(settings, *up_carrier_, clock_, random_,
                                         Uplink::Callbacks{[this](const UplinkCore::SessionUp&) {
                                                             ++sessions_;
                                                             send_next();
                                                           },
                                                           [this](const UplinkCore::SessionDown& down) {
                                                             ended_ = Clock::now();
                                                             reason_ = down.reason;
                                                             ++ends_;
                                                           },
                                                           [this](const DownMessage& message) {
                                                             const auto* opened = std::get_if<Opened>(&message);
                                                             if (opened == nullptr || opened->request != next_) return;
                                                             ++next_;
                                                             send_next();
                                                           },
                                                           {}});
      uplink_->start();
      Node::tick(below_, *uplink_);
    });
    wait([&] { return sessions_ == 1; });
  }
  // As an outbox: one at a time, again after a new session.
  void send_next() {
    if (next_ <= last_) uplink_->send(FrameMessage{next_, {}, std::string(20'000, 'x')});
  }
  // The parent says that it has the frame, as it would of a chunk.
  void answer(ConnectionId to, const FrameMessage& frame) { downlink_->send(to, Opened{frame.id, true, {}, {}, {}}); }
  template <typename Condition>
  void wait(Condition condition) {
    const Clock::time_point deadline = Clock::now() + seconds(30);
    while (!condition()) {
      ASSERT_LT(Clock::now(), deadline) << "waited in vain";
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  void TearDown() override {
    for (Node* node : {&below_, &above_}) {
      node->on_loop([&] { node->stopped = true; });
    }
    below_.on_loop([&] {
      uplink_.reset();
      up_carrier_.reset();
    });
    relay_.reset();
    above_.on_loop([&] {
      downlink_.reset();
      down_carrier_.reset();
    });
  }

  const base::SystemClock clock_;
  base::SeededRandom random_{1};
  Node above_;
  Node below_;
  std::unique_ptr<DownlinkCarrier> down_carrier_;
  std::unique_ptr<Downlink> downlink_;
  std::unique_ptr<RelayForTests> relay_;
  std::unique_ptr<UplinkCarrier> up_carrier_;
  std::unique_ptr<Uplink> uplink_;
  std::string address_;
  std::string reason_;
  std::atomic<Clock::time_point> ended_{Clock::time_point{}};
  std::atomic<int> sessions_ = 0;
  std::atomic<int> ends_ = 0;
  std::atomic<int> lost_ = 0;
  std::atomic<std::uint64_t> next_ = 1;  // the frame to be answered next
  std::uint64_t last_ = 0;
};

TEST_F(Sessions, ASilentLinkIsNoticedByBothEnds) {
  start();
  const Clock::time_point begin = Clock::now();
  relay_->freeze();
  wait([&] { return ends_ >= 1 && lost_ == 1; });
  EXPECT_THAT(reason_, HasSubstr("nothing heard for "));
  EXPECT_GE(ended_.load() - begin, kTimeout - kHeartbeat - milliseconds(100));
  EXPECT_LT(ended_.load() - begin, kTimeout + seconds(1));
  relay_->thaw();
  wait([&] { return sessions_ >= 2; });
}

TEST_F(Sessions, ACutIsNoticedAtOnceByBothEnds) {
  start();
  const Clock::time_point begin = Clock::now();
  relay_->down();
  wait([&] { return ends_ >= 1 && lost_ == 1; });
  EXPECT_LT(Clock::now() - begin, kTimeout - kHeartbeat);
  relay_->up();
  wait([&] { return sessions_ >= 2; });
}

// Up for 300 ms, down for 300 ms.
TEST_F(Sessions, AFlappingLinkDrains) {
  last_ = 200;
  start();
  relay_->set_delay(milliseconds(2));
  relay_->flap(milliseconds(300));
  wait([&] { return next_ > last_; });
  EXPECT_GT(sessions_, 1) << "the link did not flap";
}

TEST_F(Sessions, ABusyNodeLosesNobody) {
  start();
  for (Node* node : {&above_, &below_}) {
    // Twice as long as silence is borne.
    node->loop->post([] { std::this_thread::sleep_for(2 * kTimeout); });
    node->on_loop([] {});
    std::this_thread::sleep_for(3 * kHeartbeat);
  }
  EXPECT_EQ(ends_, 0) << reason_;
  EXPECT_EQ(lost_, 0);
}

// ---- what a peer gets wrong ----

class BadPeer : public BadLink {
 protected:
  // Says `ups` to a parent; how the parent ends the call.
  grpc::Status say(const std::vector<wire::Up>& ups) {
    const auto up = parent();
    const auto stub = wire::Link::NewStub(
        grpc::CreateChannel(fmt::format("ipv4:{}", listen(*up)), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    const auto stream = stub->Connect(&context);
    for (const wire::Up& one : ups) {
      if (!stream->Write(one)) break;
    }
    wire::Down down;
    while (stream->Read(&down)) {
    }
    const ConnectionId id = up->wait_opened();
    EXPECT_FALSE(up->wait_closed(id).ok());
    EXPECT_TRUE(up->wait_messages(id, 0).empty());
    return stream->Finish();
  }
};

TEST_F(BadPeer, APieceOfNothing) {
  wire::Up up;
  up.mutable_piece();
  const grpc::Status status = say({up});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("piece.content: found nothing"));
}

TEST_F(BadPeer, PiecesWithoutEnd) {
  wire::Up up;
  up.mutable_piece()->set_content(std::string(1 << 20, 'x'));
  const grpc::Status status = say(std::vector<wire::Up>(40, up));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr(fmt::format("at most {}", kMaxMessageBytes)));
}

TEST_F(BadPeer, APieceOfPieces) {
  wire::Up inner;
  inner.mutable_piece()->set_content("x");
  wire::Up up;
  up.mutable_piece()->set_content(inner.SerializeAsString());
  up.mutable_piece()->set_last(true);
  const grpc::Status status = say({up});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("one inside another message"));
}

TEST_F(BadPeer, AConfirmationOfWhatWasNotSent) {
  wire::Up up;
  up.mutable_received()->set_bytes(1'000);
  const grpc::Status status = say({up});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("received.bytes: found 1000, expected 0 to 0"));
}

}  // namespace
}  // namespace orla::link
