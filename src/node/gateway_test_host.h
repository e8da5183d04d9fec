// For tests of the gateway: a host whose functions are C++ functions of the test, each call on a thread of its own; and
// a client that speaks bytes.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "function/host.h"
#include "node/gateway.h"

namespace orla::node::gateway_test {

// Functions are in FakeHost::code by name.text().
class FakeHost final : public function::Host {
 public:
  using Code = std::function<function::InvokeResult(function::Invocation&)>;
  ~FakeHost() override;

  // Deploys it at once.
  void add(const std::string& name, Code code);

  absl::Status deploy(const function::FunctionSpec& spec, function::Deploy how) override;
  absl::Status remove(const function::FunctionKey& key) override;
  std::vector<function::FunctionStatus> list(std::string_view space) const override;
  std::optional<function::FunctionStatus> find(const function::FunctionKey& key, bool with_usage) const override;
  bool exists(const function::FunctionKey& key) const override;
  absl::StatusOr<std::uint32_t> scale(const function::FunctionKey& key, std::uint32_t replicas) override;
  absl::Status alert(const function::FunctionKey& key, bool firing) override;
  void set_queue_length(const function::FunctionKey&, std::uint64_t) override {}
  void invoke(const function::FunctionKey& key, std::shared_ptr<function::Invocation> invocation,
              function::InvokeDone done) override;
  void count(const function::FunctionKey& key, int status, double seconds) override;
  std::vector<std::pair<function::FunctionKey, function::FunctionCounts>> counts() const override;
  std::vector<function::FunctionKey> secrets(std::string_view space) const override;
  absl::Status add_secret(const function::FunctionKey& key, std::string_view value) override;
  absl::Status change_secret(const function::FunctionKey& key, std::string_view value) override;
  absl::Status remove_secret(const function::FunctionKey& key) override;
  absl::StatusOr<std::vector<function::LogLine>> logs(const function::FunctionKey& key,
                                                      const function::LogQuery& query) const override;
  absl::StatusOr<std::shared_ptr<void>> follow(const function::FunctionKey& key,
                                               std::function<void(const function::LogLine&)> line,
                                               std::function<void()> end) override;
  void drain(std::chrono::nanoseconds timeout) override;

  void log(const std::string& name, const std::string& text);
  // Statuses, in order, once there are `size`: a call is counted after its answer was sent.
  std::vector<int> counted(std::size_t size = 0) const;
  std::map<std::string, std::string> secret_values;
  std::vector<std::string> alerts;  // "name firing"
  bool draining = false;

 private:
  struct Deployed {
    function::FunctionStatus status;
    Code code;
    std::vector<function::LogLine> lines;
  };
  mutable std::mutex mutex_;
  mutable std::condition_variable counting_;
  std::map<std::string, Deployed> deployed_;
  std::vector<int> counted_;
  std::map<int, std::pair<std::string, std::function<void(const function::LogLine&)>>> followers_;
  int next_ = 0;
  std::vector<std::thread> threads_;
};

// Writes the request's body back.
function::InvokeResult echo(function::Invocation& call);
// Reads all of it.
std::string body_of(function::Invocation& call);
function::InvokeResult ended(function::InvokeEnd end, std::string message = "");

struct Reply {
  int status = 0;
  function::Headers headers;
  std::string body;                                 // chunks put together
  bool whole = false;                               // else the connection ended before
  std::string header(std::string_view name) const;  // empty: not there
};

// A connection. Waits at most some seconds for anything.
class Client {
 public:
  explicit Client(const std::string& address);
  void send(std::string_view bytes);
  // Up to the end of one response; `head`: it has no body.
  enum class Of : std::uint8_t { kAny, kHead };
  Reply receive(Of of = Of::kAny);
  Reply ask(std::string_view bytes, Of of = Of::kAny) {
    send(bytes);
    return receive(of);
  }
  // Whatever comes next; empty: the end.
  std::string some();
  bool ends();  // within the patience
  void close() { socket_.reset(); }
  void end_sending();

 private:
  base::FileDescriptor socket_;
  std::string in_;
};

// "GET /path HTTP/1.1", Host and these header lines, without a body.
std::string get(std::string_view path, std::string_view headers = "");
std::string with_body(std::string_view method, std::string_view path, std::string_view body,
                      std::string_view headers = "");

// A gateway over a FakeHost.
struct World {
  explicit World(GatewaySettings settings = {}, AsyncCalls* async = nullptr);
  ~World();
  base::SystemClock clock;
  base::SilentLogger log;
  FakeHost host;
  std::unique_ptr<Gateway> gateway;
  Client client() const { return Client(gateway->address()); }
};

}  // namespace orla::node::gateway_test
