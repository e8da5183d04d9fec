// Durations, quantities and options from any text: within their bounds or refused, the same each time, and a duration
// written out in nanoseconds reads back as itself.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "function/options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla::function;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto duration = parse_duration(text); duration.ok()) {
    if (duration->count() < 0 || *duration > kMaxDuration) std::abort();
    const auto again = parse_duration(fmt::format("{}ns", duration->count()));
    // Longer numbers than 18 digits are not read.
    if (duration->count() < 1'000'000'000'000'000'000 && (!again.ok() || *again != *duration)) std::abort();
  }
  if (const auto bytes = parse_memory(text); bytes.ok()) {
    if (*bytes == 0 || *bytes > std::uint64_t{1} << 62) std::abort();
  }
  if (const auto cores = parse_cpu(text); cores.ok()) {
    if (!(*cores > 0 && *cores <= 100'000)) std::abort();
  }
  // "name=value" lines: com.* are labels, the others variables.
  FunctionSpec spec;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    auto& values = line.starts_with("com.") ? spec.labels : spec.environment;
    values[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  if (const auto options = read_options(spec); options.ok()) {
    const ScaleOptions& scale = options->scale;
    if (scale.min == 0 || scale.min > scale.max || scale.max > kMaxReplicas) std::abort();
    if (!(scale.target > 0) || !(scale.target_proportion > 0 && scale.target_proportion <= 1)) std::abort();
    if (scale.down_window > kMaxDownWindow || scale.zero_duration.count() <= 0) std::abort();
  } else if (options.status().code() != absl::StatusCode::kInvalidArgument) {
    std::abort();
  }
  return 0;
}
