// Keeps what every chunk of every edge held, as it was committed: so that it can be told to the bit what is missing at
// the cloud when a disk has lost the rows of one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/chunk.h"
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

  // `store` that tells the witness what is committed. The witness outlives it.
  std::unique_ptr<store::EdgeStore> watch(model::NodeName node, std::unique_ptr<store::EdgeStore> store);

 private:
  class Store;
  struct Node {
    model::Sequence next = 1;
    model::Epoch epoch{};
    std::vector<model::GroupDef> groups;
    std::map<std::pair<model::Epoch, model::Sequence>, Chunk> chunks;
  };
  std::map<model::NodeName, Node> nodes_;
};

}  // namespace orla::sim
