// The client's side of a call of an http-mode process, where it does not come all at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <thread>

#include "function/call.h"

namespace orla::function {

// Sends a body that comes piece by piece, on a thread of its own: reading it blocks. The destructor ends it.
class Upload {
 public:
  enum class Form : std::uint8_t {
    kPlain,
    kChunked,
    kTunnel  // bytes of another protocol, whose end is the connection's
  };
  Upload(RequestBody& body, int socket, Form form);
  ~Upload() { stop(); }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Nobody wants the rest.
  void stop();
  bool done() const { return done_; }        // the whole of it was sent
  bool no_body() const { return no_body_; }  // the client's side broke

 private:
  void run();
  bool send(std::string_view bytes);

  RequestBody& body_;
  const int socket_;
  const Form form_;
  std::atomic<bool> stopping_{false}, done_{false}, no_body_{false};
  std::thread thread_;  // last: it uses all above
};

}  // namespace orla::function
