// An edge's state, or a change of it, to bytes and back: the entries of its journal. The format is at the head of
// edge_state.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/edge_state.h"

namespace orla::codec {

// state.open is canonical; state.series rises by id, publications by metric, sealed streams by name; at most 2 samples
// are held per series.
std::string encode_edge_state(const model::EdgeState& state);
// What is long of a state, encoded in pieces: each of at least one and, as encode_edge_state() makes them, at most
// model::kPiece, in order.
struct StatePieces {
  void add_series(std::span<const model::SeriesState> piece);
  void add_open(const model::PartialRows& piece);
  std::vector<std::string> series;
  std::vector<std::string> open;
};
// The same with the pieces in the place of state.series and state.open, which are empty.
std::string encode_edge_state_of(const model::EdgeState& state, const StatePieces& pieces);
absl::StatusOr<model::EdgeState> decode_edge_state(std::string_view bytes);

}  // namespace orla::codec
