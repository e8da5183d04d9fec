// What an origin says beside its partials, to bytes and back. The format is at the head of note.cc.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/chunk.h"

namespace orla::codec {

// Publications are sorted by metric, each once; in a tombstone first <= last.
std::string encode_note(const model::OriginNote& note);
absl::StatusOr<model::OriginNote> decode_note(std::string_view bytes);

}  // namespace orla::codec
