// The cloud's cursors, as a state machine: which frame is folded in, which is refused, who is told what once it is
// durable. docs/protocol.md, "The root".
//
// The owner, per frame: offer(); on kFold fold the rows into its engine, then folded() - or, if the engine cannot take
// them, refuse(). Every so often, when dirty(): commit the engine's changes together with changes() in one
// transaction, then committed(). Between the two the tentative cursors decide, and nothing tentative is told to
// anybody.
//
// Events in, actions out, in the order they have to be done. No I/O, no clock. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "link/carrier.h"
#include "link/messages.h"
#include "model/chunk.h"

namespace orla::link {

// The newest closed epochs of a node that the cloud remembers, with their last cursor. A forgotten one is treated as
// closed with an unknown cursor; it can never become current again.
inline constexpr std::size_t kMaxClosedEpochs = 256;
// Origins the cloud keeps cursors for. A frame of one more is refused (kFull).
inline constexpr std::size_t kMaxOrigins = 1'000'000;

struct ClosedOrigin {
  model::NodeName node;
  model::Epoch epoch{};
  model::Sequence last = 0;
  std::vector<model::SequenceRange> tombstones = {};  // as of its last cursor
  friend bool operator==(const ClosedOrigin&, const ClosedOrigin&) = default;
};

class RootCore {
 public:
  struct ToChild {
    ConnectionId child{};
    DownMessage message;  // Acknowledge or Refused
  };
  // Send this Opened, with what the store keeps of the node's acceptance state as `states`, and its losses, when
  // message.opened.
  struct AnswerOpen {
    ConnectionId child{};
    model::NodeName node;
    Opened message;
  };
  // For a person: a cloned node, an epoch closed by force.
  struct Alarm {
    std::string text;
  };
  using Action = std::variant<ToChild, AnswerOpen, Alarm>;

  enum class Verdict : std::uint8_t {
    kFold,     // fold the rows in, then call folded() (or refuse())
    kAnswered  // nothing to do: refused, or will be once the open commit is through
  };

  // `cursors` and `closed` as committed (closed: per node in the order of closing).
  RootCore(const std::vector<model::Cursor>& cursors, const std::vector<ClosedOrigin>& closed);

  Verdict offer(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges);
  // The rows of the frame just offered are in the engine.
  void folded(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges);
  // They are not, nothing of them: kFull or kMalformed. Also for frames that cannot be decoded (instead of offer()).
  void refuse(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges, RefusalReason reason,
              std::string why);
  void open(ConnectionId child, const OpenEpoch& message);
  // Nothing more is said to it.
  void child_down(ConnectionId child);

  // Something waits for a commit.
  bool dirty() const;
  struct Changes {
    std::vector<model::Cursor> cursors;  // new values of those that changed
    std::vector<ClosedOrigin> closed;
  };
  // What to commit, and from here to committed() nothing is added: frames are refused (kFull), OpenEpochs wait. May be
  // called again.
  Changes changes();
  // changes() are durable, together with everything folded since the commit before.
  void committed();
  // The commit failed for good and the owner has thrown away everything folded since the one before: the senders are
  // asked to send again later.
  void rolled_back(const std::string& why);

  std::vector<Action> take_actions();

  // Committed. Epoch 0 when the node has none.
  model::Cursor cursor(const model::NodeName& node) const;

  // In chunks: received == applied + duplicate + refused + pending.
  struct Counters {
    std::uint64_t received = 0;
    std::uint64_t applied = 0;    // durable
    std::uint64_t duplicate = 0;  // already folded in, or of a closed epoch
    std::uint64_t refused = 0;    // gaps, digests, bounds, malformed: have to come again
    std::uint64_t pending = 0;    // waiting for a commit
    std::uint64_t frames = 0;
    std::uint64_t frames_refused = 0;
    std::uint64_t epochs_opened = 0;
    std::uint64_t opens_refused = 0;
    std::uint64_t alarms = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Closed {
    model::Epoch epoch{};
    model::Sequence last = 0;
    base::Digest chain;  // known until the commit
    std::vector<model::SequenceRange> tombstones;
  };
  struct Origin {
    model::Cursor committed;
    model::Cursor tentative;
    std::deque<Closed> closed;             // committed
    std::vector<Closed> closed_tentative;  // since the commit before
  };
  struct Label {  // a range without its note
    model::NodeName node;
    model::Epoch epoch{};
    model::Sequence first = 0;
    model::Sequence last = 0;
  };
  struct PendingFrame {
    ConnectionId child{};
    bool child_left = false;
    std::uint64_t frame = 0;
    std::vector<Label> labels;
    std::string why;
  };
  struct PendingOpen {
    ConnectionId child{};
    OpenEpoch message;
  };
  enum class Match : std::uint8_t { kNext, kOther, kDigest, kFull };

  static std::vector<Label> labels_of(const std::vector<model::Range>& ranges);
  Match match(const model::Range& range) const;
  bool undecided(const model::NodeName& node) const { return changed_.contains(node); }
  void answer(const PendingFrame& frame, RefusalReason reason, const std::string& why);
  void answer_open(const PendingOpen& open);
  void alarm(std::string text);

  std::map<model::NodeName, Origin> origins_;
  std::set<model::NodeName> changed_;
  std::vector<PendingFrame> folded_;                               // acknowledged after the commit
  std::vector<PendingFrame> waiting_;                              // refused after the commit
  std::vector<PendingOpen> opens_;                                 // answered after the commit
  std::vector<PendingOpen> next_;                                  // looked at after the commit
  bool committing_ = false;                                        // between changes() and its outcome
  std::optional<std::pair<ConnectionId, std::uint64_t>> offered_;  // the frame with the owner
  std::vector<Action> actions_;
  Counters counters_;
};

}  // namespace orla::link
