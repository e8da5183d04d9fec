// What encodings of samples cost on real data: bytes a value, and values a second, next to zstd over plain columns and
// to Gorilla.
//
//   codec_bench [benchmark flags] FILE...    (see node/read_batches.h for what is read)
//
// Without files: the minute data of examples/smart-grid, from the source folder. Each batch is encoded, or decoded,
// four times in a row. Every round trip is verified before it is timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bench/gorilla.h"
#include "codec/encodings.h"
#include "codec/packed.h"
#include "node/read_batches.h"

namespace orla::bench {
namespace {

using model::Batch;

constexpr int kInARow = 4;

class ZstdCodec final : public codec::SampleCodec {
 public:
  absl::Status encode(const Batch& batch, std::string& out) override {
    absl::Status status = raw_->encode(batch, plain_);
    out.resize(ZSTD_compressBound(plain_.size()));
    const std::size_t size =
        ZSTD_compressCCtx(compressor_.get(), out.data(), out.size(), plain_.data(), plain_.size(), 3);
    out.resize(ZSTD_isError(size) != 0 ? 0 : size);
    return status;
  }
  absl::Status decode(std::string_view bytes, Batch& out) override {
    plain_.resize(ZSTD_getFrameContentSize(bytes.data(), bytes.size()));
    const std::size_t size =
        ZSTD_decompressDCtx(decompressor_.get(), plain_.data(), plain_.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) return absl::DataLossError("zstd");
    return raw_->decode(plain_, out);
  }

 private:
  std::unique_ptr<codec::SampleCodec> raw_ = codec::make_raw_codec();
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> compressor_{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decompressor_{ZSTD_createDCtx(), ZSTD_freeDCtx};
  std::string plain_;
};

class GorillaCodec final : public codec::SampleCodec {
 public:
  absl::Status encode(const Batch& batch, std::string& out) override {
    gorilla_encode(batch, out);
    base::ByteWriter(out).u64(batch.size());
    return absl::OkStatus();
  }
  absl::Status decode(std::string_view bytes, Batch& out) override {
    const std::size_t size = bytes.size() - sizeof(std::uint64_t);
    gorilla_decode(bytes.substr(0, size), base::ByteReader(bytes.substr(size)).u64(), out);
    return absl::OkStatus();
  }
};

// `packed` of a batch whose values are doubles.
struct Row {
  std::string name;
  std::unique_ptr<codec::SampleCodec> (*make)();
  enum class Form { kAsRead, kPlain } form;
};

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const codec::SampleEncoding& encoding : codec::sample_encodings())
    all.push_back({encoding.name, encoding.make, Row::Form::kAsRead});
  all.push_back({"packed_doubles", codec::make_packed_codec, Row::Form::kPlain});
  all.push_back(
      {"zstd_columns", [] { return std::unique_ptr<codec::SampleCodec>(new ZstdCodec); }, Row::Form::kAsRead});
  all.push_back({"zstd_doubles", [] { return std::unique_ptr<codec::SampleCodec>(new ZstdCodec); }, Row::Form::kPlain});
  all.push_back({"gorilla", [] { return std::unique_ptr<codec::SampleCodec>(new GorillaCodec); }, Row::Form::kPlain});
  return all;
}

bool same(Batch a, Batch b) {
  a.make_plain();
  b.make_plain();
  return a.times == b.times && a.values.size() == b.values.size() &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), [](double x, double y) {
           return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
         });
}

enum class Way { kEncode, kDecode };

void run(benchmark::State& state, const Row& row, Way way, const std::vector<Batch>& as_read) {
  std::vector<Batch> batches = as_read;
  if (row.form == Row::Form::kPlain)
    for (Batch& batch : batches) batch.make_plain();
  const std::unique_ptr<codec::SampleCodec> codec = row.make();
  std::vector<std::string> encoded(batches.size());
  Batch back;
  std::size_t values = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!codec->encode(batches[i], encoded[i]).ok() || !codec->decode(encoded[i], back).ok() || !same(batches[i], back))
      return state.SkipWithError("what was decoded differs from what was encoded");
    values += batches[i].size();
    bytes += encoded[i].size();
  }
  std::string scratch;
  for (auto _ : state) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      for (int k = 0; k < kInARow; ++k) {
        const absl::Status status =
            way == Way::kEncode ? codec->encode(batches[i], scratch) : codec->decode(encoded[i], back);
        if (!status.ok()) return state.SkipWithError("failed");
      }
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * values * kInARow));
  state.counters["bytes_per_value"] = static_cast<double>(bytes) / static_cast<double>(values);
}

// The JSON of a matrix of doubles of 17 digits: bytes a second.
void json_matrix(benchmark::State& state, Way way) {
  codec::Matrix matrix{1000, 100, std::vector<double>()};
  std::uint64_t bits = 88172645463325252;
  for (std::size_t i = 0; i < 100'000; ++i) {  // xorshift
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    std::get<std::vector<double>>(matrix.elements).push_back(static_cast<double>(bits >> 11) * 0x1p-53);
  }
  std::string text;
  codec::Matrix back;
  if (!codec::encode_matrix_json(matrix, text).ok() || !codec::decode_matrix_json(text, back).ok() ||
      back.elements != matrix.elements)
    return state.SkipWithError("what was decoded differs from what was encoded");
  for (auto _ : state) {
    const absl::Status status =
        way == Way::kEncode ? codec::encode_matrix_json(matrix, text) : codec::decode_matrix_json(text, back);
    if (!status.ok()) return state.SkipWithError("failed");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

}  // namespace
}  // namespace orla::bench

int main(int argc, char** argv) {
  namespace b = orla::bench;
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) paths = {"examples/smart-grid/data/plugs_1min.csv.gz"};
  std::vector<orla::model::Batch> batches;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::vector<orla::model::Batch>> read = orla::node::read_batches(path);
    if (!read.ok()) {
      fmt::print(stderr, "codec_bench: {}\n", read.status().ToString());
      return 1;
    }
    batches.insert(batches.end(), read->begin(), read->end());
  }
  const std::vector<b::Row> rows = b::rows();
  for (const auto& [way, name] : {std::pair{b::Way::kEncode, "encode"}, {b::Way::kDecode, "decode"}}) {
    for (const b::Row& row : rows)
      benchmark::RegisterBenchmark(fmt::format("{}/{}", row.name, name).c_str(),
                                   [&, way = way](benchmark::State& state) { b::run(state, row, way, batches); });
    benchmark::RegisterBenchmark(fmt::format("json_matrix/{}", name).c_str(),
                                 [way = way](benchmark::State& state) { b::json_matrix(state, way); });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
