// A blocking HTTP/1.1 client for the command line and the supervisor. One request per connection.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::node {

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct HttpAsk {
  std::string method = "GET";
  std::string url;  // http://HOST[:PORT][/path][?query]; a host's name is looked up
  std::vector<std::pair<std::string, std::string>> headers;  // Host and Content-Length are set by the client
  std::string_view body;
  std::chrono::milliseconds timeout{30'000};  // for each step: look-up, connection, sending, reading
  std::size_t max_body = std::size_t{1} << 30;
  // When set: asked of each address before it is connected to, and told its text ("10.0.0.1"); the first one that is
  // allowed is taken. When none is, the last refusal is the error.
  std::function<absl::Status(std::string_view address)> allow;
};

// Errors as those of http_request().
absl::StatusOr<HttpReply> http_send(const HttpAsk& ask);

// `url` is http://HOST:PORT/path?query, or HOST:PORT/path. Connection failures and timeouts are kUnavailable and
// kDeadlineExceeded; any HTTP status is a reply. The body is limited to `max_body` bytes (kResourceExhausted beyond).
absl::StatusOr<HttpReply> http_request(std::string_view method, std::string_view url, std::string_view body,
                                       std::chrono::milliseconds timeout, std::size_t max_body = 1u << 30);

// GET whose body is handed over piece by piece. A status other than 200 is an error that quotes the body's beginning.
absl::Status http_stream(std::string_view url, std::chrono::milliseconds idle_timeout,
                         const std::function<absl::Status(std::string_view)>& piece);

}  // namespace orla::node
