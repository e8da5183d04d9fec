// Random rows through the real inputs, edge engines and cloud engine in one process, against the oracle: windows and
// accounts must agree bit for bit, however the rows are split over edges, batches and chunks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <tuple>

#include "base/files.h"
#include "base/random.h"
#include "ingest/input.h"
#include "stream/cloud_engine.h"
#include "stream/edge_engine.h"
#include "verify/compare.h"
#include "verify/csv_rows.h"
#include "verify/oracle.h"

namespace orla::node {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class NothingStored final : public stream::WindowLoader {
 public:
  absl::StatusOr<std::vector<stream::LoadedRow>> load(const std::string&, const std::string&, model::Time) override {
    return std::vector<stream::LoadedRow>{};
  }
  absl::StatusOr<std::optional<model::Time>> next_start(const std::string&, const std::string&, model::Time) override {
    return std::nullopt;
  }
};

template <typename T>
const T& one_of(base::Random& random, const std::vector<T>& choices) {
  return choices[random.below(choices.size())];
}

std::string random_value(base::Random& random) {
  switch (random.below(12)) {
    case 0:
      return "0";
    case 1:
      return "-0.0";
    case 2:
      return fmt::format("{}", random.unit() * 1e-5);  // no decimal of three places
    case 3:
      return fmt::format("{}", (random.unit() - 0.5) * 1e18);
    case 4:
      return one_of<std::string>(random, {"1e300", "-1e300", "4.9e-324", "9007199254740.993", "0.1"});
    default:
      return fmt::format("{}.{:03}", random.below(700), random.below(1000));
  }
}

// Rows around a change of the clock: mostly ahead in small steps, some equal, late, far ahead, or unreadable.
std::string random_rows(base::Random& random, std::int64_t start_s) {
  const std::string line_end = one_of<std::string>(random, {"\n", "\r\n"});
  std::string text;
  const std::uint64_t count = random.below(400);
  const auto step = static_cast<std::int64_t>(1 + random.below(900));
  std::int64_t now = start_s;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (random.below(3) == 0) now += static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(step)));
    std::int64_t at = now;
    const std::uint64_t fate = random.below(30);
    if (fate < 4) at -= static_cast<std::int64_t>(random.below(5000));
    if (fate == 4) at += 40'000 + static_cast<std::int64_t>(random.below(100'000));
    if (fate == 5) now += 20'000;  // a real jump, or a gap
    if (fate == 6) {
      text += one_of<std::string>(random, {"", "x", "1,2,3", "1,-5,1,1,1,0,0", "1,5,nan,1,1,0,0", "1,5,inf,0,1,0,9"});
    } else {
      text += fmt::format("{},{},{},{},{},0,{}", i, at, random_value(random), random.below(8) == 0 ? 0 : 1,
                          random.below(3), random.below(3));
    }
    text += line_end;
  }
  if (!text.empty() && random.below(3) == 0)
    text.resize(text.size() - random.below(std::min<std::size_t>(12, text.size())));
  return text;
}

model::RollupSpec rollup(std::string name, std::vector<std::string> by, std::vector<std::string> windows) {
  model::RollupSpec spec;
  spec.name = std::move(name);
  spec.metric = "load";
  spec.by = std::move(by);
  spec.slice = minutes(1);
  for (const std::string& window : windows) spec.windows.push_back(*model::parse_window(window));
  return spec;
}

model::RollupSpec across(model::RollupSpec spec, std::string from, model::Statistic across, model::Statistic of) {
  if (!from.empty()) {
    spec.metric.clear();
    spec.from = std::move(from);
  }
  spec.across = across;
  spec.of = of;
  return spec;
}

model::Fleet random_fleet(base::Random& random, const std::string& path) {
  model::Fleet fleet;
  fleet.zone = one_of<std::string>(
      random, {"UTC", "Europe/Berlin", "Asia/Kolkata", "America/Havana", "Australia/Lord_Howe", "America/Sao_Paulo"});
  fleet.metrics = {{"load", "W", one_of(random, std::vector<int>{0, 3, 15}), seconds(30),
                    one_of(random, std::vector<model::Duration>{seconds(0), seconds(60), hours(1)})}};
  using model::Statistic;
  const Statistic statistic =
      one_of(random, std::vector{Statistic::kSum, Statistic::kMin, Statistic::kMax, Statistic::kMean});
  const Statistic of = one_of(
      random, std::vector{Statistic::kSum, Statistic::kMin, Statistic::kMax, Statistic::kMean, Statistic::kLast});
  fleet.rollups = {
      rollup("plug_load", {"house", "household", "plug"}, {"1m", "15m", "7h", "1d"}),
      rollup("by_floor", {"floor"}, {"1h/20m", "10h/7h", "1w", "1mo"}),
      across(rollup("house_load", {"house"}, {"1m", "7h"}), "plug_load", Statistic::kSum, Statistic::kMean),
      across(rollup("over_houses", {}, {"1m", "1d"}), "house_load", statistic, Statistic::kMean),
      across(rollup("straight", {"plug"}, {"5m", "2h"}), "", statistic, of)};
  const std::uint64_t edges = 1 + random.below(3);
  for (std::uint64_t e = 0; e < edges; ++e) {
    model::NodeSpec node;
    node.name = fmt::format("edge-{}", e);
    fleet.nodes.push_back(node);
    model::InputSpec input;
    input.key = node.name + "/0";
    input.node = node.name;
    input.path = path;
    if (edges > 1) {
      std::vector<std::string>& houses = input.select["house"];
      for (std::uint64_t h = e; h < 3; h += edges) houses.push_back(std::to_string(h));
    }
    input.max_jump = one_of(random, std::vector<model::Duration>{seconds(0), seconds(600), hours(8)});
    fleet.inputs.push_back(input);
  }
  return fleet;
}

// The whole way of one fleet; stops some inputs early.
class Whole {
 public:
  Whole(const model::Plan& plan, base::Random& random) : plan_(plan), random_(random) {
    auto cloud = stream::CloudEngine::create(plan, nothing_, {}, {}, {});
    EXPECT_TRUE(cloud.ok()) << cloud.status();
    cloud_ = *std::move(cloud);
    for (std::size_t i = 0; i < plan.fleet.inputs.size(); ++i) run_edge(plan.fleet.inputs[i]);
    collect();
  }

  verify::Report compare() const {
    auto oracle = verify::Oracle::create(plan_).value();
    for (std::size_t i = 0; i < plan_.fleet.inputs.size(); ++i) {
      const model::InputSpec& spec = plan_.fleet.inputs[i];
      const model::InputState& state = inputs_.at(spec.key);
      const absl::Status read = oracle->read(i, {state.position, state.ended}, **verify::open_csv_rows(spec));
      EXPECT_TRUE(read.ok()) << read;
    }
    oracle->finish();
    verify::Comparison comparison(plan_, *oracle);
    for (const auto& [key, window] : windows_) comparison.add(window);
    for (const auto& [key, state] : inputs_) comparison.add(key, state.ledger);
    return comparison.finish();
  }

 private:
  void run_edge(const model::InputSpec& spec) {
    auto engine = std::make_unique<stream::EdgeEngine>(plan_, std::vector<std::string>{spec.key});
    auto input = ingest::make_input(spec, {});
    ASSERT_TRUE(input.ok()) << input.status();
    const bool stops_early = random_.below(4) == 0;
    std::map<std::uint32_t, model::GroupId> ids;
    model::InputBatch batch;
    for (;;) {
      const auto more = (*input)->next(batch);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) break;
      if (stops_early) batch.end_of_input = false;
      const absl::Status applied = engine->apply(0, batch, model::kMinTime);
      ASSERT_TRUE(applied.ok()) << applied;
      forward(*engine, ids, stream::SealScope::kPublished);
    }
    forward(*engine, ids, stream::SealScope::kEverything);
    inputs_[spec.key] = engine->input(0);
    EXPECT_EQ(engine->input(0).ledger.unaccounted(), 0);
  }

  // Cuts what is sealed into random pieces and folds them.
  void forward(stream::EdgeEngine& engine, std::map<std::uint32_t, model::GroupId>& ids, stream::SealScope scope) {
    const auto sealed = engine.seal(scope, stream::SealWhen::kAlways);
    if (!sealed) return;
    model::PartialRows piece;
    for (const model::PartialRow& row : sealed->rows) {
      const auto [place, is_new] = ids.try_emplace(model::index(row.group));
      if (is_new) place->second = cloud_->intern(engine.group(row.group)).value();
      piece.push_back({place->second, row.slice, row.partial});
      if (random_.below(20) == 0) fold(piece);
    }
    fold(piece);
  }

  void fold(model::PartialRows& piece) {
    model::canonicalize(piece);
    const absl::Status folded = cloud_->fold(piece);
    ASSERT_TRUE(folded.ok()) << folded;
    piece.clear();
    if (random_.below(3) == 0) collect();
  }

  void collect() {
    const auto changes = cloud_->take_changes({});
    ASSERT_TRUE(changes.ok()) << changes.status();
    for (const stream::WindowChange& change : changes->windows) {
      const model::TableDef& table = plan_.tables[change.table];
      verify::StoredWindow window;
      window.table = table.name;
      window.window = model::to_string(table.windows[change.window].spec);
      window.labels = *change.labels;
      window.start = change.start;
      window.end = change.end;
      window.shown = model::statistics(*change.state, plan_.fleet.metrics[table.metric].decimals);
      window.has_order = !table.across;
      windows_[{change.table, change.window, window.labels, change.start}] = window;
    }
    cloud_->committed();
  }

  const model::Plan& plan_;
  base::Random& random_;
  NothingStored nothing_;
  std::unique_ptr<stream::CloudEngine> cloud_;
  std::map<std::tuple<std::size_t, std::size_t, std::vector<model::Label>, model::Time>, verify::StoredWindow> windows_;
  std::map<std::string, model::InputState> inputs_;
};

TEST(EnginesAgainstOracle, AgreeBitForBit) {
  const auto directory = base::TemporaryDirectory::create("orla-oracle").value();
  const std::string path = (directory.path() / "rows.csv").string();
  // Before changes of the clock in the zones above, and a plain day.
  const std::vector<std::int64_t> starts = {1'364'680'800, 1'382'824'800, 1'383'436'800,
                                            1'380'988'800, 1'360'980'000, 1'377'986'400};
  std::uint64_t compared = 0;
  model::Ledger met;  // of all seeds
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::SeededRandom random(seed);
    std::ofstream(path, std::ios::binary) << random_rows(random, one_of(random, starts));
    const model::Plan plan = model::make_plan(random_fleet(random, path));
    const verify::Report report = Whole(plan, random).compare();
    EXPECT_EQ(report.differences(), 0u) << ::testing::PrintToString(report.examples);
    compared += report.windows_compared;
    met.late.add(report.totals.late);
    met.held += report.totals.held;
    met.unmatched += report.totals.unmatched;
    for (const auto& [reason, count] : report.totals.rejected) met.rejected[reason] += count;
    if (::testing::Test::HasFailure()) return;
  }
  // The rows were of every kind.
  EXPECT_GT(compared, 10'000u);
  EXPECT_GT(met.late.count, 100u);
  EXPECT_GT(met.held, 0u);
  EXPECT_GT(met.unmatched, 100u);
  for (const char* reason : {"malformed", "bad_time", "not_finite", "max_jump"}) EXPECT_GT(met.rejected[reason], 10u);
}

}  // namespace
}  // namespace orla::node
