#include "node/edge_disk.h"

#include <algorithm>

#include "codec/edge_state.h"
#include "codec/note.h"
#include "node/role.h"

namespace orla::node {

store::EdgeFormat edge_format() {
  return {codec::encode_note, codec::decode_note, codec::encode_edge_state, codec::decode_edge_state};
}

std::chrono::nanoseconds maintain_period(const model::NodeSpec& node) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(20);
  constexpr std::chrono::nanoseconds kLeast = std::chrono::milliseconds(1);
  const model::Duration delay = node.fsync_delay.value_or(model::Duration::zero());
  return delay == model::Duration::zero() ? kMost : std::clamp<std::chrono::nanoseconds>(delay / 2, kLeast, kMost);
}

store::EdgeStoreOptions edge_options(const model::Plan& plan, const model::NodeSpec& node) {
  store::EdgeStoreOptions options;
  options.fsync = !node.fsync_delay                              ? store::FsyncMode::kOff
                  : *node.fsync_delay == model::Duration::zero() ? store::FsyncMode::kOn
                                                                 : store::FsyncMode::kDelayed;
  // What is not due at one look is due before the next.
  if (options.fsync == store::FsyncMode::kDelayed) options.fsync_delay = *node.fsync_delay - maintain_period(node);
  // Dead space, about two segments, is a fraction of what the outbox may be.
  const auto outbox = static_cast<std::uint64_t>(limit(plan.fleet, "outbox_bytes"));
  options.segment_bytes = std::clamp<std::uint64_t>(outbox / 16, 64 << 10, 8 << 20);
  return options;
}

}  // namespace orla::node
