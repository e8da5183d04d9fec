#include "tests/gateway_under_test.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/absl_view.h"
#include "base/clock.h"
#include "model/address.h"
#include "node/http_client.h"

namespace orla::behaviour {

namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;
using std::chrono::milliseconds;

namespace {

const base::SystemClock clock_of_test;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

// --- A connection.
// ----------------------------------------------------------------------------------------------------

std::string GatewayAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(base::absl_view(key), base::absl_view(name))) return value;
  }
  return "";
}

absl::Status GatewayConnection::connect() {
  const absl::StatusOr<model::Address> where = model::parse_address(url_.substr(url_.rfind('/') + 1));
  if (!where.ok()) return where.status();
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(where->port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return absl::UnavailableError(fmt::format("cannot connect to {}: {}", url_, std::strerror(errno)));
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  socket_ = std::move(socket);
  return absl::OkStatus();
}

absl::StatusOr<GatewayAnswer> GatewayConnection::ask(std::string_view method, std::string_view target,
                                                     std::string_view body, const HttpHeaders& headers,
                                                     milliseconds patience) {
  if (!socket_.valid()) {
    if (absl::Status status = connect(); !status.ok()) return status;
  }
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", method, target,
                                    url_.substr(url_.rfind('/') + 1), body.size());
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "\r\n";
  request += body;
  const auto broken = [this](const std::string& why) {
    socket_.reset();
    return absl::AbortedError(why);
  };
  // An answer may have come before the whole request was taken.
  const bool sent = send_all(socket_.get(), request);
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  if (method == "HEAD") parser.skip(true);
  std::string waiting;
  const base::SteadyTime until = clock_of_test.steady_now() + patience;
  while (!parser.is_done()) {
    const auto left = std::chrono::ceil<milliseconds>(until - clock_of_test.steady_now());
    if (left.count() <= 0) return broken(fmt::format("no answer within {} ms", patience.count()));
    pollfd look{socket_.get(), POLLIN, 0};
    if (::poll(&look, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) return broken("poll");
    if (look.revents == 0) continue;
    char room[16'384];
    const ssize_t n = ::recv(socket_.get(), room, sizeof room, 0);
    if (n < 0 && errno == EINTR) continue;
    beast::error_code error;
    if (n <= 0) {
      if (parser.got_some()) parser.put_eof(error);
      if (!parser.got_some() || error || !parser.is_done()) {
        return broken(n < 0 ? std::strerror(errno)
                            : (sent ? "closed before the whole answer" : "closed while sending"));
      }
      socket_.reset();
      break;
    }
    waiting.append(room, static_cast<std::size_t>(n));
    while (!waiting.empty() && !parser.is_done()) {
      const std::size_t used = parser.put(boost::asio::buffer(waiting), error);
      waiting.erase(0, used);
      if (error == http::error::need_more) break;
      if (error) return broken("no HTTP: " + error.message());
    }
  }
  GatewayAnswer answer;
  const auto& message = parser.get();
  answer.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    const auto name = field.name_string();
    answer.headers.emplace_back(std::string(name.data(), name.size()),
                                std::string(field.value().data(), field.value().size()));
  }
  answer.body = message.body();
  if (!message.keep_alive() || !sent) socket_.reset();
  return answer;
}

// --- A fleet.
// ---------------------------------------------------------------------------------------------------------

std::string GatewayText::full() const {
  std::string out =
      "[fleet]\nname = \"functions\"\nzone = \"UTC\"\n[[node]]\nname = \"cloud\"\nlayer = \"cloud\"\nlisten = "
      "\"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ngateway = \"127.0.0.1:0\"\nimages = \"images\"\nprocesses = true\n"
      "callbacks_allowed = [\"127.0.0.1\"]\n";
  if (node.find("drain_notice") == std::string::npos) out += "drain_notice = \"10ms\"\n";
  out += node + functions;
  if (!limits.empty()) out += "[limits]\n" + limits;
  return out;
}

GatewayFleet::GatewayFleet(const GatewayText& text) : fleet(text.full()) {
  std::filesystem::create_directories(images());
}

void GatewayFleet::module(const std::string& name) const {
  const std::filesystem::path built =
      std::filesystem::path(behaviour::program()).parent_path().parent_path() / "functions" / (name + ".wasm");
  std::error_code error;
  std::filesystem::copy_file(built, images() / (name + ".wasm"), error);
  ASSERT_FALSE(error) << built << ": " << error.message() << "; it is built with the target wasm_modules";
}

void GatewayFleet::program(const std::string& name, const std::string& text) const {
  const std::filesystem::path path = images() / name;
  std::filesystem::create_directories(path.parent_path());
  ASSERT_TRUE(base::write_file_atomically(path, text).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
}

bool GatewayFleet::find_gateway() {
  const json status = fleet.status("cloud");
  url_ = status.is_object() ? "http://" + status.value("gateway", "") : "";
  EXPECT_GT(url_.size(), 7u) << status;
  return url_.size() > 7;
}

bool GatewayFleet::up() { return fleet.up() && find_gateway(); }

bool GatewayFleet::restart(int signal) { return fleet.stop("cloud", signal) && fleet.start("cloud") && find_gateway(); }

GatewayAnswer GatewayFleet::ask(std::string_view method, std::string_view target, std::string_view body,
                                const HttpHeaders& headers) const {
  absl::StatusOr<GatewayAnswer> answer = GatewayConnection(url_).ask(method, target, body, headers);
  EXPECT_TRUE(answer.ok()) << method << " " << target << ": " << answer.status();
  return answer.value_or(GatewayAnswer{});
}

void GatewayFleet::deploy(const json& spec) const {
  GatewayAnswer answer = ask("PUT", "/system/functions", spec.dump());
  if (answer.status == 404) answer = ask("POST", "/system/functions", spec.dump());
  EXPECT_EQ(answer.status, 202) << spec << ": " << answer.body;
}

void GatewayFleet::remove(const std::string& name) const {
  const GatewayAnswer answer = ask("DELETE", "/system/functions", json{{"functionName", name}}.dump());
  EXPECT_EQ(answer.status, 202) << name << ": " << answer.body;
}

void GatewayFleet::scale(const std::string& name, int replicas) const {
  const GatewayAnswer answer =
      ask("POST", "/system/scale-function/" + name, json{{"serviceName", name}, {"replicas", replicas}}.dump());
  EXPECT_EQ(answer.status, 202) << name << ": " << answer.body;
}

json GatewayFleet::describe(const std::string& name) const {
  const GatewayAnswer answer = ask("GET", "/system/function/" + name + "?usage=1");
  return answer.status == 200 ? json::parse(answer.body, nullptr, false) : json(nullptr);
}

bool GatewayFleet::wait_for_replicas(const std::string& name, int ready, std::chrono::seconds timeout) const {
  json last;
  const bool there = FleetUnderTest::until(timeout, [&] {
    last = describe(name);
    return last.is_object() && last.value("availableReplicas", 0) == ready;
  });
  EXPECT_TRUE(there) << name << " has not " << ready << " ready replicas: " << last;
  return there;
}

std::string GatewayFleet::metrics() const {
  const auto reply = node::http_request("GET", fleet.http("cloud") + "/metrics", "", std::chrono::seconds(10));
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.ok() ? reply->body : "";
}

double GatewayFleet::metric(const std::string& name) const {
  double value = -1;
  for (const std::string& line : lines_of(metrics())) {
    if (line.rfind(name + " ", 0) == 0 && absl::SimpleAtod(line.substr(name.size() + 1), &value)) break;
  }
  return value;
}

// --- Servers.
// ---------------------------------------------------------------------------------------------------------

SmallServer::SmallServer(Speaks speaks, std::function<std::string(const std::string&)> answer)
    : speaks_(speaks), answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener_.get(), 1024), 0);
  EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::jthread([this] {
    while (!stopping_) {
      pollfd look{listener_.get(), POLLIN, 0};
      if (::poll(&look, 1, 50) <= 0) continue;
      const int descriptor = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0) continue;
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([this, descriptor] { serve(descriptor); });
    }
  });
}

SmallServer::~SmallServer() {
  stopping_ = true;
  accepting_.join();
}

void SmallServer::serve(int descriptor) {
  const base::FileDescriptor connection(descriptor);
  std::string bytes;
  // Whether there is more; looks at the end of the test from time to time.
  const auto more = [&] {
    while (!stopping_) {
      pollfd look{descriptor, POLLIN, 0};
      if (::poll(&look, 1, 50) <= 0) continue;
      char room[16'384];
      const ssize_t n = ::recv(descriptor, room, sizeof room, 0);
      if (n <= 0) return false;
      bytes.append(room, static_cast<std::size_t>(n));
      return true;
    }
    return false;
  };
  if (speaks_ == Speaks::kLines) {
    while (bytes.find('\n') == std::string::npos) {
      if (!more()) return;
    }
    send_all(descriptor, answer_(bytes.substr(0, bytes.find('\n'))));
    return;
  }
  http::request_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  beast::error_code error;
  std::size_t used = 0;
  while (!parser.is_done()) {
    if (used == bytes.size() && !more()) return;
    const std::string waiting = bytes.substr(used);
    used += parser.put(boost::asio::buffer(waiting), error);
    if (error == http::error::need_more) {
      if (!more()) return;
    } else if (error) {
      return;
    }
  }
  const std::string status = answer_(bytes);
  if (status == "0") {
    while (more()) bytes.clear();
    return;
  }
  send_all(descriptor, fmt::format("HTTP/1.1 {} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status));
}

Recorder::Recorder()
    : server_(SmallServer::Speaks::kLines, [this](const std::string& line) {
        const std::lock_guard lock(mutex_);
        ++seen_[line];
        return std::string("ok\n");
      }) {}

std::map<std::string, int> Recorder::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

int Recorder::count(const std::string& line) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(line);
  return found == seen_.end() ? 0 : found->second;
}

// --- What a process holds.
// --------------------------------------------------------------------------------------------

namespace {

std::int64_t entries(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator in(folder, error);
  return error ? -1 : std::distance(begin(in), end(in));
}

}  // namespace

std::vector<int> descendants_of(int pid) {
  std::multimap<int, int> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    int number = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &number)) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream rest(line.substr(name_end + 2));
    std::string state;
    int parent = 0;
    if (rest >> state >> parent) children.emplace(parent, number);
  }
  std::vector<int> all;
  std::vector<int> open = {pid};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      all.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return all;
}

Held held_by(int pid) {
  Held held;
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) held.resident_kib = std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  held.descriptors = entries(fmt::format("/proc/{}/fd", pid));
  held.threads = entries(fmt::format("/proc/{}/task", pid));
  held.descendants = static_cast<std::int64_t>(descendants_of(pid).size());
  return held;
}

std::string to_string(const Held& held) {
  return fmt::format("{} KiB resident, {} descriptors, {} threads, {} descendants", held.resident_kib, held.descriptors,
                     held.threads, held.descendants);
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(at, values.size() - 1)),
                   values.end());
  return values[std::min(at, values.size() - 1)];
}

}  // namespace orla::behaviour
