#include "stream/acceptance.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace orla::stream {
namespace {

using model::Duration;
using model::from_ns;
using model::Time;
using std::chrono::seconds;

constexpr Time kStart = from_ns(1'700'000'000'000'000'000);
Time at(std::int64_t s) { return kStart + seconds(s); }

// One letter per decision, in order: A accepted, L late, h held, J rejected as a jump, F future, N not finite, B bad
// time.
std::string run(Acceptance& a, const AcceptanceRules& rules, std::vector<std::int64_t> times_s) {
  std::string letters;
  std::vector<Decision> out;
  for (const std::int64_t s : times_s) a.decide({at(s), 1.0, 0}, rules, out);
  for (const Decision& d : out) letters += "ALhJFNB"[static_cast<std::size_t>(d.verdict)];
  return letters;
}

TEST(Acceptance, LatenessIsMeasuredFromTheWatermark) {
  const AcceptanceRules rules{.allowed_lateness = seconds(10)};
  Acceptance a;
  EXPECT_EQ(run(a, rules, {100, 90, 89, 110, 99, 100, 1000, 990, 989}), "AALALAAAL");
  EXPECT_EQ(a.watermark(), at(1000));
}

TEST(Acceptance, JumpsAreHeldUntilThreeAgree) {
  struct Case {
    const char* why;
    std::vector<std::int64_t> times_s;
    const char* expected;
    std::int64_t watermark_s;
  };
  const AcceptanceRules rules{.allowed_lateness = seconds(10), .max_jump = seconds(60)};
  const Case cases[] = {
      {"up to max_jump is no jump", {0, 60, 120}, "AAA", 120},
      {"a single one is rejected", {0, 61, 0}, "AhJA", 0},
      {"two are rejected", {0, 500, 501, 1}, "AhhJJA", 1},
      {"three re-anchor", {0, 500, 501, 502}, "AhhAAA", 502},
      {"each within max_jump of the one before", {0, 500, 560, 620}, "AhhAAA", 620},
      {"the step back counts too", {0, 500, 440, 380}, "AhhALL", 500},
      {"the three go through lateness in order", {0, 500, 485, 495}, "AhhALA", 500},
      {"a second jump away begins anew", {0, 500, 561, 562, 563}, "AhJhhAAA", 563},
      {"a held one next to the old watermark", {100, 161, 150, 155}, "AhhALA", 161},
      {"the one that breaks it is decided afresh: late", {100, 500, 80}, "AhJL", 100},
      {"the first of a series is never a jump", {5000}, "A", 5000},
  };
  for (const Case& c : cases) {
    Acceptance a;
    EXPECT_EQ(run(a, rules, c.times_s), c.expected) << c.why;
    EXPECT_EQ(a.watermark(), at(c.watermark_s)) << c.why;
    EXPECT_TRUE(a.held().empty()) << c.why;
  }
}

TEST(Acceptance, HeldOnesAreRejectedAtTheEnd) {
  const AcceptanceRules rules{.allowed_lateness = seconds(10), .max_jump = seconds(60)};
  Acceptance a;
  EXPECT_EQ(run(a, rules, {0, 500, 501}), "Ahh");
  const Acceptance saved(a.watermark(), a.held());
  std::vector<Decision> out;
  a.reject_held(out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].verdict, Verdict::kJump);
  EXPECT_EQ(out[1].sample.time, at(501));
  Acceptance again(saved.watermark(), saved.held());
  EXPECT_EQ(run(again, rules, {502}), "AAA");
}

TEST(Acceptance, FutureIsRejectedOnceTheClockIsSet) {
  const Time built = kStart;
  EXPECT_EQ(future_bound(built, built, seconds(5)), built + seconds(5));
  EXPECT_EQ(future_bound(built - Duration(1), built, seconds(5)), model::kMaxTime);
  EXPECT_EQ(future_bound(from_ns(0), built, seconds(5)), model::kMaxTime);
  AcceptanceRules rules{.allowed_lateness = seconds(10), .max_jump = {}, .not_after = at(100)};
  Acceptance a;
  EXPECT_EQ(run(a, rules, {100, 101, 99}), "AFA");
  EXPECT_EQ(a.watermark(), at(100));
}

TEST(Acceptance, WhatCannotBeFoldedIsRejected) {
  const AcceptanceRules rules{.allowed_lateness = seconds(10)};
  Acceptance a;
  std::vector<Decision> out;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double v : {std::nan(""), infinity, -infinity}) a.decide({kStart, v, 0}, rules, out);
  for (const Time t : {model::kMinTime, kEarliestTime, kLatestTime, model::kMaxTime}) a.decide({t, 1, 0}, rules, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i].verdict, i < 3 ? Verdict::kNotFinite : Verdict::kBadTime);
  EXPECT_EQ(a.watermark(), model::kMinTime);
}

TEST(Acceptance, PlainTimesAreTheAcceptedOnes) {
  for (const Duration max_jump : {Duration(0), Duration(seconds(60))}) {
    const AcceptanceRules rules{.allowed_lateness = seconds(10), .max_jump = max_jump, .not_after = at(1000)};
    Acceptance a;
    EXPECT_GT(a.plain(rules).from, a.plain(rules).to);  // the first one needs decide()
    run(a, rules, {500});
    const Acceptance::Plain plain = a.plain(rules);
    for (std::int64_t s = 400; s < 1100; ++s) {
      Acceptance copy(a.watermark(), a.held());
      EXPECT_EQ(run(copy, rules, {s}) == "A", plain.from <= at(s) && at(s) <= plain.to) << s;
    }
  }
}

}  // namespace
}  // namespace orla::stream
