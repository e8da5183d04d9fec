// `--verify`, as far as inputs can be read again: the oracle's windows and accounts against what the cloud's file holds
// and the edges report.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "model/plan.h"
#include "verify/compare.h"
#include "verify/oracle.h"

namespace orla::node {

// An input as its edge reported it after draining.
struct InputReport {
  verify::InputEnd end;
  model::Ledger ledger;
};

// `inputs` by input key, one of every input of the fleet. `progress` hears which input is being read.
absl::StatusOr<verify::Report> verify_fleet(const model::Plan& plan, const std::map<std::string, InputReport>& inputs,
                                            const std::string& cloud_file,
                                            const std::function<void(const std::string& input_key)>& progress);

}  // namespace orla::node
