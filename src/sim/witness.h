// Keeps what every chunk of every edge held, as it was committed: so that it can be told to the bit what is missing at
// the cloud when a disk has lost the rows of one. And looks at what an edge publishes with it: invariant 6.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/chunk.h"
#include "model/edge_state.h"
#include "model/plan.h"
#include "model/series.h"
#include "store/edge_store.h"

namespace orla::sim {

class Witness {
 public:
  struct Chunk {
    std::string rows;  // encoded, GroupIds of the node
    store::ChunkFacts facts;
  };
  // Nothing when no such chunk was ever sealed.
  const Chunk* find(const model::NodeName& node, model::Epoch epoch, model::Sequence sequence) const;
  // By GroupId.
  const std::vector<model::GroupDef>& groups(const model::NodeName& node) { return nodes_[node].groups; }

  // Says `problem` when an edge publishes later than a stuck or lagging series may make it. `plan` outlives it.
  void expect_publications(const model::Plan& plan, std::function<void(const std::string&)> problem);
  // Chunks that were published while some series was further behind than may hold them.
  std::uint64_t lagging() const { return lagging_; }

  // `store` that tells the witness what is committed. The witness outlives it.
  std::unique_ptr<store::EdgeStore> watch(model::NodeName node, std::unique_ptr<store::EdgeStore> store);

 private:
  class Store;
  struct Node {
    model::Sequence next = 1;
    model::Epoch epoch{};
    std::vector<model::GroupDef> groups;
    std::map<std::pair<model::Epoch, model::Sequence>, Chunk> chunks;
    std::map<model::SeriesId, std::pair<model::Time, std::uint32_t>> watermarks;  // and inputs
    bool starts_anew = false;  // it has lost its journal: its series are new, its inputs are not
  };
  static void follow(Node& node, const model::EdgeState& state);
  void look_at_publications(Node& node, const store::StoredChunk& chunk);

  const model::Plan* plan_ = nullptr;
  std::function<void(const std::string&)> problem_;
  std::uint64_t lagging_ = 0;
  std::map<model::NodeName, Node> nodes_;
};

}  // namespace orla::sim
