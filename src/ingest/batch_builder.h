// Collects rows in order of arrival and hands them over as a batch in runs per series.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingest/input.h"
#include "ingest/number.h"
#include "ingest/series_numbers.h"

namespace orla::ingest {

// Why a row is rejected.
struct Fault {
  const char* reason = kMalformed;
  std::uint32_t column = 0;  // 1-based, 0 = the whole row
  std::string message;       // "found ..., expected ..."
};

// A piece of input for a message: in quotes, cut to a readable length, unprintable bytes as \xNN.
std::string shown(std::string_view text);

// Where batches end, and how many series there may be.
struct BatchLimits {
  std::size_t rows = kMaxBatchRows;                 // samples and rejected rows; a row is not cut in two
  model::Duration ahead = model::Duration::max();   // no sample is further ahead of the batch's first one
  model::Duration behind = model::Duration::max();  // nor further behind it
  std::size_t series = kMaxSeries;
  // Every sample fits, whatever its time.
  bool any_time() const { return ahead == model::Duration::max() && behind == model::Duration::max(); }
};
// For the `speed` and `max_jump` of an input. A jump of more than max_jump is not kept in one batch with what is around
// it, so that the Pacer can tell it apart.
BatchLimits batch_limits(double speed, model::Duration max_jump);

// The samples of a batch in order of arrival. The values are integers, value * 10^decimals, as long as every one of
// them can be told so, and doubles otherwise. The memory only grows, and only as far as it is used.
class SampleColumns {
 public:
  void clear(int decimals);
  std::size_t size() const { return size_; }
  const std::uint32_t* series() const { return series_.get(); }
  const model::Time* times() const { return times_.get(); }
  // Of one form or the other: see scaled().
  bool is_scaled() const { return scaled_form_; }
  const std::int32_t* scaled() const { return scaled_.get(); }
  const double* values() const { return values_.get(); }
  int decimals() const { return decimals_; }
  // The most decimals that a value was written with since clear().
  int most_decimals() const { return most_decimals_; }

  void add(std::uint32_t series, model::Time time, double value) {
    if (scaled_form_) use_doubles();
    values_[begin_row(series, time)] = value;
    ++size_;
  }
  void add(std::uint32_t series, model::Time time, const Decimal& value) {
    const std::size_t i = begin_row(series, time);
    most_decimals_ = std::max(most_decimals_, value.decimals);
    if (scaled_form_ && (value.decimals <= decimals_ || use_decimals(value.decimals))) {
      const std::optional<std::int32_t> scaled = value.scaled(decimals_);
      if (scaled && !value.is_negative_zero()) {
        scaled_[i] = *scaled;
        ++size_;
        return;
      }
    }
    if (scaled_form_) use_doubles();
    values_[i] = value.nearest();
    ++size_;
  }

  // Room for a writer that fills rows by itself: [size(), size() + rows) of series, times and scaled, while the form is
  // scaled; grown() then says how many it filled.
  struct Room {
    std::uint32_t* series = nullptr;
    model::Time* times = nullptr;
    std::int32_t* scaled = nullptr;
  };
  Room room(std::size_t rows);
  void grown(std::size_t rows) { size_ += rows; }

 private:
  std::size_t begin_row(std::uint32_t series, model::Time time) {
    if (size_ == capacity_) reserve(size_ + 1);
    series_[size_] = series;
    times_[size_] = time;
    return size_;
  }
  void reserve(std::size_t rows);
  // The same values as doubles.
  void use_doubles();
  // The same values with more decimals. False when one of them is then too large.
  bool use_decimals(int decimals);

  std::unique_ptr<std::uint32_t[]> series_;
  std::unique_ptr<model::Time[]> times_;
  std::unique_ptr<std::int32_t[]> scaled_;
  std::unique_ptr<double[]> values_;  // has room as soon as the form is not scaled
  std::size_t values_capacity_ = 0;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  bool scaled_form_ = true;
  int decimals_ = 0;
  int most_decimals_ = 0;
};

// Not thread-safe.
class BatchBuilder {
 public:
  // With `numbers`, which outlives the builder, series get their numbers there, and keep those they have.
  BatchBuilder(std::string input_key, BatchLimits limits, SeriesNumbers* numbers = nullptr);

  // Clears `out` and fills it from now on, until finish().
  void begin(model::InputBatch& out);
  // The series' number, the next one unless it has one; nothing when there are too many. Call it right before its first
  // sample is added.
  std::optional<model::SeriesId> define(model::Series series);
  std::size_t series_count() const { return next_series_; }
  // Whether all of them, which are distinct, can be defined.
  bool can_define(const std::vector<model::Series>& series) const;
  const BatchLimits& limits() const { return limits_; }
  // For series that are numbered elsewhere, before finish(): those below `count` are defined.
  void know_series(std::size_t count) { next_series_ = std::max(next_series_, static_cast<std::uint32_t>(count)); }

  // Whether a sample of this time belongs into the present batch.
  bool fits(model::Time time) const {
    if (columns_.size() == 0) return true;
    const model::Duration ahead = time - columns_.times()[0];
    return ahead <= limits_.ahead && -ahead <= limits_.behind;
  }
  void add(model::SeriesId series, model::Time time, double value) { columns_.add(model::index(series), time, value); }
  void add(model::SeriesId series, model::Time time, const Decimal& value) {
    columns_.add(model::index(series), time, value);
  }
  // For writers that fill rows by themselves.
  SampleColumns& columns() { return columns_; }
  void reject(std::uint64_t row, Fault fault);

  std::size_t samples() const { return columns_.size(); }
  // How many more rows of one sample go in before full().
  std::size_t rows_left() const {
    const std::size_t rows = columns_.size() + rejected_;
    return rows < limits_.rows ? limits_.rows - rows : 0;
  }
  bool full() const { return rows_left() == 0; }

  // Writes the samples, in runs per series in order of the series' first samples, and the counts.
  void finish(const model::Position& position);

 private:
  void group();

  std::string input_key_;
  BatchLimits limits_;
  SeriesNumbers* numbers_;
  model::InputBatch* out_ = nullptr;
  std::uint32_t next_series_ = 0;
  std::size_t rejected_ = 0;
  SampleColumns columns_;
  // group(): per series, the samples counted and then the place of its next one; all zero between batches.
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace orla::ingest
