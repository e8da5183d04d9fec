// The generator's rows as the oracle reads them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/fleet.h"
#include "verify/rows.h"

namespace orla::node {

// spec.kind is kGenerator.
absl::StatusOr<std::unique_ptr<verify::RowSource>> open_generator_rows(const model::InputSpec& spec);

}  // namespace orla::node
