#include "verify/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

namespace orla::verify {
namespace {

constexpr std::size_t kMaxShownSeries = 20;

// The reason under which samples held for max_jump are rejected.
constexpr const char* kJump = "max_jump";

std::string value_of(const std::vector<model::Label>& labels, const std::string& name) {
  for (const model::Label& label : labels) {
    if (label.first == name) return label.second;
  }
  return "";
}

std::vector<model::Label> project(const std::vector<model::Label>& labels, const std::vector<std::string>& by) {
  std::vector<model::Label> chosen;
  for (const std::string& name : by) chosen.emplace_back(name, value_of(labels, name));
  return chosen;
}

constexpr std::size_t kMostBins = 4096;
// A distinct count is exact up to so many, and beyond seldom farther away than five times its standard error.
constexpr std::size_t kCountedExactly = 512;
constexpr double kFarthestCount = 5 * 1.04 / 64;

// Bins of the sorted values when an octave has `per_octave` of them: equal parts between a power of two and the next.
std::size_t bins_of(const std::vector<double>& sorted, int per_octave) {
  std::size_t bins = 0;
  std::pair<int, int> before{INT_MIN, 0};
  bool before_negative = false;
  for (const double value : sorted) {
    if (std::fabs(value) < std::numeric_limits<double>::min()) continue;  // these share one that is not counted
    int exponent = 0;
    const double half_to_one = std::frexp(std::fabs(value), &exponent);
    const std::pair<int, int> bin{exponent, static_cast<int>((2 * half_to_one - 1) * per_octave)};
    if (bin != before || (value < 0) != before_negative) ++bins;
    before = bin;
    before_negative = value < 0;
  }
  return bins;
}

// Nearest rank: the least sample such that the given part of all is not greater than it. Stated error: half a bin of
// 1/128 of an octave; twice that whenever the bins would be too many.
void put_quantiles(std::vector<double> values, ExpectedWindow& into) {
  std::sort(values.begin(), values.end());
  const auto at = [&](std::uint64_t thousandths) { return values[(values.size() * thousandths + 999) / 1000 - 1]; };
  into.shown.p50 = at(500);
  into.shown.p90 = at(900);
  into.shown.p99 = at(990);
  into.shown.p999 = at(999);
  int per_octave = 128;
  while (per_octave > 1 && bins_of(values, per_octave) > kMostBins) per_octave /= 2;
  into.quantile_error = 0.5 / per_octave;
}

// Slices begin at whole multiples of their length since 1970.
model::Time start_of_slice(model::Time time, model::Duration slice) {
  std::int64_t beyond = model::to_ns(time) % slice.count();
  if (beyond < 0) beyond += slice.count();
  return model::from_ns(model::to_ns(time) - beyond);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Oracle>> Oracle::create(const model::Plan& plan) {
  absl::TimeZone zone;
  if (!absl::LoadTimeZone(plan.fleet.zone, &zone)) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not a known time zone", plan.fleet.zone));
  }
  std::unique_ptr<Oracle> oracle(new Oracle(plan, zone));
  for (std::size_t i = 0; i < plan.tables.size(); ++i) oracle->groups_.push_back(std::make_unique<Groups>());
  for (std::size_t i = 0; i < plan.tables.size(); ++i) {
    const model::TableDef& table = plan.tables[i];
    if (table.hidden) continue;
    for (const model::TableWindow& window : table.windows) {
      if (window.hidden) continue;
      if (window.spec.kind == model::WindowSpec::Kind::kSteps) {
        return absl::InvalidArgumentError(
            fmt::format("rollup {}: steps of forecasts are no windows that can be verified", table.name));
      }
      const std::size_t filled = oracle->need(i, window.spec);
      oracle->tables_.push_back({table.name, model::to_string(window.spec), table.across.has_value(),
                                 table.sketches.quantiles, table.sketches.distinct, oracle->decimals_of(i),
                                 oracle->groups_[i].get(), &oracle->filled_[filled]->sheet});
    }
  }
  return oracle;
}

// The contributions of an across table are doubles as they stand, which no number of decimals touches.
int Oracle::decimals_of(std::size_t table) const {
  const model::TableDef& def = plan_.tables[table];
  return def.across ? 0 : plan_.fleet.metrics[def.metric].decimals;
}

std::size_t Oracle::need(std::size_t table, const model::WindowSpec& spec) {
  for (std::size_t i = 0; i < filled_.size(); ++i) {
    if (filled_[i]->table == table && filled_[i]->spec == spec) return i;
  }
  if (plan_.tables[table].source) need(*plan_.tables[table].source, spec);
  filled_.push_back(std::make_unique<Filled>());
  filled_.back()->table = table;
  filled_.back()->spec = spec;
  filled_.back()->quantiles = plan_.tables[table].sketches.quantiles;
  filled_.back()->distinct = plan_.tables[table].sketches.distinct;
  return filled_.size() - 1;
}

Oracle::SeriesState Oracle::new_series(std::size_t input, const model::Series& series) {
  SeriesState state;
  state.identity = model::identity(series);
  const auto [first, is_new] = first_input_.try_emplace({plan_.fleet.inputs[input].node, state.identity}, input);
  if (!is_new && first->second != input) {
    if (++shared_series_count_ <= kMaxShownSeries) {
      shared_series_.push_back(fmt::format("{}: {}", plan_.fleet.inputs[input].node, model::to_string(series)));
    }
  }

  const model::MetricSpec* metric = plan_.fleet.metric(series.metric);
  if (metric == nullptr) return state;
  state.decimals = metric->decimals;
  state.allowed_lateness = metric->allowed_lateness;
  const auto metric_index = static_cast<std::size_t>(metric - plan_.fleet.metrics.data());
  for (const model::RollupSpec& rollup : plan_.fleet.rollups) {
    if (rollup.keep_raw && rollup.metric == series.metric)
      state.raw = &raw_series_.try_emplace(state.identity, RawSeries{series, {}}).first->second;
  }
  for (std::size_t i = 0; i < plan_.tables.size(); ++i) {
    const model::TableDef& table = plan_.tables[i];
    if (table.metric != metric_index || !table.stream) continue;
    state.matched = true;
    const model::StreamDef& stream = plan_.streams[*table.stream];
    std::vector<model::Label> labels = series.labels;
    if (stream.whole_series) {
      std::sort(labels.begin(), labels.end());
    } else {
      labels = project(series.labels, stream.by);
    }
    const std::uint32_t group = groups_[i]->number(labels);
    std::string thing;
    for (const model::Label& label : project(series.labels, stream.distinct)) {
      thing += fmt::format("{}:{};", label.second.size(), label.second);
    }
    for (std::size_t f = 0; f < filled_.size(); ++f) {
      if (filled_[f]->table == i) state.targets.push_back({group, f, stream.slice, model::kMinTime, {}, thing});
    }
  }
  return state;
}

absl::Status Oracle::read(std::size_t input, const InputEnd& end, RowSource& rows) {
  const model::InputSpec& spec = plan_.fleet.inputs[input];
  if (ledgers_.contains(spec.key)) {
    return absl::FailedPreconditionError(fmt::format("input {} was read before", spec.key));
  }
  model::Ledger& ledger = ledgers_[spec.key];
  std::vector<SeriesState> states;
  Acceptance::Decided decided;
  Row row;
  while (row.number < end.position.row) {
    const absl::StatusOr<bool> more = rows.next(row);
    if (!more.ok()) {
      return absl::Status(more.status().code(), fmt::format("input {}, after row {}: {}", spec.key, row.number,
                                                            std::string(more.status().message())));
    }
    if (!*more) {
      return absl::DataLossError(fmt::format("input {} ends at row {}; the fleet had read {} rows of it", spec.key,
                                             row.number, end.position.row));
    }
    if (row.rejected != nullptr) {
      ++ledger.received;
      ++ledger.rejected[row.rejected];
      ledger.rejected_set.add(model::row_hash(spec.key, row.number));
    }
    for (const Row::Sample& sample : row.samples) {
      ++ledger.received;
      while (states.size() <= sample.series) states.push_back(new_series(input, rows.series()[states.size()]));
      SeriesState& series = states[sample.series];
      if (!series.matched) {
        ++ledger.unmatched;
        continue;
      }
      // -0.0 counts as 0.0.
      const double value = sample.value == 0 ? 0.0 : sample.value;
      decided.clear();
      series.acceptance.add({sample.time, value}, series.allowed_lateness, spec.max_jump, decided);
      apply(series, decided, ledger);
    }
  }
  for (SeriesState& series : states) {
    decided.clear();
    if (end.ended) series.acceptance.end_of_input(decided);
    apply(series, decided, ledger);
    ledger.held += series.acceptance.held();
  }
  return absl::OkStatus();
}

void Oracle::apply(SeriesState& series, const Acceptance::Decided& decided, model::Ledger& ledger) {
  for (const TimedValue& sample : decided.accepted) fold(series, sample);
  ledger.aggregated += decided.accepted.size();
  for (const TimedValue& sample : decided.late) {
    ledger.late.add(model::sample_hash(series.identity, sample.time, sample.value));
  }
  for (const TimedValue& sample : decided.rejected) {
    ++ledger.rejected[kJump];
    ledger.rejected_set.add(model::sample_hash(series.identity, sample.time, sample.value));
  }
}

std::uint64_t Oracle::raw_hash(std::string_view identity, model::Time time, double value) {
  return model::sample_hash(identity, time, value == 0 ? 0.0 : value);  // -0.0 counts as 0.0
}

void Oracle::fold(SeriesState& series, const TimedValue& sample) {
  if (series.raw != nullptr) series.raw->samples.add(raw_hash(series.identity, sample.time, sample.value));
  const std::optional<std::int64_t> decimal = decimal_of(sample.value, series.decimals);
  for (Target& target : series.targets) {
    const model::Time slice = start_of_slice(sample.time, target.slice);
    if (slice != target.last_slice || target.last_cells.empty()) {
      Filled& filled = *filled_[target.filled];
      if (slice != filled.last_slice || filled.last_windows.empty()) {
        filled.last_slice = slice;
        filled.last_windows = windows_at(filled.spec, slice, zone_);
      }
      target.last_slice = slice;
      target.last_cells.clear();
      for (const Interval& window : filled.last_windows) {
        target.last_cells.push_back(&filled.sheet.cell(target.group, window));
      }
    }
    for (Cell* cell : target.last_cells) {
      cell->add_sample(sample.time, sample.value, decimal);
      if (filled_[target.filled]->quantiles) cell->values.push_back(sample.value);
      if (filled_[target.filled]->distinct) cell->things.insert(target.thing);
    }
  }
}

void Oracle::finish() {
  // need() puts sources before their readers.
  for (std::size_t i = 0; i < filled_.size(); ++i) {
    if (plan_.tables[filled_[i]->table].source) evaluate_across(i);
  }
}

// Every group of the source that has samples in a window contributes one value to it, rounded to a double.
void Oracle::evaluate_across(std::size_t index) {
  Filled& filled = *filled_[index];
  const model::TableDef& table = plan_.tables[filled.table];
  const std::size_t source_table = *table.source;
  const model::TableDef& source = plan_.tables[source_table];
  const model::Statistic what = source.across ? *source.across : table.of;
  std::vector<std::uint32_t> group_of;  // by group of the source
  for (std::uint32_t g = 0; g < groups_[source_table]->size(); ++g) {
    group_of.push_back(groups_[filled.table]->number(project(groups_[source_table]->labels(g), table.by)));
  }
  for (const auto& from : filled_) {
    if (from->table != source_table || !(from->spec == filled.spec)) continue;
    for (const Cell& cell : from->sheet.cells()) {
      const double value = cell.pick(decimals_of(source_table), what);
      Cell& into = filled.sheet.cell(group_of[cell.group], cell.window);
      into.add_contribution(value == 0 ? 0.0 : value);
      if (filled.quantiles) into.values.push_back(value == 0 ? 0.0 : value);
    }
  }
}

ExpectedWindow Oracle::expected(const Table& table, const Cell& cell) const {
  ExpectedWindow window{cell.window.end, cell.statistics(table.decimals), !table.across};
  if (table.quantiles) put_quantiles(cell.values, window);
  if (table.distinct) {
    window.shown.distinct = cell.things.size();
    if (cell.things.size() > kCountedExactly) window.distinct_error = kFarthestCount;
  }
  return window;
}

}  // namespace orla::verify
