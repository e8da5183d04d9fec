#include "node/gateway_client.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/absl_view.h"
#include "base/url.h"

namespace orla::node {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kConnectTimeout{10};
constexpr std::size_t kMaxBody = std::size_t{1} << 30;

beast::string_view beast_view(std::string_view text) { return {text.data(), text.size()}; }
std::string_view std_view(beast::string_view text) { return {text.data(), text.size()}; }

// Runs one asynchronous step at a time to its end, so that each has a limit.
class Exchange {
 public:
  explicit Exchange(std::string where) : stream_(io_), where_(std::move(where)) {}

  absl::Status connect(const std::string& host, const std::string& port) {
    beast::error_code error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(host, port, error);
    if (error) return absl::UnavailableError(fmt::format("cannot find host {}: {}", host, error.message()));
    limit_ = kConnectTimeout;
    const beast::error_code result = run([&](auto done) {
      stream_.async_connect(found, [done](beast::error_code e, const tcp::endpoint&) { done(e); });
    });
    if (!result) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("cannot reach the gateway at {}: {}; does it run there? (--gateway URL)",
                                              where_, result.message()));
  }

  void set_limit(std::optional<std::chrono::milliseconds> limit) { limit_ = limit; }

  absl::Status write(http::request<http::string_body>& request) {
    const beast::error_code result = run(
        [&](auto done) { http::async_write(stream_, request, [done](beast::error_code e, std::size_t) { done(e); }); });
    // A gateway may answer (413, 401) before it has read everything: the answer is still to be read.
    if (result && result != asio::error::broken_pipe && result != asio::error::connection_reset) {
      return failed("send to", result);
    }
    return absl::OkStatus();
  }

  template <typename Parser>
  absl::Status read_header(Parser& parser) {
    const beast::error_code result = run([&](auto done) {
      http::async_read_header(stream_, buffer_, parser, [done](beast::error_code e, std::size_t) { done(e); });
    });
    return result ? failed("get an answer from", result) : absl::OkStatus();
  }

  // Some more of the body.
  template <typename Parser>
  absl::Status read_some(Parser& parser) {
    const beast::error_code result = run([&](auto done) {
      http::async_read_some(stream_, buffer_, parser, [done](beast::error_code e, std::size_t) { done(e); });
    });
    if (!result || result == http::error::need_buffer) return absl::OkStatus();
    if (result == beast::error::timeout) return failed("read from", result);
    return absl::DataLossError(fmt::format("the answer of {} broke off: {}", where_, result.message()));
  }

 private:
  template <typename Start>
  beast::error_code run(Start&& start) {
    beast::error_code result = asio::error::would_block;
    if (limit_) {
      stream_.expires_after(*limit_);
    } else {
      stream_.expires_never();
    }
    start([&result](beast::error_code e) { result = e; });
    io_.restart();
    io_.run();
    return result;
  }

  absl::Status failed(std::string_view what, const beast::error_code& error) const {
    const std::string message = fmt::format("cannot {} the gateway at {}: {}", what, where_, error.message());
    return error == beast::error::timeout ? absl::DeadlineExceededError(message) : absl::UnavailableError(message);
  }

  asio::io_context io_{1};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::string where_;
  std::optional<std::chrono::milliseconds> limit_;
};

}  // namespace

std::optional<std::string_view> GatewayReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(base::absl_view(key), base::absl_view(name))) return value;
  }
  return std::nullopt;
}

absl::StatusOr<GatewayClient> GatewayClient::create(std::string_view url, std::optional<GatewayLogin> login) {
  GatewayClient client;
  std::string_view rest = url;
  if (rest.substr(0, 8) == "https://") {
    return absl::InvalidArgumentError(fmt::format("{}: https does not exist yet; expected http://HOST:PORT", url));
  }
  if (rest.substr(0, 7) == "http://") rest.remove_prefix(7);
  while (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  client.url_ = fmt::format("http://{}", rest);
  const absl::StatusOr<base::HttpUrl> parsed = base::parse_http_url(client.url_);
  if (!parsed.ok() || rest.find_first_of("?#") != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no address of a gateway; expected http://HOST:PORT", url));
  }
  client.host_ = parsed->host;
  client.port_ = fmt::format("{}", parsed->port);
  client.authority_ = parsed->authority;
  client.prefix_ = rest.substr(client.authority_.size());
  if (login) {
    client.authorization_ = "Basic " + absl::Base64Escape(login->user + ":" + login->password);
  }
  return client;
}

absl::StatusOr<GatewayReply> GatewayClient::send(const GatewayAsk& ask) const {
  Exchange exchange(url_);
  if (absl::Status status = exchange.connect(host_, port_); !status.ok()) return status;
  exchange.set_limit(ask.patience);

  http::request<http::string_body> request;
  request.method_string(beast_view(ask.method));
  request.target(beast_view(prefix_ + ask.target));
  request.version(11);
  request.set(http::field::host, authority_);
  request.set(http::field::user_agent, "orla");
  if (!authorization_.empty()) request.set(http::field::authorization, authorization_);
  for (const auto& [name, value] : ask.headers) request.insert(beast_view(name), beast_view(value));
  request.keep_alive(false);
  request.body() = ask.body;
  request.prepare_payload();
  if (absl::Status status = exchange.write(request); !status.ok()) return status;

  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  parser.skip(ask.method == "HEAD");
  do {
    if (absl::Status status = exchange.read_header(parser); !status.ok()) return status;
  } while (parser.get().result_int() == 100);
  GatewayReply reply;
  reply.status = static_cast<int>(parser.get().result_int());
  reply.reason = std_view(parser.get().reason());
  for (const auto& field : parser.get()) {
    reply.headers.emplace_back(std_view(field.name_string()), std_view(field.value()));
  }
  const bool hand_over = ask.piece && reply.status < 400;
  std::string buffer(64 * 1024, '\0');
  while (!parser.is_done()) {
    parser.get().body().data = buffer.data();
    parser.get().body().size = buffer.size();
    if (absl::Status status = exchange.read_some(parser); !status.ok()) return status;
    const std::string_view got(buffer.data(), buffer.size() - parser.get().body().size);
    if (got.empty()) continue;
    if (hand_over) {
      if (absl::Status status = ask.piece(reply, got); !status.ok()) return status;
    } else if (reply.body.size() + got.size() > kMaxBody) {
      return absl::ResourceExhaustedError(fmt::format("the answer of {} is larger than 1 GiB", url_));
    } else {
      reply.body += got;
    }
  }
  return reply;
}

}  // namespace orla::node
