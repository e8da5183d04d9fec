#include "ingest/batch_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::ingest {

namespace {
constexpr std::size_t kShownBytes = 48;
constexpr std::size_t kLeastCapacity = 256;
}  // namespace

std::string shown(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
  if (text.size() > kShownBytes) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

BatchLimits batch_limits(double speed, model::Duration max_jump) {
  BatchLimits limits;
  if (!(speed > 0)) return limits;
  const double ns = speed * static_cast<double>(std::chrono::nanoseconds(kPacedBatch).count());
  if (ns < static_cast<double>(model::Duration::max().count())) {
    limits.ahead = model::Duration(static_cast<std::int64_t>(ns));
  }
  if (max_jump.count() > 0) limits.behind = std::max(limits.ahead, max_jump);
  return limits;
}

void SampleColumns::clear(int decimals) {
  size_ = 0;
  scaled_form_ = true;
  decimals_ = decimals;
  most_decimals_ = 0;
}

namespace {
// The first `used` elements in a larger place.
template <typename T>
void move_to_larger(std::unique_ptr<T[]>& column, std::size_t used, std::size_t capacity) {
  auto larger = std::make_unique_for_overwrite<T[]>(capacity);
  std::copy_n(column.get(), used, larger.get());
  column = std::move(larger);
}
}  // namespace

void SampleColumns::reserve(std::size_t rows) {
  if (rows > capacity_) {
    const std::size_t capacity = std::max<std::size_t>({rows, 2 * capacity_, kLeastCapacity});
    move_to_larger(series_, size_, capacity);
    move_to_larger(times_, size_, capacity);
    move_to_larger(scaled_, scaled_form_ ? size_ : 0, capacity);
    capacity_ = capacity;
  }
  if (!scaled_form_ && values_capacity_ < capacity_) {
    move_to_larger(values_, values_capacity_ == 0 ? 0 : size_, capacity_);
    values_capacity_ = capacity_;
  }
}

SampleColumns::Room SampleColumns::room(std::size_t rows) {
  reserve(size_ + rows);
  return {series_.get() + size_, times_.get() + size_, scaled_.get() + size_};
}

void SampleColumns::use_doubles() {
  if (values_capacity_ < capacity_) {
    values_ = std::make_unique_for_overwrite<double[]>(capacity_);
    values_capacity_ = capacity_;
  }
  const double unit = kPowersOfTen[static_cast<std::size_t>(decimals_)];
  for (std::size_t i = 0; i < size_; ++i) values_[i] = scaled_[i] / unit;
  scaled_form_ = false;
}

bool SampleColumns::use_decimals(int decimals) {
  if (size_ > 0) {
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < size_; ++i) largest = std::max(largest, std::abs(std::int64_t{scaled_[i]}));
    if (!Decimal{largest, decimals_}.scaled(decimals)) return false;
    const std::int64_t factor = power_of_ten(decimals - decimals_);
    for (std::size_t i = 0; i < size_; ++i) scaled_[i] = static_cast<std::int32_t>(scaled_[i] * factor);
  }
  decimals_ = decimals;
  return true;
}

BatchBuilder::BatchBuilder(std::string input_key, BatchLimits limits, SeriesNumbers* numbers)
    : input_key_(std::move(input_key)), limits_(limits), numbers_(numbers) {}

void BatchBuilder::begin(model::InputBatch& out) {
  out_ = &out;
  rejected_ = 0;
  // What the last batch needed is what this one will need.
  columns_.clear(columns_.size() > 0 ? columns_.most_decimals() : columns_.decimals());
  out.new_series.clear();
  out.received = 0;
  out.rejected.clear();
  out.rejected_set = {};
  out.rejections.clear();
  out.end_of_input = false;
}

std::optional<model::SeriesId> BatchBuilder::define(model::Series series) {
  if (numbers_ != nullptr) {
    const std::optional<SeriesNumbers::Numbered> numbered = numbers_->number(series);
    if (!numbered) return std::nullopt;
    next_series_ = std::max(next_series_, numbered->number + 1);
    if (numbered->is_new) out_->new_series.push_back(std::move(series));
    return model::SeriesId{numbered->number};
  }
  if (next_series_ >= limits_.series) return std::nullopt;
  out_->new_series.push_back(std::move(series));
  return model::SeriesId{next_series_++};
}

bool BatchBuilder::can_define(const std::vector<model::Series>& series) const {
  if (numbers_ == nullptr) return next_series_ + series.size() <= limits_.series;
  const auto unknown =
      std::count_if(series.begin(), series.end(), [this](const model::Series& s) { return !numbers_->knows(s); });
  return static_cast<std::size_t>(unknown) <= numbers_->left();
}

void BatchBuilder::reject(std::uint64_t row, Fault fault) {
  ++rejected_;
  const auto [count, is_new] = out_->rejected.try_emplace(fault.reason, 0);
  ++count->second;
  out_->rejected_set.add(model::row_hash(input_key_, row));
  if (out_->rejections.size() < model::kMaxShownRejections) {
    out_->rejections.push_back({fault.reason, row, fault.column, std::move(fault.message)});
  }
}

void BatchBuilder::finish(const model::Position& position) {
  group();
  out_->received = columns_.size() + rejected_;
  out_->position = position;
  out_ = nullptr;
}

namespace {
// values[i] goes to to[place[series[i]]++], times likewise.
template <typename T>
void scatter(const SampleColumns& from, const T* values, std::uint32_t* place, model::Time* to_times, T* to) {
  const std::uint32_t* const series = from.series();
  const model::Time* const times = from.times();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t at = place[series[i]]++;
    to_times[at] = times[i];
    to[at] = values[i];
  }
}
}  // namespace

void BatchBuilder::group() {
  const std::size_t n = columns_.size();
  model::Batch& to = out_->samples;
  to.runs.clear();
  to.paces.clear();
  to.times.resize(n);
  to.values.resize(columns_.is_scaled() ? 0 : n);
  to.scaled.resize(columns_.is_scaled() ? n : 0);
  to.decimals = columns_.is_scaled() && n > 0 ? columns_.decimals() : 0;
  place_.resize(next_series_, 0);
  touched_.clear();
  const std::uint32_t* const series = columns_.series();
  for (std::size_t i = 0; i < n; ++i) {
    if (place_[series[i]]++ == 0) touched_.push_back(series[i]);
  }
  std::uint32_t begin = 0;
  for (const std::uint32_t s : touched_) {
    const std::uint32_t end = begin + place_[s];
    to.runs.push_back({model::SeriesId{s}, begin, end});
    place_[s] = begin;
    begin = end;
  }
  if (columns_.is_scaled()) {
    scatter(columns_, columns_.scaled(), place_.data(), to.times.data(), to.scaled.data());
  } else {
    scatter(columns_, columns_.values(), place_.data(), to.times.data(), to.values.data());
  }
  for (const std::uint32_t s : touched_) place_[s] = 0;
}

}  // namespace orla::ingest
