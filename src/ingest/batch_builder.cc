#include "ingest/batch_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orla::ingest {

namespace {
constexpr std::size_t kShownBytes = 48;
}

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

BatchBuilder::BatchBuilder(std::string input_key, BatchLimits limits)
    : input_key_(std::move(input_key)), limits_(limits) {
  const std::size_t rows = std::min(limits_.rows, kMaxBatchRows);
  series_.reserve(rows);
  times_.reserve(rows);
  values_.reserve(rows);
}

void BatchBuilder::begin(model::InputBatch& out) {
  out_ = &out;
  lines_ = 0;
  rejected_ = 0;
  series_.clear();
  times_.clear();
  values_.clear();
  out.new_series.clear();
  out.received = 0;
  out.rejected.clear();
  out.rejected_set = {};
  out.rejections.clear();
  out.end_of_input = false;
}

model::SeriesId BatchBuilder::define(model::Series series) {
  out_->new_series.push_back(std::move(series));
  return model::SeriesId{next_series_++};
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
  out_->received = times_.size() + rejected_;
  out_->position = position;
  out_ = nullptr;
}

void BatchBuilder::group() {
  const std::size_t n = times_.size();
  model::Batch& to = out_->samples;
  to.runs.clear();
  to.times.resize(n);
  to.values.resize(n);
  place_.resize(next_series_, 0);
  touched_.clear();
  for (const std::uint32_t s : series_) {
    if (place_[s]++ == 0) touched_.push_back(s);
  }
  std::uint32_t begin = 0;
  for (const std::uint32_t s : touched_) {
    const std::uint32_t end = begin + place_[s];
    to.runs.push_back({model::SeriesId{s}, begin, end});
    place_[s] = begin;
    begin = end;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t at = place_[series_[i]]++;
    to.times[at] = times_[i];
    to.values[at] = values_[i];
  }
  for (const std::uint32_t s : touched_) place_[s] = 0;
}

}  // namespace orla::ingest
