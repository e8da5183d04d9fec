// What tests of real gateways share: a connection that is kept, a fleet of one node with a gateway, small servers that
// functions and callbacks reach, and what a process holds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "tests/fleet_under_test.h"

namespace orla::behaviour {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct GatewayAnswer {
  int status = 0;
  HttpHeaders headers;
  std::string body;
  std::string header(std::string_view name) const;  // empty when it is not there
};

// One connection, made when it is needed and kept as long as the gateway keeps it. One thread at a time.
class GatewayConnection {
 public:
  explicit GatewayConnection(std::string url) : url_(std::move(url)) {}  // http://ADDRESS:PORT
  // UNAVAILABLE: it could not connect, so nothing was sent. ABORTED: the connection broke, or no whole answer came in
  // time; what became of the request is not known.
  absl::StatusOr<GatewayAnswer> ask(std::string_view method, std::string_view target, std::string_view body = {},
                                    const HttpHeaders& headers = {},
                                    std::chrono::milliseconds patience = std::chrono::seconds(30));
  bool connected() const { return socket_.valid(); }
  void drop() { socket_.reset(); }

 private:
  absl::Status connect();
  std::string url_;
  base::FileDescriptor socket_;
};

// One node named "cloud" with a gateway, its images in a folder of its own.
struct GatewayText {
  std::string node;       // more lines of the node
  std::string functions;  // [[function]] sections
  std::string limits;     // lines of [limits]
  std::string full() const;
};

class GatewayFleet {
 public:
  explicit GatewayFleet(const GatewayText& text = {});

  FleetUnderTest fleet;
  // Copies a module that the build made.
  void module(const std::string& name) const;
  // An executable file among the images.
  void program(const std::string& name, const std::string& text) const;
  std::filesystem::path images() const { return fleet.directory() / "images"; }

  bool up();
  // Stops the node, and starts it again.
  bool restart(int signal);
  // The node was started again: its gateway is another one.
  bool found_again() { return find_gateway(); }
  // The gateway's, of the node as it is now.
  std::string url() const { return url_; }
  int pid() const { return fleet.pid("cloud"); }

  // One request over a connection of its own; a failure of the test and status 0 when there is no answer.
  GatewayAnswer ask(std::string_view method, std::string_view target, std::string_view body = {},
                    const HttpHeaders& headers = {}) const;
  // Makes it, or changes it; a failure of the test when it is refused.
  void deploy(const nlohmann::json& spec) const;
  void remove(const std::string& name) const;
  void scale(const std::string& name, int replicas) const;
  nlohmann::json describe(const std::string& name) const;  // null when it is not there
  bool wait_for_replicas(const std::string& name, int ready,
                         std::chrono::seconds timeout = std::chrono::seconds(20)) const;
  std::string metrics() const;
  double metric(const std::string& name) const;  // of a series without labels; -1 when it is not there

 private:
  bool find_gateway();
  std::string url_;
};

// Answers each connection's first line, or each request when `Http`, with what `answer` says; on a thread per
// connection, in order of coming.
class SmallServer {
 public:
  enum class Speaks : std::uint8_t { kLines, kHttp };
  // kLines: a line in, the answer out, and it closes. kHttp: the whole request in; the answer is a status line's
  // number, and 0 says nothing until the client has gone.
  SmallServer(Speaks speaks, std::function<std::string(const std::string&)> answer);
  ~SmallServer();
  SmallServer(const SmallServer&) = delete;
  SmallServer& operator=(const SmallServer&) = delete;
  int port() const { return port_; }

 private:
  void serve(int descriptor);
  const Speaks speaks_;
  const std::function<std::string(const std::string&)> answer_;
  base::FileDescriptor listener_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::jthread> threads_;
  std::jthread accepting_;
};

// Which lines came, and how often.
class Recorder {
 public:
  Recorder();
  int port() const { return server_.port(); }
  std::map<std::string, int> seen() const;
  int count(const std::string& line) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> seen_;
  SmallServer server_;
};

// What a process holds, as /proc says.
struct Held {
  std::int64_t resident_kib = 0;
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
  std::int64_t descendants = 0;  // zombies too
};
Held held_by(int pid);
// All that descend from it, by pid.
std::vector<int> descendants_of(int pid);
std::string to_string(const Held& held);

// The value that a share of them is not above; 0 when there are none.
double quantile(std::vector<double> values, double share);

}  // namespace orla::behaviour
