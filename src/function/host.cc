#include "function/host.h"

#include "function/host_context.h"
#include "function/runtimes.h"

namespace orla::function {

absl::StatusOr<std::unique_ptr<Host>> Host::open(HostSettings settings,
                                                 const std::vector<std::unique_ptr<Runtime>>& runtimes,
                                                 const base::Clock& clock) {
  return open_host(std::move(settings), runtimes, clock, {.find_image = &find_image});
}

}  // namespace orla::function
