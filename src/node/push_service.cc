#include "node/push_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/absl_view.h"
#include "base/byte_source.h"
#include "base/version.h"

namespace orla::node {

namespace {

using nlohmann::json;

constexpr const char* kRetrySeconds = "1";
// Parameters of both versions of the API. What says where to put the data has no meaning here; a slip in `precision`
// would spoil every timestamp, so others are refused.
constexpr std::array<std::string_view, 9> kParameters = {"precision", "org", "orgID", "bucket",     "db",
                                                         "rp",        "u",   "p",     "consistency"};

HttpResponse answer(int status, json body) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return response;
}

// `code` is InfluxDB's word for it.
HttpResponse failure(int status, std::string_view code, std::string_view message) {
  HttpResponse response = answer(status, {{"code", std::string(code)}, {"message", std::string(message)}});
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", kRetrySeconds);
  return response;
}

HttpResponse failure(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return failure(413, "request too large", base::message(status));
  return failure(400, "invalid", base::message(status));
}

std::string header(const HttpRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

// What the parser found, once its good lines are durable.
HttpResponse kept(const PushOutcome& outcome, const std::vector<model::Rejection>& shown, std::uint64_t samples,
                  std::uint64_t bad) {
  const std::uint64_t rejected = bad + outcome.rejected;
  const std::uint64_t accepted = samples - outcome.rejected;
  HttpResponse response;
  if (rejected == 0) {
    response.status = 204;
  } else {
    json errors = json::array();
    std::string first;
    for (const model::Rejection& r : shown) {
      errors.push_back({{"line", r.row}, {"column", r.column}, {"reason", r.reason}, {"message", r.message}});
    }
    if (!shown.empty()) {
      first = fmt::format(" Line {}{}: {}.", shown[0].row,
                          shown[0].column == 0 ? "" : fmt::format(", column {}", shown[0].column), shown[0].message);
    }
    if (outcome.rejected > 0) {
      first +=
          fmt::format(" {} samples were rejected for their times: further ahead of this node's clock than `future`.",
                      outcome.rejected);
    }
    response =
        answer(400, {{"code", "invalid"},
                     {"message", fmt::format("{} rejected, {} accepted{}.{}", rejected, accepted,
                                             accepted == 0 ? "" : ", which are kept: do not send them again", first)},
                     {"errors", std::move(errors)},
                     {"accepted", accepted},
                     {"rejected", rejected}});
  }
  const auto tell = [&](const char* name, std::uint64_t n) {
    if (n > 0) response.headers.emplace_back(name, std::to_string(n));
  };
  tell("Orla-Late", outcome.late);
  tell("Orla-Unmatched", outcome.unmatched);
  tell("Orla-Dropped", outcome.dropped);
  return response;
}

}  // namespace

absl::StatusOr<std::string> unpack_gzip(std::string body, std::size_t max_bytes) {
  if (!body.starts_with("\x1f\x8b")) {
    return absl::InvalidArgumentError(
        "Content-Encoding is gzip, but the body does not begin as gzip: send it as it is, or leave out the header");
  }
  const std::size_t packed = body.size();
  const std::size_t most = std::min(max_bytes, packed * kMaxUnpackRatio);
  absl::StatusOr<std::unique_ptr<base::ByteSource>> source =
      base::decompress(base::bytes_in_memory(std::move(body)), "the body");
  if (!source.ok()) return absl::InvalidArgumentError(base::message(source.status()));
  std::string out;
  while (true) {
    constexpr std::size_t kPiece = 256 * 1024;
    const std::size_t have = out.size();
    out.resize(have + kPiece);
    const absl::StatusOr<std::size_t> got = (*source)->read(std::span(out.data() + have, kPiece));
    if (!got.ok()) return absl::InvalidArgumentError(base::message(got.status()));
    out.resize(have + *got);
    if (*got == 0) return out;
    if (out.size() > most) {
      return absl::ResourceExhaustedError(
          most == max_bytes
              ? fmt::format("the body is larger than {} bytes when unpacked ([limits] push_unpacked_bytes): send it in "
                            "parts",
                            max_bytes)
              : fmt::format("the body of {} bytes unpacks to more than {} times its size", packed, kMaxUnpackRatio));
    }
  }
}

PushService::PushService(std::string input_key, const base::Clock& clock, Limits limits, Send send)
    : input_key_(std::move(input_key)),
      clock_(clock),
      limits_(limits),
      send_(std::move(send)),
      series_(std::make_shared<ingest::SeriesTable>()) {}

std::optional<HttpResponse> PushService::handle(const HttpRequest& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.path == "/ping") {
    if (!reads) return failure(405, "method not allowed", "/ping is a GET or HEAD");
    HttpResponse response;
    response.status = 204;
    response.headers.emplace_back("X-Influxdb-Build", "Orla");
    response.headers.emplace_back("X-Influxdb-Version", std::string(base::Version()));
    return response;
  }
  if (request.path == "/health") {
    if (!reads) return failure(405, "method not allowed", "/health is a GET");
    return answer(200, {{"name", "orla"},
                        {"message", "alive; /readyz says whether pushes are taken"},
                        {"status", "pass"},
                        {"version", std::string(base::Version())}});
  }
  if (request.path != "/write" && request.path != "/api/v2/write") return std::nullopt;
  if (request.method != "POST") return count(failure(405, "method not allowed", request.path + " is a POST"));
  return write(request);
}

// What is wrong before anything is looked at.
std::optional<HttpResponse> PushService::refuse_form(const HttpRequest& request) {
  if (!header(request, "origin").empty()) {
    return failure(403, "forbidden", "pushes of web pages are not taken (the request has an Origin header)");
  }
  const std::string encoding = header(request, "content-encoding");
  if (!encoding.empty() && encoding != "gzip" && encoding != "identity") {
    return failure(415, "unsupported media type",
                   fmt::format("Content-Encoding is {}, expected gzip or none", encoding));
  }
  const std::string type = header(request, "content-type");
  if (absl::StrContains(type, "json") || absl::StrContains(type, "protobuf")) {
    return failure(415, "unsupported media type",
                   fmt::format("Content-Type is {}, expected line protocol, text/plain", type));
  }
  for (const auto& [name, value] : request.query) {
    if (std::find(kParameters.begin(), kParameters.end(), name) != kParameters.end()) continue;
    return failure(400, "invalid",
                   fmt::format("unknown parameter \"{}\", expected precision (org, bucket, db, rp and the like are "
                               "passed over)",
                               name));
  }
  return std::nullopt;
}

HttpResponse PushService::write(const HttpRequest& request) {
  if (std::optional<HttpResponse> wrong = refuse_form(request)) return count(*std::move(wrong));
  const std::string named = request.parameter("precision").value_or("");
  const std::optional<ingest::Precision> precision = ingest::parse_precision(named);
  if (!precision) {
    return count(failure(400, "invalid", fmt::format("precision={}, expected ns, us, ms, s, m or h", named)));
  }
  const std::string producer = header(request, "orla-producer");
  const std::string number = header(request, "orla-sequence");
  std::uint64_t sequence = 0;
  if (producer.empty() != number.empty()) {
    return count(failure(400, "invalid", "Orla-Producer and Orla-Sequence go together, found one of them"));
  }
  if (!producer.empty()) {
    const bool plain = std::all_of(producer.begin(), producer.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (!plain || producer.size() > kMaxProducerBytes) {
      return count(failure(400, "invalid",
                           fmt::format("Orla-Producer: found {}, expected 1 to {} printable characters without blanks",
                                       ingest::shown(producer), kMaxProducerBytes)));
    }
    if (!absl::SimpleAtoi(number, &sequence) || sequence == 0) {
      return count(
          failure(400, "invalid",
                  fmt::format("Orla-Sequence: found {}, expected a whole number from 1, one more at every push",
                              ingest::shown(number))));
    }
  }
  const bool packed = header(request, "content-encoding") == "gzip";
  std::string unpacked;
  if (packed) {
    absl::StatusOr<std::string> body = unpack_gzip(request.body, limits_.unpacked_bytes);
    if (!body.ok()) return count(failure(body.status()));
    unpacked = *std::move(body);
  }
  const std::string& body = packed ? unpacked : request.body;
  const std::size_t bytes = body.size();
  if (!reserve(bytes)) {
    return count(
        failure(429, "too many requests",
                fmt::format("{} bytes of pushes are under way ([limits] push_waiting_bytes)", waiting_bytes_.load())));
  }
  absl::StatusOr<model::InputBatch> batch = parse(body, *precision);
  if (!batch.ok()) {
    waiting_bytes_ -= bytes;
    return count(failure(batch.status()));
  }
  batch->producer = producer;
  batch->producer_sequence = sequence;
  auto shown = std::make_shared<std::vector<model::Rejection>>(batch->rejections);  // with copies of the std::function
  const std::uint64_t samples = batch->samples.size();
  const std::uint64_t bad = batch->received - samples;
  auto push = std::make_shared<Push>(Push{*std::move(batch), series_, bytes});  // likewise
  HttpResponse later;
  later.later = [self = shared_from_this(), push, shown, samples, bad,
                 bytes](const std::function<void(HttpResponse)>& respond) {
    self->send_(std::move(*push), [self, shown, samples, bad, bytes, respond](const PushOutcome& outcome) {
      self->waiting_bytes_ -= bytes;
      HttpResponse response;
      switch (outcome.kind) {
        case PushOutcome::Kind::kKept:
          response = kept(outcome, *shown, samples, bad);
          break;
        case PushOutcome::Kind::kDuplicate:
          response.status = 204;
          response.headers.emplace_back("Orla-Duplicate", "true");
          break;
        case PushOutcome::Kind::kBusy:
          response = failure(503, "unavailable", outcome.message + "; nothing of this push was taken: send it again");
          break;
        case PushOutcome::Kind::kTooMuch:
          response =
              failure(429, "too many requests", outcome.message + "; nothing of this push was taken: send it again");
          break;
        case PushOutcome::Kind::kUnknown:
          response = failure(503, "unavailable",
                             outcome.message +
                                 ": whether this push is kept is not known. Send it again; with Orla-Producer and "
                                 "Orla-Sequence it then counts once");
          break;
      }
      respond(self->count(std::move(response)));
    });
  };
  return later;
}

absl::StatusOr<model::InputBatch> PushService::parse(std::string_view body, ingest::Precision precision) {
  std::unique_ptr<ingest::LineParser> parser;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_parsers_.empty()) {
      parser = std::move(idle_parsers_.back());
      idle_parsers_.pop_back();
    }
  }
  if (parser == nullptr) parser = std::make_unique<ingest::LineParser>(input_key_, *series_);
  model::InputBatch batch;
  const absl::Status status = parser->parse(body, {precision, clock_.wall_now(), limits_.samples}, batch);
  {
    const std::lock_guard lock(mutex_);
    idle_parsers_.push_back(std::move(parser));
  }
  if (!status.ok()) return status;
  return batch;
}

bool PushService::reserve(std::size_t bytes) {
  if (waiting_bytes_.fetch_add(bytes) + bytes <= limits_.waiting_bytes) return true;
  waiting_bytes_ -= bytes;
  return false;
}

HttpResponse PushService::count(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  ++answers_[response.status];
  return response;
}

void PushService::fill(PushStatus& status) const {
  const std::lock_guard lock(mutex_);
  status.answers.assign(answers_.begin(), answers_.end());
}

}  // namespace orla::node
