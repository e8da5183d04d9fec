// Samples as protobuf messages, one for each: the way the published system sent them, kept as the baseline that the
// others are compared with. Any protobuf library reads it as
//
//   message Rows { repeated Row row = 1; }
//   message Row { uint32 series = 1; int64 time_ns = 2; double value = 3; }
//
// The wire format is written by hand, after https://protobuf.dev/programming-guides/encoding/: tag 0x0a, the length of
// the row, then its fields as tag and varint (0x08, 0x10) or 8 bytes little-endian (0x19). Fields of value zero are
// written too; when reading, a field that is missing is zero, one that comes again replaces the former, and unknown
// fields are an error. Neighbouring rows of one series become one run. There is no checksum: damage that leaves such
// messages passes.
#include <bit>

#include "base/bytes.h"
#include "codec/packed.h"
#include "codec/sample_codec.h"
#include "fmt/format.h"
#include "model/power_of_ten.h"

namespace orla::codec {

using model::Batch;

namespace {

constexpr std::uint8_t kRowTag = 1 << 3 | 2;
constexpr std::uint8_t kSeriesTag = 1 << 3 | 0;
constexpr std::uint8_t kTimeTag = 2 << 3 | 0;
constexpr std::uint8_t kValueTag = 3 << 3 | 1;

std::size_t varint_bytes(std::uint64_t v) { return (static_cast<std::size_t>(std::bit_width(v | 1)) + 6) / 7; }

class ProtobufCodec final : public SampleCodec {
 public:
  absl::Status encode(const Batch& batch, std::string& out) override {
    absl::Status status = check_columns(batch);
    if (!status.ok()) return status;
    out.clear();
    base::ByteWriter to(out);
    const double unit = model::power_of_ten(batch.decimals);
    for (std::size_t r = 0; r < batch.runs.size(); ++r) {
      const Batch::Run& run = batch.runs[r];
      const std::uint64_t series = model::index(run.series);
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const model::Time time = batch.paces.empty()
                                     ? batch.times[i]
                                     : batch.paces[r].start + batch.paces[r].step * std::int64_t{i - run.begin};
        const double value = batch.scaled.empty() ? batch.values[i] : batch.scaled[i] / unit;
        const auto ns = static_cast<std::uint64_t>(model::to_ns(time));
        to.u8(kRowTag);
        to.varint(1 + varint_bytes(series) + 1 + varint_bytes(ns) + 1 + 8);
        to.u8(kSeriesTag);
        to.varint(series);
        to.u8(kTimeTag);
        to.varint(ns);
        to.u8(kValueTag);
        to.u64(std::bit_cast<std::uint64_t>(value));
      }
    }
    return absl::OkStatus();
  }

  absl::Status decode(std::string_view bytes, Batch& out) override {
    out.clear();
    base::ByteReader from(bytes);
    while (!from.finished()) {
      const char* wrong = read_row(from, out);
      if (wrong == nullptr) continue;
      out.clear();
      return absl::InvalidArgumentError(
          fmt::format("samples as protobuf rows: {} at byte {}", wrong, bytes.size() - from.left()));
    }
    return absl::OkStatus();
  }

 private:
  static const char* read_row(base::ByteReader& from, Batch& out) {
    if (from.u8() != kRowTag) return "expected a row";
    base::ByteReader row(from.text());
    if (from.failed()) return "a row is cut off";
    std::uint64_t series = 0;
    std::uint64_t ns = 0;
    std::uint64_t value = 0;
    while (!row.finished()) {
      switch (row.u8()) {
        case kSeriesTag:
          series = row.varint();
          break;
        case kTimeTag:
          ns = row.varint();
          break;
        case kValueTag:
          value = row.u64();
          break;
        default:
          return "expected a series, a time or a value";
      }
      if (row.failed()) return "a field is cut off";
    }
    if (series > UINT32_MAX) return "a series number is beyond 32 bits";
    if (out.values.size() == kMaxPackedSamples) return "more samples than a batch may have";
    const auto id = static_cast<model::SeriesId>(series);
    const auto at = static_cast<std::uint32_t>(out.values.size());
    if (out.runs.empty() || out.runs.back().series != id) out.runs.push_back({id, at, at});
    ++out.runs.back().end;
    out.times.push_back(model::from_ns(static_cast<std::int64_t>(ns)));
    out.values.push_back(std::bit_cast<double>(value));
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<SampleCodec> make_protobuf_codec() { return std::make_unique<ProtobufCodec>(); }

}  // namespace orla::codec
