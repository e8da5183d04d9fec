// An edge's store as the fleet file wants it.
#pragma once

#include <chrono>

#include "model/plan.h"
#include "store/segment_edge_store.h"

namespace orla::node {

// The formats of codec, for a room that does not know it.
store::EdgeFormat edge_format();
// How often an edge calls maintain(), at least; what its store's options count on, for a commit to be durable within
// the node's `fsync`.
std::chrono::nanoseconds maintain_period(const model::NodeSpec& node);
store::EdgeStoreOptions edge_options(const model::Plan& plan, const model::NodeSpec& node);

}  // namespace orla::node
