#include "ingest/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/byte_source.h"
#include "ingest/csv_input.h"
#include "ingest/generator_input.h"

namespace orla::ingest {

namespace {

// A paced input has time, and what is not read yet of it is not to be parsed long before it is due.
constexpr std::size_t kPacedBlockBytes = 64 * 1024;

CsvReading reading_of(const model::InputSpec& spec, std::size_t threads) {
  CsvReading reading;
  if (spec.speed > 0) {
    reading.block_bytes = kPacedBlockBytes;
    return reading;
  }
  reading.threads = threads;
  return reading;
}

absl::StatusOr<std::unique_ptr<Input>> open(const model::InputSpec& spec, const model::Position& from,
                                            std::size_t threads) {
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
  return make_csv_input(*std::move(source), spec.path, *std::move(parser), spec.key, limits, from,
                        reading_of(spec, threads));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Input>> make_input(const model::InputSpec& spec, const model::Position& from) {
  const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  return make_threaded_input(spec, from, std::min(cores, kMaxUsualThreads));
}

absl::StatusOr<std::unique_ptr<Input>> make_threaded_input(const model::InputSpec& spec, const model::Position& from,
                                                           std::size_t threads) {
  absl::StatusOr<std::unique_ptr<Input>> input = open(spec, from, threads);
  if (input.ok()) return input;
  return absl::Status(input.status().code(),
                      fmt::format("input {}: {}", spec.key, std::string(input.status().message())));
}

}  // namespace orla::ingest
