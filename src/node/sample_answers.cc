#include "node/sample_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "node/sample_format.h"

namespace orla::node {

namespace {

// Some 2 MB of text. Blocks and the tail are read anew for each piece.
constexpr std::uint64_t kSamplesPerPiece = 32'768;

}  // namespace

absl::StatusOr<SampleStream> SampleStream::open(const std::string& store_path, SampleOptions options) {
  if (options.query.metric.empty()) {
    return absl::InvalidArgumentError("samples of which metric? Name one that is kept raw");
  }
  absl::StatusOr<std::unique_ptr<store::SampleReader>> reader = store::SampleReader::open(store_path, sample_format());
  if (!reader.ok()) return reader.status();
  // What is wrong with the question shows now, before anything is answered.
  store::SampleQuery probe = options.query;
  probe.limit = 1;
  const absl::Status status =
      (*reader)->samples(probe, [](const store::SampleAnswer&) { return store::Continue::kNo; });
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> labels = (*reader)->labels(options.query.metric);
  if (!labels.ok()) return labels.status();
  return SampleStream(*std::move(reader), std::move(options), *std::move(labels));
}

void SampleStream::append(std::string& piece, const store::SampleAnswer& some) {
  std::string labels;
  const bool json = options_.format == AnswerFormat::kJson;
  if (json) {
    labels = labels_json(some.labels);
  } else {
    append_labels(labels, labels_, some.labels);
  }
  for (std::size_t i = 0; i < some.times.size(); ++i) {
    if (json) {
      absl::StrAppend(&piece, given_ == 0 ? "\n" : ",\n", "{\"labels\":", labels,
                      ",\"time\":", time_json(some.times[i], options_.times), ",\"value\":");
      fmt::format_to(std::back_inserter(piece), "{}}}", some.values[i]);
    } else {
      absl::StrAppend(&piece, time_text(some.times[i], options_.times), ",", labels);
      fmt::format_to(std::back_inserter(piece), "{}\n", some.values[i]);
    }
    ++given_;
  }
  options_.query.after = store::position(some, some.times.size() - 1);
}

absl::StatusOr<bool> SampleStream::next(std::string& piece) {
  piece.clear();
  const bool json = options_.format == AnswerFormat::kJson;
  if (std::exchange(first_piece_, false)) {
    piece += json ? "{\"samples\":[" : "time,";
    for (const std::string& label : labels_) {
      if (!json) absl::StrAppend(&piece, csv_cell(label), ",");
    }
    if (!json) piece += "value\n";
  }
  store::SampleQuery query = options_.query;
  query.limit = std::min(kSamplesPerPiece, options_.query.limit - given_);
  const std::uint64_t before = given_;
  const absl::Status status = reader_->samples(query, [&](const store::SampleAnswer& some) {
    append(piece, some);
    return store::Continue::kYes;
  });
  if (!status.ok()) return status;
  const bool limited = given_ == options_.query.limit;
  const bool last = given_ - before < kSamplesPerPiece || limited;
  if (last && json) {
    absl::StrAppend(&piece, "\n],\"next\":", limited && given_ > 0 ? json_text(options_.query.after) : "null", "}\n");
  }
  return !last;
}

}  // namespace orla::node
