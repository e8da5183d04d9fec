#include "node/gateway_test_host.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>

#include "absl/strings/match.h"
#include "model/address.h"

namespace orla::node::gateway_test {

namespace {
constexpr int kPatienceMs = 10'000;
}

FakeHost::~FakeHost() {
  for (std::thread& thread : threads_) thread.join();
}

void FakeHost::add(const std::string& name, Code code) {
  function::FunctionSpec spec;
  spec.key.name = name;
  spec.image = "native/test";
  EXPECT_TRUE(deploy(spec, function::Deploy::kCreate).ok());
  const std::lock_guard lock(mutex_);
  deployed_[spec.key.text()].code = std::move(code);
}

absl::Status FakeHost::deploy(const function::FunctionSpec& spec, function::Deploy how) {
  const std::lock_guard lock(mutex_);
  const bool there = deployed_.count(spec.key.text()) > 0;
  if (there && how == function::Deploy::kCreate) return absl::AlreadyExistsError("it is there already");
  if (!there && how == function::Deploy::kUpdate) return absl::NotFoundError("it is not there");
  if (spec.image == "refused") return absl::InvalidArgumentError("image: \"refused\" is none");
  Deployed& deployed = deployed_[spec.key.text()];
  deployed.status.spec = spec;
  deployed.status.runtime = "native";
  deployed.status.replicas = deployed.status.available = 1;
  deployed.status.created = base::WallTime(std::chrono::seconds(1'000'000'000));
  if (!deployed.code) deployed.code = echo;
  return absl::OkStatus();
}

absl::Status FakeHost::remove(const function::FunctionKey& key) {
  const std::lock_guard lock(mutex_);
  return deployed_.erase(key.text()) > 0 ? absl::OkStatus() : absl::NotFoundError("no such function");
}

std::vector<function::FunctionStatus> FakeHost::list(std::string_view space) const {
  const std::lock_guard lock(mutex_);
  std::vector<function::FunctionStatus> all;
  for (const auto& [name, deployed] : deployed_) {
    if (space.empty() || deployed.status.spec.key.space == space) all.push_back(deployed.status);
  }
  return all;
}

std::optional<function::FunctionStatus> FakeHost::find(const function::FunctionKey& key, bool with_usage) const {
  const std::lock_guard lock(mutex_);
  const auto found = deployed_.find(key.text());
  if (found == deployed_.end()) return std::nullopt;
  function::FunctionStatus status = found->second.status;
  if (with_usage) status.usage = {0.5, 4096};
  return status;
}

bool FakeHost::exists(const function::FunctionKey& key) const { return find(key, false).has_value(); }

absl::StatusOr<std::uint32_t> FakeHost::scale(const function::FunctionKey& key, std::uint32_t replicas) {
  const std::lock_guard lock(mutex_);
  const auto found = deployed_.find(key.text());
  if (found == deployed_.end()) return absl::NotFoundError("no such function");
  found->second.status.replicas = replicas;
  return replicas;
}

absl::Status FakeHost::alert(const function::FunctionKey& key, bool firing) {
  if (!exists(key)) return absl::NotFoundError("no such function");
  const std::lock_guard lock(mutex_);
  alerts.push_back(key.name + (firing ? " firing" : " resolved"));
  return absl::OkStatus();
}

void FakeHost::invoke(const function::FunctionKey& key, std::shared_ptr<function::Invocation> invocation,
                      function::InvokeDone done) {
  const std::lock_guard lock(mutex_);
  if (draining) return done(ended(function::InvokeEnd::kDraining));
  const auto found = deployed_.find(key.text());
  if (found == deployed_.end()) return done(ended(function::InvokeEnd::kNotFound));
  threads_.emplace_back([code = found->second.code, invocation = std::move(invocation), done = std::move(done)] {
    done(code(*invocation));
  });
}

void FakeHost::count(const function::FunctionKey&, int status, double) {
  {
    const std::lock_guard lock(mutex_);
    counted_.push_back(status);
  }
  counting_.notify_all();
}

std::vector<int> FakeHost::counted(std::size_t size) const {
  std::unique_lock lock(mutex_);
  counting_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [&] { return counted_.size() >= size; });
  return counted_;
}

std::vector<std::pair<function::FunctionKey, function::FunctionCounts>> FakeHost::counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<function::FunctionKey, function::FunctionCounts>> all;
  for (const auto& [name, deployed] : deployed_) {
    function::FunctionCounts counts;
    counts.started = 3;
    counts.replicas = deployed.status.replicas;
    counts.ended[200] = {2, 0.75, {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}};
    all.emplace_back(deployed.status.spec.key, counts);
  }
  return all;
}

std::vector<function::FunctionKey> FakeHost::secrets(std::string_view) const {
  const std::lock_guard lock(mutex_);
  std::vector<function::FunctionKey> all;
  for (const auto& [name, value] : secret_values) all.push_back({name});
  return all;
}
absl::Status FakeHost::add_secret(const function::FunctionKey& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  return secret_values.emplace(key.name, value).second ? absl::OkStatus() : absl::AlreadyExistsError("it is there");
}
absl::Status FakeHost::change_secret(const function::FunctionKey& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  const auto found = secret_values.find(key.name);
  if (found == secret_values.end()) return absl::NotFoundError("no such secret");
  found->second = value;
  return absl::OkStatus();
}
absl::Status FakeHost::remove_secret(const function::FunctionKey& key) {
  const std::lock_guard lock(mutex_);
  return secret_values.erase(key.name) > 0 ? absl::OkStatus() : absl::NotFoundError("no such secret");
}

absl::StatusOr<std::vector<function::LogLine>> FakeHost::logs(const function::FunctionKey& key,
                                                              const function::LogQuery& query) const {
  const std::lock_guard lock(mutex_);
  const auto found = deployed_.find(key.text());
  if (found == deployed_.end()) return absl::NotFoundError("no such function");
  std::vector<function::LogLine> lines = found->second.lines;
  if (query.tail && *query.tail < lines.size()) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(*query.tail));
  }
  return lines;
}

absl::StatusOr<std::shared_ptr<void>> FakeHost::follow(const function::FunctionKey& key,
                                                       std::function<void(const function::LogLine&)> line,
                                                       std::function<void()>) {
  const std::lock_guard lock(mutex_);
  const int number = next_++;
  followers_[number] = {key.text(), std::move(line)};
  return std::shared_ptr<void>(nullptr, [this, number](void*) {
    const std::lock_guard guard(mutex_);
    followers_.erase(number);
  });
}

void FakeHost::log(const std::string& name, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const std::string key = function::FunctionKey{name}.text();
  std::vector<function::LogLine>& lines = deployed_.at(key).lines;
  lines.push_back({lines.size() + 1, base::WallTime(std::chrono::seconds(1'000'000'000)), name + "-1", text});
  for (const auto& [number, follower] : followers_) {
    if (follower.first == key) follower.second(lines.back());
  }
}

void FakeHost::drain(std::chrono::nanoseconds) {
  const std::lock_guard lock(mutex_);
  draining = true;
}

function::InvokeResult ended(function::InvokeEnd end, std::string message) {
  function::InvokeResult result;
  result.end = end;
  result.message = std::move(message);
  return result;
}

std::string body_of(function::Invocation& call) {
  if (const auto whole = call.body.whole()) return std::string(*whole);
  std::string all;
  char piece[4096];
  while (true) {
    const absl::StatusOr<std::size_t> n = call.body.read(piece, sizeof piece);
    if (!n.ok() || *n == 0) return all;
    all.append(piece, *n);
  }
}

function::InvokeResult echo(function::Invocation& call) {
  call.response.respond(200, {}, body_of(call)).IgnoreError();
  return ended(function::InvokeEnd::kAnswered);
}

std::string Reply::header(std::string_view name) const {
  return std::string(function::find_header(headers, name).value_or(""));
}

Client::Client(const std::string& address) {
  const absl::StatusOr<model::Address> where = model::parse_address(address);
  EXPECT_TRUE(where.ok());
  socket_ = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(where->port);
  inet_pton(AF_INET, where->host.c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
}

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Client::end_sending() { ::shutdown(socket_.get(), SHUT_WR); }

std::string Client::some() {
  pollfd look{socket_.get(), POLLIN, 0};
  if (::poll(&look, 1, kPatienceMs) <= 0) {
    ADD_FAILURE() << "nothing comes";
    return "";
  }
  std::string piece(64 * 1024, '\0');
  const ssize_t n = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  piece.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return piece;
}

bool Client::ends() {
  if (!in_.empty()) return false;
  return some().empty();
}

Reply Client::receive(Of of) {
  Reply reply;
  const auto more = [&] {
    const std::string piece = some();
    in_ += piece;
    return !piece.empty();
  };
  std::size_t end = 0;
  while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return reply;
  }
  const std::string head = in_.substr(0, end + 2);
  in_.erase(0, end + 4);
  if (head.size() < 12) return reply;
  std::from_chars(head.data() + 9, head.data() + 12, reply.status);
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t line_end = head.find("\r\n", at);
    const std::size_t colon = head.find(": ", at);
    reply.headers.emplace_back(head.substr(at, colon - at), head.substr(colon + 2, line_end - colon - 2));
    at = line_end + 2;
  }
  if (of == Of::kHead || reply.status == 204 || reply.status == 304 || reply.status == 100) {
    reply.whole = true;
    return reply;
  }
  if (reply.header("Transfer-Encoding") == "chunked") {
    while (true) {
      std::size_t line = 0;
      while ((line = in_.find("\r\n")) == std::string::npos) {
        if (!more()) return reply;
      }
      std::size_t size = 0;
      std::from_chars(in_.data(), in_.data() + line, size, 16);
      while (in_.size() < line + 2 + size + 2) {
        if (!more()) return reply;
      }
      reply.body += in_.substr(line + 2, size);
      in_.erase(0, line + 2 + size + 2);
      if (size == 0) break;
    }
  } else if (const std::string length = reply.header("Content-Length"); !length.empty()) {
    std::size_t size = 0;
    std::from_chars(length.data(), length.data() + length.size(), size);
    while (in_.size() < size) {
      if (!more()) return reply;
    }
    reply.body = in_.substr(0, size);
    in_.erase(0, size);
  } else {
    while (more()) {
    }
    reply.body = std::exchange(in_, "");
  }
  reply.whole = true;
  return reply;
}

std::string get(std::string_view path, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: example\r\n{}\r\n", path, headers);
}

std::string with_body(std::string_view method, std::string_view path, std::string_view body, std::string_view headers) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: example\r\nContent-Length: {}\r\n{}\r\n{}", method, path, body.size(),
                     headers, body);
}

World::World(GatewaySettings settings, AsyncCalls* async) {
  settings.address = "127.0.0.1:0";
  auto started = Gateway::start(std::move(settings), host, async, clock, log);
  EXPECT_TRUE(started.ok()) << started.status();
  gateway = *std::move(started);
}

World::~World() = default;

}  // namespace orla::node::gateway_test
