#include "verify/sheet.h"

#include <algorithm>
#include <tuple>

namespace orla::verify {

void Cell::widen(double value) {
  min = count == 0 ? value : std::min(min, value);
  max = count == 0 ? value : std::max(max, value);
}

void Cell::add_sample(model::Time time, double value, std::optional<std::int64_t> decimal) {
  if (decimal) {
    total.add_decimal(*decimal);
  } else {
    total.add_double(value);
  }
  widen(value);
  if (count == 0 || std::tie(time, value) < std::tie(first_time, first)) {
    first_time = time;
    first = value;
  }
  if (count == 0 || std::tie(last_time, last) < std::tie(time, value)) {
    last_time = time;
    last = value;
  }
  ++count;
}

void Cell::add_contribution(double value) {
  total.add_double(value);
  widen(value);
  ++count;
}

model::Statistics Cell::statistics(int decimals) const {
  model::Statistics shown;
  shown.count = count;
  shown.sum = total.sum(decimals);
  shown.min = min;
  shown.max = max;
  shown.mean = total.mean(decimals, count);
  shown.stddev = total.stddev(decimals, count);
  shown.first = first;
  shown.last = last;
  return shown;
}

double Cell::pick(int decimals, model::Statistic what) const {
  switch (what) {
    case model::Statistic::kSum:
      return total.sum(decimals);
    case model::Statistic::kMin:
      return min;
    case model::Statistic::kMax:
      return max;
    case model::Statistic::kMean:
      return total.mean(decimals, count);
    case model::Statistic::kLast:
      return last;
  }
  return 0;
}

std::string Groups::key(const std::vector<model::Label>& labels) {
  std::string key;
  for (const auto& [name, value] : labels) {
    for (const std::string& part : {name, value}) key += std::to_string(part.size()) + ":" + part;
  }
  return key;
}

std::uint32_t Groups::number(const std::vector<model::Label>& labels) {
  const auto [place, is_new] = numbers_.try_emplace(key(labels), static_cast<std::uint32_t>(labels_.size()));
  if (is_new) labels_.push_back(labels);
  return place->second;
}

const std::uint32_t* Groups::find(const std::vector<model::Label>& labels) const {
  const auto known = numbers_.find(key(labels));
  return known == numbers_.end() ? nullptr : &known->second;
}

Cell& Sheet::cell(std::uint32_t group, const Interval& window) {
  const auto [place, is_new] = places_.try_emplace({group, model::to_ns(window.start)}, cells_.size());
  if (is_new) {
    Cell& fresh = cells_.emplace_back();
    fresh.group = group;
    fresh.window = window;
  }
  return cells_[place->second];
}

std::ptrdiff_t Sheet::find(std::uint32_t group, model::Time start) const {
  const auto known = places_.find({group, model::to_ns(start)});
  return known == places_.end() ? -1 : static_cast<std::ptrdiff_t>(known->second);
}

}  // namespace orla::verify
