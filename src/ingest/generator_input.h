// The generator as an input, without a detour through text, and as a CSV file. Both give the same samples.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ingest/batch_builder.h"
#include "ingest/input.h"
#include "ingest/selection.h"
#include "model/fleet.h"

namespace orla::ingest {

// Positions: `offset` is (seconds since the first one) << 32 | plugs of that second passed over; `row` is rows given.
absl::StatusOr<std::unique_ptr<Input>> make_generator_input(const model::GeneratorSpec& spec, Selection selection,
                                                            std::string input_key, BatchLimits limits,
                                                            const model::Position& from);

// Writes the rows as the seven columns of the challenge, ids 1, 2, 3, ..., to `sink` in pieces of whole lines. An error
// of the sink ends it and is returned.
absl::Status write_debs2014_csv(const model::GeneratorSpec& spec,
                                const std::function<absl::Status(std::string_view piece)>& sink);

}  // namespace orla::ingest
