// The HTTP side of pushed samples, as InfluxDB's clients speak it: POST /write and /api/v2/write, GET /ping and
// /health. docs/api.md says what is answered when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ingest/line_protocol.h"
#include "node/http_server.h"
#include "node/push.h"
#include "node/status.h"

namespace orla::node {

// Of what is thrown at a body's decompression: so much larger than what was sent it may become.
inline constexpr std::size_t kMaxUnpackRatio = 400;
inline constexpr std::size_t kMaxProducerBytes = 128;

// A gzip body, unpacked. INVALID_ARGUMENT when it is none or is damaged; RESOURCE_EXHAUSTED beyond `max_bytes` or the
// ratio above.
absl::StatusOr<std::string> unpack_gzip(std::string body, std::size_t max_bytes);

// Thread-safe. Held by shared_ptr: answers that come later use it.
class PushService : public std::enable_shared_from_this<PushService> {
 public:
  struct Limits {
    std::size_t unpacked_bytes = 32 << 20;
    std::size_t samples = 500'000;
    std::size_t waiting_bytes = 128 << 20;  // parsed, and not answered yet
  };
  // `send` hands a push to the role's loop and returns at once. `clock` outlives the service.
  using Send = std::function<void(Push, PushDone)>;
  PushService(std::string input_key, const base::Clock& clock, Limits limits, Send send);

  // Nothing: the path is not of this service.
  std::optional<HttpResponse> handle(const HttpRequest& request);
  // What the role does not know: the answers.
  void fill(PushStatus& status) const;

 private:
  HttpResponse write(const HttpRequest& request);
  static std::optional<HttpResponse> refuse_form(const HttpRequest& request);
  absl::StatusOr<model::InputBatch> parse(std::string_view body, ingest::Precision precision);
  HttpResponse count(HttpResponse response);
  bool reserve(std::size_t bytes);

  const std::string input_key_;
  const base::Clock& clock_;
  const Limits limits_;
  const Send send_;
  const std::shared_ptr<ingest::SeriesTable> series_;  // with the pushes on their way
  std::atomic<std::size_t> waiting_bytes_{0};
  mutable std::mutex mutex_;                                       // guards all below
  std::vector<std::unique_ptr<ingest::LineParser>> idle_parsers_;  // at most one per worker
  std::map<int, std::uint64_t> answers_;
};

}  // namespace orla::node
