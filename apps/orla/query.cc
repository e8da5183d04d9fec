// orla query windows|forecasts|samples --url URL | --store FILE
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/absl_view.h"
#include "base/url.h"
#include "commands.h"
#include "node/answers.h"
#include "node/csv_table.h"
#include "node/http_client.h"
#include "node/sample_answers.h"
#include "node/time_text.h"
#include "store/sqlite_cloud_store.h"

namespace orla::apps {

namespace {

constexpr std::chrono::seconds kPatience{30};

struct Options {
  std::string url;
  std::string store;
  std::string rollup;
  std::string window;
  std::string metric;
  std::vector<std::string> where;
  std::string from;
  std::string to;
  std::string format = "table";
  std::uint64_t limit = 0;
  bool epoch = false;
};

int complain(const absl::Status& status) {
  fmt::print(stderr, "orla query: {}\n", base::message(status));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailed;
}

// FILE itself, or what a state directory holds.
std::string store_file(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) return given;
  const fs::path direct = fs::path(given) / store::kCloudFileName;
  if (fs::exists(direct, ignored)) return direct;
  for (const fs::directory_entry& entry : fs::directory_iterator(given, ignored)) {
    const fs::path inside = entry.path() / store::kCloudFileName;
    if (fs::exists(inside, ignored)) return inside;
  }
  return direct;
}

// What questions of all kinds have.
template <typename Asked>
absl::StatusOr<Asked> asked_of(const Options& o, Asked out) {
  out.format = o.format == "json" ? node::AnswerFormat::kJson : node::AnswerFormat::kCsv;
  out.times = o.epoch ? node::TimeForm::kEpochNs : node::TimeForm::kRfc3339;
  if (o.limit > 0) out.query.limit = o.limit;
  for (const std::string& where : o.where) {
    const std::size_t equals = where.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--where \"", where, "\": expected label=value"));
    }
    out.query.where.emplace_back(where.substr(0, equals), where.substr(equals + 1));
  }
  for (const auto& [text, into] : {std::pair(&o.from, &out.query.from), std::pair(&o.to, &out.query.to)}) {
    if (text->empty()) continue;
    const absl::StatusOr<model::Time> time = node::parse_time(*text);
    if (!time.ok()) return time.status();
    *into = *time;
  }
  return out;
}

absl::StatusOr<node::AnswerOptions> answer_options(const Options& o, node::What what) {
  node::AnswerOptions out;
  out.what = what;
  out.query.rollup = o.rollup;
  out.query.window = o.window;
  return asked_of(o, std::move(out));
}

absl::StatusOr<node::SampleOptions> sample_options(const Options& o) {
  node::SampleOptions out;
  out.query.metric = o.metric;
  return asked_of(o, std::move(out));
}

// `path` and what only this kind of question has, then the rest.
std::string url_of(const Options& o, const char* path, const std::vector<std::pair<const char*, std::string>>& own) {
  std::string url = o.url;
  while (!url.empty() && url.back() == '/') url.pop_back();
  absl::StrAppend(&url, path, "?format=", o.format == "json" ? "json" : "csv");
  const auto add = [&url](const char* name, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&url, "&", name, "=", base::percent_encode(value));
  };
  for (const auto& [name, value] : own) add(name, value);
  for (const std::string& where : o.where) add("where", where);
  add("from", o.from);
  add("to", o.to);
  if (o.limit > 0) add("limit", std::to_string(o.limit));
  if (o.epoch) add("times", "epoch");
  return url;
}

// Asks the server at `url`, or the file by a Stream.
template <typename Stream, typename Asked>
int show(const Options& o, absl::StatusOr<Asked> asked, const std::string& url) {
  // A wrong question is told from a wrong server before asking.
  if (!asked.ok()) return complain(asked.status());
  node::CsvTable table([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  const auto print = [&](std::string_view piece) {
    if (o.format == "table") {
      table.add(piece);
    } else {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
    }
    return absl::OkStatus();
  };
  if (!o.url.empty()) {
    const absl::Status status = node::http_stream(url, kPatience, print);
    if (!status.ok()) return complain(status);
  } else {
    absl::StatusOr<Stream> answer = Stream::open(store_file(o.store), *std::move(asked));
    if (!answer.ok()) return complain(answer.status());
    std::string piece;
    for (bool more = true; more;) {
      const absl::StatusOr<bool> next = answer->next(piece);
      if (!next.ok()) return complain(next.status());
      print(piece).IgnoreError();
      more = *next;
    }
  }
  table.finish();
  return kOk;
}

int run(const Options& o, node::What what) {
  const bool windows = what == node::What::kWindows;
  return show<node::AnswerStream>(o, answer_options(o, what),
                                  url_of(o, windows ? "/api/v1/windows" : "/api/v1/forecasts",
                                         {{"rollup", o.rollup}, {windows ? "window" : "step", o.window}}));
}

int run_samples(const Options& o) {
  return show<node::SampleStream>(o, sample_options(o), url_of(o, "/api/v1/samples", {{"metric", o.metric}}));
}

// The options that all kinds have, and what is done with them.
void add_common(CLI::App& command, const std::shared_ptr<Options>& options, Chosen& chosen, const char* example,
                std::function<int(const Options&)> run) {
  CLI::Option* url = command.add_option("--url", options->url, "Ask a running cloud node, e.g. http://127.0.0.1:8401");
  command.add_option("--store", options->store, "Read a cloud's file, or the state directory that holds it")
      ->excludes(url);
  command.add_option("--from", options->from, "Start at or after: RFC 3339, a date, or nanoseconds since 1970");
  command.add_option("--to", options->to, "Start before");
  command.add_option("--format", options->format, "table, csv or json")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  command.add_flag("--epoch", options->epoch, "Times as nanoseconds since 1970");
  command.add_option("--limit", options->limit, "At most so many rows")->check(CLI::PositiveNumber);
  command.footer(example);
  command.callback([options, run = std::move(run), &chosen] {
    chosen.run = [options, run]() -> int {
      if (options->url.empty() == options->store.empty()) {
        fmt::print(stderr, "orla query: give either --url (a running cloud) or --store (its file)\n");
        return kUsage;
      }
      return run(*options);
    };
  });
}

void add_one(CLI::App& query, Chosen& chosen, node::What what, const char* name, const char* text,
             const char* example) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = query.add_subcommand(name, text);
  command->add_option("--rollup", options->rollup, "Only this rollup");
  command->add_option(
      what == node::What::kWindows ? "--window" : "--step", options->window,
      what == node::What::kWindows ? "Only windows of this kind, e.g. 15m" : "Only steps of this length, e.g. 15m");
  command->add_option("--where", options->where, "label=value; may be given several times")->expected(1)->take_all();
  add_common(*command, options, chosen, example, [what](const Options& o) { return run(o, what); });
}

void add_samples(CLI::App& query, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = query.add_subcommand("samples", "Samples of a metric that is kept raw, by series and time");
  command->add_option("--metric", options->metric, "The metric")->required();
  command->add_option("--label,--where", options->where, "label=value; may be given several times")
      ->expected(1)
      ->take_all();
  command->add_flag_callback(
      "--csv", [options] { options->format = "csv"; }, "The same as --format csv");
  command->add_flag_callback(
      "--json", [options] { options->format = "json"; }, "The same as --format json");
  add_common(*command, options, chosen,
             "Example:\n  orla query samples --url http://127.0.0.1:8401 --metric load --label plug=7 --limit 20",
             run_samples);
}

}  // namespace

void add_query(CLI::App& app, Chosen& chosen) {
  CLI::App* query = app.add_subcommand("query", "Ask a cloud for windows, forecasts or samples");
  query->require_subcommand(1);
  add_one(*query, chosen, node::What::kWindows, "windows", "Windows of rollups",
          "Example:\n  orla query windows --url http://127.0.0.1:8401 --rollup house_load --window 15m --format csv");
  add_one(*query, chosen, node::What::kForecasts, "forecasts", "Forecasts beside what happened",
          "Example:\n  orla query forecasts --url http://127.0.0.1:8401 --rollup house_load --step 60m --limit 20");
  add_samples(*query, chosen);
}

}  // namespace orla::apps
