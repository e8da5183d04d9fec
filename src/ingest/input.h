// Ways in: what turns a file or a generator into batches of samples.
//
// What a person can rely on, of every kind of input:
// - The same input gives the same samples, rejections and positions every time, and from any position that it reported
//   it gives exactly what would have followed.
// - Rows of series that `select` does not want are passed over and counted nowhere.
// - An unreadable row is one rejected, whole, and harms no other. `received` = samples + rejected. A file that several
//   inputs share by `select` counts such a row once in each of them, unless its labels can be read and are not wanted.
// - Empty lines, and cells that mean "missing", are passed over and counted nowhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "model/batch.h"
#include "model/fleet.h"

namespace orla::ingest {

// A batch holds at most this many samples and rejected rows, and up to one row more.
inline constexpr std::size_t kMaxBatchRows = 65536;
// A longer line is rejected without being looked at.
inline constexpr std::size_t kMaxLineBytes = 64 * 1024;
// Longest value of a label.
inline constexpr std::size_t kMaxLabelBytes = 1024;
// Distinct series of one input; rows of further ones are rejected.
inline constexpr std::size_t kMaxSeries = std::size_t{1} << 22;
// Times that are taken: [1900-01-01, 2190-01-01). Any two of them lie less than 2^63 ns apart.
inline constexpr model::Time kEarliestTime = model::from_ns(-2'208'988'800'000'000'000);
inline constexpr model::Time kLatestTime = model::from_ns(6'942'585'600'000'000'000);

// Reasons a row is rejected here (metric labels).
inline constexpr const char* kMalformed = "malformed";            // not the columns or the numbers that were expected
inline constexpr const char* kNotFinite = "not_finite";           // NaN or an infinity, also by overflow
inline constexpr const char* kBadTime = "bad_time";               // unreadable, or outside [kEarliestTime, kLatestTime)
inline constexpr const char* kBadLabel = "bad_label";             // not UTF-8, or longer than kMaxLabelBytes
inline constexpr const char* kTooLong = "too_long";               // a line over kMaxLineBytes
inline constexpr const char* kTooManySeries = "too_many_series";  // see kMaxSeries

// Pulled, one batch after another. Not thread-safe: one owner.
class Input {
 public:
  virtual ~Input() = default;
  // Fills `out`, whose former content is overwritten and whose memory is used again. True: `out` is a batch, the last
  // one with end_of_input set (it may be empty otherwise). False: the input has ended. An error ends the input: what
  // was good before it has been delivered, and every further call gives the same error.
  //
  // A paced input (speed > 0) cuts its batches short, so that one spans at most kPacedBatch of replay time.
  virtual absl::StatusOr<bool> next(model::InputBatch& out) = 0;
  // How far it is, 0..1; negative when that is unknown.
  virtual double progress() const = 0;
};

// How much time of the person who watches a replay one of its batches may span.
inline constexpr std::chrono::milliseconds kPacedBatch{50};

// As many threads parse a file as the machine has cores, at most so many; one does when the input is paced.
inline constexpr std::size_t kMaxUsualThreads = 4;

// `from` is a position that an input of the same spec reported, or the start.
absl::StatusOr<std::unique_ptr<Input>> make_input(const model::InputSpec& spec, const model::Position& from);
// The same with so many threads that parse (> 0), the caller's included. They change nothing of what the input gives.
absl::StatusOr<std::unique_ptr<Input>> make_threaded_input(const model::InputSpec& spec, const model::Position& from,
                                                           std::size_t threads);
using MakeInput =
    std::function<absl::StatusOr<std::unique_ptr<Input>>(const model::InputSpec& spec, const model::Position& from)>;

}  // namespace orla::ingest
