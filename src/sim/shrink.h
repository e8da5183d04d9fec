// Leaves faults out of a failing run as long as it still fails.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace orla::sim {

// `kept`: numbers of the faults of a run that fails. `fails` runs it with some of them; `go_on` says whether there is
// time left. Returns the shortest list found that fails: without any one of its faults the run does not, if there was
// time to see.
std::vector<std::size_t> shrink(std::vector<std::size_t> kept,
                                const std::function<bool(const std::vector<std::size_t>&)>& fails,
                                const std::function<bool()>& go_on);

}  // namespace orla::sim
