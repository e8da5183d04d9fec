// The edge's outbox as a state machine: numbers, what is in flight, what the cloud has acknowledged, what to do when it
// refuses. docs/protocol.md, "Origins". It knows numbers and sizes, never contents; the owner keeps those (EdgeStore,
// or memory).
//
// Events in, actions out, in the order they have to be done, before the next event. No I/O, no clock. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "link/messages.h"
#include "model/chunk.h"
#include "model/fleet.h"

namespace orla::link {

struct OriginSettings {
  model::NodeName node;
  model::Durability durability = model::Durability::kDisk;
  // Pause after a refusal that says "later", and after an alarm; it doubles up to retry_max.
  std::chrono::nanoseconds retry_min = std::chrono::milliseconds(200);
  std::chrono::nanoseconds retry_max = std::chrono::seconds(60);
  // An OpenEpoch without an answer is sent again (it is idempotent).
  std::chrono::nanoseconds open_timeout = std::chrono::seconds(5);
};

// The outbox as it is kept. Disk edges restore it at the start.
struct OriginState {
  model::Epoch epoch{};               // 0: none yet
  model::Sequence next_sequence = 1;  // of the next chunk to seal
  model::Sequence acknowledged = 0;
  base::Digest chain;  // after chunk next_sequence-1
  // (sequence, bytes) of acknowledged+1 .. next_sequence-1, ascending. Earlier ones are ignored.
  std::vector<std::pair<model::Sequence, std::size_t>> outbox;
  // Disk. Chunks that were sent may be missing at the end, so numbers could be used twice: a new epoch is opened before
  // anything is sealed. With epoch 0: what the epoch was is not known.
  bool reopen = false;
};

class OriginCore {
 public:
  // Send this chunk as a frame of this id on the session.
  struct SendChunk {
    std::uint64_t frame = 0;
    model::Sequence sequence = 0;
  };
  struct SendOpen {
    OpenEpoch message;
  };
  // The cloud has folded everything up to `through`: drop it, acknowledge its senders (memory). Of the numbers up to it
  // that are tombstones here, those in `tombstones` (see contains()) stand as such; of the others the cloud had the
  // original.
  struct Trim {
    model::Sequence through = 0;
    std::vector<model::SequenceRange> tombstones;
  };
  // Disk. The epoch was closed at the cloud, which has its chunks up to `folded`. In one transaction: the chunks beyond
  // get the numbers 1, 2, ... of `epoch` and replace the outbox; then call renumbered().
  struct Renumber {
    model::Epoch epoch{};
    model::Sequence folded = 0;
  };
  // Memory. The epoch is open: start the engine from `states` (what the cloud has; empty = from nothing), then read
  // the inputs from there. The first chunk must carry a snapshot.
  struct Started {
    model::Epoch epoch{};
    std::vector<model::StateEntry> states;
    std::vector<model::Loss> losses;  // what stands as tombstones at the cloud, of all epochs
  };
  // Memory. Another start of this node closed the epoch: forget engine, inputs and chunks, and wait for Started.
  struct EpochLost {
    std::string reason;
  };
  // For a person. Said once per cause until it is over.
  struct Alarm {
    enum class Kind : std::uint8_t { kCloudLostData, kClonedNode, kMalformed, kUnreadable, kEpochClosed, kLostChunks };
    Kind kind{};
    std::string text;
  };
  using Action = std::variant<SendChunk, SendOpen, Trim, Renumber, Started, EpochLost, Alarm>;

  // `random` outlives the core.
  OriginCore(OriginSettings settings, base::Random& random);

  // Once, before anything else. Disk: with what is kept; epoch 0 makes the core choose one, which the owner keeps with
  // its next commit, before anything is sent. Memory: with an empty state.
  void start(const OriginState& state);

  // Chunks can be sealed. Memory: the epoch stands. Disk: always, unless it has to be opened anew; what is sealed while
  // an epoch closed by another start is replaced is renumbered with the rest.
  bool ready() const {
    return phase_ == Phase::kReady || (settings_.durability == model::Durability::kDisk && !reopen_);
  }
  // The epoch stands: nothing has to be opened or renumbered.
  bool settled() const { return phase_ == Phase::kReady; }
  model::Epoch epoch() const { return epoch_; }
  model::Sequence next_sequence() const { return next_sequence_; }
  model::Sequence acknowledged() const { return acknowledged_; }
  const base::Digest& chain() const { return chain_; }
  // Chunks from here on were certainly never sent, and may be coalesced.
  model::Sequence first_unsent() const { return first_unsent_; }
  bool drained() const { return acknowledged_ + 1 == next_sequence_; }
  std::uint64_t pending_chunks() const { return next_sequence_ - 1 - acknowledged_; }
  std::uint64_t pending_bytes() const { return pending_bytes_; }

  // Chunk next_sequence() is kept (disk: committed). ready().
  void sealed(base::SteadyTime now, std::size_t bytes, const base::Digest& chain_after);
  // The chunk's rows are gone for good: this is what its tombstone takes. It keeps its number and its chain.
  void lost(model::Sequence sequence, std::size_t bytes);
  void session_up(base::SteadyTime now, std::uint64_t credit_bytes);
  void session_down();
  // Acknowledge, Refused or Opened; anything else is ignored.
  void received(base::SteadyTime now, const DownMessage& message);
  // The answer to Renumber.
  void renumbered(base::SteadyTime now, const OriginState& state);
  void renumber_failed(base::SteadyTime now);
  // A chunk asked for with SendChunk cannot be read now: an error of the disk that may pass (rows that are lost are
  // sent as a tombstone). It is asked for again later, and what is beyond it after it (the SendChunks that came
  // together with this one may be done or left).
  void unreadable(base::SteadyTime now, model::Sequence sequence, const std::string& why);
  void tick(base::SteadyTime now);

  std::vector<Action> take_actions();

  struct Counters {
    std::uint64_t chunks_sent = 0;
    std::uint64_t chunks_resent = 0;
    std::uint64_t refused = 0;
    std::uint64_t epochs_opened = 0;
    std::uint64_t alarms = 0;
  };
  const Counters& counters() const { return counters_; }
  // Why nothing is sent although there is something to send; empty when all is well.
  const std::string& stalled() const { return stalled_; }

 private:
  enum class Phase : std::uint8_t {
    kReady,       // the epoch stands
    kOpening,     // waiting for Opened, or for the session to ask
    kRenumbering  // Renumber is out
  };
  struct Kept {
    std::size_t bytes = 0;
    std::optional<base::Digest> chain_after;  // known for chunks sealed since the start
  };
  struct InFlight {
    std::uint64_t frame = 0;
    model::Sequence sequence = 0;
    std::size_t bytes = 0;
  };

  void adopt(const OriginState& state);
  void trim(model::Sequence through, const std::vector<model::SequenceRange>& tombstones);
  void pump(base::SteadyTime now);
  void acknowledge(const model::Cursor& cursor);
  void refused(base::SteadyTime now, const Refused& message);
  void judge(base::SteadyTime now, const Refused& message, const InFlight& frame);
  void opened(base::SteadyTime now, const Opened& message);
  void not_opened(base::SteadyTime now, const Opened& message);
  void epoch_closed(base::SteadyTime now, const model::Cursor& current);
  void ask(base::SteadyTime now);
  void finish_rewind(base::SteadyTime now);
  void back_off(base::SteadyTime now);
  std::chrono::nanoseconds jittered(std::chrono::nanoseconds d);
  model::Epoch new_epoch();
  void alarm(Alarm::Kind kind, std::string text);
  // The cursor contradicts what this edge has sealed.
  bool contradicts(const model::Cursor& cursor) const;
  std::string name() const;

  OriginSettings settings_;
  base::Random& random_;
  Phase phase_ = Phase::kOpening;
  model::Epoch epoch_{};
  model::Sequence next_sequence_ = 1;
  model::Sequence acknowledged_ = 0;
  base::Digest chain_;
  std::map<model::Sequence, Kept> outbox_;
  std::uint64_t pending_bytes_ = 0;
  model::Sequence first_unsent_ = 1;

  bool session_ = false;
  std::uint64_t credit_ = 0;
  std::uint64_t last_frame_ = 0;
  std::deque<InFlight> in_flight_;
  std::uint64_t in_flight_bytes_ = 0;
  model::Sequence next_to_send_ = 1;
  bool rewinding_ = false;  // a frame was refused: wait until nothing is in flight, then go on after the cursor
  bool pause_ = false;      // ... after a pause
  std::optional<model::Sequence> rewound_at_;  // `acknowledged` when it last went back: again there is no progress
  bool confirmed_ = false;                     // a chunk of this session was acknowledged: the whole credit may be used
  base::SteadyTime not_before_{};
  std::chrono::nanoseconds backoff_{};

  // Opening an epoch.
  model::Epoch wanted_{};
  model::Epoch replaces_{};
  std::uint64_t last_request_ = 0;
  bool asked_ = false;
  base::SteadyTime asked_at_{};
  int asks_ = 0;                           // of this opening
  bool folded_known_ = false;              // disk: how far the cloud has the closed epoch is settled:
  std::optional<model::Sequence> folded_;  // nothing: it never saw it
  std::vector<model::SequenceRange> folded_tombstones_;
  bool reopen_ = false;  // nothing is sealed until the new epoch is open
  model::Sequence renumber_after_ = 0;
  std::optional<base::SteadyTime> closed_at_;  // when an epoch of this node was last closed by another
  std::chrono::nanoseconds takeover_backoff_{};

  std::optional<Alarm::Kind> alarmed_;
  std::string stalled_;
  std::vector<Action> actions_;
  Counters counters_;
};

}  // namespace orla::link
