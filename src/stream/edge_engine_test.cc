#include "stream/edge_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "base/random.h"

namespace orla::stream {
namespace {

using model::Duration;
using model::EdgeState;
using model::from_ns;
using model::InputBatch;
using model::kMaxTime;
using model::kMinTime;
using model::Partial;
using model::Publication;
using model::Time;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Time kStart = from_ns(1'377'986'400'000'000'000);  // 2013-08-31T22:00:00Z, on a minute
Time at(double s) { return kStart + Duration(static_cast<std::int64_t>(s * 1e9)); }

struct Sample {
  std::size_t input;
  model::Series series;
  Time time;
  double value;
};

model::Series plug(const std::string& metric, int house, int number) {
  return {metric, {{"house", std::to_string(house)}, {"plug", std::to_string(number)}}};
}

// Metrics load and work; load by plug (1 min), by house (2 min) and by whole series (1 min); work by house.
model::Plan make_test_plan(std::size_t inputs = 1, Duration max_jump = {}, Duration idle_after = {}) {
  model::Fleet fleet;
  fleet.name = "f";
  fleet.zone = "UTC";
  fleet.nodes.push_back(
      {.name = "e", .layer = model::Layer::kEdge, .site = "", .listen = "", .http = "", .parents = {}});
  fleet.metrics = {{"load", "W", 1, seconds(5), seconds(100)}, {"work", "kWh", 3, seconds(0), seconds(50)}};
  for (std::size_t i = 0; i < inputs; ++i) {
    model::InputSpec input;
    input.key = "e/" + std::to_string(i);
    input.node = "e";
    input.max_jump = max_jump;
    input.idle_after = idle_after;
    fleet.inputs.push_back(input);
  }
  const auto rollup = [&](const char* name, const char* metric, std::vector<std::string> by, Duration slice) {
    model::RollupSpec r;
    r.name = name;
    r.metric = metric;
    r.by = std::move(by);
    r.slice = slice;
    r.windows = {{model::WindowSpec::Kind::kElapsed, minutes(10), {}}};
    fleet.rollups.push_back(r);
  };
  rollup("plug_load", "load", {"house", "plug"}, minutes(1));
  rollup("house_load", "load", {"house"}, minutes(2));
  rollup("house_work", "work", {"house", "floor"}, minutes(1));
  rollup("total_load", "load", {"house"}, minutes(1));
  fleet.rollups.back().across = model::Statistic::kSum;
  return model::make_plan(fleet);
}

std::vector<std::string> keys(const model::Plan& plan) {
  std::vector<std::string> out;
  for (const model::InputSpec& input : plan.fleet.inputs) out.push_back(input.key);
  return out;
}

// Makes batches as an input would: its own dense numbers, from 0 again after a restart.
class Feed {
 public:
  InputBatch batch(const std::vector<Sample>& samples, std::size_t row) {
    InputBatch b;
    for (const Sample& s : samples) {
      const std::string id = model::identity(s.series);
      if (!numbers_.contains(id)) {
        numbers_.emplace(id, static_cast<std::uint32_t>(numbers_.size()));
        b.new_series.push_back(s.series);
      }
      const model::SeriesId number{numbers_.at(id)};
      const auto i = static_cast<std::uint32_t>(b.samples.times.size());
      if (b.samples.runs.empty() || b.samples.runs.back().series != number) b.samples.runs.push_back({number, i, i});
      b.samples.runs.back().end = i + 1;
      b.samples.times.push_back(s.time);
      b.samples.values.push_back(s.value);
    }
    b.received = samples.size();
    b.position = {row, row};
    return b;
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
};

using Cell = std::pair<std::string, std::pair<std::string, Time>>;  // stream, labels, slice
using Cells = std::map<Cell, Partial>;

std::string text(const std::vector<model::Label>& labels) { return model::to_string(model::Series{"", labels}); }

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

void collect(Cells& cells, const EdgeEngine& engine, const Sealed& sealed) {
  model::PartialRows sorted = sealed.rows;
  model::canonicalize(sorted);
  EXPECT_EQ(sorted, sealed.rows);
  for (const model::PartialRow& row : sealed.rows) {
    const model::GroupDef& group = engine.groups()[index(row.group)];
    EXPECT_GT(row.partial.count, 0u);
    cells[{group.stream, {text(group.labels), row.slice}}].merge(row.partial);
  }
}

void expect_published(const EdgeEngine& engine, const Sealed& sealed, const model::Plan& plan) {
  std::map<std::string, Time> until;
  for (const Publication& p : sealed.publications) until[p.metric] = p.time;
  for (const model::PartialRow& row : sealed.rows) {
    const model::GroupDef& group = engine.groups()[index(row.group)];
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

// An engine with what a node keeps of it: commits, kills, restarts.
class Life {
 public:
  Life(const model::Plan& plan, SealScope scope, std::vector<std::string> input_keys)
      : plan_(plan), scope_(scope), keys_(std::move(input_keys)) {
    engine = std::make_unique<EdgeEngine>(plan_, keys_);
    feeds_.resize(keys_.size());
  }

  void apply(const std::vector<Sample>& samples, std::size_t row) {
    std::map<std::size_t, std::vector<Sample>> by_input;
    for (const Sample& s : samples) by_input[s.input].push_back(s);
    for (const auto& [input, part] : by_input) {
      const absl::Status status = engine->apply(input, feeds_[input].batch(part, row), Time{});
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::optional<Sealed> commit(SealWhen when, bool snapshot) {
    std::optional<Sealed> sealed = engine->seal(scope_, when);
    EdgeState state = engine->take_changes();
    if (snapshot) {
      state = engine->snapshot();
      journal_.clear();
    }
    journal_.push_back(std::move(state));
    if (sealed) collect(cells, *engine, *sealed);
    return sealed;
  }

  void restart(std::vector<std::string> input_keys) {
    keys_ = std::move(input_keys);
    engine = std::make_unique<EdgeEngine>(plan_, keys_);
    feeds_.assign(keys_.size(), Feed());
    for (const EdgeState& state : journal_) {
      const absl::Status status = engine->restore(state);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::unique_ptr<EdgeEngine> engine;
  Cells cells;

 private:
  const model::Plan& plan_;
  const SealScope scope_;
  std::vector<std::string> keys_;
  std::vector<Feed> feeds_;
  std::vector<EdgeState> journal_;
};

TEST(EdgeEngine, AgreesWithDecidingAndAddingOneByOne) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
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
  EXPECT_EQ(life.engine->groups()[0].labels, (std::vector<model::Label>{{"house", "1"}, {"floor", ""}}));
}

Time load_publication(EdgeEngine& engine) {
  for (const Publication& p : engine.publications())
    if (p.metric == "load") return p.time;
  return kMaxTime;
}

TEST(Publication, IsTheLeastWatermarkMinusDisorder) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  EXPECT_EQ(life.engine->publications(), (std::vector<Publication>{{"load", kMinTime}, {"work", kMinTime}}));
  life.apply({{0, plug("load", 1, 1), at(70), 1}, {0, plug("load", 1, 2), at(64), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(59));
  EXPECT_FALSE(life.engine->seal(SealScope::kPublished, SealWhen::kSomethingNew).has_value() &&
               life.engine->open_rows() < 5);
  life.apply({{0, plug("load", 1, 2), at(126), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(65));
  // A new series with an old time is a correction; publication does not go back.
  life.apply({{0, plug("load", 1, 3), at(30), 1}}, 3);
  EXPECT_EQ(load_publication(*life.engine), at(65));
  const std::optional<Sealed> sealed = life.commit(SealWhen::kSomethingNew, false);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(life.cells.count({"plug_load", {"{house=1,plug=3}", at(0)}}), 1u);
  EXPECT_EQ(life.cells.count({"plug_load", {"{house=1,plug=1}", at(60)}}), 0u);
}

TEST(Publication, SeriesFarBehindTheirInputDoNotHoldIt) {
  const model::Plan plan = make_test_plan();  // load: 100 s allowed, 5 s disorder
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(100), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(-5));
  // The newest of the input may be of another metric.
  life.apply({{0, plug("work", 1, 1), at(101), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(95));
}

TEST(Publication, EndedInputsDoNotHoldIt) {
  const model::Plan plan = make_test_plan(2);
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {1, plug("load", 2, 1), at(500), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(5));
  life.engine->end_input(0);
  EXPECT_EQ(load_publication(*life.engine), at(495));
  life.engine->end_input(1);
  EXPECT_EQ(load_publication(*life.engine), kMaxTime);
  EXPECT_TRUE(life.engine->input(1).ended);
  EXPECT_EQ(life.engine->apply(1, InputBatch(), Time{}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Publication, IdleSeriesDoNotHoldIt) {
  const model::Plan plan = make_test_plan(1, {}, seconds(60));
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {0, plug("load", 1, 2), at(40), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(5));
  EXPECT_FALSE(life.engine->tick(0, at(69)));
  EXPECT_EQ(load_publication(*life.engine), at(5));
  EXPECT_TRUE(life.engine->tick(0, at(70)));  // the first is idle: past 0 s
  EXPECT_EQ(load_publication(*life.engine), at(35));
  life.commit(SealWhen::kSomethingNew, false);
  // Both are idle: the clock says how far there was nothing.
  EXPECT_TRUE(life.engine->tick(0, at(130)));
  EXPECT_EQ(load_publication(*life.engine), at(125));
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false)->rows.empty());
  EXPECT_FALSE(life.engine->tick(0, at(131)));
  EXPECT_TRUE(life.engine->tick(0, at(200)));
  EXPECT_EQ(load_publication(*life.engine), at(195));
}

TEST(Publication, OfWhatIsOpenReachesTheEndOfTheLastSlice) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  life.engine->publish_open();
  EXPECT_EQ(load_publication(*life.engine), kMinTime);
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {0, plug("load", 1, 2), at(70), 1}}, 1);
  life.engine->publish_open();
  EXPECT_EQ(life.engine->publications(), (std::vector<Publication>{{"load", at(120)}, {"work", at(120)}}));
  life.commit(SealWhen::kAlways, false);
  EXPECT_EQ(life.engine->open_rows(), 0u);
  // Going on later: corrections first, then publication as before.
  life.restart(keys(plan));
  life.apply({{0, plug("load", 1, 1), at(80), 1}, {0, plug("load", 1, 2), at(90), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(120));
  EXPECT_EQ(life.commit(SealWhen::kSomethingNew, false)->rows.size(), 5u);
}

TEST(Seal, SaysNothingWithoutNews) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false).has_value());
  life.apply({{0, plug("load", 1, 1), at(10), 1}}, 1);
  EXPECT_TRUE(life.commit(SealWhen::kSomethingNew, false).has_value());  // publication began
  life.apply({{0, plug("load", 1, 1), at(11), 1}}, 2);
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false).has_value());
  const std::optional<Sealed> forced = life.commit(SealWhen::kAlways, false);
  ASSERT_TRUE(forced.has_value());
  EXPECT_TRUE(forced->rows.empty());
  EXPECT_EQ(forced->ledgers.at(0).second.aggregated, 2u);
}

TEST(Seal, EmitsOpenSlicesEverySoOften) {
  model::Plan plan = make_test_plan();
  for (model::StreamDef& stream : plan.streams)
    if (stream.name == "house_load") stream.emit = seconds(5);
  Life life(plan, SealScope::kPublished, keys(plan));
  Feed feed;
  const Time clock = at(1'000'000);
  const auto add = [&](double s, Time now) {
    ASSERT_TRUE(life.engine->apply(0, feed.batch({{0, plug("load", 1, 1), at(s), 2.5}}, 1), now).ok());
  };
  add(10, clock);
  life.commit(SealWhen::kSomethingNew, false);
  EXPECT_TRUE(life.cells.empty());
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(4)));
  EXPECT_TRUE(life.engine->emission_due(clock + seconds(5)));
  life.commit(SealWhen::kSomethingNew, false);
  const Cell cell{"house_load", {"{house=1}", at(0)}};
  ASSERT_EQ(life.cells.size(), 1u);
  EXPECT_EQ(life.cells.at(cell).count, 1u);
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(20)));  // nothing new
  // What is left open survives a restart, what was emitted does not come twice.
  life.restart(keys(plan));
  feed = Feed();
  EXPECT_EQ(life.engine->open_rows(), 2u);
  add(11, clock + seconds(20));
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(10)));  // the clock was set back
  EXPECT_TRUE(life.engine->emission_due(clock + seconds(15)));
  life.engine->end_input(0);
  life.commit(SealWhen::kAlways, false);
  for (const auto& [where, partial] : life.cells) EXPECT_EQ(partial.count, 2u) << where.first;
  EXPECT_EQ(life.cells.size(), 3u);
}

TEST(Limits, WhatDoesNotFitIsDroppedAndCounted) {
  const model::Plan plan = make_test_plan();
  EngineLimits limits;
  limits.series = 2;
  EdgeEngine few_series(plan, keys(plan), limits);
  Feed feed;
  const std::vector<Sample> samples = {{0, plug("load", 1, 1), at(0), 1},    {0, plug("load", 1, 2), at(0), 1},
                                       {0, plug("load", 1, 3), at(0), 1},    {0, plug("load", 1, 3), at(1), 1},
                                       {0, plug("nobody", 1, 3), at(1), 1},  {0, plug("load", 1, 2), at(-200), 1},
                                       {0, plug("load", 1, 1), at(500), NAN}};
  ASSERT_TRUE(few_series.apply(0, feed.batch(samples, 1), Time{}).ok());
  const model::Ledger& ledger = few_series.input(0).ledger;
  EXPECT_EQ(ledger.aggregated, 2u);
  EXPECT_EQ(ledger.dropped, (model::ReasonCounts{{"series_limit", 2}}));
  EXPECT_EQ(ledger.unmatched, 1u);
  EXPECT_EQ(ledger.late.count, 1u);
  EXPECT_EQ(ledger.rejected, (model::ReasonCounts{{"not_finite", 1}}));
  EXPECT_EQ(ledger.unaccounted(), 0);

  limits = EngineLimits();
  limits.groups = 4;  // of load: plug, house and series; the next plug needs two more
  EdgeEngine few_groups(plan, keys(plan), limits);
  Feed other;
  ASSERT_TRUE(
      few_groups
          .apply(0, other.batch({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(0), 1}}, 1), Time{})
          .ok());
  EXPECT_EQ(few_groups.groups().size(), 3u);
  EXPECT_EQ(few_groups.input(0).ledger.dropped, (model::ReasonCounts{{"group_limit", 1}}));

  limits = EngineLimits();
  limits.open_rows = 2;
  EdgeEngine few_rows(plan, keys(plan), limits);
  Feed third;
  ASSERT_TRUE(few_rows.apply(0, third.batch({{0, plug("load", 1, 1), at(0), 1}}, 1), Time{}).ok());
  EXPECT_EQ(few_rows.seal(SealScope::kPublished, SealWhen::kSomethingNew)->rows.size(), 3u);
  EXPECT_TRUE(few_rows.take_changes().sealed_everything);
}

TEST(Apply, RefusesBatchesThatContradictThemselves) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  const EdgeState before = engine.snapshot();
  InputBatch good = Feed().batch({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(0), 1}}, 1);
  std::vector<InputBatch> bad(5, good);
  bad[0].samples.times.pop_back();
  bad[1].samples.runs.pop_back();
  bad[2].samples.runs[1].begin = 0;
  bad[3].new_series.pop_back();
  bad[4].samples.runs[0].end = 7;
  for (const InputBatch& b : bad) EXPECT_EQ(engine.apply(0, b, Time{}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.snapshot(), before);
  EXPECT_TRUE(engine.apply(0, good, Time{}).ok());
}

TEST(Restore, InputsAreKnownByTheirKey) {
  const model::Plan plan = make_test_plan(3);
  Life life(plan, SealScope::kPublished, {"e/0"});
  life.apply({{0, plug("load", 1, 1), at(10), 1}}, 5);
  life.commit(SealWhen::kSomethingNew, true);
  // Two more inputs, listed before the old one; one of them delivers.
  life.restart({"e/2", "e/1", "e/0"});
  life.apply({{1, plug("load", 2, 1), at(30), 1}}, 6);
  life.commit(SealWhen::kSomethingNew, false);
  // Another order, and the first is gone: its series hold nothing.
  life.restart({"e/1", "e/2"});
  EXPECT_EQ(life.engine->input(0).position.row, 6u);
  EXPECT_EQ(life.engine->input(1).position.row, 0u);
  EXPECT_EQ(life.engine->input(0).ledger.aggregated, 1u);
  EXPECT_EQ(life.engine->inputs().size(), 3u);
  life.apply({{0, plug("load", 2, 1), at(40), 1}}, 7);
  EXPECT_EQ(load_publication(*life.engine), at(35));
  const std::optional<Sealed> sealed = life.commit(SealWhen::kAlways, false);
  EXPECT_EQ(sealed->ledgers.size(), 3u);
}

TEST(Restore, RowsOfAnotherPlanAreSealedAtOnce) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 1), at(10), 1}}, 1), Time{}).ok());
  engine.take_changes();
  const EdgeState snapshot = engine.snapshot();

  model::Plan changed = plan;  // house_load defined otherwise
  for (model::StreamDef& stream : changed.streams)
    if (stream.name == "house_load") stream.definition += 1;
  EdgeEngine next(changed, keys(changed));
  ASSERT_TRUE(next.restore(snapshot).ok());
  Feed again;
  ASSERT_TRUE(next.apply(0, again.batch({{0, plug("load", 1, 1), at(12), 1}}, 2), Time{}).ok());
  EXPECT_EQ(next.groups().size(), 4u);
  const std::optional<Sealed> sealed = next.seal(SealScope::kPublished, SealWhen::kSomethingNew);
  ASSERT_TRUE(sealed.has_value());
  ASSERT_EQ(sealed->rows.size(), 1u);
  EXPECT_EQ(next.groups()[index(sealed->rows[0].group)].stream, "house_load");
  EXPECT_EQ(sealed->rows[0].partial.count, 1u);
  // Both states give what is left: three rows of the new plan.
  const EdgeState delta = next.take_changes();
  EdgeEngine last(changed, keys(changed));
  ASSERT_TRUE(last.restore(snapshot).ok());
  ASSERT_TRUE(last.restore(delta).ok());
  EXPECT_EQ(last.open_rows(), 3u);
  EXPECT_EQ(last.snapshot(), next.snapshot());
}

TEST(Restore, RefusesStatesThatContradictThemselves) {
  const model::Plan plan = make_test_plan();
  EdgeEngine engine(plan, keys(plan));
  Feed feed;
  ASSERT_TRUE(engine.apply(0, feed.batch({{0, plug("load", 1, 1), at(10), 1}}, 1), Time{}).ok());
  const EdgeState good = engine.snapshot();
  std::vector<EdgeState> bad(5, good);
  bad[0].new_series.push_back(bad[0].new_series[0]);
  bad[1].new_groups.push_back(bad[1].new_groups[0]);
  bad[2].new_groups.clear();
  bad[3].new_series.clear();
  bad[4].series[0].input = 9;
  for (const EdgeState& state : bad)
    EXPECT_EQ(EdgeEngine(plan, keys(plan)).restore(state).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(EdgeEngine(plan, keys(plan)).restore(good).ok());
}

}  // namespace
}  // namespace orla::stream
