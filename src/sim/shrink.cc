#include "sim/shrink.h"

#include <algorithm>
#include <utility>

namespace orla::sim {

// Zeller's ddmin, the half of it that removes: larger parts first, single faults last.
std::vector<std::size_t> shrink(std::vector<std::size_t> kept,
                                const std::function<bool(const std::vector<std::size_t>&)>& fails,
                                const std::function<bool()>& go_on) {
  if (kept.empty() || !go_on()) return kept;
  if (fails({})) return {};
  for (std::size_t part = (kept.size() + 1) / 2; part > 0 && !kept.empty();) {
    bool removed = false;
    for (std::size_t begin = 0; begin < kept.size() && go_on();) {
      std::vector<std::size_t> fewer = kept;
      const std::size_t end = std::min(kept.size(), begin + part);
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(begin), fewer.begin() + static_cast<std::ptrdiff_t>(end));
      if (fails(fewer)) {
        kept = std::move(fewer);
        removed = true;
      } else {
        begin = end;
      }
    }
    if (!go_on()) break;
    // Singles are tried until none can go.
    if (part == 1 && !removed) break;
    part = std::max<std::size_t>(1, part / 2);
  }
  return kept;
}

}  // namespace orla::sim
