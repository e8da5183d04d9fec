#include "ingest/selection.h"

namespace orla::ingest {

Selection::Selection(const Accepted& accepted) {
  for (const auto& [name, values] : accepted) accepted_.emplace(name, std::set(values.begin(), values.end()));
}

bool Selection::wants(const std::vector<model::Label>& labels) const {
  for (const auto& [name, values] : accepted_) {
    std::string value;
    for (const model::Label& label : labels) {
      if (label.first == name) value = label.second;
    }
    if (!values.contains(value)) return false;
  }
  return true;
}

}  // namespace orla::ingest
