// FleetWorld: the raw samples at the cloud are those that were accepted, but for what is lost and counted.
#include <fmt/format.h>

#include "codec/content.h"
#include "sim/fleet_world.h"

namespace orla::sim {

// What the cloud would have more, had the chunk not been lost.
std::string FleetWorld::lose_samples(const model::NodeName& node, const model::Content& content, Losses& losses) {
  const std::vector<model::GroupDef>& groups = witness_.groups(node);
  codec::PackedDecoder decoder;
  model::Batch batch;
  for (const model::SampleBlock& block : content.samples) {
    if (!codec::decode_block(decoder, block, batch).ok())
      return fmt::format("the witness cannot read samples of {}", node);
    batch.make_plain();
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
      const std::size_t group = model::index(block.runs[r].group);
      const std::optional<model::Series> series =
          group < groups.size() ? model::raw_series(groups[group]) : std::optional<model::Series>{};
      if (!series) return fmt::format("the witness does not know a raw group of {}", node);
      const std::string identity = model::identity(*series);
      model::SetDigest& lost =
          losses.raw.try_emplace(identity, verify::Oracle::RawSeries{*series, {}}).first->second.samples;
      for (std::uint32_t i = batch.runs[r].begin; i < batch.runs[r].end; ++i) {
        lost.add(verify::Oracle::raw_hash(identity, batch.times[i], batch.values[i]));
      }
    }
  }
  losses.raw_samples += model::sample_count(content.samples);
  return "";
}

// Whatever was lost: nothing vanishes. Accepted = at the cloud + lost, and the cloud was told how many are lost.
std::string FleetWorld::check_samples(const Losses& losses, const std::map<std::string, model::Ledger>& ledgers) {
  if (plan_.raw_streams.empty()) return "";
  std::uint64_t accepted = 0;
  for (const auto& [key, ledger] : ledgers) {
    accepted += ledger.aggregated;
    for (const auto& [reason, count] : ledger.dropped) accepted += reason == "outbox_full" ? 0 : count;
  }
  std::uint64_t kept = 0;
  for (const auto& [identity, series] : cloud_disk_.samples) kept += series.samples.count;
  exercised_.raw_samples = kept;
  exercised_.raw_lost = losses.raw_samples;
  if (kept + losses.raw_samples != accepted) {
    return fmt::format("{} samples were accepted; the cloud has {} of them raw, and {} are lost", accepted, kept,
                       losses.raw_samples);
  }
  std::uint64_t told = 0;
  for (const auto& [node, origin] : cloud_disk_.origins) {
    for (const model::Loss& loss : origin.losses) told += loss.raw_samples;
  }
  if (told == losses.raw_samples) return "";
  return fmt::format("the cloud counts {} raw samples as lost; the chunks that were lost held {}", told,
                     losses.raw_samples);
}

}  // namespace orla::sim
