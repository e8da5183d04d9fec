// One way to write a batch of samples as bytes; the ways there are stand in encodings.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "model/batch.h"

namespace orla::codec {

// Holds scratch memory. Not thread-safe: one owner. Batches are those of at most kMaxPackedSamples samples and runs
// whose columns fit together; values may be any doubles.
class SampleCodec {
 public:
  virtual ~SampleCodec() = default;
  // Replaces `out`. InvalidArgument: not such a batch.
  virtual absl::Status encode(const model::Batch& batch, std::string& out) = 0;
  // Replaces `out`, which is empty after an error. The samples are those that were encoded, to the bit. Takes memory in
  // proportion to the bytes (`packed`: see packed.h).
  virtual absl::Status decode(std::string_view bytes, model::Batch& out) = 0;
};

// What every encoder checks first.
absl::Status check_columns(const model::Batch& batch);
// What is wrong with decoded paces, or null: a step backwards, a time beyond 64 bits.
const char* check_paces(const model::Batch& batch);

// The rows of the table in encodings.cc.
std::unique_ptr<SampleCodec> make_json_codec();
std::unique_ptr<SampleCodec> make_raw_codec();
std::unique_ptr<SampleCodec> make_packed_codec();
std::unique_ptr<SampleCodec> make_protobuf_codec();

}  // namespace orla::codec
