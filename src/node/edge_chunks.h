// Chunks of what an edge's engine seals, made while it seals: rows are encoded a piece at a time and let go of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/batch.h"
#include "model/chunk.h"
#include "store/edge_store.h"
#include "stream/edge_engine.h"

namespace orla::node {

// Raw samples to bytes.
using RawEncoder = std::function<absl::Status(const model::Batch&, std::string&)>;

// For one seal(). Not thread-safe; what it is given outlives it.
class ChunkMaker {
 public:
  // A chunk that is cut has at most as many rows as a piece, some 30 KB: what a damaged byte costs, and what a slow
  // link has to carry before the cloud can acknowledge anything.
  enum class Cut : std::uint8_t { kPieces, kNever };
  // A chunk of more bytes has fewer rows.
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  // It is full once it has so many bytes of raw samples.
  static constexpr std::size_t kRawBytesPerChunk = std::size_t{1} << 19;

  ChunkMaker(Cut cut, const stream::EdgeEngine& engine, const RawEncoder& encode_raw)
      : cut_(cut), engine_(engine), encode_raw_(encode_raw) {}

  // As seal() hands them over.
  void add(stream::SealedRows& piece);
  // At the end, with what seal() returned: the chunks, at least one, with contents and facts; their ranges are left to
  // the caller, and so is raw_sealed. An error: raw samples cannot be encoded.
  absl::StatusOr<std::vector<store::StoredChunk>> finish(const stream::Sealed& sealed);

 private:
  // What waits becomes chunks, the first ones with the raw samples.
  absl::Status make(const std::vector<stream::RawBatch>& raw);
  absl::StatusOr<model::SampleBlock> block_of(const stream::RawBatch& raw) const;

  const Cut cut_;
  const stream::EdgeEngine& engine_;
  const RawEncoder& encode_raw_;
  stream::SealedRows waiting_;  // the newest piece; with kNever all
  std::vector<store::StoredChunk> chunks_;
  std::vector<std::vector<std::uint64_t>> samples_;  // parallel to chunks_: by the number of the ledger
};

}  // namespace orla::node
