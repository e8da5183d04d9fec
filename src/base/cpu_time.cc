#include "base/cpu_time.h"

#include <ctime>

namespace orla::base {

std::chrono::nanoseconds process_cpu_time() {
  struct timespec used {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace orla::base
