// What an engine decides, seals and keeps is the same whatever the number of its shards, and so is what goes on from a
// state that was kept with another number of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "base/random.h"
#include "model/power_of_ten.h"
#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

constexpr std::uint32_t kSeries = 60;  // of an input: plugs of few houses, so that shards share groups
constexpr std::size_t kInputs = 2;

model::Series series_of(std::size_t input, std::uint32_t number) {
  // Some series come by both inputs, and some that no rollup wants.
  const int house = static_cast<int>(number % 5);
  const char* metric = number % 11 == 10 ? "other" : number % 3 == 0 ? "work" : "load";
  return plug(metric, number % 7 == 0 ? house : house + static_cast<int>(100 * input), static_cast<int>(number));
}

// The forms that samples come in.
enum class Form { kValues, kDecimals, kPaced };

// A batch of the input around a time, with samples that are behind, far ahead, not finite and no decimals.
InputBatch random_batch(base::Random& random, Form form, double around, std::size_t samples) {
  InputBatch out;
  model::Batch& b = out.samples;
  while (b.size() < samples) {
    const auto series = static_cast<std::uint32_t>(random.below(kSeries));
    const std::size_t count = random.below(4) == 0 ? 1 + random.below(40) : 1;
    double time = around + static_cast<double>(random.below(30));
    if (random.below(40) == 0) time -= 300;
    if (random.below(60) == 0) time += 5'000;
    const auto begin = static_cast<std::uint32_t>(b.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto v = static_cast<std::int32_t>(random.below(10'000)) - 2'000;
      if (form == Form::kValues) {
        double value = v / 10.0;
        if (random.below(50) == 0) value = std::numeric_limits<double>::quiet_NaN();
        if (random.below(50) == 0) value = 1e-9 / (v + 0.5);
        b.values.push_back(value);
      } else {
        b.scaled.push_back(v);
      }
      if (form != Form::kPaced) b.times.push_back(at(time + static_cast<double>(i)));
    }
    if (form != Form::kValues) b.decimals = 1;
    if (form == Form::kPaced) b.paces.push_back({at(time), seconds(1)});
    b.runs.push_back({model::SeriesId{series}, begin, static_cast<std::uint32_t>(b.size())});
  }
  out.received = b.size();
  return out;
}

// Raw samples by group, in their order.
std::map<std::uint32_t, std::vector<std::pair<Time, std::uint64_t>>> raw_of(const Sealed& sealed) {
  std::map<std::uint32_t, std::vector<std::pair<Time, std::uint64_t>>> out;
  for (RawBatch batch : sealed.raw) {
    batch.samples.make_plain();
    for (std::size_t r = 0; r < batch.groups.size(); ++r) {
      auto& to = out[index(batch.groups[r])];
      for (std::uint32_t i = batch.samples.runs[r].begin; i < batch.samples.runs[r].end; ++i)
        to.emplace_back(batch.samples.times[i], std::bit_cast<std::uint64_t>(batch.samples.values[i]));
    }
  }
  return out;
}

// One engine through all of its lives.
class Lives {
 public:
  Lives(const model::Plan& plan, std::vector<std::size_t> shards, SealScope scope)
      : plan_(plan), shards_(std::move(shards)), scope_(scope) {
    begin();
  }

  void apply(std::size_t input, InputBatch batch, Time clock) {
    if (!defined_[input])
      for (std::uint32_t s = 0; s < kSeries; ++s) batch.new_series.push_back(series_of(input, s));
    defined_[input] = true;
    ASSERT_EQ(engine->apply(input, batch, clock), absl::OkStatus());
  }
  std::optional<Sealed> seal() { return engine->seal(scope_, SealWhen::kSomethingNew); }
  EdgeState keep(bool snapshot) {
    EdgeState state = engine->take_changes();
    if (snapshot) {
      journal_.clear();
      state = engine->snapshot();
    }
    journal_.push_back(state);
    return state;
  }
  // With the next of its numbers of shards.
  void restart() {
    ++life_;
    begin();
    for (const EdgeState& state : journal_) ASSERT_EQ(engine->restore(state), absl::OkStatus());
  }

  std::unique_ptr<EdgeEngine> engine;

 private:
  void begin() {
    engine.reset();
    workers_ = std::make_unique<InlineShards>(shards_[life_ % shards_.size()]);
    engine = std::make_unique<EdgeEngine>(plan_, keys(plan_), EngineLimits{}, workers_.get());
    defined_.assign(kInputs, false);
  }

  const model::Plan& plan_;
  const std::vector<std::size_t> shards_;
  const SealScope scope_;
  std::size_t life_ = 0;
  std::unique_ptr<InlineShards> workers_;
  std::vector<bool> defined_;
  std::vector<EdgeState> journal_;
};

void expect_same(const Sealed& one, const Sealed& other) {
  EXPECT_EQ(other.rows, one.rows);
  EXPECT_EQ(other.counted, one.counted);
  EXPECT_EQ(other.publications, one.publications);
  EXPECT_EQ(other.ledgers, one.ledgers);
  EXPECT_EQ(raw_of(other), raw_of(one));
  // Inputs that share groups are exact together.
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  for (const std::uint64_t count : one.sealed) a += count;
  for (const std::uint64_t count : other.sealed) b += count;
  EXPECT_EQ(b, a);
}

model::Plan plan_for(int seed) {
  model::Fleet fleet = make_sketched_plan(kInputs, seed % 3 == 0 ? Duration(0) : minutes(10)).fleet;
  fleet.rollups[0].keep_raw = seed % 2 == 0;
  if (seed % 4 == 1) fleet.rollups[1].emit = seconds(20);
  if (seed % 5 == 0) fleet.inputs[1].idle_after = seconds(60);
  return model::make_plan(std::move(fleet));
}

class EdgeShards : public testing::TestWithParam<int> {};

TEST_P(EdgeShards, OfAnyNumberGiveTheSame) {
  const int seed = GetParam();
  base::SeededRandom random(static_cast<std::uint64_t>(seed));
  const model::Plan plan = plan_for(seed);
  const SealScope scope = seed % 7 == 0 ? SealScope::kEverything : SealScope::kPublished;
  std::vector<std::unique_ptr<Lives>> all;
  for (const std::vector<std::size_t>& shards :
       std::vector<std::vector<std::size_t>>{{1}, {2}, {3}, {8}, {2, 1, 5, 64}})
    all.push_back(std::make_unique<Lives>(plan, shards, scope));
  std::uint64_t rows = 0;
  std::uint64_t raw = 0;
  std::vector<bool> ended(kInputs);
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE(step);
    const Time clock = at(20.0 * step);
    const std::size_t input = random.below(kInputs);
    const auto form = static_cast<Form>(random.below(3));
    if (!ended[input]) {
      const InputBatch batch = random_batch(random, form, 20.0 * step, 1 + random.below(1'500));
      for (auto& lives : all) lives->apply(input, batch, clock);
    }
    if (random.below(10) == 0)
      for (auto& lives : all) lives->engine->tick(input, clock);
    if (step > 50 && random.below(6) == 0) {
      ended[input] = true;
      for (auto& lives : all) lives->engine->end_input(input);
    }
    if (random.below(3) == 0) {
      const bool due = all[0]->engine->emission_due(clock);
      const std::optional<Sealed> sealed = all[0]->seal();
      const bool snapshot = random.below(5) == 0;
      const EdgeState kept = all[0]->keep(snapshot);
      rows += sealed ? sealed->rows.size() : 0;
      raw += sealed ? raw_of(*sealed).size() : 0;
      for (std::size_t i = 1; i < all.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(all[i]->engine->emission_due(clock), due);
        const std::optional<Sealed> other = all[i]->seal();
        ASSERT_EQ(other.has_value(), sealed.has_value());
        if (sealed) expect_same(*sealed, *other);
        ASSERT_EQ(all[i]->keep(snapshot), kept);
      }
    }
    if (random.below(12) == 0)
      for (auto& lives : all) lives->restart();
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_EQ(all[i]->engine->inputs(), all[0]->engine->inputs());
      ASSERT_EQ(all[i]->engine->publications(), all[0]->engine->publications());
      ASSERT_EQ(all[i]->engine->raw_samples(), all[0]->engine->raw_samples());
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(rows, 100U);
  EXPECT_EQ(raw > 0, seed % 2 == 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EdgeShards, testing::Range(0, 30));

// Batches large enough that the threads take part.
TEST(EdgeShardThreads, GiveTheSame) {
  const model::Plan plan = plan_for(2);
  base::SeededRandom random(5);
  ThreadShards three(3);
  EdgeEngine one(plan, keys(plan));
  EdgeEngine many(plan, keys(plan), EngineLimits{}, &three);
  for (int step = 0; step < 30; ++step) {
    InputBatch batch = random_batch(random, static_cast<Form>(step % 3), 40.0 * step, 20'000);
    if (step == 0)
      for (std::uint32_t s = 0; s < kSeries; ++s) batch.new_series.push_back(series_of(0, s));
    ASSERT_EQ(one.apply(0, batch, at(40.0 * step)), absl::OkStatus());
    ASSERT_EQ(many.apply(0, batch, at(40.0 * step)), absl::OkStatus());
    if (step % 4 != 3) continue;
    const std::optional<Sealed> sealed = one.seal(SealScope::kPublished, SealWhen::kAlways);
    const std::optional<Sealed> other = many.seal(SealScope::kPublished, SealWhen::kAlways);
    expect_same(*sealed, *other);
    EXPECT_EQ(other->sealed, sealed->sealed) << "one input shares groups with none";
    ASSERT_EQ(many.take_changes(), one.take_changes());
  }
  EXPECT_GT(one.input(0).ledger.rejected_total(), 0U);
  EXPECT_GT(one.input(0).ledger.late.count, 0U);
}

}  // namespace
}  // namespace orla::stream::edge_tests
