// Raw samples as CSV and JSON: what `orla query samples` prints and the API answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "node/answer_text.h"
#include "store/sample_reader.h"

namespace orla::node {

struct SampleOptions {
  AnswerFormat format = AnswerFormat::kJson;
  TimeForm times = TimeForm::kRfc3339;
  store::SampleQuery query;
};

// Produces an answer piece by piece, as AnswerStream does: each piece is a question of its own, which goes on after the
// last sample of the one before.
//
// CSV: time,<labels>,value; the labels are all that series of the metric have.
// JSON: {"samples":[{"labels":{..},"time":..,"value":..}],"next":"..."|null}; `next` continues a limited answer.
// Numbers are the shortest text that reads back as the same double.
class SampleStream {
 public:
  // InvalidArgument when the question names what does not exist.
  static absl::StatusOr<SampleStream> open(const std::string& store_path, SampleOptions options);
  // Replaces `piece` by the next one. False: this was the last.
  absl::StatusOr<bool> next(std::string& piece);

 private:
  SampleStream(std::unique_ptr<store::SampleReader> reader, SampleOptions options, std::vector<std::string> labels)
      : reader_(std::move(reader)), options_(std::move(options)), labels_(std::move(labels)) {}
  void append(std::string& piece, const store::SampleAnswer& some);

  std::unique_ptr<store::SampleReader> reader_;
  SampleOptions options_;
  std::vector<std::string> labels_;  // CSV columns
  std::uint64_t given_ = 0;
  bool first_piece_ = true;
};

}  // namespace orla::node
