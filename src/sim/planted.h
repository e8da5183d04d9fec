// Bugs that can be planted below or beside the real code, to see that the simulator notices each: in the stores, in the
// inputs, in the messages between real nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "store/edge_store.h"

namespace orla::sim {

enum class Bug : std::uint8_t {
  kNone,
  kLostWrite,          // a commit says it is durable and is not, until the next one
  kForgetJournal,      // an edge restores everything but its newest journal entry
  kForgetOpen,         // ... everything but its open slices
  kForgetAcceptance,   // ... everything but the watermarks and held samples of its series
  kCursorsApart,       // the cloud's cursors are durable and the windows of the same commit are not
  kTrimOnRead,         // an edge drops a chunk once it was read to be sent
  kSkipRows,           // an input loses a row
  kAcknowledgeEarly,   // the cloud acknowledges a frame before it has committed it
  kTrimOnRelay,        // an aggregator acknowledges a frame itself, and the edge trims
  kRenumber,           // after a restart an edge sends what is unacknowledged under a new number
  kMergeDefinitions,   // the cloud takes partials of another definition for its own
  kAcceptOverlap,      // the cloud folds in a frame that begins at or before its cursor
  kBlockOnLost,        // a chunk that is lost on disk is waited for instead of sent as a tombstone
  kStarve,             // heartbeats wait behind data
  kLoseState,          // a memory edge's state entry is lost on the way
  kNoSnapshot,         // an edge never takes a snapshot again: its journal grows for ever
  kForgetLate,         // the cloud is told of late samples without their set
  kKeepFailedSamples,  // raw samples of a commit that failed are kept, and come again with it
};

struct BugInfo {
  Bug bug{};
  std::string_view name;  // as --plant takes it
  std::string_view text;
};
// All of them, but for kNone.
std::span<const BugInfo> bugs();
std::string_view to_string(Bug bug);

// `store` with the bug, if it is one of an edge's store; else `store` itself.
std::unique_ptr<store::EdgeStore> plant(Bug bug, std::unique_ptr<store::EdgeStore> store);

}  // namespace orla::sim
