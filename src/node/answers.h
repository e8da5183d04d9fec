// Windows and forecasts as CSV and JSON: what `orla query` prints and the API answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node/answer_text.h"
#include "store/cloud_reader.h"

namespace orla::node {

enum class What : std::uint8_t { kWindows, kForecasts };

struct AnswerOptions {
  What what = What::kWindows;
  AnswerFormat format = AnswerFormat::kJson;
  TimeForm times = TimeForm::kRfc3339;
  store::Query query;
};

// Produces an answer piece by piece, so that neither memory nor a transaction of the store grows with it: each piece is
// a question of its own, which goes on after the last row of the one before.
//
// CSV, windows: start,end,<labels>,count,sum,min,max,mean,stddev,first,last,revision,final; a rollup with quantiles has
// p50,p90,p99,p999 after `last`, then, one that counts distinct series, distinct. Likewise the fields in JSON.
// CSV, forecasts: start,end,step,<labels>,made_at,predicted,actual,reason
// CSV needs one rollup (its labels are the columns): without `query.rollup` there must be only one.
// JSON: {"windows":[{"rollup":..,"window":..,"labels":{..},"start":..,..}],"next":"..."|null}; `next` continues a
// limited answer. Numbers are the shortest text that reads back as the same double; what does not exist is empty or
// null.
class AnswerStream {
 public:
  // InvalidArgument when the question names what does not exist.
  static absl::StatusOr<AnswerStream> open(const std::string& store_path, AnswerOptions options);
  // Replaces `piece` by the next one. False: this was the last.
  absl::StatusOr<bool> next(std::string& piece);

 private:
  AnswerStream(std::unique_ptr<store::CloudReader> reader, AnswerOptions options, std::vector<std::string> labels,
               model::SketchKinds sketches)
      : reader_(std::move(reader)), options_(std::move(options)), labels_(std::move(labels)), sketches_(sketches) {}
  void begin(std::string& piece) const;
  void finish(std::string& piece, bool limited) const;
  absl::Status rows(std::string& piece, std::uint64_t most, std::uint64_t& got);

  std::unique_ptr<store::CloudReader> reader_;
  AnswerOptions options_;
  std::vector<std::string> labels_;  // CSV columns
  model::SketchKinds sketches_;      // CSV columns
  std::uint64_t given_ = 0;
  bool first_piece_ = true;
};

// "house=3,plug=7"
std::string labels_text(const std::vector<model::Label>& labels);

}  // namespace orla::node
