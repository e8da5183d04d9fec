// The aggregator between its children and its parent, as a state machine: parts in, merged frames out,
// acknowledgements and refusals taken apart on the way down. docs/protocol.md, "Relays". It acknowledges nothing
// itself, keeps nothing on disk and may die at any time. Every level of aggregators runs the same core.
//
// Events in, actions out, in the order they have to be done. No I/O, no clock. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "link/carrier.h"
#include "link/messages.h"
#include "model/chunk.h"

namespace orla::link {

struct RelaySettings {
  std::size_t frame_bytes = 1U << 20U;  // parts are merged into frames of about this size
  std::chrono::nanoseconds max_delay = std::chrono::milliseconds(50);  // how long a part waits for others to merge with
  std::uint64_t credit_bytes = 8U << 20U;  // what children were told; one that overdraws it twice over is refused
  std::size_t max_opens = 65'536;          // unanswered OpenEpochs, one per child and node; more are ignored
};

class RelayCore {
 public:
  // Decoded rows of a part and its blocks of samples, GroupIds of the relay's own dictionary. Shared by the part and
  // the frames made of it.
  using Rows = std::shared_ptr<const model::Content>;

  // Merge the rows, put the blocks one after the other, send them as one frame of this id on the session.
  struct SendFrame {
    std::uint64_t id = 0;
    std::vector<model::Range> ranges;
    std::vector<Rows> rows;
  };
  struct SendOpen {
    OpenEpoch message;
  };
  struct ToChild {
    ConnectionId child{};
    DownMessage message;
  };
  using Action = std::variant<SendFrame, SendOpen, ToChild>;

  explicit RelayCore(RelaySettings settings);

  void child_up(ConnectionId child);
  // Its parts that are not in flight are dropped: the child sends them again wherever it goes.
  void child_down(ConnectionId child);
  // A child's frame. `bytes` as wire_bytes(FrameMessage) said.
  void frame(base::SteadyTime now, ConnectionId child, std::uint64_t id, std::vector<model::Range> ranges, Rows rows,
             std::size_t bytes);
  // A child's frame that cannot be decoded.
  void unreadable(ConnectionId child, std::uint64_t id, std::string why);
  void open(ConnectionId child, const OpenEpoch& message);

  void session_up(base::SteadyTime now, std::uint64_t credit_bytes);
  // What was in flight is queued again and may be merged differently.
  void session_down();
  // Acknowledge, Refused or Opened; anything else is ignored.
  void received(base::SteadyTime now, const DownMessage& message);
  void tick(base::SteadyTime now);

  std::vector<Action> take_actions();

  std::size_t held_parts() const { return parts_.size(); }
  std::uint64_t held_bytes() const { return held_bytes_; }
  bool idle() const { return parts_.empty(); }

  // In chunks: received == applied + duplicate + refused + dropped + pending (what is held).
  struct Counters {
    std::uint64_t received = 0;
    std::uint64_t applied = 0;        // acknowledged while a frame that held them was in flight
    std::uint64_t duplicate = 0;      // covered otherwise
    std::uint64_t refused = 0;        // handed back to the child
    std::uint64_t dropped = 0;        // of children that left
    std::uint64_t parts = 0;          // frames received
    std::uint64_t frames = 0;         // frames sent
    std::uint64_t splits = 0;         // frames taken apart after a refusal
    std::uint64_t malformed = 0;      // frames refused here
    std::uint64_t overdrawn = 0;      // frames beyond the credit, refused here
    std::uint64_t opens_ignored = 0;  // OpenEpochs beyond max_opens
  };
  const Counters& counters() const { return counters_; }
  std::uint64_t pending_chunks() const;

 private:
  using PartId = std::uint64_t;  // in order of arrival
  struct Part {
    ConnectionId child{};
    std::uint64_t child_frame = 0;
    std::vector<model::Range> ranges;
    std::vector<char> covered;  // per range: folded in at the cloud
    Rows rows;
    std::size_t bytes = 0;
    base::SteadyTime arrived{};
    std::uint64_t frame = 0;  // in flight in this frame; 0 = queued
    bool alone = false;       // was in a refused frame: has to go by itself
    bool orphan = false;      // the child has left: nobody to hand it back to
    bool doomed = false;      // a part before it was handed back: when its frame is refused, so is it
  };
  struct Child {
    std::uint64_t held_bytes = 0;
    std::set<model::NodeName> origins;  // whose chunks it sent
  };
  struct Opening {
    ConnectionId child{};
    OpenEpoch message;  // with the child's request id
  };
  struct Flight {
    std::vector<PartId> parts;  // still held
    bool merged = false;        // was made of several
  };
  struct OriginParts {
    std::set<PartId> held;
    std::set<PartId> in_flight;
  };

  void pump(base::SteadyTime now);
  bool due(base::SteadyTime now) const;
  bool send_frame();
  bool sendable(PartId id, const Part& part, const std::set<model::NodeName>& blocked) const;
  void take_off(PartId id, std::uint64_t frame);
  void queue_again(PartId id);
  void apply(const std::vector<model::Cursor>& cursors);
  void refused(const Refused& message);
  void hand_back(PartId id, RefusalReason reason, const Refused& message);
  bool earlier_held(PartId id) const;
  void forget(PartId id);
  static const model::Range& range_of(const Part& part, const model::NodeName& node);
  static std::uint64_t chunks_of(const Part& part);

  RelaySettings settings_;
  std::map<ConnectionId, Child> children_;
  std::map<PartId, Part> parts_;
  std::map<model::NodeName, OriginParts> by_origin_;
  std::map<model::NodeName, std::set<ConnectionId>> routes_;  // which children sent an origin's chunks
  std::set<PartId> queued_;
  std::map<std::uint64_t, Flight> frames_;
  std::map<std::uint64_t, Opening> openings_;  // by own request id
  PartId last_part_ = 0;
  std::uint64_t last_frame_ = 0;
  std::uint64_t last_request_ = 0;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t queued_bytes_ = 0;
  std::size_t queued_alone_ = 0;
  std::uint64_t in_flight_bytes_ = 0;
  bool session_ = false;
  std::uint64_t credit_ = 0;
  std::vector<Action> actions_;
  Counters counters_;
};

}  // namespace orla::link
