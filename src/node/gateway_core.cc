#include "node/gateway_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <iterator>

#include "base/version.h"

namespace orla::node {

void HttpDate::append(base::WallTime now, std::string& out) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const std::lock_guard lock(mutex_);
  if (second != second_) {
    static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto day = std::chrono::floor<std::chrono::days>(second);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(second - day);
    line_ = fmt::format("Date: {}, {:02} {} {:04} {:02}:{:02}:{:02} GMT\r\n",
                        kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                        kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                        time.hours().count(), time.minutes().count(), time.seconds().count());
    second_ = second;
  }
  out += line_;
}

void Threads::start(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const One& one) { return one.ended.load(); });
  One& one = all_.emplace_back();
  one.thread = std::jthread([&one, task = std::move(task)]() mutable {
    task();
    task = nullptr;  // what it holds goes first
    one.ended = true;
  });
}

void Threads::join() {
  std::list<One> all;
  {
    const std::lock_guard lock(mutex_);
    all.splice(all.end(), all_);
  }
}

GatewayCore::GatewayCore(GatewaySettings settings, function::Host& host, AsyncCalls* async, const base::Clock& clock,
                         base::Logger& log)
    : settings(std::move(settings)),
      host(host),
      async(async),
      clock(clock),
      log(log),
      served_by(fmt::format("orla/{}", base::Version())) {}

bool GatewayCore::has_namespace(std::string_view space) const {
  return space == function::kDefaultNamespace ||
         std::find(settings.namespaces.begin(), settings.namespaces.end(), space) != settings.namespaces.end();
}

namespace {

// Empty: the status has none, as is allowed.
std::string_view reason_of(int status) {
  namespace http = boost::beast::http;
  if (status == 418) return "I'm a teapot";
  if (status == 425) return "Too Early";
  const http::status known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "";
  const boost::beast::string_view reason = http::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

}  // namespace

void append_status_line(int status, std::string& out) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", status, reason_of(status));
}

void append_header(std::string_view name, std::string_view value, std::string& out) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool valid_header(std::string_view name, std::string_view value) {
  const auto is_token = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u > 0x20 && u < 0x7f && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  };
  const auto is_text = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u >= 0x20 && u != 0x7f) || c == '\t';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_token) &&
         std::all_of(value.begin(), value.end(), is_text);
}

}  // namespace orla::node
