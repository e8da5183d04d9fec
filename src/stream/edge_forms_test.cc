// The same samples in every form that a batch can have: one by one, in runs, evenly spaced, as decimals. What the
// engine keeps and seals must be the same, to the bit, wherever it takes the fast path and wherever it does not.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "model/power_of_ten.h"
#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

// A stretch of one series: `count` samples, `step` apart.
struct Stretch {
  std::uint32_t series;
  Time start;
  Duration step;
  std::vector<std::int32_t> scaled;
};

enum class Form { kSingle, kRuns, kDecimals, kPaced, kPacedDecimals };

class EdgeForms : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static constexpr std::uint32_t kSeries = 6;

  static std::vector<model::Series> series() {
    return {plug("load", 1, 1), plug("load", 1, 2), plug("load", 2, 1),
            plug("work", 1, 1), plug("work", 2, 1), plug("other", 1, 1)};
  }

  // Mostly onwards by seconds, sometimes far ahead, back within or beyond lateness, or onto a time that was there.
  std::vector<Stretch> stretches(bool wide) {
    std::vector<Stretch> all;
    std::vector<Time> next(kSeries, kStart);
    for (int i = 0; i < 400; ++i) {
      Stretch& s = all.emplace_back();
      s.series = static_cast<std::uint32_t>(random_() % kSeries);
      Time& time = next[s.series];
      switch (random_() % 12) {
        case 0:
          time += seconds(static_cast<int>(random_() % 400));
          break;
        case 1:
          time -= seconds(static_cast<int>(random_() % 150));
          break;
        case 2:
          time -= s.step;
          break;
        default:
          break;
      }
      s.start = time;
      s.step = random_() % 16 == 0 ? Duration(0) : std::chrono::milliseconds(1 + random_() % 3000);
      const std::size_t count = random_() % 4 == 0 ? 1 : random_() % 4 == 0 ? 3000 + random_() % 200 : random_() % 70;
      for (std::size_t k = 0; k < count; ++k) {
        auto v = static_cast<std::int32_t>(random_());
        if (!wide || random_() % 50 != 0) v = v % (1 << 20);
        s.scaled.push_back(v);
      }
      if (count > 0) time = s.start + s.step * static_cast<int>(count);
    }
    return all;
  }

  static void append(InputBatch& batch, const Stretch& s, Form form, int decimals) {
    model::Batch& b = batch.samples;
    const double unit = model::power_of_ten(decimals);
    const bool paced = form == Form::kPaced || form == Form::kPacedDecimals;
    const bool scaled = form == Form::kDecimals || form == Form::kPacedDecimals;
    const auto begin = static_cast<std::uint32_t>(b.size());
    for (std::size_t k = 0; k < s.scaled.size(); ++k) {
      const auto i = static_cast<std::uint32_t>(begin + k);
      if (form == Form::kSingle) b.runs.push_back({model::SeriesId{s.series}, i, i + 1});
      if (!paced) b.times.push_back(s.start + s.step * static_cast<int>(k));
      if (scaled)
        b.scaled.push_back(s.scaled[k]);
      else
        b.values.push_back(s.scaled[k] / unit);
    }
    if (scaled) b.decimals = decimals;
    if (form != Form::kSingle)
      b.runs.push_back({model::SeriesId{s.series}, begin, static_cast<std::uint32_t>(begin + s.scaled.size())});
    if (paced) b.paces.push_back({s.start, s.step});
    batch.received += s.scaled.size();
  }

  std::mt19937_64 random_;
};

TEST_P(EdgeForms, GiveTheSameBits) {
  const auto [seed, decimals] = GetParam();
  random_.seed(static_cast<unsigned>(seed));
  const bool live = seed % 3 == 0;
  const Duration max_jump = seed % 2 == 0 ? minutes(3) : Duration(0);
  model::Plan plan = seed % 4 < 2 ? make_sketched_plan(1, max_jump) : make_test_plan(1, max_jump);
  if (live) {
    plan.fleet.inputs[0].kind = model::InputSpec::Kind::kPush;
    plan.fleet.inputs[0].metrics = {"load", "work"};
    plan.fleet.inputs[0].future = minutes(10);
  }
  const std::vector<Stretch> all = stretches(seed % 5 == 0);
  std::vector<std::vector<EdgeState>> kept;
  std::vector<std::vector<Sealed>> sealed;
  model::Ledger first_ledger;
  EngineLimits limits;
  limits.clock_set_after = kMinTime;  // the clock of 2013 counts as set
  for (const Form form : {Form::kSingle, Form::kRuns, Form::kDecimals, Form::kPaced, Form::kPacedDecimals}) {
    std::mt19937_64 cuts(static_cast<unsigned>(seed));
    EdgeEngine engine(plan, keys(plan), limits);
    auto& states = kept.emplace_back();
    auto& parts = sealed.emplace_back();
    InputBatch batch;
    batch.new_series = series();
    for (std::size_t i = 0; i < all.size(); ++i) {
      append(batch, all[i], form, decimals);
      if (cuts() % 4 != 0 && i + 1 < all.size()) continue;
      batch.position = {i + 1, i + 1};
      ASSERT_EQ(engine.apply(0, batch, kStart + seconds(60 * i)), absl::OkStatus());
      batch = InputBatch();
      if (cuts() % 3 != 0) continue;
      if (auto part = engine.seal(SealScope::kPublished, SealWhen::kSomethingNew)) parts.push_back(*part);
      states.push_back(engine.take_changes());
    }
    states.push_back(engine.snapshot());
    const model::Ledger& ledger = engine.input(0).ledger;
    if (form == Form::kSingle) first_ledger = ledger;
    EXPECT_EQ(ledger, first_ledger);
    EXPECT_GT(ledger.aggregated, 3'000U);
    EXPECT_GT(ledger.late.count + ledger.unmatched, 0U);
    ASSERT_EQ(states, kept.front()) << "form " << static_cast<int>(form);
    ASSERT_EQ(parts.size(), sealed.front().size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      ASSERT_EQ(parts[p].rows, sealed.front()[p].rows) << "form " << static_cast<int>(form);
      ASSERT_EQ(parts[p].counted, sealed.front()[p].counted);
      ASSERT_EQ(parts[p].sealed, sealed.front()[p].sealed);
    }
  }
}

// A row that holds no sample could not be encoded.
TEST(EdgeFastPath, ARunWithoutANumberOpensNoRow) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  ASSERT_EQ(engine.apply(0, feed.batch({{0, plug("load", 1, 1), at(0), 1.5}}, 1), kStart), absl::OkStatus());
  const std::size_t rows = engine.open_rows();
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i)
    samples.push_back({0, plug("load", 1, 1), at(180 + i), std::numeric_limits<double>::quiet_NaN()});
  ASSERT_EQ(engine.apply(0, feed.batch(samples, 2), kStart), absl::OkStatus());
  EXPECT_EQ(engine.input(0).ledger.rejected.at("not_finite"), 20u);
  EXPECT_EQ(engine.open_rows(), rows);
}

// Metric load has one decimal, work three: of each, some batches carry the metric's own and some do not.
INSTANTIATE_TEST_SUITE_P(Seeds, EdgeForms, testing::Combine(testing::Range(1, 11), testing::Values(1, 3)));

}  // namespace
}  // namespace orla::stream::edge_tests
