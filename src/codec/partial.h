// One partial to bytes and back: the exact contents of a window that the cloud keeps. The format is at the head of
// partial.cc.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/partial.h"

namespace orla::codec {

// Equal partials give equal bytes.
std::string encode_partial(const model::Partial& partial);
absl::StatusOr<model::Partial> decode_partial(std::string_view bytes);

}  // namespace orla::codec
