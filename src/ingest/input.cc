#include "ingest/input.h"

#include <fmt/format.h>

#include <utility>

#include "base/byte_source.h"
#include "ingest/csv_input.h"
#include "ingest/generator_input.h"

namespace orla::ingest {

namespace {

absl::StatusOr<std::unique_ptr<Input>> open(const model::InputSpec& spec, const model::Position& from) {
  if (model::is_live(spec.kind)) {
    return absl::FailedPreconditionError("what is pushed cannot be read from here: senders bring it");
  }
  const BatchLimits limits = batch_limits(spec.speed, spec.max_jump);
  if (spec.kind == model::InputSpec::Kind::kGenerator) {
    return make_generator_input(spec.generator, Selection(spec.select), spec.key, limits, from);
  }
  absl::StatusOr<std::unique_ptr<RowParser>> parser = make_row_parser(spec);
  if (!parser.ok()) return parser.status();
  absl::StatusOr<std::unique_ptr<base::ByteSource>> source = base::open_bytes(spec.path);
  if (!source.ok()) return source.status();
  return make_csv_input(*std::move(source), spec.path, *std::move(parser), spec.key, limits, from);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Input>> make_input(const model::InputSpec& spec, const model::Position& from) {
  absl::StatusOr<std::unique_ptr<Input>> input = open(spec, from);
  if (input.ok()) return input;
  return absl::Status(input.status().code(),
                      fmt::format("input {}: {}", spec.key, std::string(input.status().message())));
}

}  // namespace orla::ingest
