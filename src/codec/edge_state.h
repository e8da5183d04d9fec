// An edge's state, or a change of it, to bytes and back: the entries of its journal. The format is at the head of
// edge_state.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/edge_state.h"

namespace orla::codec {

// state.open is canonical; state.series rises by id, publications by metric, sealed streams by name; at most 2 samples
// are held per series.
std::string encode_edge_state(const model::EdgeState& state);
// The same with the open rows in pieces, each encode_rows() of at most model::kRowsOfPiece of them; state.open is
// empty.
std::string encode_edge_state_of(const model::EdgeState& state, std::span<const std::string> open);
absl::StatusOr<model::EdgeState> decode_edge_state(std::string_view bytes);

}  // namespace orla::codec
