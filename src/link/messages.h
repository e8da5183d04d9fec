// The messages between a child and its parent, as values. proto/link.proto is the same contract on the wire and holds
// the full text; docs/protocol.md says what is done with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/chunk.h"
#include "model/fleet.h"
#include "model/loss.h"

namespace orla::link {

inline constexpr std::uint32_t kProtocolMajor = 3;
inline constexpr std::uint32_t kProtocolMinor = 0;

// ---- child to parent ----

// First message of a connection.
struct Hello {
  std::uint32_t major = kProtocolMajor;
  std::uint32_t minor = kProtocolMinor;
  std::string fleet;
  model::NodeName node;
  model::Layer layer = model::Layer::kEdge;
  friend bool operator==(const Hello&, const Hello&) = default;
};

// Numbers that later frames of this connection use; each number is defined once per connection.
struct Dictionary {
  struct Entry {
    model::GroupId id{};
    model::GroupDef group;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;
  friend bool operator==(const Dictionary&, const Dictionary&) = default;
};

// One or more whole chunks, merged. Ids rise by one per connection, from 1.
struct FrameMessage {
  std::uint64_t id = 0;
  std::vector<model::Range> ranges;  // sorted by node, each node once, never empty
  std::string rows;                  // codec::encode_content, GroupIds of this connection's dictionary
  friend bool operator==(const FrameMessage&, const FrameMessage&) = default;
};

// An edge opens an epoch at the cloud: a compare-and-swap on the one it replaces. Idempotent per (node, epoch).
struct OpenEpoch {
  std::uint64_t request = 0;  // chosen by the child, unique per connection
  model::NodeName node;
  model::Epoch epoch{};
  model::Epoch replaces{};  // 0: the node has none at the cloud
  friend bool operator==(const OpenEpoch&, const OpenEpoch&) = default;
};

struct Heartbeat {
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

using UpMessage = std::variant<Hello, Dictionary, FrameMessage, OpenEpoch, Heartbeat>;

// ---- parent to child ----

// Answer to Hello.
struct Welcome {
  std::uint32_t major = kProtocolMajor;
  std::uint32_t minor = kProtocolMinor;
  model::NodeName node;
  std::int64_t heartbeat_ms = 0;  // both sides send one that often
  std::uint64_t credit_bytes =
      0;  // bytes of frames a child may have unresolved (neither covered by a cursor nor refused)
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The cloud has folded these origins in that far. Cursors of an (origin, epoch) only rise.
struct Acknowledge {
  std::vector<model::Cursor> cursors;
  friend bool operator==(const Acknowledge&, const Acknowledge&) = default;
};

enum class RefusalReason : std::uint8_t {
  kCursor,     // a range does not start at cursor+1 of the current epoch: `cursors` says where it has to start
  kDigest,     // the chain before a range is not the cloud's: a cloned node or a damaged outbox; an alarm
  kFull,       // a named bound (parked partials, disk): nothing was changed, send again later
  kMalformed,  // the content cannot be decoded or contradicts itself: an alarm, never sent again as it is
};

// Nothing of the frame was folded in. For every origin of the frame: its current cursor (epoch 0 when it has none).
struct Refused {
  std::uint64_t frame = 0;
  RefusalReason reason = RefusalReason::kCursor;
  std::vector<model::Cursor> cursors;
  std::string message;
  friend bool operator==(const Refused&, const Refused&) = default;
};

// Answer to OpenEpoch.
struct Opened {
  std::uint64_t request = 0;
  bool opened = false;    // false: `current` is another epoch than the request's `replaces`
  model::Cursor current;  // after the request
  std::optional<model::Sequence>
      replaced_last;                      // cursor of the request's `replaces` when it was closed (now or before)
  std::vector<model::StateEntry> states;  // what the cloud keeps of the node's acceptance state
  std::vector<model::SequenceRange> replaced_tombstones = {};  // as Cursor::tombstones, of `replaces`
  std::vector<model::Loss> losses = {};                        // of the node, all its epochs: what stands as tombstones
  friend bool operator==(const Opened&, const Opened&) = default;
};

// The connection is refused (another protocol major, another fleet, unknown node); it is closed after this.
struct Rejected {
  std::string message;
  friend bool operator==(const Rejected&, const Rejected&) = default;
};

using DownMessage = std::variant<Welcome, Acknowledge, Refused, Opened, Rejected, Heartbeat>;

// Approximate bytes on the wire, for credit and statistics.
std::size_t wire_bytes(const UpMessage& message);
std::size_t wire_bytes(const DownMessage& message);

}  // namespace orla::link
