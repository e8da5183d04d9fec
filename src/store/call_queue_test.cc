#include "store/call_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace orla::store {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr base::WallTime kStart{std::chrono::hours(24 * 365 * 50)};
constexpr std::chrono::nanoseconds kLongest{seconds(600)};
constexpr const char* kFunction = "f.openfaas-fn";

QueuedCall call(std::string id, std::string function = kFunction) {
  QueuedCall call;
  call.id = std::move(id);
  call.function = std::move(function);
  call.path = "/a";
  call.query = "b=c";
  call.headers = {{"X-Twice", "1"}, {"X-Twice", std::string("\0\xff", 2)}};
  call.body = std::string("body\0\n", 6);
  call.callback = "http://example.org/";
  return call;
}

class CallQueueTest : public ::testing::Test {
 protected:
  CallQueueTest() : directory_(::testing::TempDir() + "/call_queue_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    open();
  }
  ~CallQueueTest() override {
    queue_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open(CallQueueLimits limits = {}) {
    queue_.reset();
    auto queue = CallQueue::open(directory_ + "/calls.db", Fsync::kOff, limits);
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
  }
  template <typename What>
  auto together(What what) {
    EXPECT_TRUE(queue_->begin().ok());
    auto result = what();
    EXPECT_TRUE(queue_->commit().ok());
    return result;
  }
  void add(const QueuedCall& call, base::WallTime now = kStart) {
    const auto added = together([&] { return queue_->add(call, now); });
    ASSERT_TRUE(added.ok()) << added.status();
    ASSERT_EQ(*added, CallQueue::Added::kNew);
  }
  std::vector<std::string> lease(base::WallTime now, std::size_t most = 100, std::string_view function = kFunction) {
    std::vector<std::string> ids;
    EXPECT_TRUE(together([&] { return queue_->limit_waits(now, kLongest); }).ok());
    const auto calls = together([&] { return queue_->lease(function, now, most); });
    EXPECT_TRUE(calls.ok()) << calls.status();
    for (const QueuedCall& call : *calls) ids.push_back(call.id);
    return ids;
  }

  const std::string directory_;
  std::unique_ptr<CallQueue> queue_;
};

TEST_F(CallQueueTest, ACallComesBackAsItWasAndOnce) {
  add(call("1"));
  EXPECT_EQ(queue_->lengths().at("f.openfaas-fn"), 1);
  const auto calls = together([&] { return queue_->lease(kFunction, kStart, 10); });
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 1);
  const QueuedCall& found = calls->front();
  const QueuedCall wanted = call("1");
  EXPECT_EQ(found.function, wanted.function);
  EXPECT_EQ(found.path, wanted.path);
  EXPECT_EQ(found.query, wanted.query);
  EXPECT_EQ(found.headers, wanted.headers);
  EXPECT_EQ(found.body, wanted.body);
  EXPECT_EQ(found.callback, wanted.callback);
  EXPECT_EQ(found.accepted, kStart);
  EXPECT_EQ(found.attempts, 1);
  EXPECT_THAT(lease(kStart + seconds(1000)), IsEmpty());
  EXPECT_TRUE(together([&] { return queue_->finish("1"); }).ok());
  EXPECT_THAT(queue_->lengths(), IsEmpty());
  EXPECT_EQ(queue_->calls(), 0);
  EXPECT_EQ(queue_->bytes(), 0);
}

// An answer is kept, whatever happens to the process, until the callback is over; its call is not made again.
TEST_F(CallQueueTest, AnAnswerWaitsToBeCalledBack) {
  add(call("1"));
  EXPECT_THAT(lease(kStart), ElementsAre("1"));
  const CallAnswer answer{201, {{"A", "b"}}, std::string("c\0d", 3), 1.5, 7, CallAnswer::Then::kOver, ""};
  EXPECT_TRUE(together([&] { return queue_->answer("1", answer, kStart); }).ok());
  EXPECT_THAT(queue_->lengths(), IsEmpty());
  EXPECT_EQ(queue_->answered_count(), 1U);
  EXPECT_EQ(queue_->next_due().value(), kStart);
  const auto due = [&](base::WallTime now) {
    auto calls = together([&] { return queue_->lease_answered(now, 10); });
    EXPECT_TRUE(calls.ok()) << calls.status();
    return *std::move(calls);
  };
  for (const std::uint32_t tries : {1U, 2U}) {
    const std::vector<AnsweredCall> calls = due(kStart);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls[0].id, "1");
    EXPECT_EQ(calls[0].callback, "http://example.org/");
    EXPECT_EQ(calls[0].attempts, 1U);
    EXPECT_EQ(calls[0].tries, tries);
    EXPECT_EQ(calls[0].answer.status, 201);
    EXPECT_EQ(calls[0].answer.headers, answer.headers);
    EXPECT_EQ(calls[0].answer.body, answer.body);
    EXPECT_EQ(calls[0].answer.seconds, 1.5);
    EXPECT_EQ(calls[0].answer.most_attempts, 7U);
    EXPECT_THAT(due(kStart), IsEmpty());
    open();  // the process was killed
    EXPECT_THAT(lease(kStart + seconds(100)), IsEmpty());
    EXPECT_EQ(queue_->answered_count(), 1U);
  }
  due(kStart);
  EXPECT_TRUE(together([&] { return queue_->call_back_again("1", kStart + seconds(5)); }).ok());
  EXPECT_THAT(due(kStart + seconds(4)), IsEmpty());
  EXPECT_EQ(due(kStart + seconds(5)).size(), 1U);
  EXPECT_TRUE(together([&] { return queue_->called_back("1", kStart); }).ok());
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->called_back("1", kStart); })));
  EXPECT_EQ(queue_->answered_count(), 0U);
  EXPECT_EQ(queue_->calls(), 0U);
  EXPECT_EQ(queue_->bytes(), 0U);
  EXPECT_EQ(*together([&] { return queue_->add(call("1"), kStart); }), CallQueue::Added::kKnown);
}

TEST_F(CallQueueTest, AnAnswerInVainIsADeadLetterAfterItsCallback) {
  add(call("1"));
  const std::uint64_t bytes = queue_->bytes();
  lease(kStart);
  EXPECT_TRUE(together([&] {
                return queue_->answer("1", {500, {}, "broken", 1, 1, CallAnswer::Then::kDead, "why"}, kStart);
              }).ok());
  EXPECT_GT(queue_->bytes(), bytes);
  EXPECT_EQ(queue_->dead_count(), 0U);
  EXPECT_EQ(together([&] { return queue_->lease_answered(kStart, 1); })->size(), 1U);
  EXPECT_TRUE(together([&] { return queue_->called_back("1", kStart); }).ok());
  EXPECT_EQ(queue_->dead_count(), 1U);
  EXPECT_EQ(queue_->bytes(), bytes);
  EXPECT_EQ(queue_->dead("", 1)->at(0).error, "why");
  EXPECT_TRUE(together([&] { return queue_->replay("1", kStart); }).ok());
  const auto again = together([&] { return queue_->lease(kFunction, kStart, 1); });
  ASSERT_EQ(again->size(), 1U);
  EXPECT_EQ(again->at(0).body, call("1").body) << "the request is kept for this";
  // And one that is cancelled leaves nothing.
  EXPECT_TRUE(together([&] { return queue_->answer("1", {}, kStart); }).ok());
  EXPECT_TRUE(together([&] { return queue_->cancel("1"); }).ok());
  EXPECT_EQ(queue_->calls(), 0U);
  EXPECT_EQ(queue_->answered_count(), 0U);
  EXPECT_EQ(queue_->bytes(), 0U);
}

TEST_F(CallQueueTest, AnIdThatCameBeforeIsNotQueuedAgain) {
  add(call("1"));
  const auto again = [&] { return *together([&] { return queue_->add(call("1"), kStart); }); };
  EXPECT_EQ(again(), CallQueue::Added::kKnown);
  lease(kStart);
  EXPECT_EQ(again(), CallQueue::Added::kKnown);
  EXPECT_TRUE(together([&] { return queue_->finish("1"); }).ok());
  EXPECT_EQ(again(), CallQueue::Added::kKnown);
  open();
  EXPECT_EQ(again(), CallQueue::Added::kKnown);
}

TEST_F(CallQueueTest, OldIdsAreForgottenAtTheLimit) {
  open({.remembered = 2});
  for (const char* id : {"1", "2", "3"}) {
    add(call(id));
    lease(kStart);
    EXPECT_TRUE(together([&] { return queue_->finish(id); }).ok());
  }
  EXPECT_EQ(*together([&] { return queue_->add(call("3"), kStart); }), CallQueue::Added::kKnown);
  EXPECT_EQ(*together([&] { return queue_->add(call("2"), kStart); }), CallQueue::Added::kKnown);
  EXPECT_EQ(*together([&] { return queue_->add(call("1"), kStart); }), CallQueue::Added::kNew);
}

TEST_F(CallQueueTest, ARunningCallIsDueAgainWhenItsProcessHasGone) {
  add(call("1"));
  add(call("2"), kStart + seconds(1));
  EXPECT_THAT(lease(kStart + seconds(1), 1), ElementsAre("1"));
  open();
  EXPECT_THAT(lease(kStart + seconds(1)), ElementsAre("1", "2"));
}

TEST_F(CallQueueTest, WaitsUntilItIsDueOrTheClockWasSetBack) {
  add(call("1"));
  lease(kStart);
  EXPECT_TRUE(together([&] { return queue_->retry("1", kStart + seconds(500)); }).ok());
  EXPECT_EQ(*queue_->next_due(), kStart + seconds(500));
  EXPECT_THAT(lease(kStart + seconds(499)), IsEmpty());
  EXPECT_THAT(lease(kStart + seconds(500)), ElementsAre("1"));
  EXPECT_TRUE(together([&] { return queue_->retry("1", kStart + seconds(900)); }).ok());
  EXPECT_THAT(lease(kStart - seconds(5000)), ElementsAre("1"));
}

TEST_F(CallQueueTest, CountsAttemptsButNotThoseGivenBack) {
  add(call("1"));
  const auto attempts = [&] { return together([&] { return queue_->lease(kFunction, kStart, 1); })->at(0).attempts; };
  EXPECT_EQ(attempts(), 1);
  EXPECT_TRUE(together([&] { return queue_->retry("1", kStart); }).ok());
  EXPECT_EQ(attempts(), 2);
  EXPECT_TRUE(together([&] { return queue_->give_back("1", kStart); }).ok());
  EXPECT_EQ(attempts(), 2);
}

TEST_F(CallQueueTest, TheDeadAreListedReplayedAndForgotten) {
  add(call("1"));
  add(call("2", "g.openfaas-fn"));
  add(call("3"));
  lease(kStart);
  EXPECT_THAT(lease(kStart, 100, "g.openfaas-fn"), ElementsAre("2"));
  for (const char* id : {"2", "1"})
    EXPECT_TRUE(together([&] { return queue_->bury(id, 502, "broke", kStart + seconds(3)); }).ok());
  EXPECT_EQ(queue_->dead_count(), 2);
  EXPECT_EQ(queue_->lengths().at("f.openfaas-fn"), 1);
  open();
  EXPECT_EQ(queue_->dead_count(), 2);
  const auto dead = queue_->dead("g.openfaas-fn", 10);
  ASSERT_TRUE(dead.ok()) << dead.status();
  ASSERT_EQ(dead->size(), 1);
  EXPECT_EQ(dead->front().id, "2");
  EXPECT_EQ(dead->front().status, 502);
  EXPECT_EQ(dead->front().error, "broke");
  EXPECT_EQ(dead->front().attempts, 1);
  EXPECT_EQ(dead->front().body_bytes, 6);
  EXPECT_EQ(dead->front().died, kStart + seconds(3));
  EXPECT_EQ(queue_->dead("", 10)->size(), 2);
  EXPECT_EQ(queue_->dead("", 1)->size(), 1);

  EXPECT_TRUE(together([&] { return queue_->replay("2", kStart); }).ok());
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->replay("2", kStart); })));
  EXPECT_THAT(lease(kStart), ElementsAre("3"));
  EXPECT_THAT(lease(kStart, 100, "g.openfaas-fn"), ElementsAre("2"));
  EXPECT_TRUE(together([&] { return queue_->forget("1"); }).ok());
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->forget("1"); })));
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->forget("3"); })));
  EXPECT_EQ(queue_->dead_count(), 0);
}

TEST_F(CallQueueTest, CancelledCallsAreOver) {
  add(call("1"));
  add(call("2"));
  lease(kStart, 1);
  EXPECT_EQ(*together([&] { return queue_->cancel("1"); }), CallQueue::Cancelled::kRunning);
  EXPECT_EQ(*together([&] { return queue_->cancel("2"); }), CallQueue::Cancelled::kQueued);
  EXPECT_EQ(*together([&] { return queue_->cancel("2"); }), CallQueue::Cancelled::kUnknown);
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->finish("1"); })));
  EXPECT_TRUE(absl::IsNotFound(together([&] { return queue_->retry("1", kStart); })));
  EXPECT_THAT(lease(kStart), IsEmpty());
}

TEST_F(CallQueueTest, IsFullAtItsLimits) {
  open({.calls = 2});
  add(call("1"));
  add(call("2"));
  const auto third = together([&] { return queue_->add(call("3"), kStart); });
  EXPECT_TRUE(absl::IsResourceExhausted(third.status())) << third.status();
  open({.bytes = queue_->bytes() + 10});
  EXPECT_TRUE(absl::IsResourceExhausted(together([&] { return queue_->add(call("3"), kStart); }).status()));
  lease(kStart, 1);
  EXPECT_TRUE(together([&] { return queue_->finish("1"); }).ok());
  add(call("3"));
}

TEST_F(CallQueueTest, WithoutACommitNothingHasHappened) {
  ASSERT_TRUE(queue_->begin().ok());
  ASSERT_TRUE(queue_->add(call("1"), kStart).ok());
  open();
  EXPECT_THAT(lease(kStart), IsEmpty());
  EXPECT_EQ(queue_->calls(), 0);
}

}  // namespace
}  // namespace orla::store
