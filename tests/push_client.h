// A sender of pushes for tests: one connection that is kept, and made anew when it broke.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orla::behaviour {

struct PushReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string header(const std::string& name) const;  // empty when it is not there
};

class PushClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  PushClient();
  ~PushClient();
  // HOST:PORT; may change between pushes (a node that was started again).
  void connect_to(const std::string& address) { address_ = address; }
  // Nothing when the connection broke, or no answer came in time: what became of it is not known.
  std::optional<PushReply> push(const std::string& body, const Headers& headers = {},
                                const std::string& path = "/write?precision=s",
                                std::chrono::milliseconds patience = std::chrono::seconds(20));

 private:
  struct Connection;
  std::string address_;
  std::unique_ptr<Connection> connection_;
};

// As the program of that name makes it.
std::string gzip(const std::string& plain);

}  // namespace orla::behaviour
