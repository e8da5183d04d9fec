// Which series an input takes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/series.h"

namespace orla::ingest {

// A value.
class Selection {
 public:
  // Label -> accepted values; every label named must match. A label the series lacks has the value "".
  using Accepted = std::map<std::string, std::vector<std::string>>;
  Selection() = default;  // takes every series
  explicit Selection(Accepted accepted) : accepted_(std::move(accepted)) {}
  bool wants(const std::vector<model::Label>& labels) const;

 private:
  Accepted accepted_;
};

}  // namespace orla::ingest
