// Debian's Abseil has a string_view type of its own; this is the bridge to its functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace orla::base {

inline absl::string_view absl_view(std::string_view text) { return {text.data(), text.size()}; }

// What a status says, as our own kind of text (its message() is Abseil's).
inline std::string message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace orla::base
