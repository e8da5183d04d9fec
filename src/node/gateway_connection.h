// One connection of the gateway: reads requests, starts what answers them, feeds their bodies, ends when the client is
// too slow. A state machine over a ConnectionSocket, on the socket's thread; as a Wire it is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "node/gateway_exchange.h"
#include "node/gateway_start.h"

namespace orla::node {

class Connection;

// The bytes under a connection, on one thread. Owned by the connection; what was begun keeps `self` alive.
class ConnectionSocket {
 public:
  virtual ~ConnectionSocket() = default;
  virtual int descriptor() const = 0;
  // Once something has come, or nothing will: self->on_read(). One at a time.
  virtual void read(std::shared_ptr<Connection> self, std::span<char> to) = 0;
  // All of it, then self->on_written().
  virtual void write(std::shared_ptr<Connection> self, std::string_view bytes) = 0;
  // self->step(), later, on the thread. Thread-safe.
  virtual void step_later(std::shared_ptr<Connection> self) = 0;
  // On the thread: now when this is it. Thread-safe.
  virtual void run(std::function<void()> task) = 0;
  virtual void end_sending() = 0;
  // Ends both ways, and is no longer one of the thread's connections. The descriptor is closed with the last reference:
  // a call may still write to it.
  virtual void end(const std::shared_ptr<Connection>& self) = 0;
};

enum class Gone : std::uint8_t { kNo, kEnded, kBroken };

class Connection final : public Wire, public std::enable_shared_from_this<Connection> {
 public:
  // `peer`: "127.0.0.1:50000". `random` lives as long as the socket.
  Connection(std::shared_ptr<GatewayCore> core, std::unique_ptr<ConnectionSocket> socket, std::string peer,
             base::Random& random);
  ~Connection() override { --core_->connections; }

  // --- On the thread.
  enum class Take : std::uint8_t { kServe, kRefuse };  // kRefuse: there are too many
  void start(Take take);
  void on_read(std::size_t bytes, Gone gone);
  void on_written(Gone gone);
  // Does whatever can be done with what has come.
  void step();
  // Every so often: looks at the time.

  void tick(base::SteadyTime now);

  // Breaks it off.
  void end();

  // --- As a Wire.
  int descriptor() const override { return socket_->descriptor(); }

  void released(After after) override;
  void answer(Answer answer) override;
  void break_off() override;
  void more_body() override;
  void upgraded() override;

 private:
  enum class State : std::uint8_t {
    kHead,    // reads a request's head
    kBody,    // reads its body whole
    kCall,    // the exchange has the response; the body is fed to it, what follows is kept
    kSkip,    // reads the rest of a body that nobody wants
    kAnswer,  // writes an answer of the gateway's own
    kLinger,  // has ended its side, reads what comes
    kEnded
  };
  enum class Turn : std::uint8_t { kOurs, kCalled, kReleased };

  std::string_view unread() const { return std::string_view(in_).substr(used_); }
  void set_deadline(std::chrono::nanoseconds patience);

  // --- Reading

  void read_more();

  // False: there is nothing more to do for now.
  bool read_head();

  // The head is there: what is it for, and how is its body read?
  void take_request();

  bool read_body();

  // --- The call

  void start_call();

  std::string start_time() const;

  // False: there is nothing more to do for now.
  bool attend_call();

  void feed();
  void feed_tunnel();

  void fail_stream(RequestFault what);

  void cancel(function::CancelReason reason);

  void leave_call();

  // Under the lock: the response is out.
  void resume();

  void next_request();

  bool skip_body();

  // --- The gateway's own answers

  void fault(RequestFault what);

  void reply(Answer answer);

  void send(Answer answer);

  // Our side has ended. What the client still sends is read for a while: closed at once, the kernel would throw away
  // what it has not read of the answer.
  void begin_linger();

  void linger();

  const std::shared_ptr<GatewayCore> core_;  // with the other connections
  const std::unique_ptr<ConnectionSocket> socket_;
  base::Random& random_;
  const std::string peer_;
  std::atomic<std::int64_t> deadline_{0};  // steady nanoseconds

  // On the thread.
  State state_ = State::kHead;
  RequestParser parser_;
  std::string in_;  // what has come; up to used_ it was dealt with
  std::size_t used_ = 0;
  std::vector<char> room_;  // where the socket is read to
  std::string out_;
  std::string body_;
  std::string piece_;
  RequestPlan plan_;
  base::SteadyTime request_began_{};
  std::size_t skipped_ = 0;
  bool reading_ = false;
  bool close_after_ = false;  // the answer that is written is the last
  bool gone_ = false;         // the client has ended its side, or the connection is broken
  bool broken_ = false;       // the latter, or as good as
  base::SteadyTime gone_at_{};
  bool begun_ = false;     // some of a request is there
  bool answered_ = false;  // it was used once
  bool streams_ = false;
  bool tunnels_ = false;  // another protocol than HTTP: what comes goes to the exchange as it is
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool http11_ = true;
  std::shared_ptr<Exchange> exchange_;  // with the host, while its call runs

  std::mutex mutex_;
  Turn turn_ = Turn::kOurs;  // guarded by mutex_, as all below
  bool backlog_ = false;     // something waits for the end of the call
  bool closes_ = false;
  bool body_done_ = true;  // changed on the thread only, during a call under mutex_
};

}  // namespace orla::node
