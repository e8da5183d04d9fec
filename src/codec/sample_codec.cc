#include "codec/sample_codec.h"

#include "codec/packed.h"
#include "fmt/format.h"

namespace orla::codec {

absl::Status check_columns(const model::Batch& batch) {
  const auto wrong = [](const std::string& what) { return absl::InvalidArgumentError("batch to encode: " + what); };
  if (batch.size() > kMaxPackedSamples || batch.runs.size() > kMaxPackedSamples)
    return wrong(fmt::format("{} samples in {} runs, at most {} of each are taken; split it", batch.size(),
                             batch.runs.size(), kMaxPackedSamples));
  if (!batch.values.empty() && !batch.scaled.empty()) return wrong("it has values and scaled values");
  if (batch.decimals < 0 || batch.decimals > model::kMaxScaledDecimals)
    return wrong(fmt::format("{} decimals, expected 0 to {}", batch.decimals, model::kMaxScaledDecimals));
  if (batch.paces.empty() ? batch.times.size() != batch.size()
                          : !batch.times.empty() || batch.paces.size() != batch.runs.size())
    return wrong(fmt::format("{} times and {} paces for {} samples in {} runs", batch.times.size(), batch.paces.size(),
                             batch.size(), batch.runs.size()));
  std::size_t end = 0;
  for (const model::Batch::Run& run : batch.runs) {
    if (run.begin != end || run.end < run.begin) return wrong(fmt::format("the runs leave sample {}", end));
    end = run.end;
  }
  if (end != batch.size()) return wrong(fmt::format("the runs cover {} of {} samples", end, batch.size()));
  return absl::OkStatus();
}

const char* check_paces(const model::Batch& batch) {
  for (std::size_t i = 0; i < batch.paces.size(); ++i) {
    const std::int64_t step = batch.paces[i].step.count();
    const std::int64_t samples = std::int64_t{batch.runs[i].end} - batch.runs[i].begin;
    std::int64_t last = 0;
    if (step < 0) return "the times of a run go backwards";
    if (samples > 1 && (__builtin_mul_overflow(step, samples - 1, &last) ||
                        __builtin_add_overflow(model::to_ns(batch.paces[i].start), last, &last)))
      return "a time is beyond 64 bits";
  }
  return nullptr;
}

}  // namespace orla::codec
