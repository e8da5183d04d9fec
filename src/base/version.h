// What this program is: its version and the commit it was built from. The definitions are written by the build.
#pragma once

#include <string_view>

#include "base/clock.h"

namespace orla::base {

// "0.1.0": the version of CMakeLists.txt's project().
std::string_view Version();

// `git describe` of the source tree at build time, with "-dirty" for uncommitted changes; "unknown" without git.
std::string_view Commit();

// When that commit was made (SOURCE_DATE_EPOCH at the build, if set): a clock that is before it was never set.
WallTime BuildTime();

}  // namespace orla::base
