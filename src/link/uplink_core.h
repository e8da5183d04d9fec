// The child's session with its parent, as a state machine: which parent, when to connect, greetings, heartbeats, when
// a parent counts as dead, when to go back to a better one. docs/protocol.md, "Sessions".
//
// Events in (methods, the time is an argument), actions out (take_actions(), in the order they have to be done). No
// I/O, no clock. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/random.h"
#include "link/messages.h"
#include "model/fleet.h"

namespace orla::link {

struct ParentCandidate {
  model::NodeName node;
  std::string address;
};

struct UplinkSettings {
  std::string fleet;
  model::NodeName node;
  model::Layer layer = model::Layer::kEdge;
  // Groups in order of preference. Within a group the order is by rendezvous hash of (node, candidate), so that
  // children spread evenly, and those of a dead parent spread over all the others.
  std::vector<std::vector<ParentCandidate>> parents;

  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(2);   // until Welcome
  std::chrono::nanoseconds heartbeat = std::chrono::milliseconds(500);  // a Welcome may ask for a shorter one
  std::chrono::nanoseconds parent_timeout = std::chrono::seconds(2);    // without any message: the parent is dead
  std::chrono::nanoseconds backoff_min = std::chrono::milliseconds(200);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(10);
  std::chrono::nanoseconds rejected_backoff = std::chrono::seconds(60);  // after Rejected
  std::chrono::nanoseconds stable_after = std::chrono::seconds(10);      // a session this old, or one that made
                                                                         // progress, resets its parent's backoff
  // A better parent is tried once within a new session's first 1 to 9 return_first (spread evenly, so that those of a
  // dead parent do not come back together), then every return_after.
  std::chrono::nanoseconds return_first = std::chrono::seconds(1);
  std::chrono::nanoseconds return_after = std::chrono::seconds(30);
};

class UplinkCore {
 public:
  // Names one try to connect, and the connection that comes of it. Never reused; 0 is none.
  enum class Attempt : std::uint64_t {};

  struct Connect {
    Attempt attempt{};
    ParentCandidate to;
  };
  struct Send {
    Attempt attempt{};
    UpMessage message;
  };
  struct Close {
    Attempt attempt{};
  };
  // The session stands: everything unacknowledged has to be sent again on it, from frame id 1.
  struct SessionUp {
    model::NodeName parent;
    std::uint64_t credit_bytes = 0;
  };
  struct SessionDown {
    model::NodeName parent;
    std::string reason;
  };
  // A message of the session that is not the session's own business.
  struct Deliver {
    DownMessage message;
  };
  // For a person: a parent that rejects this node.
  struct Trouble {
    std::string text;
  };
  using Action = std::variant<Connect, Send, Close, SessionUp, SessionDown, Deliver, Trouble>;

  // `random` outlives the core. settings.parents may be empty (a cloud): then nothing ever happens.
  UplinkCore(UplinkSettings settings, base::Random& random);

  void start(base::SteadyTime now);
  void connected(Attempt attempt);
  void received(base::SteadyTime now, Attempt attempt, DownMessage message);
  void closed(base::SteadyTime now, Attempt attempt, const absl::Status& why);
  // At least every heartbeat/4.
  void tick(base::SteadyTime now);
  // This node itself did nothing for so long, until now: the parent's silence meanwhile says nothing about the parent.
  void slept(base::SteadyTime now, std::chrono::nanoseconds time);
  // Sends on the session. Dropped when there is none (SessionDown tells).
  void send(UpMessage message);
  // Ends the session and begins a new one, for a node whose dictionary starts anew.
  void reconnect(base::SteadyTime now, std::string reason);
  // Something the session carried has arrived at the cloud: its parent is worth coming back to at once. So says an
  // Acknowledge too.
  void progressed();
  // Closes everything; nothing follows.
  void stop();

  std::vector<Action> take_actions();

  bool up() const { return session_.has_value(); }
  // Of the session; empty without one.
  model::NodeName parent() const;
  // In the order this node tries them.
  const std::vector<ParentCandidate>& preference() const { return preference_; }

  struct Counters {
    std::uint64_t attempts = 0;
    std::uint64_t sessions = 0;
    std::uint64_t failovers = 0;  // sessions with another parent than the one before
    std::uint64_t timeouts = 0;   // parents that fell silent, and connects that took too long
    std::uint64_t rejections = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Connection {
    Attempt attempt{};
    std::size_t candidate = 0;  // index into preference_
    base::SteadyTime started{};
    bool greeted = false;  // Hello sent
  };
  struct Session {
    Attempt attempt{};
    std::size_t candidate = 0;
    base::SteadyTime since{};
    base::SteadyTime heard{};
    base::SteadyTime sent{};  // the last heartbeat
    std::chrono::nanoseconds heartbeat{};
    base::SteadyTime next_return{};
    bool progressed = false;
  };
  struct Health {
    std::chrono::nanoseconds backoff{};  // 0: nothing bad known
    base::SteadyTime not_before{};
  };

  void dial(base::SteadyTime now, std::size_t candidate);
  void dial_next(base::SteadyTime now);
  void failed(base::SteadyTime now, std::size_t candidate);
  void welcome(base::SteadyTime now, const Connection& connection, const Welcome& message);
  void end_session(base::SteadyTime now, std::string reason);
  std::chrono::nanoseconds jittered(std::chrono::nanoseconds d);

  UplinkSettings settings_;
  base::Random& random_;
  std::vector<ParentCandidate> preference_;
  std::vector<Health> health_;
  std::optional<Connection> dialing_;  // without a session: the next parent; with one: a better parent on probation
  std::optional<Session> session_;
  bool started_ = false;
  base::SteadyTime dial_not_before_{};
  std::optional<std::size_t> lost_;  // whose session has just ended: the others are tried before it
  std::uint64_t last_attempt_ = 0;
  model::NodeName last_parent_;
  std::vector<Action> actions_;
  Counters counters_;
};

}  // namespace orla::link
