// The encodings of samples and of matrices that there are, as tables. To add one: see docs/codecs.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "codec/matrix.h"
#include "codec/sample_codec.h"
#include "model/batch.h"

namespace orla::codec {

enum class Damage { kNoticed, kMayPass };  // kNoticed: there is a checksum
enum class Runs { kKept, kJoined };        // kJoined: neighbouring runs of one series come back as one

struct SampleEncoding {
  const char* name;
  const char* about;
  Damage damage;
  Runs runs;
  std::unique_ptr<SampleCodec> (*make)();
};
std::span<const SampleEncoding> sample_encodings();
// Null: there is none of that name.
const SampleEncoding* find_sample_encoding(std::string_view name);

struct MatrixEncoding {
  const char* name;
  const char* about;
  absl::Status (*encode)(const Matrix& matrix, std::string& out);
  absl::Status (*decode)(std::string_view bytes, Matrix& out);
};
std::span<const MatrixEncoding> matrix_encodings();

// What it costs on this machine, now: the least of several runs over one batch.
struct EncodingCost {
  double encode_ns_per_value = 0;
  double decode_ns_per_value = 0;
  double bytes_per_value = 0;
};
// The batch holds samples; it is encoded and decoded about `repeats` times each.
absl::StatusOr<EncodingCost> measure_cost(const SampleEncoding& encoding, const model::Batch& batch, int repeats,
                                          const base::Clock& clock);

}  // namespace orla::codec
