// Everything at once, at random, against the rules written down once more.
#include "stream/edge_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

// The rules of the design, written down once more: every sample decided by itself, cells found by search.
struct Direct {
  Cells cells;
  std::vector<model::Ledger> ledgers;

  Direct(const model::Plan& plan, const std::vector<Sample>& samples, bool ended) : ledgers(plan.fleet.inputs.size()) {
    std::map<std::string, std::vector<Sample>> by_series;
    for (const Sample& s : samples) {
      ++ledgers[s.input].received;
      if (plan.fleet.metric(s.series.metric) == nullptr)
        ++ledgers[s.input].unmatched;
      else
        by_series[model::identity(s.series)].push_back(s);
    }
    for (const auto& [id, series] : by_series) decide(plan, series, ended);
  }

  void decide(const model::Plan& plan, const std::vector<Sample>& samples, bool ended) {
    const model::MetricSpec& metric = *plan.fleet.metric(samples[0].series.metric);
    std::optional<Time> watermark;
    std::vector<Sample> held;
    const auto reject = [&](const Sample& s, const char* why) {
      ++ledgers[s.input].rejected[why];
      ledgers[s.input].rejected_set.add(model::sample_hash(model::identity(s.series), s.time, s.value + 0.0));
    };
    const auto lateness = [&](const Sample& s) {
      if (watermark && s.time < *watermark - metric.allowed_lateness) {
        ledgers[s.input].late.add(model::sample_hash(model::identity(s.series), s.time, s.value + 0.0));
        return;
      }
      watermark = watermark ? std::max(*watermark, s.time) : s.time;
      ++ledgers[s.input].aggregated;
      add(plan, s);
    };
    for (const Sample& s : samples) {
      if (!std::isfinite(s.value)) {
        reject(s, "not_finite");
        continue;
      }
      const Duration jump = plan.fleet.inputs[s.input].max_jump;
      if (jump > Duration::zero() && watermark) {
        if (!held.empty()) {
          if (std::chrono::abs(s.time - held.back().time) <= jump) {
            held.push_back(s);
            if (held.size() == 3) {
              watermark = held[0].time;
              for (const Sample& h : held) lateness(h);
              held.clear();
            }
            continue;
          }
          for (const Sample& h : held) reject(h, "max_jump");
          held.clear();
        }
        if (s.time - *watermark > jump) {
          held.push_back(s);
          continue;
        }
      }
      lateness(s);
    }
    for (const Sample& h : held) {
      if (ended)
        reject(h, "max_jump");
      else
        ++ledgers[h.input].held;
    }
  }

  void add(const model::Plan& plan, const Sample& s) {
    for (const model::StreamDef& stream : plan.streams) {
      if (plan.fleet.metrics[stream.metric].name != s.series.metric) continue;
      std::vector<model::Label> labels;
      if (stream.whole_series) {
        labels = s.series.labels;
      } else {
        for (const std::string& name : stream.by) {
          labels.emplace_back(name, "");
          for (const model::Label& label : s.series.labels)
            if (label.first == name) labels.back().second = label.second;
        }
      }
      const std::int64_t since = (s.time - Time{}).count();
      const Time slice = s.time - Duration(since % stream.slice.count());
      cells[{stream.name, {text(labels), slice}}].add(s.time, s.value, stream.decimals);
    }
  }
};

void expect_published(const EdgeEngine& engine, const Sealed& sealed, const model::Plan& plan) {
  std::map<std::string, Time> until;
  for (const Publication& p : sealed.publications) until[p.metric] = p.time;
  for (const model::PartialRow& row : sealed.rows) {
    const model::GroupDef group = engine.group(row.group);
    for (const model::StreamDef& stream : plan.streams) {
      if (stream.name != group.stream) continue;
      EXPECT_LE(row.slice + stream.slice, until.at(plan.fleet.metrics[stream.metric].name));
    }
  }
}

double some_value(base::Random& random) {
  switch (random.below(12)) {
    case 0:
      return random.unit() * 100;
    case 1:
      return -0.0;
    case 2:
      return random.below(4) == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e300;
    default:
      return static_cast<double>(random.below(5000)) / 10;
  }
}

// In order of arrival: a clock that moves on, with late ones, equal ones, jumps and gaps.
std::vector<Sample> some_samples(base::Random& random, std::size_t inputs, std::size_t count) {
  std::vector<Sample> samples;
  double now = 0;
  while (samples.size() < count) {
    now += random.unit() * 4;
    if (random.below(200) == 0) now += 500;
    const std::size_t input = random.below(inputs);
    const char* metric = random.below(10) == 0 ? "nobody" : random.below(3) == 0 ? "work" : "load";
    // Series of different inputs are different: what one input holds back does not depend on the other.
    const model::Series series =
        plug(metric, static_cast<int>(10 * input + random.below(3)), static_cast<int>(random.below(3)));
    const std::size_t run = 1 + random.below(6);
    for (std::size_t i = 0; i < run; ++i) {
      double t = now + static_cast<double>(i) * random.unit();
      if (random.below(5) == 0) t -= random.unit() * 160;
      if (random.below(60) == 0) t += 1000 + random.unit() * 3000;
      if (random.below(3) == 0 && !samples.empty() && i > 0) t = std::round(t);
      samples.push_back({input, series, at(t), some_value(random)});
      if (random.below(15) == 0) samples.push_back(samples.back());
    }
  }
  return samples;
}

TEST(EdgeEngine, AgreesWithDecidingAndAddingOneByOne) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    base::SeededRandom random(seed);
    const std::size_t inputs = 1 + seed % 2;
    const model::Plan plan = make_test_plan(inputs, seed % 3 == 0 ? Duration(0) : Duration(seconds(300)));
    const std::vector<Sample> samples = some_samples(random, inputs, 600);
    const SealScope scope = seed % 4 == 0 ? SealScope::kEverything : SealScope::kPublished;
    Life steady(plan, scope, keys(plan));
    Life killed(plan, scope, keys(plan));
    for (std::size_t begin = 0; begin < samples.size();) {
      const std::size_t end = std::min(samples.size(), begin + 1 + random.below(40));
      const std::vector<Sample> part(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                                     samples.begin() + static_cast<std::ptrdiff_t>(end));
      steady.apply(part, end);
      killed.apply(part, end);
      begin = end;
      if (random.below(3) != 0) continue;
      const SealWhen when = random.below(4) == 0 ? SealWhen::kAlways : SealWhen::kSomethingNew;
      const std::optional<Sealed> a = steady.commit(when, false);
      const std::optional<Sealed> b = killed.commit(when, random.below(6) == 0);
      ASSERT_EQ(a.has_value(), b.has_value());
      if (a) {
        EXPECT_EQ(a->rows, b->rows);
        EXPECT_EQ(a->publications, b->publications);
        EXPECT_EQ(a->ledgers, b->ledgers);
        if (scope == SealScope::kPublished) expect_published(*steady.engine, *a, plan);
      }
      if (random.below(3) == 0) killed.restart(keys(plan));
      ASSERT_EQ(steady.engine->snapshot(), killed.engine->snapshot());
      if (random.below(4) != 0) continue;
      const Direct so_far(
          plan, std::vector<Sample>(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(end)), false);
      for (std::size_t i = 0; i < inputs; ++i) {
        EXPECT_EQ(killed.engine->input(i).ledger, so_far.ledgers[i]);
        EXPECT_EQ(killed.engine->input(i).ledger.unaccounted(), 0);
      }
    }
    for (std::size_t i = 0; i < inputs; ++i) {
      steady.engine->end_input(i);
      killed.engine->end_input(i);
    }
    for (const Publication& p : killed.engine->publications()) EXPECT_EQ(p.time, kMaxTime);
    steady.commit(SealWhen::kAlways, false);
    killed.commit(SealWhen::kAlways, false);
    EXPECT_EQ(killed.engine->open_rows(), 0u);
    const Direct direct(plan, samples, true);
    EXPECT_EQ(steady.cells, direct.cells);
    EXPECT_EQ(killed.cells, direct.cells);
    for (std::size_t i = 0; i < inputs; ++i) EXPECT_EQ(killed.engine->input(i).ledger, direct.ledgers[i]);
    if (HasFailure()) return;
  }
}

TEST(EdgeEngine, NegativeTimesHaveSlicesToo) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kEverything, keys(plan));
  life.apply({{0, plug("work", 1, 1), from_ns(-1), 2.5}}, 1);
  const std::optional<Sealed> sealed = life.commit(SealWhen::kAlways, false);
  ASSERT_EQ(sealed->rows.size(), 1u);
  EXPECT_EQ(sealed->rows[0].slice, Time{} - minutes(1));
  EXPECT_EQ(life.engine->group(model::GroupId{0}).labels, (std::vector<model::Label>{{"house", "1"}, {"floor", ""}}));
}

}  // namespace
}  // namespace orla::stream::edge_tests
