#include "codec/encodings.h"

#include <algorithm>
#include <chrono>

#include "codec/packed.h"

namespace orla::codec {

namespace {

constexpr SampleEncoding kSampleEncodings[] = {
    {"packed", "as few bits as fast as memory; how samples travel and rest", Damage::kNoticed, Runs::kKept,
     make_packed_codec},
    {"raw", "columns as they lie in memory, used without copying", Damage::kNoticed, Runs::kKept, make_raw_codec},
    {"json", "readable text", Damage::kMayPass, Runs::kKept, make_json_codec},
    {"protobuf", "one message for each sample, the baseline", Damage::kMayPass, Runs::kJoined, make_protobuf_codec},
};

constexpr MatrixEncoding kMatrixEncodings[] = {
    {"npy", "the file format of NumPy", encode_npy, decode_npy},
    {"json", "readable text", encode_matrix_json, decode_matrix_json},
};

class PackedCodec final : public SampleCodec {
 public:
  absl::Status encode(const model::Batch& batch, std::string& out) override { return encoder_.encode(batch, out); }
  absl::Status decode(std::string_view bytes, model::Batch& out) override { return decoder_.decode(bytes, out); }

 private:
  PackedEncoder encoder_;
  PackedDecoder decoder_;
};

}  // namespace

std::unique_ptr<SampleCodec> make_packed_codec() { return std::make_unique<PackedCodec>(); }

std::span<const SampleEncoding> sample_encodings() { return kSampleEncodings; }

const SampleEncoding* find_sample_encoding(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSampleEncodings), std::end(kSampleEncodings),
                                   [&](const SampleEncoding& encoding) { return encoding.name == name; });
  return found == std::end(kSampleEncodings) ? nullptr : found;
}

std::span<const MatrixEncoding> matrix_encodings() { return kMatrixEncodings; }

absl::StatusOr<EncodingCost> measure_cost(const SampleEncoding& encoding, const model::Batch& batch, int repeats,
                                          const base::Clock& clock) {
  if (batch.size() == 0)
    return absl::InvalidArgumentError("the cost of an encoding is measured on samples, there are none");
  const std::unique_ptr<SampleCodec> codec = encoding.make();
  const auto samples = static_cast<double>(batch.size());
  std::string bytes;
  model::Batch back;
  EncodingCost cost;
  for (int i = 0; i < std::max(2, repeats); ++i) {  // the first one takes memory
    const base::SteadyTime begin = clock.steady_now();
    absl::Status status = codec->encode(batch, bytes);
    if (!status.ok()) return status;
    const base::SteadyTime middle = clock.steady_now();
    status = codec->decode(bytes, back);
    if (!status.ok()) return status;
    const base::SteadyTime end = clock.steady_now();
    const double encode = std::chrono::duration<double, std::nano>(middle - begin).count() / samples;
    const double decode = std::chrono::duration<double, std::nano>(end - middle).count() / samples;
    cost.encode_ns_per_value = i == 0 ? encode : std::min(cost.encode_ns_per_value, encode);
    cost.decode_ns_per_value = i == 0 ? decode : std::min(cost.decode_ns_per_value, decode);
  }
  cost.bytes_per_value = static_cast<double>(bytes.size()) / samples;
  return cost;
}

}  // namespace orla::codec
