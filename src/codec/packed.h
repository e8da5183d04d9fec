// Batches of samples as few bits, at the speed of memory: how raw samples travel and rest. The format is at the head of
// packed_encode.cc.
//
// Any batch comes back with the same runs, times and values, to the bit (values: any double, NaN and -0.0 too). Its
// form may differ: values are `scaled` when each is a decimal that fits, times are `paces` when each run is evenly
// spaced and runs are not short. A batch in one of these forms comes back in it. Integers stay integers from here to
// the sum.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/batch.h"

namespace orla::codec {

// Samples of one frame at most, and runs. Decoding takes at most 100 MiB, whatever the bytes.
inline constexpr std::size_t kMaxPackedSamples = std::size_t{1} << 20;

struct PackedOptions {
  int zstd_level = 0;  // over the whole; 0: not compressed again
};

// Holds scratch memory: after the first batches of a size nothing is allocated. Not thread-safe.
class PackedEncoder {
 public:
  explicit PackedEncoder(PackedOptions options = {});
  ~PackedEncoder();
  PackedEncoder(PackedEncoder&&) noexcept;
  PackedEncoder& operator=(PackedEncoder&&) noexcept;

  // Replaces `out`. InvalidArgument: too many samples or runs, or columns that do not fit together.
  absl::Status encode(const model::Batch& batch, std::string& out);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

// Holds scratch memory for compressed frames. Not thread-safe.
class PackedDecoder {
 public:
  // Replaces `out`, whose memory is used again: cheapest when it still holds a batch of the same form and of about the
  // same size (there is no need to clear it). After an error `out` is empty. DataLoss: the checksum differs.
  // InvalidArgument: not a frame of this format. Unimplemented: one of a later version.
  absl::Status decode(std::string_view bytes, model::Batch& out);

 private:
  std::string plain_;
};

// With memory of their own.
absl::StatusOr<std::string> encode_packed(const model::Batch& batch, PackedOptions options = {});
absl::Status decode_packed(std::string_view bytes, model::Batch& out);

}  // namespace orla::codec
