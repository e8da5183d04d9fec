# Writes OUTPUT, the source of base/version.h's functions, and touches it only when its text changes.
# Works without git and outside a repository: the commit is then "unknown".
set(ENV{GIT_OPTIONAL_LOCKS} 0)
find_program(git git)
set(commit "unknown")
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND ${git} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND described MATCHES "^[-+.A-Za-z0-9_/]+$")
    set(commit "${described}")
  endif()
endif()
# When the program was made, for comparison with a clock that may never have been set. Reproducible: the time of the
# last commit, unless SOURCE_DATE_EPOCH says otherwise; without both 2026-01-01.
set(build_time 1767225600)
if("$ENV{SOURCE_DATE_EPOCH}" MATCHES "^[0-9]+$")
  set(build_time $ENV{SOURCE_DATE_EPOCH})
elseif(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND ${git} -C ${SOURCE_DIR} log -1 --format=%ct
    OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND committed MATCHES "^[0-9]+$")
    set(build_time ${committed})
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [=[
#include "base/version.h"

namespace orla::base {

std::string_view Version() { return "@VERSION@"; }
std::string_view Commit() { return "@commit@"; }
WallTime BuildTime() { return WallTime(std::chrono::seconds(@build_time@)); }

}  // namespace orla::base
]=])
