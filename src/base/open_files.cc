#include "base/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace orla::base {

std::uint64_t raise_open_files() {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return 0;
  const rlim_t most = std::min<rlim_t>(now.rlim_max, kMostOpenFiles);
  if (most <= now.rlim_cur) return now.rlim_cur;
  const rlimit wanted{most, now.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? wanted.rlim_cur : now.rlim_cur;
}

}  // namespace orla::base
