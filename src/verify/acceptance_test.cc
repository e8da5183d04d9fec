#include "verify/acceptance.h"

#include <gtest/gtest.h>

#include <string>

namespace orla::verify {
namespace {

using std::chrono::seconds;

// Feeds times in seconds and shows the fate of each sample: "10a" accepted, "3l" late, "99r" rejected; then what is
// held.
class Feed {
 public:
  Feed(int lateness_s, int max_jump_s) : lateness_(seconds(lateness_s)), max_jump_(seconds(max_jump_s)) {}
  std::string operator()(std::initializer_list<int> times) {
    std::string out;
    for (const int t : times) {
      Acceptance::Decided decided;
      acceptance_.add({model::from_ns(0) + seconds(t), 0}, lateness_, max_jump_, decided);
      out += show(decided);
    }
    return out + "|" + std::to_string(acceptance_.held());
  }
  std::string end() {
    Acceptance::Decided decided;
    acceptance_.end_of_input(decided);
    return show(decided) + "|" + std::to_string(acceptance_.held());
  }

 private:
  static std::string show(const Acceptance::Decided& decided) {
    std::string out;
    const auto put = [&](const std::vector<TimedValue>& samples, char fate) {
      for (const TimedValue& s : samples) out += std::to_string(s.time.time_since_epoch() / seconds(1)) + fate + " ";
    };
    put(decided.accepted, 'a');
    put(decided.late, 'l');
    put(decided.rejected, 'r');
    return out;
  }
  model::Duration lateness_, max_jump_;
  Acceptance acceptance_;
};

TEST(Acceptance, BehindByUpToTheAllowedLatenessIsAccepted) {
  EXPECT_EQ(Feed(10, 0)({100, 90, 89, 101, 91, 90}), "100a 90a 89l 101a 91a 90l |0");
  EXPECT_EQ(Feed(0, 0)({5, 5, 4, 6}), "5a 5a 4l 6a |0");
}

TEST(Acceptance, TheFirstSampleIsAlwaysAccepted) {
  EXPECT_EQ(Feed(0, 60)({-1000000}), "-1000000a |0");
  EXPECT_EQ(Feed(0, 60)({1000000}), "1000000a |0");
}

TEST(Acceptance, WithoutMaxJumpAnyJumpIsAccepted) { EXPECT_EQ(Feed(10, 0)({0, 1000000, 1}), "0a 1000000a 1l |0"); }

TEST(Acceptance, AJumpOfExactlyMaxJumpIsNone) { EXPECT_EQ(Feed(10, 60)({0, 60, 121}), "0a 60a |1"); }

TEST(Acceptance, OneStraySampleIsRejectedByTheNext) {
  EXPECT_EQ(Feed(10, 60)({0, 9999, 1, 2}), "0a 1a 9999r 2a |0");
  EXPECT_EQ(Feed(10, 60)({0, 9999, 10000, 1, 2}), "0a 1a 9999r 10000r 2a |0");
}

TEST(Acceptance, ThreeInARowReanchor) {
  EXPECT_EQ(Feed(10, 60)({0, 1000, 1001, 1002, 1003}), "0a 1000a 1001a 1002a 1003a |0");
  // Within max_jump in both directions; behind the new watermark by more than the lateness is late, as ever.
  EXPECT_EQ(Feed(10, 60)({0, 1000, 995, 1030, 980}), "0a 1000a 995a 1030a 980l |0");
  EXPECT_EQ(Feed(10, 60)({0, 1000, 940, 1000}), "0a 1000a 1000a 940l |0");
  // The old clock is then late.
  EXPECT_EQ(Feed(10, 60)({0, 1000, 1001, 1002, 2}), "0a 1000a 1001a 1002a 2l |0");
}

TEST(Acceptance, AJumpAfterAJumpStartsAnew) {
  EXPECT_EQ(Feed(10, 60)({0, 1000, 5000}), "0a 1000r |1");
  EXPECT_EQ(Feed(10, 60)({0, 1000, 5000, 5001, 5002}), "0a 1000r 5000a 5001a 5002a |0");
}

TEST(Acceptance, ALateSampleAlsoEndsAJump) { EXPECT_EQ(Feed(10, 60)({100, 1000, 50}), "100a 50l 1000r |0"); }

TEST(Acceptance, TheEndRejectsWhatIsHeld) {
  Feed feed(10, 60);
  EXPECT_EQ(feed({0, 1000, 1001}), "0a |2");
  EXPECT_EQ(feed.end(), "1000r 1001r |0");
  EXPECT_EQ(feed({3}), "3a |0");
}

TEST(Acceptance, ExtremeTimesDoNotOverflow) {
  Acceptance acceptance;
  Acceptance::Decided decided;
  acceptance.add({model::kMinTime, 1}, seconds(1), seconds(1), decided);
  acceptance.add({model::kMaxTime, 2}, seconds(1), seconds(1), decided);
  EXPECT_EQ(decided.accepted.size(), 1u);
  EXPECT_EQ(acceptance.held(), 1u);
}

}  // namespace
}  // namespace orla::verify
