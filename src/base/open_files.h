// How many files and connections this process may have open.
#pragma once

#include <cstdint>

namespace orla::base {

// Raises the limit as far as this user may, at most to kMostOpenFiles, and returns it. (A login gives 1,024, for
// programs that use select(2).)
std::uint64_t raise_open_files();

inline constexpr std::uint64_t kMostOpenFiles = 1 << 18;

}  // namespace orla::base
