// Debian's Abseil has a string_view type of its own; this is the bridge to its functions.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace orla::base {

inline absl::string_view absl_view(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace orla::base
