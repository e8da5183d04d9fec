// What an input hands to the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ledger.h"
#include "model/series.h"
#include "model/time.h"

namespace orla::model {

// Where an input stands: everything before it has been handed over. Zero is the start.
struct Position {
  std::uint64_t offset = 0;  // bytes of the (decompressed) input; of a generator see ingest/generator_input.h
  std::uint64_t row = 0;     // lines (CSV, header included) or rows read so far
  friend bool operator==(const Position&, const Position&) = default;
};

// Columns of samples, grouped in runs of one series. Within a series the order is the order of arrival. The runs cover
// [0, size()) without gaps, in order; a series may have several runs.
//
// Times and values have two forms each, of which a batch uses one for all its samples:
// - times: one each, or evenly spaced in every run (`paces`, one per run)
// - values: doubles, or decimals as integers (`scaled`), as encodings of fixed decimals carry them
struct Batch {
  struct Run {
    SeriesId series;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // Sample i of the run is at start + i * step.
  struct Pace {
    Time start{};
    Duration step{};  // >= 0; the last time of the run lies in [kMinTime, kMaxTime]
  };
  std::vector<Run> runs;
  std::vector<Time> times;
  std::vector<Pace> paces;
  std::vector<double> values;        // finite
  std::vector<std::int32_t> scaled;  // value * 10^decimals
  int decimals = 0;                  // of scaled, 0..kMaxScaledDecimals

  std::size_t size() const { return values.empty() ? scaled.size() : values.size(); }
  // The largest time; kMinTime of no samples.
  Time newest() const;
  // Keeps the memory.
  void clear();
  // The same samples with `times` and `values`.
  void make_plain();
};

// Powers of ten up to this one are exact doubles, and so is every quotient by them rounded once: the double nearest to
// the decimal, which counts as that decimal (see exact_sum.h).
inline constexpr int kMaxScaledDecimals = 15;

// One unreadable row or value, as shown to a person.
struct Rejection {
  std::string reason;        // a short fixed word: "malformed", "not_finite", ... (a metric label)
  std::uint64_t row = 0;     // line number in the file, 1-based
  std::uint32_t column = 0;  // 1-based, 0 when the whole row is meant
  std::string message;       // what was found, what was expected
};

// A batch with what the input knows about it. SeriesIds are the input's own dense numbers: new_series[k] defines number
// (series defined before) + k, before any sample uses it. An input restarted at a position starts its numbers anew.
struct InputBatch {
  std::vector<Series> new_series;
  Batch samples;
  std::uint64_t received = 0;         // samples in this batch plus the rejected ones (one per unreadable row)
  ReasonCounts rejected;              // by reason
  SetDigest rejected_set;             // over the rows rejected here, see ledger.h
  std::vector<Rejection> rejections;  // at most kMaxShownRejections of them, to show
  Position position;                  // after this batch
  std::string producer;               // of a pushed batch that can be sent again; else empty
  std::uint64_t producer_sequence = 0;
  bool end_of_input = false;  // nothing follows
};

inline constexpr std::size_t kMaxShownRejections = 16;

}  // namespace orla::model
