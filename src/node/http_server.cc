#include "node/http_server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/url.h"
#include "model/address.h"

namespace orla::node {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

class Session;

struct Shared {
  HttpLimits limits;
  HttpHandler handler;
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> body_bytes{0};  // of requests being received, or with a handler

  std::mutex mutex;  // guards all below
  std::condition_variable idle;
  std::size_t answering = 0;  // answers being written
  bool closed = false;
  std::uint64_t tickets = 0;
  std::map<std::uint64_t, std::shared_ptr<Session>> waiting;  // for an answer that comes later

  // 0 when the server is going.
  std::uint64_t wait_for_answer(std::shared_ptr<Session> session);
  void answer_later(std::uint64_t ticket, HttpResponse response);
  void begin_answer() {
    const std::lock_guard lock(mutex);
    ++answering;
  }
  void end_answer() {
    {
      const std::lock_guard lock(mutex);
      --answering;
    }
    idle.notify_all();
  }
};

HttpRequest to_request(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const std::size_t question = target.find('?');
  request.path = base::percent_decode(target.substr(0, question), base::Plus::kLiteral);
  if (question != std::string::npos) request.query = base::parse_query(std::string_view(target).substr(question + 1));
  for (const auto& field : message) {
    request.headers[absl::AsciiStrToLower(std::string(field.name_string()))] = std::string(field.value());
  }
  request.body = std::move(message.body());
  return request;
}

// One connection: reads a request, hands it to a worker, writes the answer, again until it is closed.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::shared_ptr<Shared> shared, asio::thread_pool& workers)
      : stream_(std::move(socket)), shared_(std::move(shared)), workers_(workers) {
    ++shared_->connections;
  }
  ~Session() {
    release_body();
    --shared_->connections;
  }

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->read(); });
  }

  // From any thread, while the server is there.
  void post_answer(HttpResponse response) {
    ++shared_->answering;  // the caller holds the lock
    asio::post(stream_.get_executor(), [self = shared_from_this(), response = std::move(response)]() mutable {
      self->answer(std::move(response));
      self->shared_->end_answer();
    });
  }

  void refuse() {
    HttpResponse busy;
    busy.status = 503;
    busy.headers.emplace_back("Retry-After", "1");
    busy.body = absl::StrCat("too many connections (limit ", shared_->limits.connections, "), try again later\n");
    fail(std::move(busy));
  }

 private:
  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.header_bytes));
    parser_->body_limit(shared_->limits.body_bytes);
    stream_.expires_after(shared_->limits.read_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (error) return self->refuse(error);
                              self->on_header();
                            });
  }

  void on_header() {
    if (!parser_->is_done() && !reserve_body()) {
      HttpResponse busy;
      busy.status = 503;
      busy.headers.emplace_back("Retry-After", "1");
      busy.body = absl::StrCat("too many bodies at once (limit ", shared_->limits.all_bodies_bytes,
                               " bytes), try again later\n");
      return fail(std::move(busy));
    }
    const auto expect = parser_->get().find(http::field::expect);
    if (expect == parser_->get().end() || parser_->is_done()) return read_body();
    if (!beast::iequals(expect->value(), "100-continue")) {
      return fail(417, absl::StrCat("Expect: ", std::string(expect->value()), ": only 100-continue is possible\n"));
    }
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (error) return self->close();
                        self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (error) return self->refuse(error);
      self->handle();
    });
  }

  // Of a body without a length the limit counts.
  bool reserve_body() {
    const auto length = parser_->content_length();
    reserved_ = length ? static_cast<std::size_t>(*length) : shared_->limits.body_bytes;
    if (shared_->body_bytes.fetch_add(reserved_) + reserved_ <= shared_->limits.all_bodies_bytes) return true;
    release_body();
    return false;
  }
  void release_body() { shared_->body_bytes -= std::exchange(reserved_, 0); }

  // What could not be read.
  void refuse(beast::error_code error) {
    if (error == http::error::body_limit) {
      return fail(413, absl::StrCat("body over ", shared_->limits.body_bytes, " bytes\n"));
    }
    if (error == http::error::header_limit) {
      return fail(431, absl::StrCat("header over ", shared_->limits.header_bytes, " bytes\n"));
    }
    if (error.category() == http::make_error_code(http::error::end_of_stream).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return fail(400, absl::StrCat("not an HTTP/1.1 request: ", error.message(), "\n"));
    }
    close();
  }

  void handle() {
    keep_alive_ = parser_->get().keep_alive();
    head_ = parser_->get().method() == http::verb::head;
    version_ = parser_->get().version();
    // While the handler works nothing is read, so the connection has no deadline of its own.
    stream_.expires_never();
    asio::post(workers_, [self = shared_from_this(), request = to_request(parser_->release())]() mutable {
      HttpResponse response = self->shared_->handler(request);
      request = HttpRequest();
      self->release_body();
      if (response.later) return self->wait(std::move(response.later));
      asio::post(self->stream_.get_executor(),
                 [self, response = std::move(response)]() mutable { self->answer(std::move(response)); });
    });
  }

  // On a worker.
  void wait(std::function<void(std::function<void(HttpResponse)>)> later) {
    const std::uint64_t ticket = shared_->wait_for_answer(shared_from_this());
    later([shared = std::weak_ptr<Shared>(shared_), ticket](HttpResponse response) {
      if (const std::shared_ptr<Shared> server = shared.lock()) server->answer_later(ticket, std::move(response));
    });
  }

  void fail(int status, std::string body) {
    HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    fail(std::move(response));
  }

  // Before all of the request was read: what is still coming is thrown away, or the answer might never be seen.
  void fail(HttpResponse response) {
    release_body();
    keep_alive_ = false;
    unread_ = true;
    answer(std::move(response));
  }

  template <typename Message>
  void set_head(Message& message, const HttpResponse& response) {
    message.version(version_);
    message.result(static_cast<unsigned>(response.status));
    if (response.status != 204) message.set(http::field::content_type, response.content_type);
    message.set(http::field::cache_control, "no-store");
    message.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive_);
  }

  void answer(HttpResponse response) {
    writing_ = true;
    shared_->begin_answer();
    stream_.expires_after(shared_->limits.write_timeout);
    if (response.stream) return start_stream(std::move(response));
    message_.emplace();
    set_head(*message_, response);
    message_->body() = std::move(response.body);
    message_->prepare_payload();
    if (response.status == 204) message_->erase(http::field::content_length);  // RFC 9110, 8.6
    if (head_) message_->body().clear();
    serializer_.emplace(*message_);
    if (head_) serializer_->split(true);
    auto done = [self = shared_from_this()](beast::error_code error, std::size_t) { self->on_written(error); };
    if (head_) {
      http::async_write_header(stream_, *serializer_, std::move(done));
    } else {
      http::async_write(stream_, *serializer_, std::move(done));
    }
  }

  void on_written(beast::error_code error) {
    serializer_.reset();
    message_.reset();
    written();
    if (error || !keep_alive_) return close();
    read();
  }

  void start_stream(HttpResponse response) {
    source_ = std::move(response.stream);
    head_message_.emplace();
    set_head(*head_message_, response);
    head_message_->chunked(true);
    head_serializer_.emplace(*head_message_);
    http::async_write_header(stream_, *head_serializer_,
                             [self = shared_from_this()](beast::error_code error, std::size_t) {
                               if (error) return self->close();
                               if (self->head_) return self->end_stream(error);
                               self->next_piece();
                             });
  }

  void next_piece() {
    asio::post(workers_, [self = shared_from_this()] {
      self->piece_.clear();
      absl::StatusOr<bool> more = false;
      while (self->piece_.empty()) {
        more = self->source_(self->piece_);
        if (!more.ok() || !*more) break;
      }
      asio::post(self->stream_.get_executor(), [self, more = std::move(more)] { self->write_piece(more); });
    });
  }

  void write_piece(const absl::StatusOr<bool>& more) {
    // A stream that fails midway is cut without its last chunk, so the client sees that it is incomplete.
    if (!more.ok()) return close();
    stream_.expires_after(shared_->limits.write_timeout);
    auto self = shared_from_this();
    if (piece_.empty()) return finish_stream();
    asio::async_write(stream_, http::make_chunk(asio::buffer(piece_)),
                      [self, last = !*more](beast::error_code error, std::size_t) {
                        if (error) return self->close();
                        if (last) return self->finish_stream();
                        self->next_piece();
                      });
  }

  void finish_stream() {
    asio::async_write(stream_, http::make_chunk_last(),
                      [self = shared_from_this()](beast::error_code error, std::size_t) { self->end_stream(error); });
  }

  void end_stream(beast::error_code error) {
    source_ = nullptr;
    head_serializer_.reset();
    head_message_.reset();
    written();
    if (error || !keep_alive_) return close();
    read();
  }

  void written() {
    if (std::exchange(writing_, false)) shared_->end_answer();
  }

  void close() {
    written();
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (std::exchange(unread_, false)) return throw_away(0);
    stream_.close();
  }

  void throw_away(std::size_t bytes) {
    static constexpr std::chrono::seconds kPatience{1};
    static constexpr std::size_t kPiece = 64 * 1024;
    if (bytes >= shared_->limits.body_bytes) return stream_.close();
    if (bytes == 0) stream_.expires_after(kPatience);
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kPiece),
                            [self = shared_from_this(), bytes](beast::error_code error, std::size_t more) {
                              if (error) return self->stream_.close();
                              self->throw_away(bytes + more);
                            });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<Shared> shared_;  // with the server and the other connections, which may outlive it
  asio::thread_pool& workers_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::optional<http::response<http::empty_body>> head_message_;
  std::optional<http::response_serializer<http::empty_body>> head_serializer_;
  std::function<absl::StatusOr<bool>(std::string&)> source_;
  std::string piece_;
  std::size_t reserved_ = 0;  // of Shared::body_bytes
  bool keep_alive_ = false;
  bool unread_ = false;   // some of the request may still come
  bool writing_ = false;  // an answer, which Shared::answering counts
  bool head_ = false;
  unsigned version_ = 11;
};

std::uint64_t Shared::wait_for_answer(std::shared_ptr<Session> session) {
  const std::lock_guard lock(mutex);
  if (closed) return 0;
  waiting.emplace(++tickets, std::move(session));
  return tickets;
}

void Shared::answer_later(std::uint64_t ticket, HttpResponse response) {
  // Under the lock the server is there: it takes the lock before it goes.
  const std::lock_guard lock(mutex);
  const auto found = waiting.find(ticket);
  if (found == waiting.end()) return;
  std::shared_ptr<Session> session = std::move(found->second);
  waiting.erase(found);
  session->post_answer(std::move(response));
}

class BeastServer final : public HttpServer {
 public:
  BeastServer(HttpLimits limits, HttpHandler handler)
      : shared_(std::make_shared<Shared>()), workers_(limits.workers), acceptor_(io_) {
    shared_->limits = limits;
    shared_->handler = std::move(handler);
  }

  ~BeastServer() override {
    std::map<std::uint64_t, std::shared_ptr<Session>> waiting;
    {
      std::unique_lock lock(shared_->mutex);
      shared_->closed = true;
      shared_->idle.wait_for(lock, kLastAnswers, [this] { return shared_->answering == 0; });
      waiting.swap(shared_->waiting);
    }
    io_.stop();
    if (thread_.joinable()) thread_.join();
    workers_.stop();
    workers_.join();
  }

  absl::Status open(const std::string& address) {
    const absl::StatusOr<model::Address> where = model::parse_address(address);
    if (!where.ok()) return where.status();
    beast::error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(where->host, error), where->port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use) {
      return absl::AlreadyExistsError(absl::StrCat("HTTP address ", address,
                                                   " is in use: is this node running already? Stop the other "
                                                   "program, or give the node another `http` address"));
    }
    if (error)
      return absl::UnavailableError(absl::StrCat("cannot listen on HTTP address ", address, ": ", error.message()));
    address_ = model::to_string(model::Address{where->host, acceptor_.local_endpoint().port()});
    accept();
    thread_ = std::thread([this] { io_.run(); });
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

 private:
  void accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        const bool full = shared_->connections >= shared_->limits.connections;
        auto session = std::make_shared<Session>(std::move(socket), shared_, workers_);
        if (full) {
          session->refuse();
        } else {
          session->start();
        }
      }
      accept();
    });
  }

  std::shared_ptr<Shared> shared_;  // with the sessions
  asio::thread_pool workers_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

std::optional<std::string> HttpRequest::parameter(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address, HttpLimits limits,
                                                              HttpHandler handler) {
  auto server = std::make_unique<BeastServer>(limits, std::move(handler));
  if (absl::Status status = server->open(address); !status.ok()) return status;
  return server;
}

}  // namespace orla::node
