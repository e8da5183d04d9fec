#include "node/api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "node/answers.h"
#include "node/latest_forecasts.h"
#include "node/sample_answers.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

constexpr std::size_t kForecastsPerStep = 3;  // on the page

HttpResponse failure(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body =
      nlohmann::json({{"error", std::string(message)}}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
      "\n";
  return response;
}

HttpResponse failure(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return failure(400, message);
    case absl::StatusCode::kNotFound:
      return failure(404, message);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return failure(503, message);
    default:
      return failure(500, message);
  }
}

// A parameter that questions of all kinds have: taken, not one of those, or wrong.
template <typename Options>
absl::StatusOr<bool> take_common(const std::string& name, const std::string& value, Options& options) {
  if (name == "where") {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("where=\"", value, "\": expected label=value"));
    }
    options.query.where.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (name == "from" || name == "to") {
    const absl::StatusOr<model::Time> time = parse_time(value);
    if (!time.ok()) return time.status();
    (name == "from" ? options.query.from : options.query.to) = *time;
  } else if (name == "limit") {
    if (!absl::SimpleAtoi(value, &options.query.limit) || options.query.limit == 0) {
      return absl::InvalidArgumentError(absl::StrCat("limit=\"", value, "\": expected a number of rows, at least 1"));
    }
  } else if (name == "after") {
    options.query.after = value;
  } else if (name == "format") {
    if (value != "json" && value != "csv") {
      return absl::InvalidArgumentError(absl::StrCat("format=\"", value, "\": expected json or csv"));
    }
    options.format = value == "csv" ? AnswerFormat::kCsv : AnswerFormat::kJson;
  } else if (name == "times") {
    if (value != "rfc3339" && value != "epoch") {
      return absl::InvalidArgumentError(absl::StrCat("times=\"", value, "\": expected rfc3339 or epoch"));
    }
    options.times = value == "epoch" ? TimeForm::kEpochNs : TimeForm::kRfc3339;
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<AnswerOptions> options_of(const HttpRequest& request, What what) {
  AnswerOptions options;
  options.what = what;
  for (const auto& [name, value] : request.query) {
    if (name == "rollup") {
      options.query.rollup = value;
    } else if (name == (what == What::kWindows ? "window" : "step")) {
      options.query.window = value;
    } else {
      const absl::StatusOr<bool> taken = take_common(name, value, options);
      if (!taken.ok()) return taken.status();
      if (*taken) continue;
      return absl::InvalidArgumentError(absl::StrCat("unknown parameter \"", name, "\": expected rollup, ",
                                                     what == What::kWindows ? "window" : "step",
                                                     ", where, from, to, limit, after, format or times"));
    }
  }
  return options;
}

absl::StatusOr<SampleOptions> sample_options_of(const HttpRequest& request) {
  SampleOptions options;
  for (const auto& [name, value] : request.query) {
    if (name == "metric") {
      options.query.metric = value;
      continue;
    }
    const absl::StatusOr<bool> taken = take_common(name, value, options);
    if (!taken.ok()) return taken.status();
    if (!*taken) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown parameter \"", name, "\": expected metric, where, from, to, limit, after, format or times"));
    }
  }
  return options;
}

template <typename Stream, typename Options>
HttpResponse streamed(const std::string& store_path, absl::StatusOr<Options> options) {
  if (!options.ok()) return failure(options.status());
  const bool csv = options->format == AnswerFormat::kCsv;
  absl::StatusOr<Stream> stream = Stream::open(store_path, *std::move(options));
  if (!stream.ok()) return failure(stream.status());
  HttpResponse response;
  response.content_type = csv ? "text/csv; charset=utf-8" : "application/json";
  auto shared = std::make_shared<Stream>(*std::move(stream));  // with the copies of the std::function
  response.stream = [shared](std::string& piece) { return shared->next(piece); };
  return response;
}

HttpResponse answer(const HttpRequest& request, const std::string& store_path, What what) {
  if (store_path.empty()) {
    return failure(404, "this node keeps no windows or forecasts: ask the fleet's cloud node");
  }
  return streamed<AnswerStream>(store_path, options_of(request, what));
}

HttpResponse samples(const HttpRequest& request, const std::string& store_path) {
  if (store_path.empty()) return failure(404, "this node keeps no samples: ask the fleet's cloud node");
  return streamed<SampleStream>(store_path, sample_options_of(request));
}

HttpResponse rollups(const std::string& store_path) {
  if (store_path.empty()) return failure(404, "this node keeps no rollups: ask the fleet's cloud node");
  absl::StatusOr<std::unique_ptr<store::CloudReader>> reader = store::CloudReader::open(store_path);
  if (!reader.ok()) return failure(reader.status());
  const absl::StatusOr<std::vector<store::RollupInfo>> infos = (*reader)->rollups();
  if (!infos.ok()) return failure(infos.status());
  nlohmann::json out = nlohmann::json::array();
  for (const store::RollupInfo& info : *infos) {
    if (info.hidden) continue;
    nlohmann::json windows = nlohmann::json::array();
    for (const store::WindowInfo& w : info.windows) {
      if (!w.hidden) windows.push_back(w.name);
    }
    nlohmann::json steps = nlohmann::json::array();
    for (const store::WindowInfo& w : info.steps) steps.push_back(w.name);
    out.push_back({{"rollup", info.name},
                   {"metric", info.metric},
                   {"unit", info.unit},
                   {"labels", info.labels},
                   {"across", info.across.empty() ? nlohmann::json(nullptr) : nlohmann::json(info.across)},
                   {"quantiles", info.quantiles},
                   {"distinct", info.distinct},
                   {"windows", std::move(windows)},
                   {"forecast_steps", std::move(steps)},
                   {"groups", info.groups},
                   {"published", info.published == model::kMinTime ? nlohmann::json(nullptr)
                                                                   : nlohmann::json(rfc3339(info.published))}});
  }
  HttpResponse response;
  response.content_type = "application/json";
  response.body = out.dump(2) + "\n";
  return response;
}

}  // namespace

HttpHandler make_api(ApiParts parts) {
  return [parts = std::move(parts)](const HttpRequest& request) -> HttpResponse {
    if (parts.push) {
      if (std::optional<HttpResponse> response = parts.push(request)) return *std::move(response);
    } else if (request.path == "/write" || request.path == "/api/v2/write") {
      return failure(404, "this node has no [[input]] of kind = \"push\"");
    }
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (request.path == "/api/v1/inputs/stop") {
      if (request.method != "POST") return failure(405, "stopping inputs is a POST");
      if (!parts.stop_inputs) return failure(404, "this node has no inputs");
      parts.stop_inputs();
      HttpResponse response;
      response.status = 202;
      response.content_type = "application/json";
      response.body = "{\"stopping\":true}\n";
      return response;
    }
    if (!reads) return failure(405, absl::StrCat(request.method, " is not possible here"));
    if (request.path == "/api/v1/windows") return answer(request, parts.store_path, What::kWindows);
    if (request.path == "/api/v1/forecasts") return answer(request, parts.store_path, What::kForecasts);
    if (request.path == "/api/v1/samples") return samples(request, parts.store_path);
    if (request.path == "/api/v1/rollups") return rollups(parts.store_path);
    HttpResponse response;
    if (request.path == "/healthz") {
      response.body = "ok\n";
      return response;
    }
    const bool page = request.path == "/";
    if (page || request.path == "/readyz" || request.path == "/metrics" || request.path == "/api/v1/status") {
      absl::StatusOr<NodeStatus> status = parts.status();
      if (!status.ok()) return failure(status.status());
      if (request.path == "/readyz") {
        response.status = status->ready.empty() ? 200 : 503;
        response.body = status->ready.empty() ? "ready\n" : status->ready + "\n";
      } else if (request.path == "/metrics") {
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        response.body = status_metrics(*status) + (parts.more_metrics ? parts.more_metrics() : "");
      } else {
        if (status->cloud && !parts.store_path.empty()) {
          status->cloud->latest_forecasts = latest_forecasts(parts.store_path, kForecastsPerStep);
        }
        response.content_type = page ? "text/html; charset=utf-8" : "application/json";
        response.body = page ? status_page(*status) : status_json(*status);
      }
      return response;
    }
    return failure(404, absl::StrCat("there is nothing at ", request.path,
                                     "; there are /, /healthz, /readyz, /metrics, /api/v1/status, /api/v1/rollups, "
                                     "/api/v1/windows, /api/v1/forecasts, /api/v1/samples"));
  };
}

}  // namespace orla::node
