// What the sensors of `orla bench ladder` measure: plugs that report a load every second, from a seed. Frames of it,
// and what the cloud has to show at the end.
//
// Of ten plugs four are idle (a constant, changed now and then), four draw a steady load with a few bits of noise, and
// two a noisy one. Everything follows from the seed, the plug and the second by integer arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/batch.h"

namespace orla::apps {

// The first second of all: 2013-09-01T00:00:00Z.
inline constexpr std::int64_t kLadderStart = 1'377'993'600;

enum class LadderOrder : std::uint8_t {
  kSorted,  // by plug in a batch, see runs_of()
  kRandom   // by second, the plugs of each in an order of its own
};

enum class LadderValues : std::uint8_t {
  kPlugs,  // see above
  kWide    // anything up to 4 kW, each value far from the one before
};

struct LadderLoad {
  std::uint64_t seed = 1;
  std::uint32_t plugs = 0;     // of all edges
  std::uint32_t edges = 1;     // edge e has the plugs p with p % edges == e
  std::uint32_t batch = 1000;  // measurements in a frame
  LadderOrder order = LadderOrder::kSorted;
  std::int64_t seconds = 0;  // of every plug; a multiple of run_length()
  LadderValues values = LadderValues::kPlugs;

  // Sorted: consecutive measurements of a plug in a batch. At least 100 in batches of 100 and more, else all of it.
  std::uint32_t run_length() const;
};

// Thousandths of a watt.
std::int32_t ladder_value(const LadderLoad& load, std::uint32_t plug, std::int64_t second);

// The plugs of an edge, ascending: series number k of its batches is plug edge_plugs()[k].
std::vector<std::uint32_t> edge_plugs(const LadderLoad& load, std::uint32_t edge);

// Calls `frame` with one batch after another, as the edge's sensors deliver them, until it returns false or all is
// delivered.
void ladder_batches(const LadderLoad& load, std::uint32_t edge,
                    const std::function<bool(const model::Batch& batch)>& frame);

struct LadderCell {
  std::uint64_t count = 0;
  std::int64_t sum = 0;  // thousandths
  std::int32_t min = INT32_MAX;
  std::int32_t max = INT32_MIN;
};
// By window of `window_s` seconds from kLadderStart on, what a plug's measurements of it come to; one by one.
std::vector<LadderCell> ladder_truth(const LadderLoad& load, std::uint32_t plug, std::int64_t window_s);

}  // namespace orla::apps
