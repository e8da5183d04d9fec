#include "ingest/selection.h"

#include <algorithm>

namespace orla::ingest {

Selection::Selection(const Accepted& accepted) {
  for (const auto& [name, values] : accepted) accepted_.emplace(name, std::set(values.begin(), values.end()));
}

bool Selection::wants(const std::vector<model::Label>& labels) const {
  for (const auto& [name, values] : accepted_) {
    const auto label = std::find_if(labels.begin(), labels.end(), [&](const auto& l) { return l.first == name; });
    const std::string value = label == labels.end() ? "" : label->second;
    if (!values.contains(value)) return false;
  }
  return true;
}

}  // namespace orla::ingest
