// Questions for raw samples to the cloud's file, also while a cloud writes it.
//
// Series come in the order of their labels (as in cloud_reader.h), the samples of a series by time, those of one time
// in the order in which the cloud took them: for what one edge sent, the order in which it accepted them. Equal samples
// are separate ones. Each question sees one commit's state. In memory are blocks that overlap each other in time, and
// of the series asked for what is in the tail. Not thread-safe: every thread opens its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/cloud_reader.h"
#include "store/sample_format.h"

namespace orla::store {

struct SampleQuery {
  std::string metric;
  std::vector<model::Label> where;   // every one has to hold
  std::optional<model::Time> from;   // from <= time
  std::optional<model::Time> to;     // time < to
  std::uint64_t limit = UINT64_MAX;  // samples
  std::string after;                 // position() of the last sample of the page before; empty: from the first on
};

// Some samples of one series, in order. Borrowed until the callback returns.
struct SampleAnswer {
  const std::vector<model::Label>& labels;
  std::span<const model::Time> times;
  std::span<const double> values;
  std::uint64_t same_before = 0;  // samples of the series with the first time that come before these
};

// A text for SampleQuery::after: what follows sample i of the answer.
std::string position(const SampleAnswer& answer, std::size_t i);

// How samples lie in the file.
struct SampleFacts {
  std::uint64_t series = 0;
  std::uint64_t blocks = 0;
  std::uint64_t block_samples = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t tail_samples = 0;
  std::uint64_t tail_bytes = 0;
};

class SampleReader {
 public:
  // As CloudReader::open().
  static absl::StatusOr<std::unique_ptr<SampleReader>> open(const std::string& path, SampleFormat format);

  // Metrics of which samples are kept now, and those of which some are still there, sorted.
  absl::StatusOr<std::vector<std::string>> metrics();
  // The names of labels that the metric's series have, sorted.
  absl::StatusOr<std::vector<std::string>> labels(const std::string& metric);
  absl::StatusOr<SampleFacts> facts();

  // Calls `some` until it says kNo or everything was told. InvalidArgument for a metric of which no samples are kept or
  // a label that no series has (the message lists those that there are), and for an `after` that is no position.
  absl::Status samples(const SampleQuery& query, const std::function<Continue(const SampleAnswer&)>& some);

 private:
  SampleReader(std::unique_ptr<Database> database, SampleFormat format)
      : database_(std::move(database)), format_(std::move(format)) {}

  std::unique_ptr<Database> database_;
  const SampleFormat format_;
};

}  // namespace orla::store
