// The content of a chunk or frame to bytes and back: rows, and the blocks of raw samples. The format is at the head of
// content.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codec/packed.h"
#include "model/chunk.h"

namespace orla::codec {

// Samples of one block at most: what a reader decodes at once.
inline constexpr std::size_t kMaxBlockSamples = kMaxPackedSamples;

// Without samples: encode_rows(). rows as there; every block has runs, every run samples, together at most
// kMaxBlockSamples.
std::string encode_content(const model::PartialRows& rows, const std::vector<model::SampleBlock>& samples);
// Payloads are not looked into. Memory taken is in proportion to bytes.size().
absl::StatusOr<model::Content> decode_content(std::string_view bytes);

// The samples of a block into `out`, whose runs are numbered 0, 1, 2, ... and as long as the block says. After an error
// `out` is empty. DataLoss: a checksum differs; InvalidArgument: not such a payload, or a value that is not finite.
absl::Status decode_block(PackedDecoder& decoder, const model::SampleBlock& block, model::Batch& out);

}  // namespace orla::codec
