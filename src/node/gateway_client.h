// A blocking client of a gateway's HTTP API, for the command line. One request per connection.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::node {

struct GatewayReply {
  int status = 0;
  std::string reason;
  std::vector<std::pair<std::string, std::string>> headers;  // in order
  std::string body;                                          // unless it was handed over piece by piece

  // The first of that name, compared without case.
  std::optional<std::string_view> header(std::string_view name) const;
};

struct GatewayAsk {
  std::string method = "GET";
  std::string target = "/";  // path and query, encoded
  std::vector<std::pair<std::string, std::string>>
      headers;  // Host, Authorization, Content-Length are set by the client
  std::string body;
  // How long nothing may come back; none: for ever.
  std::optional<std::chrono::milliseconds> patience = std::chrono::seconds(30);
  // Gets the body of a reply below 400 as it comes, in place of GatewayReply::body. An error of it ends the request.
  std::function<absl::Status(const GatewayReply& so_far, std::string_view piece)> piece;
};

struct GatewayLogin {
  std::string user;
  std::string password;
};

class GatewayClient {
 public:
  // `url`: http://HOST[:PORT][/prefix], or HOST:PORT. INVALID_ARGUMENT: what is wrong with it.
  static absl::StatusOr<GatewayClient> create(std::string_view url, std::optional<GatewayLogin> login);

  // Any status is a reply. Not reached: UNAVAILABLE; no answer in time: DEADLINE_EXCEEDED; broken off in the middle of
  // the answer: DATA_LOSS.
  absl::StatusOr<GatewayReply> send(const GatewayAsk& ask) const;

  const std::string& url() const { return url_; }

 private:
  GatewayClient() = default;

  std::string url_;   // without '/' at the end
  std::string host_;  // without brackets
  std::string port_;
  std::string authority_;  // what Host says
  std::string prefix_;     // of every target; empty or "/x"
  std::string authorization_;
};

}  // namespace orla::node
