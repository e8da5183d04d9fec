#include "node/gateway_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <cstring>

#include "absl/strings/match.h"
#include "base/absl_view.h"

namespace orla::node {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool same(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(base::absl_view(a), base::absl_view(b));
}

// Of a host and port (RFC 3986); not checked further.
bool is_host_sign(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:[]%!$&'()*+,;=").find(c) != std::string_view::npos;
}

// Calls `take` with each name of a comma-separated list.
template <typename Take>
void for_names(std::string_view list, Take take) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    if (!name.empty()) take(name);
  }
}

// Collects what the library's parser finds.
class Reader final : public http::basic_parser<true> {
 public:
  Reader(RequestHead& head, RequestFault& fault, const RequestLimits& limits)
      : head_(head), fault_(fault), limits_(limits) {
    header_limit(UINT32_MAX);  // RequestParser has its own, told apart by their status
    body_limit(boost::none);
  }

  bool refused() const { return fault_.status != 0; }
  void body_to(std::string* out, std::uint64_t limit) {
    out_ = out;
    limit_ = limit;
  }
  // What follows from all headers together.
  bool conclude() {
    head_done_ = true;
    if (hosts_ > 1) return refuse(400, "more than one Host header");
    if (hosts_ == 0 && head_.http11) return refuse(400, "no Host header");
    if (lengths_ > 1) return refuse(400, "more than one Content-Length header");
    if (codings_ > 1) return refuse(400, "more than one Transfer-Encoding header");
    if (codings_ > 0 && lengths_ > 0) return refuse(400, "both Content-Length and Transfer-Encoding");
    if (codings_ > 0 && !head_.http11) return refuse(400, "Transfer-Encoding in HTTP/1.0");
    head_.keep_alive = head_.http11 ? !close_ : keep_alive_ && !close_;
    // Nothing else is passed on: of HTTP/2 this is no way in.
    const bool offers = upgrades_ && head_.http11 && !close_ && head_.method == "GET" && !head_.chunked &&
                        head_.content_length.value_or(0) == 0 && same(head_.upgrade, "websocket");
    if (!offers) head_.upgrade.clear();
    if (!named_.empty()) {
      for_names(named_, [this](std::string_view name) {
        std::erase_if(head_.headers, [&](const auto& header) { return same(header.first, name); });
      });
    }
    return true;
  }

 private:
  bool refuse(int status, std::string text) {
    fault_ = {status, std::move(text)};
    return false;
  }

  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code& error) override {
    head_.method = view(method);
    head_.http11 = version >= 11;
    std::string_view rest = view(target);
    if (!rest.empty() && rest.front() != '/' && rest != "*") {
      // The form that proxies are sent.
      const std::size_t scheme = rest.find("://");
      const std::size_t slash = scheme == std::string_view::npos ? scheme : rest.find('/', scheme + 3);
      if (slash == std::string_view::npos) {
        refuse(400, "the request's target is no path");
        error = http::make_error_code(http::error::bad_target);
        return;
      }
      rest.remove_prefix(slash);
    }
    if (rest.find('#') != std::string_view::npos) {
      refuse(400, "a '#' in the request's target");
      error = http::make_error_code(http::error::bad_target);
      return;
    }
    const std::size_t question = rest.find('?');
    head_.path = rest.substr(0, question);
    head_.has_query = question != std::string_view::npos;
    if (head_.has_query) head_.query = rest.substr(question + 1);
  }

  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}

  void on_field_impl(http::field field, beast::string_view name, beast::string_view value,
                     beast::error_code& error) override {
    if (head_done_) return;  // a trailer
    switch (field) {
      case http::field::host:
        ++hosts_;
        head_.host = view(value);
        if (!std::all_of(head_.host.begin(), head_.host.end(), is_host_sign)) {
          refuse(400, "a Host header that is no host");
          error = http::make_error_code(http::error::bad_value);
        }
        return;
      case http::field::content_length: {
        ++lengths_;
        const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
        if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
          refuse(400, "a bad Content-Length");
          error = http::make_error_code(http::error::bad_content_length);
        }
        return;
      }
      case http::field::transfer_encoding:
        ++codings_;
        if (!same(view(value), "chunked")) {
          refuse(501, "a Transfer-Encoding other than chunked");
          error = http::make_error_code(http::error::bad_transfer_encoding);
        }
        head_.chunked = true;
        return;
      case http::field::connection:
        for_names(view(value), [this](std::string_view option) {
          if (same(option, "close")) {
            close_ = true;
          } else if (same(option, "keep-alive")) {
            keep_alive_ = true;
          } else if (same(option, "upgrade")) {
            upgrades_ = true;
          } else {
            named_.append(named_.empty() ? "" : ",").append(option);
          }
        });
        return;
      case http::field::expect:
        if (!same(view(value), "100-continue")) {
          refuse(417, "an Expect other than 100-continue");
          error = http::make_error_code(http::error::bad_value);
        }
        head_.expects_continue = true;
        return;
      case http::field::keep_alive:
      case http::field::proxy_connection:
      case http::field::proxy_authenticate:
      case http::field::proxy_authorization:
      case http::field::te:
      case http::field::trailer:
        return;
      case http::field::upgrade:
        head_.upgrade.append(head_.upgrade.empty() ? "" : ", ").append(value.data(), value.size());
        return;
      default:
        break;
    }
    if (head_.headers.size() >= limits_.headers) {
      refuse(431, fmt::format("more than {} headers", limits_.headers));
      error = http::make_error_code(http::error::header_limit);
      return;
    }
    head_.headers.emplace_back(view(name), view(value));
  }

  void on_header_impl(beast::error_code&) override {
    if (const auto length = content_length()) head_.content_length = *length;
  }
  void on_body_init_impl(boost::optional<std::uint64_t> const&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view piece, beast::error_code& error) override { return take(piece, error); }
  void on_chunk_header_impl(std::uint64_t size, beast::string_view, beast::error_code& error) override {
    if (size > limit_ - std::min(limit_, taken_)) over(error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view piece, beast::error_code& error) override {
    return take(piece, error);
  }
  void on_finish_impl(beast::error_code&) override {}

  std::size_t take(beast::string_view piece, beast::error_code& error) {
    if (piece.size() > limit_ - std::min(limit_, taken_)) {
      over(error);
      return 0;
    }
    taken_ += piece.size();
    out_->append(piece.data(), piece.size());
    return piece.size();
  }
  void over(beast::error_code& error) {
    refuse(413, fmt::format("a body over {} bytes", limit_));
    error = http::make_error_code(http::error::body_limit);
  }

  RequestHead& head_;
  RequestFault& fault_;
  const RequestLimits& limits_;
  std::string* out_ = nullptr;
  std::uint64_t limit_ = 0;
  std::uint64_t taken_ = 0;
  std::string named_;  // headers that Connection names
  int hosts_ = 0;
  int lengths_ = 0;
  int codings_ = 0;
  bool close_ = false;
  bool keep_alive_ = false;
  bool upgrades_ = false;
  bool head_done_ = false;
};

}  // namespace

// "0\r\n\r\n": no less is left of a chunked body before its end.
constexpr std::size_t kLastChunkBytes = 5;

struct RequestParser::State {
  explicit State(const RequestLimits& limits) : limits(limits) {}

  Progress refuse(int status, std::string text) {
    fault = {status, std::move(text)};
    return Progress::kFault;
  }
  Progress refuse(const beast::error_code& error) {
    if (fault.status != 0) return Progress::kFault;
    if (error == http::error::bad_version) return refuse(505, "not HTTP/1.0 or HTTP/1.1");
    return refuse(400, fmt::format("not an HTTP/1.1 request: {}", error.message()));
  }

  // Goes over the lines that are new: where the head ends, and that its lines are whole ones.
  Progress scan(std::string_view bytes);

  const RequestLimits limits;
  RequestHead head;
  RequestFault fault{0, ""};
  std::optional<Reader> reader;
  std::size_t begin = 0;       // of the request line: empty lines before it are passed over
  std::size_t line = 0;        // where the first line that is not known to be whole begins
  std::size_t looked = 0;      // how far it was looked through
  std::size_t end = 0;         // of the head
  bool in_chunk_line = false;  // the library's parser waits for the rest of one
};

RequestParser::Progress RequestParser::State::scan(std::string_view bytes) {
  constexpr std::size_t kEmptyLines = 4;
  while (true) {
    const std::size_t from = std::max(line, looked);
    const void* found = from < bytes.size() ? std::memchr(bytes.data() + from, '\n', bytes.size() - from) : nullptr;
    const std::size_t at = found == nullptr ? bytes.size() : static_cast<const char*>(found) - bytes.data();
    if (line == begin && at - line > limits.line_bytes) {
      return refuse(414, fmt::format("a request line over {} bytes", limits.line_bytes));
    }
    if (at - begin > limits.header_bytes) {
      return refuse(431, fmt::format("a header over {} bytes", limits.header_bytes));
    }
    if (found == nullptr) {
      looked = bytes.size();
      return Progress::kMore;
    }
    if (at == line || bytes[at - 1] != '\r') return refuse(400, "a line that does not end in CR LF");
    const std::string_view text = bytes.substr(line, at - 1 - line);
    if (std::memchr(text.data(), '\r', text.size()) != nullptr) return refuse(400, "a CR within a line");
    if (text.empty()) {
      if (line != begin) {
        end = at + 1;
        return Progress::kDone;
      }
      begin = at + 1;
      if (begin > 2 * kEmptyLines) return refuse(400, "empty lines where a request should begin");
    } else if (line != begin && (text.front() == ' ' || text.front() == '\t')) {
      return refuse(400, "a header folded over two lines");
    }
    line = at + 1;
  }
}

RequestParser::RequestParser(const RequestLimits& limits) : state_(std::make_unique<State>(limits)) {}
RequestParser::~RequestParser() = default;

RequestParser::Progress RequestParser::head(std::string_view bytes, std::size_t& used) {
  State& s = *state_;
  if (const Progress progress = s.scan(bytes); progress != Progress::kDone) return progress;
  s.reader.emplace(s.head, s.fault, s.limits);
  s.reader->eager(false);
  beast::error_code error;
  std::size_t at = s.begin;
  // The start line and the headers are two steps of the library's parser.
  while (!s.reader->is_header_done()) {
    const std::size_t taken = s.reader->put(boost::asio::const_buffer(bytes.data() + at, s.end - at), error);
    at += taken;
    if (error || s.fault.status != 0) return s.refuse(error);
    if (taken == 0 && !s.reader->is_header_done()) return s.refuse(400, "not an HTTP/1.1 request");
  }
  if (!s.reader->conclude()) return Progress::kFault;
  used = s.end;
  return Progress::kDone;
}

RequestParser::Progress RequestParser::body(std::string_view bytes, std::uint64_t limit, std::string& out,
                                            std::size_t& used) {
  State& s = *state_;
  used = 0;
  // The library's parser, once it has seen the beginning of the last chunk's line, wants all of it that there has to
  // be.
  if (s.in_chunk_line && bytes.size() < kLastChunkBytes) return Progress::kMore;
  s.in_chunk_line = false;
  s.reader->body_to(&out, limit);
  s.reader->eager(true);
  while (!s.reader->is_done() && used < bytes.size()) {
    beast::error_code error;
    const std::size_t taken = s.reader->put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), error);
    used += taken;
    if (error == http::error::need_more) {
      const std::size_t left = bytes.size() - used;
      if (left > kMaxTrailerBytes) return s.refuse(431, fmt::format("trailers over {} bytes", kMaxTrailerBytes));
      if (left > kMaxChunkLineBytes &&
          bytes.substr(used + 2, kMaxChunkLineBytes).find('\n') == std::string_view::npos) {
        return s.refuse(400, fmt::format("a chunk's line over {} bytes", kMaxChunkLineBytes));
      }
      s.in_chunk_line = taken == 0;
      if (taken == 0) return Progress::kMore;
      continue;
    }
    if (error || s.fault.status != 0) return s.refuse(error);
  }
  return s.reader->is_done() ? Progress::kDone : Progress::kMore;
}

RequestHead& RequestParser::request() { return state_->head; }
const RequestFault& RequestParser::fault() const { return state_->fault; }

void RequestParser::next() {
  State& s = *state_;
  s.head = {};
  s.fault = {0, ""};
  s.reader.reset();
  s.begin = s.line = s.looked = s.end = 0;
  s.in_chunk_line = false;
}

}  // namespace orla::node
