// An edge's store as the fleet file wants it.
#pragma once

#include "model/plan.h"
#include "store/segment_edge_store.h"

namespace orla::node {

// The formats of codec, for a room that does not know it.
store::EdgeFormat edge_format();
store::EdgeStoreOptions edge_options(const model::Plan& plan, const model::NodeSpec& node);

}  // namespace orla::node
