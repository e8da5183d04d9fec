#include "node/edge_chunks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "codec/content.h"

namespace orla::node {

void ChunkMaker::add(stream::SealedRows& piece) {
  if (cut_ == Cut::kPieces) {
    if (!waiting_.rows.empty()) make({}).IgnoreError();  // without raw samples nothing fails
    std::swap(waiting_, piece);
    return;
  }
  waiting_.rows.insert(waiting_.rows.end(), std::make_move_iterator(piece.rows.begin()),
                       std::make_move_iterator(piece.rows.end()));
  waiting_.counted.insert(waiting_.counted.end(), piece.counted.begin(), piece.counted.end());
}

absl::StatusOr<model::SampleBlock> ChunkMaker::block_of(const stream::RawBatch& raw) const {
  model::SampleBlock block;
  block.runs.reserve(raw.groups.size());
  for (std::size_t i = 0; i < raw.groups.size(); ++i) {
    block.runs.push_back({raw.groups[i], raw.samples.runs[i].end - raw.samples.runs[i].begin});
  }
  if (absl::Status status = encode_raw_(raw.samples, block.payload); !status.ok()) return status;
  return block;
}

absl::Status ChunkMaker::make(const std::vector<stream::RawBatch>& raw) {
  const model::PartialRows& rows = waiting_.rows;
  const bool cut = cut_ == Cut::kPieces;
  std::size_t end = 0;
  std::size_t raw_end = 0;
  do {
    const std::size_t begin = std::exchange(end, rows.size());
    store::StoredChunk& chunk = chunks_.emplace_back();
    store::ChunkFacts& facts = chunk.facts;
    std::vector<model::SampleBlock> blocks;
    for (std::size_t bytes = 0; raw_end < raw.size() && (!cut || bytes < kRawBytesPerChunk); ++raw_end) {
      absl::StatusOr<model::SampleBlock> block = block_of(raw[raw_end]);
      if (!block.ok()) return block.status();
      bytes += blocks.emplace_back(*std::move(block)).payload.size();
      facts.from = std::min(facts.from, raw[raw_end].from);
      facts.to = std::max(facts.to, model::add_clamped(raw[raw_end].last, model::Duration(1)));
      facts.raw_samples += raw[raw_end].samples.size();
    }
    const auto at = [&](std::size_t i) { return rows.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto content = [&] {
      return begin == 0 && end == rows.size() ? codec::encode_content(rows, blocks)
                                              : codec::encode_content(model::PartialRows(at(begin), at(end)), blocks);
    };
    chunk.rows = content();
    // Rows with large sketches: fewer of them.
    while (cut && chunk.rows.size() > kChunkBytes && end - begin > 1) {
      end = begin + (end - begin) / 2;
      chunk.rows = content();
    }
    facts.rows = end - begin;
    std::vector<std::uint64_t>& samples = samples_.emplace_back();
    for (std::size_t i = begin; i < end; ++i) {
      const model::PartialRow& row = rows[i];
      facts.from = std::min(facts.from, row.slice);
      facts.to = std::max(facts.to, model::add_clamped(row.slice, engine_.slice_of(row.group)));
      const std::uint32_t counted = waiting_.counted[i];
      if (counted == stream::SealedRows::kRepeats) continue;
      if (counted >= samples.size()) samples.resize(counted + 1);
      samples[counted] += row.partial.count;
    }
  } while (end < rows.size() || raw_end < raw.size());
  waiting_.rows.clear();
  waiting_.counted.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<store::StoredChunk>> ChunkMaker::finish(const stream::Sealed& sealed) {
  if (absl::Status status = make(sealed.raw); !status.ok()) return status;
  std::vector<model::InputState> inputs;
  for (auto& [key, state] : engine_.inputs()) inputs.push_back(std::move(state));
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    store::ChunkFacts& facts = chunks_[c].facts;
    for (std::size_t i = 0; i < samples_[c].size(); ++i) {
      if (samples_[c][i] > 0) facts.samples.emplace_back(sealed.ledgers[i].first, samples_[c][i]);
    }
    std::sort(facts.samples.begin(), facts.samples.end());
    facts.inputs = inputs;
    facts.sealed = sealed.sealed;
  }
  return std::move(chunks_);
}

}  // namespace orla::node
