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

// Columns of samples, grouped in runs of one series. Within a series the order is the order of arrival.
// times.size() == values.size(); the runs cover [0, size) without gaps, in order; a series may have several runs.
struct Batch {
  struct Run {
    SeriesId series;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  std::vector<Run> runs;
  std::vector<Time> times;
  std::vector<double> values;  // finite
};

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
