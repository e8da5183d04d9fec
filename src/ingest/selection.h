// Which series an input takes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/series.h"

namespace orla::ingest {

// A value.
class Selection {
 public:
  // Label -> accepted values; every label named must match. A label the series lacks has the value "".
  using Accepted = std::map<std::string, std::vector<std::string>>;
  Selection() = default;  // takes every series
  explicit Selection(const Accepted& accepted);
  bool wants(const std::vector<model::Label>& labels) const;

 private:
  std::map<std::string, std::set<std::string>> accepted_;
};

}  // namespace orla::ingest
