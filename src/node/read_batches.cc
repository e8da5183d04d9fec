#include "node/read_batches.h"

#include <memory>
#include <string_view>

#include "base/byte_source.h"
#include "fmt/format.h"
#include "ingest/input.h"

namespace orla::node {

namespace {

absl::Status read_file(const std::string& path, bool has_header, std::vector<model::Batch>& to) {
  model::InputSpec spec;
  spec.key = "edge/0";
  spec.path = path;
  if (has_header) {
    spec.schema = model::InputSpec::Schema::kMapping;
    spec.mapping.time_column = "timestamp";
    spec.mapping.time_format = "unix";
    spec.mapping.values = {{"load", "w1"}};
  }
  absl::StatusOr<std::unique_ptr<ingest::Input>> input = ingest::make_input(spec, {});
  if (!input.ok()) return input.status();
  model::InputBatch batch;
  for (;;) {
    const absl::StatusOr<bool> more = (*input)->next(batch);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    if (!batch.rejections.empty())
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: {}", path, batch.rejections[0].row, batch.rejections[0].message));
    if (batch.samples.size() > 0) to.push_back(batch.samples);
  }
}

}  // namespace

absl::StatusOr<std::vector<model::Batch>> read_batches(const std::string& path) {
  absl::StatusOr<std::unique_ptr<base::ByteSource>> source = base::open_bytes(path);
  if (!source.ok()) return source.status();
  char first[10] = {};
  const absl::StatusOr<std::size_t> got = (*source)->read(first);
  if (!got.ok()) return got.status();
  std::vector<model::Batch> batches;
  absl::Status status = read_file(path, std::string_view(first, *got) == "timestamp,", batches);
  if (!status.ok()) return status;
  return batches;
}

}  // namespace orla::node
