#include "node/edge_disk.h"

#include <algorithm>

#include "codec/edge_state.h"
#include "codec/note.h"
#include "node/role.h"

namespace orla::node {

store::EdgeFormat edge_format() {
  return {codec::encode_note, codec::decode_note, codec::encode_edge_state, codec::decode_edge_state};
}

store::EdgeStoreOptions edge_options(const model::Plan& plan, const model::NodeSpec& node) {
  store::EdgeStoreOptions options;
  options.fsync = !node.fsync_delay                              ? store::FsyncMode::kOff
                  : *node.fsync_delay == model::Duration::zero() ? store::FsyncMode::kOn
                                                                 : store::FsyncMode::kDelayed;
  options.fsync_delay = node.fsync_delay.value_or(model::Duration::zero());
  // Dead space, about two segments, is a fraction of what the outbox may be.
  const auto outbox = static_cast<std::uint64_t>(limit(plan.fleet, "outbox_bytes"));
  options.segment_bytes = std::clamp<std::uint64_t>(outbox / 16, 64 << 10, 8 << 20);
  return options;
}

}  // namespace orla::node
