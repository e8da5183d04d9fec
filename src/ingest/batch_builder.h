// Collects rows in order of arrival and hands them over as a batch in runs per series.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ingest/input.h"

namespace orla::ingest {

// Why a row is rejected.
struct Fault {
  const char* reason = kMalformed;
  std::uint32_t column = 0;  // 1-based, 0 = the whole row
  std::string message;       // "found ..., expected ..."
};

// A piece of input for a message: in quotes, cut to a readable length, unprintable bytes as \xNN.
std::string shown(std::string_view text);

// Where batches end.
struct BatchLimits {
  std::size_t rows = kMaxBatchRows;                 // samples and rejected rows; a row is not cut in two
  model::Duration ahead = model::Duration::max();   // no sample is further ahead of the batch's first one
  model::Duration behind = model::Duration::max();  // nor further behind it
};
// For the `speed` and `max_jump` of an input. A jump of more than max_jump is not kept in one batch with what is around
// it, so that the Pacer can tell it apart.
BatchLimits batch_limits(double speed, model::Duration max_jump);

// Not thread-safe.
class BatchBuilder {
 public:
  BatchBuilder(std::string input_key, BatchLimits limits);

  // Clears `out` and fills it from now on, until finish().
  void begin(model::InputBatch& out);
  // The next series' number. Call it right before its first sample is added.
  model::SeriesId define(model::Series series);
  std::size_t series_count() const { return next_series_; }
  // For series that are numbered elsewhere, before finish(): those below `count` are defined.
  void know_series(std::size_t count) { next_series_ = std::max(next_series_, static_cast<std::uint32_t>(count)); }

  // Whether a sample of this time belongs into the present batch.
  bool fits(model::Time time) const {
    if (times_.empty()) return true;
    const model::Duration ahead = time - times_.front();
    return ahead <= limits_.ahead && -ahead <= limits_.behind;
  }
  void add(model::SeriesId series, model::Time time, double value) {
    series_.push_back(model::index(series));
    times_.push_back(time);
    values_.push_back(value);
  }
  void reject(std::uint64_t row, Fault fault);
  void count_lines(std::size_t lines) { lines_ += lines; }

  std::size_t samples() const { return times_.size(); }
  // How many more rows of one sample, and lines, go in before full().
  std::size_t rows_left() const {
    const std::size_t rows = times_.size() + rejected_;
    return rows < limits_.rows ? limits_.rows - rows : 0;
  }
  std::size_t lines_left() const { return lines_ < kMaxBatchLines ? kMaxBatchLines - lines_ : 0; }
  bool full() const { return rows_left() == 0 || lines_left() == 0; }

  // Writes the samples, in runs per series in order of the series' first samples, and the counts.
  void finish(const model::Position& position);

 private:
  void group();

  std::string input_key_;
  BatchLimits limits_;
  model::InputBatch* out_ = nullptr;
  std::uint32_t next_series_ = 0;
  std::size_t lines_ = 0;
  std::size_t rejected_ = 0;
  // The samples in order of arrival.
  std::vector<std::uint32_t> series_;
  std::vector<model::Time> times_;
  std::vector<double> values_;
  // group(): per series, the samples counted and then the place of its next one; all zero between batches.
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace orla::ingest
