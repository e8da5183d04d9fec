#include "node/answers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/window.h"
#include "node/answer_text.h"

namespace orla::node {

namespace {

constexpr std::uint64_t kRowsPerPiece = 4096;

std::string optional_number(const std::optional<double>& value, std::string_view absent) {
  return value ? fmt::format("{}", *value) : std::string(absent);
}

// JSON has no infinities: a statistic that overflowed is null.
std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

// A window or step as the file names it: "60m" is kept as "1h". What cannot be read stays, and is then not found.
std::string canonical_name(What what, const std::string& name) {
  if (what == What::kForecasts) {
    const absl::StatusOr<model::Duration> step = model::parse_duration(name);
    return step.ok() ? model::to_string(*step) : name;
  }
  const absl::StatusOr<model::WindowSpec> window = model::parse_window(name);
  return window.ok() ? model::to_string(*window) : name;
}

// The fields that only some rollups have, each with its comma.
std::string sketches_json(const model::Statistics& s) {
  std::string out;
  if (s.p50) {
    absl::StrAppend(&out, "\"p50\":", json_number(*s.p50), ",\"p90\":", optional_number(s.p90, "null"),
                    ",\"p99\":", optional_number(s.p99, "null"), ",\"p999\":", optional_number(s.p999, "null"), ",");
  }
  if (s.distinct) absl::StrAppend(&out, "\"distinct\":", *s.distinct, ",");
  return out;
}

std::string sketches_csv(const model::Statistics& s, model::SketchKinds kinds) {
  std::string out;
  if (kinds.quantiles) {
    for (const std::optional<double>& quantile : {s.p50, s.p90, s.p99, s.p999})
      absl::StrAppend(&out, optional_number(quantile, ""), ",");
  }
  if (kinds.distinct) absl::StrAppend(&out, s.distinct ? absl::StrCat(*s.distinct) : "", ",");
  return out;
}

}  // namespace

std::string labels_text(const std::vector<model::Label>& labels) {
  return absl::StrJoin(labels, ",", absl::PairFormatter("="));
}

absl::StatusOr<AnswerStream> AnswerStream::open(const std::string& store_path, AnswerOptions options) {
  options.query.window = canonical_name(options.what, options.query.window);
  absl::StatusOr<std::unique_ptr<store::CloudReader>> reader = store::CloudReader::open(store_path);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<std::vector<store::RollupInfo>> rollups = (*reader)->rollups();
  if (!rollups.ok()) return rollups.status();
  std::vector<std::string> labels;
  model::SketchKinds sketches;
  if (options.format == AnswerFormat::kCsv) {
    std::vector<const store::RollupInfo*> candidates;
    std::vector<std::string> names;
    for (const store::RollupInfo& info : *rollups) {
      const bool shown = !info.hidden || options.query.show == store::Show::kHiddenToo;
      if (shown) names.push_back(info.name);
      if (shown && (options.query.rollup.empty() || options.query.rollup == info.name)) candidates.push_back(&info);
    }
    if (candidates.empty() && !options.query.rollup.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no rollup \"", options.query.rollup, "\"; there are: ",
                                                     names.empty() ? "none yet" : absl::StrJoin(names, ", ")));
    }
    if (candidates.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CSV shows one rollup, since its labels are the columns: name one of ", absl::StrJoin(names, ", ")));
    }
    if (!candidates.empty()) {
      labels = candidates.front()->labels;
      sketches = {candidates.front()->quantiles, !candidates.front()->distinct.empty()};
    }
  }
  // What is wrong with the question shows now, before anything is answered.
  store::Query probe = options.query;
  probe.limit = 1;
  const absl::Status status =
      options.what == What::kWindows
          ? (*reader)->windows(probe, [](const store::WindowAnswer&) { return store::Continue::kNo; })
          : (*reader)->forecasts(probe, [](const store::ForecastAnswer&) { return store::Continue::kNo; });
  if (!status.ok()) return status;
  return AnswerStream(*std::move(reader), std::move(options), std::move(labels), sketches);
}

void AnswerStream::begin(std::string& piece) const {
  const bool windows = options_.what == What::kWindows;
  if (options_.format == AnswerFormat::kJson) {
    piece += windows ? "{\"windows\":[" : "{\"forecasts\":[";
    return;
  }
  piece += windows ? "start,end," : "start,end,step,";
  for (const std::string& label : labels_) absl::StrAppend(&piece, csv_cell(label), ",");
  if (!windows) {
    piece += "made_at,predicted,actual,reason\n";
    return;
  }
  absl::StrAppend(&piece, "count,sum,min,max,mean,stddev,first,last,", sketches_.quantiles ? "p50,p90,p99,p999," : "",
                  sketches_.distinct ? "distinct," : "", "revision,final\n");
}

void AnswerStream::finish(std::string& piece, bool limited) const {
  if (options_.format != AnswerFormat::kJson) return;
  absl::StrAppend(&piece, "\n],\"next\":", limited ? json_text(options_.query.after) : "null", "}\n");
}

absl::Status AnswerStream::rows(std::string& piece, std::uint64_t most, std::uint64_t& got) {
  store::Query query = options_.query;
  query.limit = most;
  const TimeForm form = options_.times;
  const bool json = options_.format == AnswerFormat::kJson;
  const auto separate = [&] { piece += given_ + got == 0 ? "\n" : ",\n"; };
  if (options_.what == What::kWindows) {
    return reader_->windows(query, [&](const store::WindowAnswer& a) {
      const model::Statistics& s = a.shown;
      const auto first = a.has_order ? std::optional(s.first) : std::nullopt;
      const auto last = a.has_order ? std::optional(s.last) : std::nullopt;
      if (json) {
        separate();
        piece += fmt::format(
            "{{\"rollup\":{},\"window\":{},\"labels\":{},\"start\":{},\"end\":{},\"count\":{},\"sum\":{},\"min\":{},"
            "\"max\":{},\"mean\":{},\"stddev\":{},\"first\":{},\"last\":{},{}\"revision\":{},\"final\":{}}}",
            json_text(a.rollup), json_text(a.window), labels_json(a.labels), time_json(a.start, form),
            time_json(a.end, form), s.count, json_number(s.sum), json_number(s.min), json_number(s.max),
            json_number(s.mean), json_number(s.stddev), optional_number(first, "null"), optional_number(last, "null"),
            sketches_json(s), a.revision, a.final);
      } else {
        absl::StrAppend(&piece, time_text(a.start, form), ",", time_text(a.end, form), ",");
        append_labels(piece, labels_, a.labels);
        piece += fmt::format("{},{},{},{},{},{},{},{},{}{},{}\n", s.count, s.sum, s.min, s.max, s.mean, s.stddev,
                             optional_number(first, ""), optional_number(last, ""), sketches_csv(s, sketches_),
                             a.revision, a.final);
      }
      ++got;
      options_.query.after = store::position(a);
      return store::Continue::kYes;
    });
  }
  return reader_->forecasts(query, [&](const store::ForecastAnswer& a) {
    if (json) {
      separate();
      piece += fmt::format(
          "{{\"rollup\":{},\"step\":{},\"labels\":{},\"start\":{},\"end\":{},\"made_at\":{},\"predicted\":{},"
          "\"actual\":{},\"reason\":{}}}",
          json_text(a.rollup), json_text(a.step), labels_json(a.labels), time_json(a.start, form),
          time_json(a.end, form), time_json(a.made_at, form), optional_number(a.predicted, "null"),
          optional_number(a.actual, "null"), a.reason.empty() ? "null" : json_text(a.reason));
    } else {
      absl::StrAppend(&piece, time_text(a.start, form), ",", time_text(a.end, form), ",", csv_cell(a.step), ",");
      append_labels(piece, labels_, a.labels);
      absl::StrAppend(&piece, time_text(a.made_at, form), ",", optional_number(a.predicted, ""), ",",
                      optional_number(a.actual, ""), ",", csv_cell(a.reason), "\n");
    }
    ++got;
    options_.query.after = store::position(a);
    return store::Continue::kYes;
  });
}

absl::StatusOr<bool> AnswerStream::next(std::string& piece) {
  piece.clear();
  if (std::exchange(first_piece_, false)) begin(piece);
  const std::uint64_t most = std::min(kRowsPerPiece, options_.query.limit - given_);
  std::uint64_t got = 0;
  if (most > 0) {
    if (absl::Status status = rows(piece, most, got); !status.ok()) return status;
  }
  given_ += got;
  const bool limited = given_ == options_.query.limit;
  const bool last = got < kRowsPerPiece || limited;
  if (last) finish(piece, limited && given_ > 0);
  return !last;
}

}  // namespace orla::node
