#include "verify/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <optional>

#include "absl/time/time.h"

namespace orla::verify {
namespace {

bool same(double a, double b) {
  if (a == 0 && b == 0) return true;  // -0.0 counts as 0.0
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string show(model::Time time) {
  return absl::FormatTime(absl::RFC3339_full, absl::FromUnixNanos(model::to_ns(time)), absl::UTCTimeZone());
}

std::string show(const std::string& table, const std::string& window, const std::vector<model::Label>& labels,
                 model::Time start) {
  return fmt::format("{} {}, window {}", model::to_string(model::Series{table, labels}), show(start), window);
}

// "sum is 3, expected 4; ..." for every column that differs.
std::string window_differences(const StoredWindow& stored, const ExpectedWindow& expected) {
  std::string text;
  const auto differ = [&](const char* column, const std::string& found, const std::string& wanted) {
    text += fmt::format("{}{} is {}, expected {}", text.empty() ? "" : "; ", column, found, wanted);
  };
  const auto number = [&](const char* column, double found, double wanted) {
    if (!same(found, wanted)) differ(column, fmt::format("{}", found), fmt::format("{}", wanted));
  };
  const model::Statistics& found = stored.shown;
  const model::Statistics& wanted = expected.shown;
  if (stored.end != expected.end) differ("end", show(stored.end), show(expected.end));
  if (found.count != wanted.count) differ("count", fmt::format("{}", found.count), fmt::format("{}", wanted.count));
  number("sum", found.sum, wanted.sum);
  number("min", found.min, wanted.min);
  number("max", found.max, wanted.max);
  number("mean", found.mean, wanted.mean);
  number("stddev", found.stddev, wanted.stddev);
  const auto within = [&](const char* column, std::optional<double> is, std::optional<double> should, double error) {
    const auto text_of = [](std::optional<double> v) { return v ? fmt::format("{}", *v) : std::string("null"); };
    if (!is && !should) return;
    // What lies below the least normal number counts as 0.
    if (is && should && std::fabs(*is - *should) <= std::max(error * std::fabs(*should), DBL_MIN)) return;
    differ(column, text_of(is), should ? fmt::format("{} within {}", *should, error) : "null");
  };
  within("p50", found.p50, wanted.p50, expected.quantile_error);
  within("p90", found.p90, wanted.p90, expected.quantile_error);
  within("p99", found.p99, wanted.p99, expected.quantile_error);
  within("p999", found.p999, wanted.p999, expected.quantile_error);
  within("distinct", found.distinct, wanted.distinct, expected.distinct_error);
  if (stored.has_order != expected.has_order) {
    differ("first and last", stored.has_order ? "given" : "null", expected.has_order ? "given" : "null");
  } else if (expected.has_order) {
    number("first", found.first, wanted.first);
    number("last", found.last, wanted.last);
  }
  return text;
}

std::string show(const model::ReasonCounts& counts) {
  std::string text;
  for (const auto& [reason, count] : counts) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  }
  return text.empty() ? "none" : text;
}

std::string ledger_differences(const model::Ledger& found, const model::Ledger& wanted) {
  std::string text;
  const auto differ = [&](const char* what, const std::string& is, const std::string& expected) {
    if (is != expected) text += fmt::format("{}{} {}, expected {}", text.empty() ? "" : "; ", what, is, expected);
  };
  const auto count = [&](const char* what, std::uint64_t is, std::uint64_t expected) {
    differ(what, fmt::format("{}", is), fmt::format("{}", expected));
  };
  count("received", found.received, wanted.received);
  count("aggregated", found.aggregated, wanted.aggregated);
  count("unmatched", found.unmatched, wanted.unmatched);
  count("late", found.late.count, wanted.late.count);
  if (found.late.count == wanted.late.count && found.late != wanted.late) {
    differ("late samples", "others", "other ones of the same number");
  }
  differ("rejected", show(found.rejected), show(wanted.rejected));
  if (show(found.rejected) == show(wanted.rejected) && found.rejected_set != wanted.rejected_set) {
    differ("rejected rows", "others", "other ones of the same number");
  }
  differ("dropped", show(found.dropped), show(wanted.dropped));
  count("held", found.held, wanted.held);
  return text;
}

void add_up(model::Ledger& total, const model::Ledger& part) {
  total.received += part.received;
  total.aggregated += part.aggregated;
  total.unmatched += part.unmatched;
  total.late.add(part.late);
  for (const auto& [reason, count] : part.rejected) total.rejected[reason] += count;
  total.rejected_set.add(part.rejected_set);
  total.held += part.held;
}

}  // namespace

Comparison::Comparison(const model::Plan& plan, const Oracle& oracle) : oracle_(oracle) {
  pass_over_live(plan);
  for (const Oracle::Table& table : oracle.tables()) {
    if (passed_over_.contains(table.name)) continue;
    sides_[{table.name, table.window}] = {&table, std::vector<bool>(table.sheet->cells().size())};
  }
  for (const model::TableDef& table : plan.tables) {
    for (const model::TableWindow& window : table.windows) {
      const std::pair key{table.name, model::to_string(window.spec)};
      if (table.hidden || window.hidden) hidden_.insert(key);
      if (const auto side = sides_.find(key); side != sides_.end()) side->second.paned = model::is_paned(window.spec);
    }
  }
  if (oracle.shared_series_count() > 0) {
    report_.warnings.push_back(
        fmt::format("{} series are read by several inputs of one edge, where late samples depend on how the inputs "
                    "interleave: {}",
                    oracle.shared_series_count(), oracle.shared_series().front()));
  }
  for (const auto& [key, ledger] : oracle.ledgers()) add_up(report_.totals, ledger);
}

void Comparison::pass_over_live(const model::Plan& plan) {
  std::set<std::string> metrics;
  for (const model::InputSpec& input : plan.fleet.inputs) {
    if (!model::is_live(input.kind)) continue;
    live_inputs_.insert(input.key);
    for (const std::string& metric : model::metrics_of(input)) metrics.insert(metric);
  }
  if (live_inputs_.empty()) return;
  raw_passed_over_ = metrics;
  std::string rollups;
  for (const model::TableDef& table : plan.tables) {
    if (!metrics.contains(plan.fleet.metrics[table.metric].name)) continue;
    passed_over_.insert(table.name);
    if (!table.hidden) rollups += (rollups.empty() ? "" : ", ") + table.name;
  }
  report_.warnings.push_back(
      fmt::format("what was pushed cannot be read again ({} of kind push, the first is {}); not compared: {}",
                  live_inputs_.size() == 1 ? "an input" : fmt::format("{} inputs", live_inputs_.size()),
                  *live_inputs_.begin(), rollups.empty() ? "nothing" : rollups));
}

void Comparison::example(std::string text) {
  if (report_.examples.size() < kMaxExamples) report_.examples.push_back(std::move(text));
}

void Comparison::add(const StoredWindow& stored) {
  if (passed_over_.contains(stored.table)) return;
  const std::pair key{stored.table, stored.window};
  const auto side = sides_.find(key);
  if (side == sides_.end()) {
    if (hidden_.contains(key)) return;
    ++report_.windows_extra;
    example(show(stored.table, stored.window, stored.labels, stored.start) +
            ": no rollup of the fleet has this window");
    return;
  }
  const Oracle::Table& table = *side->second.table;
  const std::uint32_t* group = table.groups->find(stored.labels);
  const std::ptrdiff_t place = group == nullptr ? -1 : table.sheet->find(*group, stored.start);
  if (place < 0 || side->second.seen[static_cast<std::size_t>(place)]) {
    ++report_.windows_extra;
    example(show(stored.table, stored.window, stored.labels, stored.start) +
            (place < 0 ? ": is there, but no accepted sample is in it" : ": is there twice"));
    return;
  }
  side->second.seen[static_cast<std::size_t>(place)] = true;
  ++report_.windows_compared;
  const Cell& cell = table.sheet->cells()[static_cast<std::size_t>(place)];
  const std::string differences = window_differences(stored, oracle_.expected(table, cell));
  if (differences.empty()) return;
  ++report_.windows_different;
  example(show(stored.table, stored.window, stored.labels, stored.start) + ": " + differences);
}

void Comparison::add(const std::string& input_key, const model::Ledger& reported) {
  if (live_inputs_.contains(input_key)) {
    if (reported.unaccounted() == 0) return;
    ++report_.inputs_different;
    example(fmt::format("input {}: received {}, of which {} are in none of its other terms", input_key,
                        reported.received, reported.unaccounted()));
    return;
  }
  const auto expected = oracle_.ledgers().find(input_key);
  if (expected == oracle_.ledgers().end() || !inputs_seen_.insert(input_key).second) {
    ++report_.inputs_different;
    example(fmt::format("input {}: {}", input_key,
                        expected == oracle_.ledgers().end() ? "is reported, but was not read" : "is reported twice"));
    return;
  }
  ++report_.inputs_compared;
  const std::string differences = ledger_differences(reported, expected->second);
  if (differences.empty()) return;
  ++report_.inputs_different;
  example(fmt::format("input {}: {}", input_key, differences));
}

void Comparison::add(const model::Series& series, const model::SetDigest& samples) {
  raw_.try_emplace(model::identity(series), Oracle::RawSeries{series, {}}).first->second.samples.add(samples);
}

void Comparison::compare_raw() {
  const auto passed = [&](const model::Series& series) { return raw_passed_over_.contains(series.metric); };
  for (const auto& [identity, expected] : oracle_.raw_series()) {
    if (passed(expected.series) || expected.samples.count == 0) continue;
    const auto found = raw_.find(identity);
    if (found == raw_.end()) {
      ++report_.raw_series_different;
      example(fmt::format("raw samples of {}: are missing, expected {}", model::to_string(expected.series),
                          expected.samples.count));
      continue;
    }
    ++report_.raw_series_compared;
    if (found->second.samples == expected.samples) {
      report_.raw_samples_compared += expected.samples.count;
      continue;
    }
    ++report_.raw_series_different;
    example(fmt::format("raw samples of {}: {} are there, expected {}{}", model::to_string(expected.series),
                        found->second.samples.count, expected.samples.count,
                        found->second.samples.count == expected.samples.count ? " of other times or values" : ""));
  }
  for (const auto& [identity, stored] : raw_) {
    const auto expected = oracle_.raw_series().find(identity);
    if (passed(stored.series) || stored.samples.count == 0) continue;
    if (expected != oracle_.raw_series().end() && expected->second.samples.count > 0) continue;
    ++report_.raw_series_different;
    example(fmt::format("raw samples of {}: {} are there, but none was accepted", model::to_string(stored.series),
                        stored.samples.count));
  }
}

Report Comparison::finish() {
  compare_raw();
  for (const auto& [key, side] : sides_) {
    const auto published = side.paned ? published_.find(key.first) : published_.end();
    const model::Time least = published == published_.end() ? model::kMaxTime : published->second;
    for (std::size_t i = 0; i < side.seen.size(); ++i) {
      const Cell& cell = side.table->sheet->cells()[i];
      if (side.seen[i] || cell.window.end > least) continue;
      ++report_.windows_missing;
      example(show(key.first, key.second, side.table->groups->labels(cell.group), cell.window.start) +
              fmt::format(": is missing; expected {} samples", cell.count));
    }
  }
  for (const auto& [key, ledger] : oracle_.ledgers()) {
    if (inputs_seen_.contains(key)) continue;
    ++report_.inputs_different;
    example(fmt::format("input {}: its edge reported nothing; expected {} samples received", key, ledger.received));
  }
  return std::move(report_);
}

}  // namespace orla::verify
