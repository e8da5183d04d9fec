// Rollups and forecasts: what they read exists, and their times fit together.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/fleet_draft.h"
#include "model/zone.h"

namespace orla::model {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
constexpr Duration kLongestHopping = 31 * kDay;
constexpr std::int64_t kMostOverlapping = 1440;  // hopping windows that hold one sample

bool is_multiple(Duration a, Duration of) { return of.count() > 0 && a % of == Duration::zero(); }

std::string offset_text(Duration offset) {
  const std::int64_t s = std::chrono::duration_cast<std::chrono::seconds>(offset).count();
  const std::int64_t a = s < 0 ? -s : s;
  std::string text = fmt::format("{}{:02}:{:02}", s < 0 ? '-' : '+', a / 3600, a / 60 % 60);
  return a % 60 == 0 ? text : text + fmt::format(":{:02}", a % 60);
}

class RollupChecks {
 public:
  RollupChecks(FleetDraft& draft, FleetErrors& errors) : draft_(draft), fleet_(draft.fleet), errors_(errors) {
    // An unknown zone is reported elsewhere; then only 24 h counts here.
    if (const auto offsets = utc_offsets(fleet_.zone); offsets.ok()) offsets_ = *offsets;
  }

  void run() {
    states_.assign(fleet_.rollups.size(), State::kNew);
    for (std::size_t i = 0; i < fleet_.rollups.size(); ++i) check_sources(i);
    for (std::size_t i = 0; i < fleet_.rollups.size(); ++i) complete(i);
  }

 private:
  enum class State : std::uint8_t { kNew, kDone };

  const TreeValue& table(std::size_t rollup) const { return *draft_.rollups[rollup]; }

  std::optional<std::size_t> source_of(std::size_t i) const {
    if (!fleet_.rollups[i].metric.empty()) return std::nullopt;
    const RollupSpec* source = fleet_.rollup(fleet_.rollups[i].from);
    if (source == nullptr || fleet_.rollups[i].from.empty()) return std::nullopt;
    return static_cast<std::size_t>(source - fleet_.rollups.data());
  }

  void check_sources(std::size_t i) {
    const RollupSpec& rollup = fleet_.rollups[i];
    const TreeValue* metric = table(i).find("metric");
    const TreeValue* from = table(i).find("from");
    if (metric == nullptr && from == nullptr) {
      errors_.add_missing(table(i).place,
                          fmt::format("rollup {} has neither \"metric\" nor \"from\"", in_quotes(rollup.name)),
                          "one of them");
    } else if (metric != nullptr && from != nullptr) {
      errors_.add(from->place, fmt::format("rollup {} has both \"metric\" and \"from\"", in_quotes(rollup.name)),
                  "one of them", "leave out metric: it is that of the source");
    }
    if (metric != nullptr && !rollup.metric.empty() && fleet_.metric(rollup.metric) == nullptr) {
      const std::vector<std::string> known = names_of(fleet_.metrics);
      errors_.add(metric->place, fmt::format("unknown metric {}", in_quotes(rollup.metric)), "",
                  known.empty() ? fmt::format("declare it: [[metric]] name = {}", in_quotes(rollup.metric))
                                : did_you_mean(rollup.metric, known));
    }
    if (from != nullptr && !rollup.from.empty() && fleet_.rollup(rollup.from) == nullptr) {
      std::vector<std::string> known = names_of(fleet_.rollups);
      std::erase(known, rollup.name);
      errors_.add(from->place, fmt::format("unknown rollup {}", in_quotes(rollup.from)), "",
                  did_you_mean(rollup.from, known));
    }
    check_labels(i);
    check_cycle(i);
  }

  void check_labels(std::size_t i) {
    const RollupSpec& rollup = fleet_.rollups[i];
    check_named_once(i, "by", rollup.by);
    check_named_once(i, "distinct", rollup.distinct);
    // Of a rollup `from` another, `by` is compared with that of its source.
    if (rollup.from.empty()) check_produced(i, "by", rollup.by);
    check_produced(i, "distinct", rollup.distinct);
  }

  void check_named_once(std::size_t i, std::string_view key, const std::vector<std::string>& labels) {
    std::set<std::string> seen;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (!labels[k].empty() && !seen.insert(labels[k]).second) {
        errors_.add(place_of(table(i), key, k), fmt::format("label {} is named twice", in_quotes(labels[k])),
                    "each label once");
      }
    }
  }

  // The metric that it reads in the end; empty when there is none.
  std::string root_metric(std::size_t i) const {
    for (std::size_t steps = 0; steps <= fleet_.rollups.size(); ++steps) {
      const auto source = source_of(i);
      if (!source) return fleet_.rollups[i].metric;
      i = *source;
    }
    return "";
  }

  void check_produced(std::size_t i, std::string_view key, const std::vector<std::string>& wanted) {
    const std::string metric = root_metric(i);
    if (metric.empty() || fleet_.metric(metric) == nullptr) return;
    // A series may lack a label, but a label that no input of the metric has is a slip.
    std::vector<std::string> labels;
    bool produced = false;
    for (const InputSpec& input : fleet_.inputs) {
      const std::vector<std::string> metrics = metrics_of(input);
      if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) continue;
      if (input.kind == InputSpec::Kind::kPush) return;  // senders choose their labels
      produced = true;
      for (std::string& label : labels_of(input)) {
        if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(std::move(label));
      }
    }
    if (!produced) return;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const std::string& label = wanted[k];
      if (label.empty() || std::find(labels.begin(), labels.end(), label) != labels.end()) continue;
      errors_.add(place_of(table(i), key, k),
                  fmt::format("no input gives {} the label {}", in_quotes(metric), in_quotes(label)), "",
                  did_you_mean(label, labels));
    }
  }

  // Reported where the first rollup of the cycle, in the file, names its source.
  void check_cycle(std::size_t i) {
    std::string path = fleet_.rollups[i].name;
    std::size_t at = i;
    for (std::size_t steps = 0; steps <= fleet_.rollups.size(); ++steps) {
      const auto source = source_of(at);
      if (!source) return;
      path += " -> " + fleet_.rollups[*source].name;
      if (*source == i) {
        errors_.add(place_of(table(i), "from"), fmt::format("rollups form a cycle: {}", path),
                    "rollups that lead to a metric");
        for (std::size_t k = i; states_[k] != State::kDone; k = *source_of(k)) states_[k] = State::kDone;
        return;
      }
      if (*source < i) return;  // then the cycle, if any, is reported there, or does not hold this one
      at = *source;
    }
  }

  // Inherits from the source and checks times, sources first. A rollup of a cycle is left as it is.
  void complete(std::size_t i) {
    std::vector<std::size_t> chain;
    for (std::optional<std::size_t> at = i; at && states_[*at] == State::kNew; at = source_of(*at)) {
      if (std::find(chain.begin(), chain.end(), *at) != chain.end()) break;
      chain.push_back(*at);
    }
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      complete_one(*at);
      states_[*at] = State::kDone;
    }
  }

  void complete_one(std::size_t i) {
    RollupSpec& rollup = fleet_.rollups[i];
    const auto source_index = source_of(i);
    const RollupSpec* source = source_index ? &fleet_.rollups[*source_index] : nullptr;
    const bool own_slice = table(i).find("slice") != nullptr;
    const bool own_windows = table(i).find("windows") != nullptr;
    if (source != nullptr) {
      if (!own_slice) rollup.slice = source->slice;
      if (!own_windows) rollup.windows = source->windows;
      check_against_source(i, *source);
    } else if (!own_windows) {
      rollup.windows = {parse_window(to_string(rollup.slice)).value()};
    }
    if (table(i).find("of") != nullptr && !rollup.across) {
      errors_.add(place_of(table(i), "of"), "\"of\" without \"across\"", "",
                  "it says which value each group gives to across = \"sum\" (or min, max, mean)");
    }
    check_keep(i);
    if (rollup.across && !rollup.distinct.empty()) {
      errors_.add(
          place_of(table(i), "distinct"), "\"distinct\" with \"across\"", "",
          "it counts series by their samples, which an across rollup does not see: ask a rollup without across");
    }
    if (check_slice(i, own_slice)) check_windows(i, own_windows);
  }

  void check_keep(std::size_t i) {
    const RollupSpec& rollup = fleet_.rollups[i];
    if (!rollup.keep_raw) return;
    if (rollup.across) {
      errors_.add(place_of(table(i), "keep"),
                  fmt::format("keep = \"raw\" with across, in rollup {}", in_quotes(rollup.name)),
                  "a rollup without across", "put it into a rollup that pools the samples of the metric");
    } else if (rollup.metric.empty()) {
      errors_.add(place_of(table(i), "keep"),
                  fmt::format("keep = \"raw\" with from, in rollup {}", in_quotes(rollup.name)), "a rollup with metric",
                  "samples are those of a metric: put it into the rollup that reads it");
    }
  }

  void check_against_source(std::size_t i, const RollupSpec& source) {
    const RollupSpec& rollup = fleet_.rollups[i];
    for (std::size_t k = 0; k < rollup.by.size(); ++k) {
      const std::string& label = rollup.by[k];
      if (label.empty() || std::find(source.by.begin(), source.by.end(), label) != source.by.end()) continue;
      errors_.add(place_of(table(i), "by", k),
                  fmt::format("label {} is not one of rollup {}", in_quotes(label), in_quotes(source.name)), "",
                  did_you_mean(label, source.by));
    }
    if (source.across && !rollup.across) {
      errors_.add(place_of(table(i), "from"),
                  fmt::format("{} pools samples, but {} is an across rollup and has none", in_quotes(rollup.name),
                              in_quotes(source.name)),
                  "across = \"sum\" (or min, max, mean), or a source without across");
    }
    if (source.across && rollup.across && table(i).find("of") != nullptr) {
      errors_.add(place_of(table(i), "of"), fmt::format("\"of\" over the across rollup {}", in_quotes(source.name)), "",
                  "leave it out: the value of that rollup is taken");
    }
    if (table(i).find("slice") == nullptr) return;
    if (rollup.across && rollup.slice != source.slice) {
      errors_.add(place_of(table(i), "slice"), fmt::format("slice is {}", in_quotes(to_string(rollup.slice))),
                  fmt::format("that of rollup {}, \"{}\"", in_quotes(source.name), to_string(source.slice)),
                  "leave it out");
    } else if (!rollup.across && !is_multiple(rollup.slice, source.slice)) {
      errors_.add(
          place_of(table(i), "slice"), fmt::format("slice is {}", in_quotes(to_string(rollup.slice))),
          fmt::format("a multiple of the slice of rollup {}, \"{}\"", in_quotes(source.name), to_string(source.slice)));
    }
  }

  bool check_slice(std::size_t i, bool own) {
    const Duration slice = fleet_.rollups[i].slice;
    if (divides_days(slice, offsets_)) return true;
    // An inherited slice is reported at the source.
    if (!own && source_of(i)) return false;
    std::string offsets;
    for (const Duration offset : offsets_) offsets += (offsets.empty() ? "" : ", ") + offset_text(offset);
    if (is_multiple(kDay, slice)) {
      errors_.add(place_of(table(i), "slice"), fmt::format("slice is \"{}\"", to_string(slice)),
                  fmt::format("one that divides the offsets of {} from UTC ({})", in_quotes(fleet_.zone), offsets),
                  fmt::format("the longest one is \"{}\"", to_string(longest_slice())));
    } else {
      errors_.add(place_of(table(i), "slice"), fmt::format("slice is \"{}\"", to_string(slice)),
                  "one that divides 24 h, such as \"10s\", \"1m\" or \"15m\"");
    }
    return false;
  }

  Duration longest_slice() const {
    Duration longest = kDay;
    for (const Duration offset : offsets_) {
      longest = Duration(std::gcd(longest.count(), offset.count()));
    }
    return longest;
  }

  void check_windows(std::size_t i, bool own) {
    const RollupSpec& rollup = fleet_.rollups[i];
    if (!own && table(i).find("slice") == nullptr) return;  // as they are at the source
    std::vector<WindowSpec> seen;
    for (std::size_t k = 0; k < rollup.windows.size(); ++k) {
      const WindowSpec& window = rollup.windows[k];
      if (window == WindowSpec{}) continue;
      const Place place = own ? place_of(table(i), "windows", k) : place_of(table(i), "slice");
      const std::string name = to_string(window);
      if (std::find(seen.begin(), seen.end(), window) != seen.end()) {
        errors_.add(place, fmt::format("window \"{}\" is named twice", name), "each window once");
        continue;
      }
      seen.push_back(window);
      const bool sized = window.kind == WindowSpec::Kind::kElapsed || window.kind == WindowSpec::Kind::kHopping;
      if (sized && !is_multiple(window.size, rollup.slice)) {
        errors_.add(place, fmt::format("window \"{}\" is not made of slices of \"{}\"", name, to_string(rollup.slice)),
                    "a multiple of the slice");
      } else if (window.kind == WindowSpec::Kind::kHopping && !is_multiple(window.hop, rollup.slice)) {
        errors_.add(place, fmt::format("window \"{}\" does not hop by slices of \"{}\"", name, to_string(rollup.slice)),
                    "a hop that is a multiple of the slice");
      } else if (window.kind == WindowSpec::Kind::kHopping &&
                 (window.size > kLongestHopping || window.size / window.hop > kMostOverlapping)) {
        errors_.add(place, fmt::format("window \"{}\" overlaps too often", name),
                    fmt::format("a size of at most 31d and at most {} times the hop", kMostOverlapping));
      }
    }
  }

  FleetDraft& draft_;
  Fleet& fleet_;
  FleetErrors& errors_;
  std::vector<Duration> offsets_;
  std::vector<State> states_;
};

}  // namespace

void complete_rollups(FleetDraft& draft, FleetErrors& errors) { RollupChecks(draft, errors).run(); }

void check_forecasts(const FleetDraft& draft, FleetErrors& errors) {
  const Fleet& fleet = draft.fleet;
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 0; i < fleet.forecasts.size(); ++i) {
    const ForecastSpec& forecast = fleet.forecasts[i];
    const TreeValue& table = *draft.forecasts[i];
    for (std::size_t k = 0; k < forecast.of.size(); ++k) {
      const std::string& name = forecast.of[k];
      if (name.empty()) continue;
      if (fleet.rollup(name) == nullptr) {
        errors.add(place_of(table, "of", k), fmt::format("unknown rollup {}", in_quotes(name)), "",
                   did_you_mean(name, names_of(fleet.rollups)));
      } else if (!seen.emplace(name, forecast.model).second) {
        errors.add(place_of(table, "of", k), fmt::format("a second forecast of {}", in_quotes(name)),
                   "one forecast of a rollup and model", "put all steps into one [[forecast]]");
      }
    }
    for (std::size_t k = 0; k < forecast.steps.size(); ++k) {
      const Duration step = forecast.steps[k];
      const Place place = place_of(table, "steps", k);
      const TreeValue* steps = table.find("steps");
      if (step == Duration::zero()) {
        const TreeValue& item = k < steps->items.size() ? steps->items[k] : *steps;
        if (item.kind == TreeValue::Kind::kText && parse_duration(item.text).ok()) {
          errors.add(place, "a step of no length", "one that divides 24 h");
        }
        continue;
      }
      if (std::find(forecast.steps.begin(), forecast.steps.begin() + static_cast<std::ptrdiff_t>(k), step) !=
          forecast.steps.begin() + static_cast<std::ptrdiff_t>(k)) {
        errors.add(place, fmt::format("step \"{}\" is named twice", to_string(step)), "each step once");
        continue;
      }
      if (!is_multiple(kDay, step)) {
        errors.add(place, fmt::format("step is \"{}\"", to_string(step)), "one that divides 24 h, such as \"15m\"");
        continue;
      }
      for (const std::string& name : forecast.of) {
        const RollupSpec* rollup = fleet.rollup(name);
        if (rollup == nullptr || is_multiple(step, rollup->slice)) continue;
        errors.add(
            place, fmt::format("step is \"{}\"", to_string(step)),
            fmt::format("a multiple of the slice of rollup {}, \"{}\"", in_quotes(name), to_string(rollup->slice)));
      }
    }
  }
}

}  // namespace orla::model
