// What an edge commits, and what it is restored from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/batch.h"
#include "model/chunk.h"

namespace orla::model {

struct HeldSample {
  Time time{};
  double value = 0;
  std::uint32_t input = 0;  // index of the edge's input, for its ledger
  friend bool operator==(const HeldSample&, const HeldSample&) = default;
};

struct SeriesState {
  SeriesId series{};
  Time watermark = kMinTime;     // largest accepted event time
  std::uint32_t input = 0;       // index of the edge's input that delivered it last
  std::vector<HeldSample> held;  // at most 2, in order of arrival
  friend bool operator==(const SeriesState&, const SeriesState&) = default;
};

// Open rows of the stream's slices ending at or before the time are gone. kMaxTime: all of them.
struct SealedStream {
  std::string stream;  // name, whatever the definition
  Time time{};
  friend bool operator==(const SealedStream&, const SealedStream&) = default;
};

struct InputState {
  std::string key;
  Position position;
  bool ended = false;
  Ledger ledger;
  Time newest = kMinTime;  // newest accepted event time of the input
  friend bool operator==(const InputState&, const InputState&) = default;
};

// How far a producer of pushed samples has come: what it sends again at or below is a duplicate.
struct ProducerState {
  std::string producer;
  std::uint32_t input = 0;  // index of the edge's input
  std::uint64_t sequence = 0;
  friend bool operator==(const ProducerState&, const ProducerState&) = default;
};

// Rows and states of series leave an engine, and are encoded, so many at a time: a million are never in memory twice.
inline constexpr std::size_t kPiece = 4'096;

// A change of an edge's state since the commit before; as a snapshot, the whole state. Applying a snapshot and the
// changes after it in order gives the state. Everything is absolute (a value replaces the one before), nothing is added
// up. Inputs are numbered in the order in which they were first listed in `inputs`.
struct EdgeState {
  bool snapshot = false;
  std::vector<Series> new_series;    // numbers continue: series known before, then these
  std::vector<GroupDef> new_groups;  // likewise
  std::vector<SealedStream> sealed;  // applied first; sorted by stream
  bool sealed_everything = false;    // applied first: all open rows are gone
  PartialRows open;                  // then: these open rows have these contents
  std::vector<SeriesState> series;
  std::vector<InputState> inputs;
  std::vector<ProducerState> producers;  // sorted by (input, producer)
  std::vector<Publication> publications;
  friend bool operator==(const EdgeState&, const EdgeState&) = default;
};

}  // namespace orla::model
