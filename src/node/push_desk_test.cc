#include "node/push_desk.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace orla::node {
namespace {

using namespace std::chrono_literals;
using Kind = PushOutcome::Kind;

// A loop and its clock, moved by hand.
class HandLoop final : public base::Loop, public base::Clock {
 public:
  void post(std::function<void()> task) override { post_after({}, std::move(task)); }
  void post_after(std::chrono::nanoseconds delay, std::function<void()> task) override {
    tasks_.emplace(now_ + delay, std::move(task));
  }
  void pass(std::chrono::nanoseconds time) {
    const base::SteadyTime until = now_ + time;
    while (!tasks_.empty() && tasks_.begin()->first <= until) {
      const auto task = tasks_.extract(tasks_.begin());
      now_ = task.key();
      task.mapped()();
    }
    now_ = until;
  }
  base::WallTime wall_now() const override { return base::WallTime(now_.time_since_epoch()); }
  base::SteadyTime steady_now() const override { return now_; }

 private:
  base::SteadyTime now_{1s};
  std::multimap<base::SteadyTime, std::function<void()>> tasks_;
};

class PushDeskTest : public ::testing::Test {
 protected:
  void add(const std::string& name, std::uint64_t sequence = 0, std::size_t bytes = 10) {
    Push push = push_of(sequence);
    push.bytes = bytes;
    desk_->add(push, {}, done(name));
  }
  void again(const std::string& name, std::uint64_t sequence) { desk_->add_duplicate(push_of(sequence), done(name)); }
  static Push push_of(std::uint64_t sequence) {
    Push push;
    push.batch.producer = sequence == 0 ? "" : "p";
    push.batch.producer_sequence = sequence;
    return push;
  }
  PushDone done(const std::string& name) {
    return [this, name](const PushOutcome& outcome) {
      EXPECT_FALSE(told_.contains(name)) << "told twice: " << name;
      told_[name] = outcome.kind;
    };
  }
  PushStatus status() const {
    PushStatus status;
    desk_->fill(status);
    return status;
  }

  HandLoop loop_;
  int commits_ = 0;
  std::map<std::string, Kind> told_;
  std::unique_ptr<PushDesk> desk_ =
      std::make_unique<PushDesk>(loop_, loop_, PushDesk::Limits{100, 20ms, 500ms}, [this] { ++commits_; });
};

TEST_F(PushDeskTest, ManyShareACommitAndNoneWaitsLongerThanTheDelay) {
  add("a");
  loop_.pass(15ms);
  add("b");
  EXPECT_EQ(commits_, 0);
  loop_.pass(5ms);
  EXPECT_EQ(commits_, 1);
  EXPECT_TRUE(desk_->untaken());
  desk_->taken(7);
  EXPECT_FALSE(desk_->untaken());
  EXPECT_TRUE(told_.empty());
  add("c");  // after the commit took its content
  desk_->committed();
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"a", Kind::kKept}, {"b", Kind::kKept}}));
  loop_.pass(20ms);
  EXPECT_EQ(commits_, 2);
  desk_->taken(7);
  desk_->committed();
  EXPECT_EQ(told_.size(), 3u);
  // Nothing waits: no commit is asked for.
  loop_.pass(1s);
  EXPECT_EQ(commits_, 2);
  EXPECT_EQ(status().kept, 3u);
  EXPECT_EQ(status().waiting_bytes, 0u);
  EXPECT_DOUBLE_EQ(status().longest_wait_s, 0.02);
}

TEST_F(PushDeskTest, ACommitThatComesEarlierNeedsNoOther) {
  add("a");
  desk_->taken(1);
  desk_->committed();
  loop_.pass(20ms);
  EXPECT_EQ(commits_, 0);
}

TEST_F(PushDeskTest, WithoutADiskTheCloudsAcknowledgementCounts) {
  add("a");
  desk_->taken(3);
  add("b");
  desk_->taken(5);
  add("c");
  desk_->acknowledged(2);
  EXPECT_TRUE(told_.empty());
  desk_->acknowledged(4);
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"a", Kind::kKept}}));
  desk_->acknowledged(9);
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"a", Kind::kKept}, {"b", Kind::kKept}}));
  desk_->give_up("another start took over");
  EXPECT_EQ(told_.at("c"), Kind::kUnknown);
  EXPECT_EQ(status().unknown, 1u);
}

TEST_F(PushDeskTest, WhoWaitsTooLongIsToldAndWhatItPushedStillCounts) {
  add("a", 4, 60);
  loop_.pass(20ms);
  desk_->taken(1);
  loop_.pass(400ms);
  desk_->tick();
  EXPECT_TRUE(told_.empty());
  loop_.pass(80ms);
  desk_->tick();
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"a", Kind::kUnknown}}));
  // It may still become durable: room is taken, and who sends it again waits for it.
  EXPECT_TRUE(desk_->has_room(40));
  EXPECT_FALSE(desk_->has_room(41));
  again("a again", 4);
  EXPECT_EQ(told_.size(), 1u);
  desk_->committed();
  EXPECT_EQ(told_.at("a again"), Kind::kDuplicate);
  EXPECT_TRUE(desk_->has_room(100));
  // What is durable is said at once.
  again("and again", 4);
  EXPECT_EQ(told_.at("and again"), Kind::kDuplicate);
  EXPECT_EQ(status().duplicates, 2u);
}

TEST_F(PushDeskTest, AResendWaitsForTheFirstThatHoldsIt) {
  add("five", 5);
  desk_->taken(1);
  add("nine", 9);
  desk_->taken(2);
  again("five again", 5);
  again("seven", 7);  // skipped by its producer: at or below the last one
  desk_->acknowledged(1);
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"five", Kind::kKept}, {"five again", Kind::kDuplicate}}));
  loop_.pass(500ms);
  desk_->tick();
  EXPECT_EQ(told_.at("seven"), Kind::kUnknown);
  EXPECT_EQ(told_.at("nine"), Kind::kUnknown);
}

TEST_F(PushDeskTest, AChunkThatIsDroppedTakesItsSendersAlong) {
  add("a", 0, 30);
  desk_->taken(1);
  add("b", 0, 30);
  desk_->taken(2);
  add("c", 0, 30);
  desk_->lost(2, "dropped");
  EXPECT_EQ(told_, (std::map<std::string, Kind>{{"b", Kind::kUnknown}}));
  EXPECT_TRUE(desk_->has_room(40));
  EXPECT_FALSE(desk_->has_room(41));
  desk_->taken(3);
  desk_->acknowledged(3);
  EXPECT_EQ(told_.at("a"), Kind::kKept);
  EXPECT_EQ(told_.at("c"), Kind::kKept);
}

// Its samples are in the accounts of that chunk: acknowledged before these have arrived, a crash would forget them.
TEST_F(PushDeskTest, WhatWasDroppedAndIsSentAgainWaitsUntilTheCloudWasTold) {
  add("five", 5);
  desk_->taken(1);
  desk_->lost(1, "dropped");
  EXPECT_EQ(told_.at("five"), Kind::kUnknown);
  again("five again", 5);
  EXPECT_FALSE(told_.contains("five again"));
  desk_->acknowledged(1);
  EXPECT_EQ(told_.at("five again"), Kind::kDuplicate);
}

TEST_F(PushDeskTest, ItsEndIsNotTheirs) {
  add("a");
  desk_.reset();
  EXPECT_EQ(told_.at("a"), Kind::kUnknown);
  loop_.pass(1s);  // the timer has nothing to commit to
  EXPECT_EQ(commits_, 0);
}

}  // namespace
}  // namespace orla::node
