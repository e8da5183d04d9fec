// What every carrier promises, over each of them.
#include "link/carrier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "base/logger.h"
#include "link/grpc_downlink.h"
#include "link/grpc_uplink.h"
#include "link/memory_carrier.h"
#include "link/proto_codec.h"
#include "link/recording_end.h"
#include "link/send_queue.h"

namespace orla::link {
namespace {

using testing::HasSubstr;

enum class Kind { kMemory, kMemoryProto, kGrpc };

class CarrierTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
#ifdef ORLA_TSAN
    if (GetParam() == Kind::kGrpc) GTEST_SKIP() << "Debian's gRPC is not instrumented";
#endif
  }
  std::unique_ptr<Child> child() {
    return std::make_unique<Child>([this](base::Loop& loop) {
      return GetParam() == Kind::kGrpc ? make_grpc_uplink(loop, logger_) : make_memory_uplink(network_, loop, how());
    });
  }
  std::unique_ptr<Parent> parent() {
    return std::make_unique<Parent>([this](base::Loop& loop) {
      return GetParam() == Kind::kGrpc ? make_grpc_downlink(loop, logger_)
                                       : make_memory_downlink(network_, loop, how());
    });
  }
  static std::string listen(Parent& parent, const std::string& address = "127.0.0.1:0") {
    const absl::StatusOr<std::string> real = parent.with([&](DownlinkCarrier& c) { return c.listen(address); });
    EXPECT_TRUE(real.ok()) << real.status();
    return real.value_or("");
  }
  static ConnectionId connect(Child& child, const std::string& address) {
    return child.with([&](UplinkCarrier& c) { return c.connect(address, "parent"); });
  }

  base::SilentLogger logger_;
  const std::shared_ptr<MemoryNetwork> network_ = make_memory_network();

 private:
  Marshalling how() const { return GetParam() == Kind::kMemoryProto ? Marshalling::kProto : Marshalling::kNone; }
};

UpMessage frame(std::uint64_t id, std::size_t bytes = 20) {
  return FrameMessage{id, {}, std::string(bytes, static_cast<char>('a' + id % 26))};
}
DownMessage answer(std::uint64_t id, std::size_t bytes = 0) {
  Opened opened{id, true, {"edge", model::Epoch{1}, 2, {3, 4}}, 5, {}};
  if (bytes > 0) opened.states.push_back({true, std::string(bytes, static_cast<char>('a' + id % 26))});
  return opened;
}

TEST_P(CarrierTest, CarriesMessagesBothWaysUntilTheChildCloses) {
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  EXPECT_EQ(low->wait_opened(), id);
  const ConnectionId at_parent = up->wait_opened();
  const UpMessage hello = Hello{1, 2, "fleet", "edge", model::Layer::kAggregator};
  low->with([&](UplinkCarrier& c) { c.send(id, hello); });
  EXPECT_TRUE(up->wait_messages(at_parent, 1).at(0) == hello);
  const DownMessage welcome = Welcome{1, 0, "cloud", 100, 1 << 20};
  up->with([&](DownlinkCarrier& c) { c.send(at_parent, welcome); });
  EXPECT_TRUE(low->wait_messages(id, 1).at(0) == welcome);
  low->with([&](UplinkCarrier& c) { c.close(id); });
  EXPECT_TRUE(low->wait_closed(id).ok()) << low->wait_closed(id);
  EXPECT_TRUE(up->wait_closed(at_parent).ok()) << up->wait_closed(at_parent);
}

TEST_P(CarrierTest, KeepsTheOrderBothWays) {
  constexpr std::size_t kMessages = 2000;
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  low->with([&](UplinkCarrier& c) {  // before it is connected
    for (std::size_t i = 0; i < kMessages; ++i) c.send(id, frame(i));
  });
  const ConnectionId at_parent = up->wait_opened();
  up->with([&](DownlinkCarrier& c) {
    for (std::size_t i = 0; i < kMessages; ++i) c.send(at_parent, answer(i));
  });
  const std::vector<UpMessage> ups = up->wait_messages(at_parent, kMessages);
  const std::vector<DownMessage> downs = low->wait_messages(id, kMessages);
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(ups.at(i) == frame(i)) << i;
    ASSERT_TRUE(downs.at(i) == answer(i)) << i;
  }
}

TEST_P(CarrierTest, CarriesLargeMessages) {
  constexpr std::size_t kBytes = 6 << 20;
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  const ConnectionId at_parent = up->wait_opened();
  low->with([&](UplinkCarrier& c) {
    for (std::size_t i = 0; i < 3; ++i) c.send(id, frame(i, kBytes));
  });
  up->with([&](DownlinkCarrier& c) { c.send(at_parent, answer(1, kBytes)); });
  const std::vector<UpMessage> ups = up->wait_messages(at_parent, 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(ups.at(i) == frame(i, kBytes)) << i;
  EXPECT_TRUE(low->wait_messages(id, 1).at(0) == answer(1, kBytes));
}

TEST_P(CarrierTest, AClosingParentFirstSendsWhatIsQueued) {
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  const ConnectionId at_parent = up->wait_opened();
  up->with([&](DownlinkCarrier& c) {
    for (std::size_t i = 0; i < 200; ++i) c.send(at_parent, answer(i, 1000));
    c.close(at_parent);
    c.send(at_parent, answer(1));  // dropped
  });
  EXPECT_TRUE(low->wait_closed(id).ok()) << low->wait_closed(id);
  EXPECT_TRUE(up->wait_closed(at_parent).ok()) << up->wait_closed(at_parent);
  const std::vector<DownMessage> got = low->wait_messages(id, 200);
  ASSERT_EQ(got.size(), 200u);
  EXPECT_TRUE(got.back() == answer(199, 1000));
}

TEST_P(CarrierTest, AClosingChildFirstSendsWhatIsQueued) {
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  low->wait_opened();
  const ConnectionId at_parent = up->wait_opened();
  low->with([&](UplinkCarrier& c) {
    for (std::size_t i = 0; i < 200; ++i) c.send(id, frame(i, 1000));
    c.close(id);
    c.send(id, frame(1));  // dropped
    c.close(id);           // nothing
  });
  EXPECT_TRUE(low->wait_closed(id).ok());
  EXPECT_TRUE(up->wait_closed(at_parent).ok());
  const std::vector<UpMessage> got = up->wait_messages(at_parent, 200);
  ASSERT_EQ(got.size(), 200u);
  EXPECT_TRUE(got.back() == frame(199, 1000));
}

TEST_P(CarrierTest, WhatComesAfterTheEndIsDropped) {
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  const ConnectionId at_parent = up->wait_opened();
  low->wait_opened();
  up->with([&](DownlinkCarrier& c) { c.close(at_parent); });
  low->wait_end(id);
  up->wait_end(at_parent);
  low->with([&](UplinkCarrier& c) {
    c.send(id, frame(1));
    c.send(ConnectionId{12345}, frame(1));
    c.close(id);
    EXPECT_EQ(c.queued_bytes(id), 0u);
  });
  up->with([&](DownlinkCarrier& c) {
    c.send(at_parent, answer(1));
    c.close(at_parent);
  });
  const ConnectionId second = connect(*low, listen(*parent()));
  EXPECT_NE(second, id);
  low->wait_end(second);  // its parent is gone already
}

TEST_P(CarrierTest, KeepsManyConnectionsApart) {
  constexpr std::size_t kConnections = 40;
  const auto up = parent();
  const auto low = child();
  const std::string address = listen(*up);
  std::vector<ConnectionId> ids;
  for (std::size_t i = 0; i < kConnections; ++i) {
    ids.push_back(connect(*low, address));
    low->with([&](UplinkCarrier& c) { c.send(ids.back(), frame(i)); });
  }
  up->wait_opened(kConnections - 1);
  std::set<std::uint64_t> seen;
  for (const ConnectionId at_parent : up->opened()) {
    const std::uint64_t got = std::get<FrameMessage>(up->wait_messages(at_parent, 1).at(0)).id;
    seen.insert(got);
    up->with([&](DownlinkCarrier& c) { c.send(at_parent, answer(got)); });
  }
  EXPECT_EQ(seen.size(), kConnections);
  for (std::size_t i = 0; i < kConnections; ++i) EXPECT_TRUE(low->wait_messages(ids[i], 1).at(0) == answer(i));
}

TEST_P(CarrierTest, SurvivesAStormOfReconnects) {
  constexpr int kRounds = 60;
  const auto up = parent();
  const auto low = child();
  const std::string address = listen(*up);
  std::vector<ConnectionId> ids;
  for (int i = 0; i < kRounds; ++i) {
    ids.push_back(connect(*low, address));
    if (i % 3 == 0) low->wait_open(ids.back());
    low->with([&](UplinkCarrier& c) {
      c.send(ids.back(), frame(1, 10'000));
      c.close(ids.back());
    });
  }
  for (const ConnectionId id : ids) EXPECT_TRUE(low->wait_closed(id).ok());
  EXPECT_EQ(low->count_closed(), ids.size());
  const ConnectionId last = connect(*low, address);  // and then it works as ever
  low->wait_open(last);
  low->with([&](UplinkCarrier& c) { c.close(last); });
  EXPECT_TRUE(low->wait_closed(last).ok());
  for (const ConnectionId at_parent : up->opened()) up->wait_end(at_parent);
}

TEST_P(CarrierTest, HeartbeatsOvertakeWhatIsQueued) {
  constexpr std::size_t kFrames = 60;
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  const ConnectionId at_parent = up->wait_opened();
  low->wait_opened();
  std::promise<void> release = up->block();  // so that the network fills
  low->with([&](UplinkCarrier& c) {
    for (std::size_t i = 0; i < kFrames; ++i) c.send(id, frame(i, 1 << 20));
    c.send(id, Heartbeat{});
    c.send(id, Heartbeat{});  // one that waits is enough
    EXPECT_GT(c.queued_bytes(id), std::size_t{1} << 20);
  });
  release.set_value();
  EXPECT_EQ(up->wait_messages(at_parent, kFrames).size(), kFrames);
  EXPECT_LT(up->wait_heartbeats(at_parent, 1).front().messages_before, kFrames - 5);
  low->wait_messages(id, 0);
  while (low->with([&](UplinkCarrier& c) { return c.queued_bytes(id); }) > 0) std::this_thread::yield();
}

TEST_P(CarrierTest, AQueueThatNobodyEmptiesEndsTheConnection) {
  const auto up = parent();
  const auto low = child();
  const ConnectionId id = connect(*low, listen(*up));
  up->wait_opened();
  std::promise<void> release = up->block();
  // The network itself takes some, how much is its own affair.
  for (std::size_t mib = 0; mib < 4 * (kMaxQueuedBytes >> 20) && low->count_closed() == 0; mib += 16) {
    low->with([&](UplinkCarrier& c) {
      for (std::size_t i = 0; i < 16; ++i) c.send(id, frame(i, 1 << 20));
    });
  }
  EXPECT_EQ(low->wait_closed(id).code(), absl::StatusCode::kResourceExhausted);
  release.set_value();
}

TEST_P(CarrierTest, NobodyListening) {
  const auto up = parent();
  const std::string address = listen(*up);
  up->with([](DownlinkCarrier& c) { c.shutdown(); });
  const auto low = child();
  const ConnectionId id = connect(*low, address);
  const absl::Status why = low->wait_closed(id);
  EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr(address));
  EXPECT_TRUE(low->opened().empty());
}

TEST_P(CarrierTest, OnlyLoopbackAddresses) {
  const auto up = parent();
  for (const char* address : {"0.0.0.0:0", "192.0.2.1:7411", "127.0.0.1", "nonsense"}) {
    const absl::StatusOr<std::string> real = up->with([&](DownlinkCarrier& c) { return c.listen(address); });
    EXPECT_EQ(real.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
  const auto low = child();
  EXPECT_FALSE(low->wait_closed(connect(*low, "192.0.2.1:7411")).ok());
}

TEST_P(CarrierTest, AnAddressInUseIsAnErrorThatNamesIt) {
  const auto first = parent();
  const auto second = parent();
  const std::string address = listen(*first);
  const absl::StatusOr<std::string> real = second->with([&](DownlinkCarrier& c) { return c.listen(address); });
  EXPECT_EQ(real.status().code(), absl::StatusCode::kAlreadyExists) << real.status();
  EXPECT_THAT(std::string(real.status().message()), HasSubstr(address));
  EXPECT_THAT(std::string(real.status().message()), HasSubstr("in use"));
  first->with([](DownlinkCarrier& c) { c.shutdown(); });
  EXPECT_EQ(listen(*second, address), address);
}

TEST_P(CarrierTest, ShutdownEndsWhatIsOpenAndListeningCanBeginAgain) {
  const auto up = parent();
  const auto low = child();
  const std::string address = listen(*up);
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(connect(*low, address));
  up->wait_opened(4);
  low->with([&](UplinkCarrier& c) {
    for (const ConnectionId id : ids) c.send(id, frame(1, 5 << 20));
  });
  up->with([](DownlinkCarrier& c) {
    c.shutdown();
    c.shutdown();
  });
  for (const ConnectionId id : ids) low->wait_end(id);
  for (const ConnectionId at_parent : up->opened()) up->wait_end(at_parent);
  EXPECT_EQ(listen(*up, address), address);
  const ConnectionId again = connect(*low, address);
  low->with([&](UplinkCarrier& c) { c.send(again, frame(3)); });
  const ConnectionId at_parent = up->wait_opened(5);
  EXPECT_TRUE(up->wait_messages(at_parent, 1).at(0) == frame(3));
}

TEST_P(CarrierTest, EitherSideMayBeDestroyedInTheMidstOfTraffic) {
  for (const bool child_first : {true, false}) {
    const auto up = parent();
    const auto low = child();
    const std::string address = listen(*up);
    std::vector<ConnectionId> ids;
    for (int i = 0; i < 4; ++i) ids.push_back(connect(*low, address));
    up->wait_opened(3);
    for (const ConnectionId at_parent : up->opened()) {
      up->with([&](DownlinkCarrier& c) {
        for (std::size_t i = 0; i < 20; ++i) c.send(at_parent, answer(i, 100'000));
      });
    }
    low->with([&](UplinkCarrier& c) {
      for (const ConnectionId id : ids) {
        for (std::size_t i = 0; i < 20; ++i) c.send(id, frame(i, 100'000));
      }
    });
    if (child_first) {
      low->destroy();
      for (const ConnectionId at_parent : up->opened()) up->wait_end(at_parent);
    } else {
      up->destroy();
      for (const ConnectionId id : ids) EXPECT_EQ(low->wait_closed(id).code(), absl::StatusCode::kUnavailable);
    }
  }
}

TEST_P(CarrierTest, ALoopThatHasStoppedHoldsNothingUp) {
  const auto up = parent();
  auto low = std::make_unique<base::ThreadLoop>();
  std::unique_ptr<UplinkCarrier> carrier =
      GetParam() == Kind::kGrpc ? make_grpc_uplink(*low, logger_) : make_memory_uplink(network_, *low);
  const ConnectionId id = carrier->connect(listen(*up), "parent");
  const ConnectionId at_parent = up->wait_opened();
  up->with([&](DownlinkCarrier& c) {
    for (std::size_t i = 0; i < 100; ++i) c.send(at_parent, answer(i, 100'000));
  });
  carrier->send(id, frame(1));
  low->stop();
  carrier.reset();
  up->wait_end(at_parent);
}

TEST_P(CarrierTest, AMessageThatCannotBeSentEndsItsConnectionOnly) {
  if (GetParam() == Kind::kMemory) GTEST_SKIP() << "has no bytes";
  const auto up = parent();
  const auto low = child();
  const std::string address = listen(*up);
  const ConnectionId good = connect(*low, address);
  const ConnectionId bad = connect(*low, address);
  up->wait_opened(1);
  low->wait_opened(1);
  low->with([&](UplinkCarrier& c) {
    c.send(bad, frame(1, kMaxMessageBytes + 1));
    c.send(good, frame(2));
  });
  EXPECT_EQ(low->wait_closed(bad).code(), absl::StatusCode::kResourceExhausted);
  low->with([&](UplinkCarrier& c) { c.close(good); });
  EXPECT_TRUE(low->wait_closed(good).ok());
  for (const ConnectionId at_parent : up->opened()) up->wait_end(at_parent);
}

INSTANTIATE_TEST_SUITE_P(Over, CarrierTest, testing::Values(Kind::kMemory, Kind::kMemoryProto, Kind::kGrpc),
                         [](const testing::TestParamInfo<Kind>& info) {
                           switch (info.param) {
                             case Kind::kMemory:
                               return "Memory";
                             case Kind::kMemoryProto:
                               return "MemoryProto";
                             case Kind::kGrpc:
                               return "Grpc";
                           }
                           return "?";
                         });

}  // namespace
}  // namespace orla::link
