#include "node/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/absl_view.h"
#include "base/url.h"
#include "model/address.h"

namespace orla::node {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

using base::absl_view;

struct Target {
  model::Address where;
  std::string path;
};

absl::StatusOr<Target> parse_url(std::string_view url) {
  std::string_view rest = url;
  if (absl::StartsWith(absl_view(rest), "http://")) rest.remove_prefix(7);
  if (absl::StartsWith(absl_view(rest), "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("URL ", absl_view(url), ": https is not supported yet, use http://"));
  }
  const std::size_t slash = rest.find('/');
  absl::StatusOr<model::Address> where = model::parse_address(rest.substr(0, slash));
  if (!where.ok()) return where.status();
  return Target{*std::move(where), slash == std::string_view::npos ? "/" : std::string(rest.substr(slash))};
}

absl::StatusOr<tcp::endpoint> endpoint_of(const Target& target) {
  beast::error_code error;
  const tcp::endpoint endpoint(asio::ip::make_address(target.where.host, error), target.where.port);
  if (error) return absl::InvalidArgumentError(absl::StrCat("host ", target.where.host, ": ", error.message()));
  return endpoint;
}

// Runs one asynchronous step to its end on the connection's own io_context, so that every step has a deadline.
class Connection {
 public:
  // `where`: for messages.
  Connection(std::string where, std::chrono::milliseconds timeout)
      : stream_(io_), timeout_(timeout), where_(std::move(where)) {}

  absl::StatusOr<std::vector<tcp::endpoint>> look_up(const std::string& host, std::uint16_t port) {
    tcp::resolver resolver(io_);
    std::vector<tcp::endpoint> endpoints;
    const absl::Status status = step("find the address of", [&](auto done) {
      resolver.async_resolve(host, std::to_string(port), [&, done](beast::error_code e, auto results) {
        for (const auto& result : results) endpoints.push_back(result.endpoint());
        done(e);
      });
    });
    if (!status.ok()) return status;
    return endpoints;
  }

  absl::Status connect(const tcp::endpoint& endpoint) {
    return step("connect to",
                [&](auto done) { stream_.async_connect(endpoint, [done](beast::error_code e) { done(e); }); });
  }

  absl::Status write(http::request<http::string_body>& request) {
    return step("send to", [&](auto done) {
      http::async_write(stream_, request, [done](beast::error_code e, std::size_t) { done(e); });
    });
  }

  template <typename Parser>
  absl::Status read_header(Parser& parser) {
    return step("read from", [&](auto done) {
      http::async_read_header(stream_, buffer_, parser, [done](beast::error_code e, std::size_t) { done(e); });
    });
  }

  // Reads until the parser's body buffer is full or the message ends.
  template <typename Parser>
  absl::Status read_some(Parser& parser) {
    return step("read from", [&](auto done) {
      http::async_read(stream_, buffer_, parser, [done](beast::error_code e, std::size_t) {
        done(e == http::error::need_buffer ? beast::error_code() : e);
      });
    });
  }

 private:
  template <typename Start>
  absl::Status step(std::string_view what, Start&& start) {
    beast::error_code result = asio::error::would_block;
    stream_.expires_after(timeout_);
    start([&result](beast::error_code e) { result = e; });
    io_.restart();
    io_.run();
    if (!result) return absl::OkStatus();
    const std::string message = absl::StrCat("cannot ", absl_view(what), " ", where_, ": ", result.message());
    if (result == beast::error::timeout) return absl::DeadlineExceededError(message);
    return absl::UnavailableError(message);
  }

  asio::io_context io_{1};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::chrono::milliseconds timeout_;
  const std::string where_;
};

beast::string_view beast_view(std::string_view text) { return {text.data(), text.size()}; }

http::request<http::string_body> make_request(std::string_view method, std::string_view host, std::string_view path,
                                              std::string_view body) {
  http::request<http::string_body> request;
  request.method_string(beast_view(method));
  request.target(beast_view(path));
  request.set(http::field::host, beast_view(host));
  request.set(http::field::user_agent, "orla");
  request.keep_alive(false);
  request.body() = std::string(body);
  request.prepare_payload();
  return request;
}

// What all requests for a whole reply have in common, once the connection stands.
absl::StatusOr<HttpReply> exchange(Connection& connection, http::request<http::string_body>& request,
                                   std::size_t max_body) {
  if (absl::Status status = connection.write(request); !status.ok()) return status;
  http::response_parser<http::string_body> parser;
  parser.body_limit(max_body);
  if (request.method() == http::verb::head) parser.skip(true);
  if (absl::Status status = connection.read_some(parser); !status.ok()) return status;
  HttpReply reply;
  reply.status = static_cast<int>(parser.get().result_int());
  reply.content_type = std::string(parser.get()[http::field::content_type]);
  reply.body = std::move(parser.get().body());
  return reply;
}

}  // namespace

absl::StatusOr<HttpReply> http_send(const HttpAsk& ask) {
  const absl::StatusOr<base::HttpUrl> url = base::parse_http_url(ask.url);
  if (!url.ok()) return url.status();
  const std::string where = absl::StrCat(url->host, ":", url->port);
  Connection connection(where, ask.timeout);
  const absl::StatusOr<std::vector<tcp::endpoint>> endpoints = connection.look_up(url->host, url->port);
  if (!endpoints.ok()) return endpoints.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("no address of ", where));
  for (const tcp::endpoint& endpoint : *endpoints) {
    status = ask.allow ? ask.allow(endpoint.address().to_string()) : absl::OkStatus();
    if (status.ok()) status = connection.connect(endpoint);
    if (status.ok()) break;
  }
  if (!status.ok()) return status;
  auto request = make_request(ask.method, url->authority, url->target, ask.body);
  for (const auto& [name, value] : ask.headers) request.insert(beast_view(name), beast_view(value));
  return exchange(connection, request, ask.max_body);
}

absl::StatusOr<HttpReply> http_request(std::string_view method, std::string_view url, std::string_view body,
                                       std::chrono::milliseconds timeout, std::size_t max_body) {
  const absl::StatusOr<Target> target = parse_url(url);
  if (!target.ok()) return target.status();
  const absl::StatusOr<tcp::endpoint> endpoint = endpoint_of(*target);
  if (!endpoint.ok()) return endpoint.status();
  const std::string where = model::to_string(target->where);
  Connection connection(where, timeout);
  if (absl::Status status = connection.connect(*endpoint); !status.ok()) return status;
  auto request = make_request(method, where, target->path, body);
  return exchange(connection, request, max_body);
}

absl::Status http_stream(std::string_view url, std::chrono::milliseconds idle_timeout,
                         const std::function<absl::Status(std::string_view)>& piece) {
  const absl::StatusOr<Target> target = parse_url(url);
  if (!target.ok()) return target.status();
  const absl::StatusOr<tcp::endpoint> endpoint = endpoint_of(*target);
  if (!endpoint.ok()) return endpoint.status();
  const std::string where = model::to_string(target->where);
  Connection connection(where, idle_timeout);
  if (absl::Status status = connection.connect(*endpoint); !status.ok()) return status;
  auto request = make_request("GET", where, target->path, "");
  if (absl::Status status = connection.write(request); !status.ok()) return status;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  if (absl::Status status = connection.read_header(parser); !status.ok()) return status;
  const int code = static_cast<int>(parser.get().result_int());
  std::string buffer(64 * 1024, '\0');
  std::string beginning;
  while (!parser.is_done()) {
    parser.get().body().data = buffer.data();
    parser.get().body().size = buffer.size();
    if (absl::Status status = connection.read_some(parser); !status.ok()) return status;
    const std::string_view got(buffer.data(), buffer.size() - parser.get().body().size);
    if (code != 200) {
      beginning.append(got.substr(0, 500 - std::min<std::size_t>(500, beginning.size())));
    } else if (absl::Status status = piece(got); !status.ok()) {
      return status;
    }
  }
  if (code != 200)
    return absl::FailedPreconditionError(absl::StrCat(absl_view(url), " answered ", code, ": ", beginning));
  return absl::OkStatus();
}

}  // namespace orla::node
