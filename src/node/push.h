// Pushed samples on their way from the HTTP server to the edge's loop, and what becomes of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ingest/line_protocol.h"
#include "model/batch.h"

namespace orla::node {

struct Push {
  // Its position is what it adds to that of the input.
  model::InputBatch batch;
  // What its series' numbers mean; null: the batch defines them itself.
  std::shared_ptr<const ingest::SeriesTable> series;
  std::size_t bytes = 0;  // of its body
};

struct PushOutcome {
  enum class Kind : std::uint8_t {
    kKept,       // durable: at an edge of durability `memory` the cloud has it, else the disk
    kDuplicate,  // a resend of what is durable; not counted again
    kBusy,       // not taken: the node cannot keep it now
    kTooMuch,    // not taken: a bound of what may wait, or of producers
    kUnknown,    // taken, and may be kept or not
  };
  Kind kind = Kind::kKept;
  std::string message;  // why not kKept
  // Of the samples taken, for the sender to know.
  std::uint64_t rejected = 0;  // beside what its batch says itself
  std::uint64_t late = 0;
  std::uint64_t unmatched = 0;
  std::uint64_t dropped = 0;
};

// Called once, on the node's loop.
using PushDone = std::function<void(const PushOutcome&)>;

}  // namespace orla::node
