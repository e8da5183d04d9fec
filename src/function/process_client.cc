#include "function/process_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <thread>

#include "absl/strings/match.h"
#include "base/absl_view.h"
#include "base/files.h"
#include "base/large_text.h"
#include "function/process_instance.h"
#include "function/process_upload.h"

namespace orla::function {

namespace {

namespace http = boost::beast::http;
using std::chrono::nanoseconds;

constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::size_t kLeastStatusLine = 14;  // "HTTP/1.1 200" CR LF
constexpr std::chrono::milliseconds kFirstConnectWait{5};
constexpr std::chrono::milliseconds kLongestConnectWait{80};
constexpr std::size_t kMaxReadyAnswerBytes = 64 * 1024;

bool same_name(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(base::absl_view(a), base::absl_view(b));
}

// Of one connection, not of the message.
bool hop_by_hop(std::string_view name) {
  for (const std::string_view one : {"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate",
                                     "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade"}) {
    if (same_name(name, one)) return true;
  }
  return false;
}

bool one_line(std::string_view text) { return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos; }

// How much of what was sent has arrived at the other side.
std::uint64_t bytes_acked(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return ~std::uint64_t{0};
  return info.tcpi_bytes_acked;
}

enum class Waited { kReady, kCancelled, kTimedOut };
Waited wait_for(const base::Clock& clock, int fd, short events, const ProcessClient::Patience& patience) {
  while (true) {
    const nanoseconds left = patience.deadline - clock.steady_now();
    if (left <= nanoseconds(0)) return Waited::kTimedOut;
    std::array<pollfd, 2> polled{{{fd, events, 0}, {patience.cancelled, POLLIN, 0}}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min<nanoseconds>(left, std::chrono::minutes(1)));
    const int n = ::poll(polled.data(), polled.size(), static_cast<int>(ms.count()));
    if (n <= 0) continue;
    if (polled[1].revents != 0) return Waited::kCancelled;
    if (polled[0].revents != 0) return Waited::kReady;
  }
}

std::string request_head(const CallHead& head, std::uint16_t port, std::optional<std::uint64_t> length) {
  std::string text =
      fmt::format("{} {}{}{} HTTP/1.1\r\nHost: {}\r\n", head.method, head.path, head.query.empty() ? "" : "?",
                  head.query, head.host.empty() ? fmt::format("127.0.0.1:{}", port) : head.host);
  if (!head.upgrade.empty() && one_line(head.upgrade)) {
    text += fmt::format("Connection: Upgrade\r\nUpgrade: {}\r\n", head.upgrade);
  }
  for (const auto& [name, value] : head.headers) {
    if (hop_by_hop(name) || same_name(name, "Host") || same_name(name, "Content-Length") || same_name(name, "Expect")) {
      continue;
    }
    if (one_line(name) && one_line(value)) text += fmt::format("{}: {}\r\n", name, value);
  }
  const bool bodiless = head.method == "GET" || head.method == "HEAD" || head.method == "DELETE" ||
                        head.method == "OPTIONS" || head.method == "TRACE";
  if (!length.has_value()) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (*length > 0 || !bodiless) {
    text += fmt::format("Content-Length: {}\r\n", *length);
  }
  return text + "\r\n";
}

Headers headers_of(const http::response_parser<http::buffer_body>& parser) {
  const auto& message = parser.get();
  Headers headers;
  const boost::beast::string_view connection = message[http::field::connection];
  http::token_list named{connection};
  for (const auto& field : message) {
    const std::string_view name(field.name_string().data(), field.name_string().size());
    if (hop_by_hop(name) || same_name(name, "Content-Length")) continue;
    if (named.exists(field.name_string())) continue;
    headers.emplace_back(name, std::string(field.value().data(), field.value().size()));
  }
  return headers;
}

}  // namespace

// One request on one connection.
struct ProcessClient::Exchange {
  const base::Clock& clock;
  const Call& call;
  const Patience& patience;
  base::FileDescriptor connection;
  std::string_view unsent;  // of the head
  std::string_view body;    // what of it is unsent, when it is whole
  Upload* upload = nullptr;

  CallResult result{};
  bool answered = false;       // some byte of an answer came
  bool began_answer = false;   // the parser has seen some of it
  bool nothing_taken = false;  // the connection was closed before a byte of the request arrived
  bool keep = false;

  std::optional<http::response_parser<http::buffer_body>> parser{};
  std::string pending{};  // received and not parsed
  std::array<char, kBlockBytes> block{};

  void fail(std::string message) {
    result.end = CallEnd::kFailed;
    result.message = std::move(message);
  }

  bool send_some() {
    while (!unsent.empty() || !body.empty()) {
      std::string_view& part = unsent.empty() ? body : unsent;
      const int more = unsent.empty() || body.empty() ? 0 : MSG_MORE;
      const ssize_t n = ::send(connection.get(), part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT | more);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      part.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Parses what is pending. False: the exchange is over, in `result`.
  bool parse() {
    while (true) {
      if (!parser.has_value()) {
        parser.emplace();
        parser->header_limit(kMaxAnswerHeadBytes);
        parser->body_limit(boost::none);
        // The head alone at first: what comes with it may have trailers, which are none of its headers.
        parser->eager(false);
        if (call.head.method == "HEAD") parser->skip(true);
        began_answer = false;
      }
      if (pending.empty() && !parser->is_done()) return true;
      if (!began_answer) {
        if (pending.size() < kLeastStatusLine && std::string_view("HTTP/1.").starts_with(pending.substr(0, 7)))
          return true;
        began_answer = true;
        // The library's parser wants the blank before a reason that is not there.
        if (pending.size() >= kLeastStatusLine && pending.compare(kLeastStatusLine - 2, 2, "\r\n") == 0)
          pending.insert(kLeastStatusLine - 2, 1, ' ');
      }
      auto& out = parser->get().body();
      out.data = block.data();
      out.size = block.size();
      out.more = true;
      boost::system::error_code error;
      if (!parser->is_done()) {
        const std::size_t taken = parser->put(boost::asio::const_buffer(pending.data(), pending.size()), error);
        pending.erase(0, taken);
      }
      if (parser->is_header_done() && !result.response_begun) {
        const unsigned status = parser->get().result_int();
        if (status < 100 || (status == 101 && call.head.upgrade.empty())) {
          fail(fmt::format("the function answered with status {}, which cannot be passed on", status));
          return false;
        }
        // The library's parser takes off chunks only; another coding would be lost with the header that names it.
        const auto coding = parser->get()[http::field::transfer_encoding];
        if (const std::string_view name(coding.data(), coding.size());
            status >= 200 && !name.empty() && !same_name(name, "chunked") && !same_name(name, "identity")) {
          fail(fmt::format("the function answered with Transfer-Encoding: {:.40}, which cannot be passed on", name));
          return false;
        }
        if (status == 101) {
          tunnel();
          return false;
        }
        if (status < 200) {  // more is to come
          parser.reset();
          continue;
        }
        if (!begin(status)) return false;
        parser->eager(true);
      }
      if (const std::size_t got = block.size() - out.size; got > 0 && parser->is_header_done()) {
        if (absl::Status sent = call.response.write({block.data(), got}); !sent.ok()) {
          result.end = CallEnd::kCancelled;
          return false;
        }
      }
      if (error == http::error::need_more) return true;
      if (error == http::error::need_buffer) continue;
      if (error) {
        fail(fmt::format("the function's answer is not HTTP/1.1: {}", error.message()));
        return false;
      }
      if (parser->is_done()) {
        keep = parser->keep_alive() && pending.empty() && unsent.empty() && body.empty() &&
               (upload == nullptr || upload->done());
        return false;
      }
    }
  }

  bool begin(unsigned status) {
    std::optional<std::uint64_t> length;
    Headers headers = headers_of(*parser);
    const auto said = parser->get()[http::field::content_length];
    if (status == 204 || status == 304) {
      length = 0;
      // Of what another answer would have had.
      if (status == 304 && !said.empty()) headers.emplace_back("Content-Length", std::string(said.data(), said.size()));
    } else if (const boost::optional<std::uint64_t> bytes = parser->content_length(); bytes.has_value()) {
      length = *bytes;
    }
    result.response_begun = true;
    if (call.response.begin(static_cast<int>(status), std::move(headers), length).ok()) return true;
    result.end = CallEnd::kCancelled;
    return false;
  }

  // Waits for one of these events. False: the call has ended before, `result` says how.
  bool ready(int events) {
    const Waited waited = wait_for(clock, connection.get(), events, patience);
    if (waited != Waited::kReady) result.end = waited == Waited::kCancelled ? CallEnd::kCancelled : CallEnd::kTimedOut;
    return waited == Waited::kReady;
  }

  // The function has switched to another protocol: bytes go both ways until one side ends.
  void tunnel() {
    const auto protocol = parser->get()[http::field::upgrade];
    const absl::Status begun =
        call.response.switch_protocols(headers_of(*parser), std::string_view(protocol.data(), protocol.size()));
    if (absl::IsUnimplemented(begun)) return fail(base::message(begun));
    result.response_begun = true;
    absl::Status sent = begun;
    if (sent.ok() && !pending.empty()) sent = call.response.write(pending);
    Upload upload(call.body, connection.get(), Upload::Form::kTunnel);
    while (sent.ok()) {
      if (!ready(POLLIN)) return;
      const ssize_t n = ::recv(connection.get(), block.data(), block.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return;  // its end, or it broke: there is no telling them apart for the client
      sent = call.response.write({block.data(), static_cast<std::size_t>(n)});
    }
    result.end = CallEnd::kCancelled;
  }

  void at_end(int error) {
    if (error == 0 && parser.has_value() && answered) {
      boost::system::error_code broken;
      if (parser->got_some()) parser->put_eof(broken);
      if (!broken && parser->is_done()) return;
    }
    if (upload != nullptr && upload->no_body()) {
      result.end = CallEnd::kCancelled;
      return;
    }
    fail(answered     ? "the function closed the connection in the middle of its answer"
         : error == 0 ? "the function closed the connection without an answer"
                      : fmt::format("the connection to the function broke: {}",
                                    base::message(base::errno_status(error, "receiving"))));
  }

  void run() {
    const std::uint64_t acked = bytes_acked(connection.get());
    bool sending = true;
    while (true) {
      if (sending && !send_some()) {  // it may have answered all the same
        sending = false;
        unsent = body = {};
        keep = false;
      }
      const bool more = !unsent.empty() || !body.empty();
      if (!ready(more ? POLLIN | POLLOUT : POLLIN)) return;
      const ssize_t n = ::recv(connection.get(), block.data(), block.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) {
        const int error = n < 0 ? errno : 0;
        // Closed by the server, and that close acknowledges nothing of the request: none of it was there in time.
        nothing_taken = !answered && (error == 0 || error == EPIPE) && bytes_acked(connection.get()) == acked;
        at_end(error);
        return;
      }
      answered = true;
      pending.append(block.data(), static_cast<std::size_t>(n));
      if (!parse()) {
        if (!sending) keep = false;
        return;
      }
      // Servers that send head and body apart wait for the acknowledgement of the head, which the system would delay by
      // 40 ms.
      const int at_once = 1;
      ::setsockopt(connection.get(), IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
    }
  }
};

ProcessClient::ProcessClient(const base::Clock& clock, std::uint16_t port,
                             std::function<absl::StatusOr<base::FileDescriptor>()> make_socket)
    : clock_(clock), port_(port), make_socket_(std::move(make_socket)) {}

absl::StatusOr<base::FileDescriptor> ProcessClient::connect(const Patience& patience) {
  nanoseconds wait = kFirstConnectWait;
  while (true) {
    absl::StatusOr<base::FileDescriptor> made = make_socket_();
    if (!made.ok()) return made;
    ::fcntl(made->get(), F_SETFL, O_NONBLOCK);
    const int on = 1;
    ::setsockopt(made->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(made->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return made;
    int error = errno;
    if (error == EINPROGRESS) {
      // This machine's own connections are there at once, unless the server accepts fewer than come. The kernel would
      // try again after 1, 3, 7 seconds: that is too long, and another socket does as well.
      const base::SteadyTime now = clock_.steady_now();
      const bool last = patience.deadline - now <= wait;
      switch (wait_for(clock_, made->get(), POLLOUT, {last ? patience.deadline : now + wait, patience.cancelled})) {
        case Waited::kReady:
          break;
        case Waited::kCancelled:
          return absl::CancelledError("cancelled");
        case Waited::kTimedOut:
          if (last) return absl::DeadlineExceededError("timed out");
          wait = std::min<nanoseconds>(2 * wait, kLongestConnectWait);
          continue;
      }
      socklen_t size = sizeof error;
      ::getsockopt(made->get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return made;
    }
    return base::errno_status(error, fmt::format("cannot connect to the function's port {}", port_));
  }
}

std::optional<base::FileDescriptor> ProcessClient::take_idle() {
  const std::lock_guard lock(mutex_);
  forget_old();
  while (!idle_.empty()) {
    base::FileDescriptor connection = std::move(idle_.back().connection);
    idle_.pop_back();
    char byte = 0;
    if (::recv(connection.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN) return connection;
  }
  return std::nullopt;
}

void ProcessClient::keep(base::FileDescriptor connection) {
  const std::lock_guard lock(mutex_);
  forget_old();
  if (idle_.size() < kMaxIdleConnections) idle_.push_back({std::move(connection), clock_.steady_now()});
}

void ProcessClient::forget_old() {
  const base::SteadyTime oldest = clock_.steady_now() - kLongestIdle;
  const auto young = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& one) { return one.since >= oldest; });
  idle_.erase(idle_.begin(), young);
}

void ProcessClient::close_idle() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

CallResult ProcessClient::proxy(const Call& call, Body how, const Patience& patience) {
  std::optional<std::string_view> whole = call.body.whole();
  base::LargeText collected;
  if (!whole.has_value() && how == Body::kWhole) {
    std::array<char, kBlockBytes> block;
    while (true) {
      const absl::StatusOr<std::size_t> n = call.body.read(block.data(), block.size());
      CallResult broken;
      if (!n.ok()) {
        broken.end = CallEnd::kCancelled;
        return broken;
      }
      if (*n == 0) break;
      if (collected.size() + *n > kMaxWholeBytes) {
        broken.end = CallEnd::kFailed;
        broken.message = fmt::format("http_buffer_req_body takes at most {} bytes of a request", kMaxWholeBytes);
        return broken;
      }
      if (absl::Status kept = collected.append({block.data(), *n}); !kept.ok()) {
        broken.end = CallEnd::kFailed;
        broken.message = base::message(kept);
        return broken;
      }
    }
    whole = collected.view();
  }
  for (const std::string* part : {&call.head.method, &call.head.path, &call.head.query, &call.head.host}) {
    if (one_line(*part) && part->find(' ') == std::string::npos) continue;
    CallResult refused;
    refused.end = CallEnd::kFailed;
    refused.message = "the request has a space or a line end in its method, path, query or host, so it is not HTTP";
    return refused;
  }
  const std::string head = request_head(
      call.head, port_, whole.has_value() ? std::optional<std::uint64_t>(whole->size()) : call.head.content_length);
  // A body that streams can be sent once only, so its request goes where no server is about to close.
  std::optional<base::FileDescriptor> connection = whole.has_value() ? take_idle() : std::nullopt;
  while (true) {
    const bool kept = connection.has_value();
    if (!kept) {
      absl::StatusOr<base::FileDescriptor> fresh = connect(patience);
      if (!fresh.ok()) {
        CallResult result;
        result.end = absl::IsCancelled(fresh.status())          ? CallEnd::kCancelled
                     : absl::IsDeadlineExceeded(fresh.status()) ? CallEnd::kTimedOut
                                                                : CallEnd::kUnreachable;
        result.message = base::message(fresh.status());
        return result;
      }
      connection = *std::move(fresh);
    }
    Exchange exchange{clock_, call, patience, *std::move(connection), head, whole.value_or("")};
    connection.reset();
    std::optional<Upload> upload;
    if (!whole.has_value()) {
      // The head goes first, and whole: the rest is sent by another thread.
      if (!exchange.send_some() || !exchange.unsent.empty()) {
        exchange.fail("the function took no request");
        return exchange.result;
      }
      upload.emplace(call.body, exchange.connection.get(),
                     call.head.content_length.has_value() ? Upload::Form::kPlain : Upload::Form::kChunked);
      exchange.upload = &*upload;
    }
    exchange.run();
    if (upload.has_value()) upload->stop();
    if (exchange.nothing_taken && whole.has_value() && exchange.result.end == CallEnd::kFailed) {
      if (kept) continue;
      exchange.result.end = CallEnd::kUnreachable;
    }
    if (exchange.keep) keep(std::move(exchange.connection));
    return std::move(exchange.result);
  }
}

bool ProcessClient::ready(const std::string& path, const Patience& patience) {
  const absl::StatusOr<base::FileDescriptor> connection = connect(patience);
  if (!connection.ok()) return false;
  if (path.empty()) return true;
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", path, port_);
  if (::send(connection->get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return false;
  }
  // "HTTP/1.1 2.. "
  std::string answer;
  while (answer.size() < kMaxReadyAnswerBytes && answer.find("\r\n") == std::string::npos) {
    if (wait_for(clock_, connection->get(), POLLIN, patience) != Waited::kReady) return false;
    std::array<char, 4096> block;
    const ssize_t n = ::recv(connection->get(), block.data(), block.size(), 0);
    if (n <= 0) return false;
    answer.append(block.data(), static_cast<std::size_t>(n));
  }
  return answer.starts_with("HTTP/1.") && answer.size() > 12 && answer[8] == ' ' && answer[9] == '2';
}

}  // namespace orla::function
