// The format: an envelope (see envelope.h) of kind "C", version 1, every number little-endian. Every column begins at a
// multiple of 8 bytes, with zeros before it where needed.
//
//   kind, version   2 bytes, of the envelope
//   form            1 byte   1: values are scaled; 2: times are paces
//   decimals        1 byte   0..15
//   samples         4 bytes  at most kMaxPackedSamples
//   runs            4 bytes  at most kMaxPackedSamples
//   series          4 bytes for each run
//   lengths         4 bytes for each run
//   times           8 bytes for each sample; or starts and steps, 8 bytes for each run
//   values          8 bytes for each sample; or scaled, 4 bytes for each sample
//   checksum        8 bytes, of the envelope, right behind the last column
#include "codec/raw.h"

#include <bit>
#include <cstring>

#include "codec/envelope.h"
#include "codec/packed.h"
#include "codec/sample_codec.h"
#include "fmt/format.h"

namespace orla::codec {

using model::Batch;

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr Format kRawFormat{'C', 1, "raw samples"};
constexpr std::uint8_t kScaled = 1;
constexpr std::uint8_t kPaced = 2;
constexpr std::size_t kHeaderBytes = 12;

constexpr std::size_t aligned(std::size_t offset) { return (offset + 7) / 8 * 8; }

template <typename T>
void put_column(const T* column, std::size_t count, std::string& out) {
  out.resize(aligned(out.size()));
  out.append(reinterpret_cast<const char*>(column), count * sizeof *column);
}

// Takes columns off the front.
class Columns {
 public:
  explicit Columns(std::string_view bytes) : bytes_(bytes), at_(kHeaderBytes) {}
  template <typename T>
  std::span<const T> take(std::size_t count) {
    at_ = aligned(at_);
    if (at_ > bytes_.size() || count > (bytes_.size() - at_) / sizeof(T)) {
      short_ = true;
      return {};
    }
    const auto* first = reinterpret_cast<const T*>(bytes_.data() + at_);
    at_ += count * sizeof(T);
    return {first, count};
  }
  bool finished() const { return !short_ && at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_;
  bool short_ = false;
};

class RawCodec final : public SampleCodec {
 public:
  absl::Status encode(const Batch& batch, std::string& out) override {
    absl::Status status = check_columns(batch);
    if (!status.ok()) return status;
    const std::size_t runs = batch.runs.size();
    const bool scaled = !batch.scaled.empty();
    const bool paced = !batch.paces.empty();
    out.clear();
    base::ByteWriter to(out);
    to.u8(static_cast<std::uint8_t>(kRawFormat.kind));
    to.u8(kRawFormat.version);
    to.u8(static_cast<std::uint8_t>((scaled ? kScaled : 0) | (paced ? kPaced : 0)));
    to.u8(static_cast<std::uint8_t>(scaled ? batch.decimals : 0));
    to.u64(batch.size() | static_cast<std::uint64_t>(runs) << 32);
    words_.resize(runs);
    for (std::size_t i = 0; i < runs; ++i) words_[i] = model::index(batch.runs[i].series);
    put_column(words_.data(), runs, out);
    for (std::size_t i = 0; i < runs; ++i) words_[i] = batch.runs[i].end - batch.runs[i].begin;
    put_column(words_.data(), runs, out);
    if (paced) {
      longs_.resize(runs);
      for (std::size_t i = 0; i < runs; ++i) longs_[i] = model::to_ns(batch.paces[i].start);
      put_column(longs_.data(), runs, out);
      for (std::size_t i = 0; i < runs; ++i) longs_[i] = batch.paces[i].step.count();
      put_column(longs_.data(), runs, out);
    } else {
      put_column(batch.times.data(), batch.times.size(), out);
    }
    if (scaled) {
      put_column(batch.scaled.data(), batch.scaled.size(), out);
    } else {
      put_column(batch.values.data(), batch.values.size(), out);
    }
    end_envelope(out);
    return absl::OkStatus();
  }

  absl::Status decode(std::string_view bytes, Batch& out) override {
    out.clear();
    if (!bytes.empty() && reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0) {
      copy_.resize(aligned(bytes.size()) / 8);
      std::memcpy(copy_.data(), bytes.data(), bytes.size());
      bytes = {reinterpret_cast<const char*>(copy_.data()), bytes.size()};
    }
    const absl::StatusOr<RawView> view = view_raw(bytes);
    if (!view.ok()) return view.status();
    std::uint32_t end = 0;
    for (std::size_t i = 0; i < view->series.size(); ++i) {
      out.runs.push_back({static_cast<model::SeriesId>(view->series[i]), end, end + view->lengths[i]});
      end += view->lengths[i];
    }
    out.times.resize(view->times.size());
    if (!view->times.empty())
      std::memcpy(static_cast<void*>(out.times.data()), view->times.data(), view->times.size_bytes());
    for (std::size_t i = 0; i < view->starts.size(); ++i)
      out.paces.push_back({model::from_ns(view->starts[i]), model::Duration(view->steps[i])});
    out.values.assign(view->values.begin(), view->values.end());
    out.scaled.assign(view->scaled.begin(), view->scaled.end());
    out.decimals = view->decimals;
    if (const char* wrong = check_paces(out); wrong != nullptr) {
      out.clear();
      return malformed(kRawFormat, wrong);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::int64_t> longs_;
  std::vector<std::uint64_t> copy_;
};

}  // namespace

absl::StatusOr<RawView> view_raw(std::string_view bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0)
    return absl::InvalidArgumentError("raw samples: they lie at no multiple of 8 bytes; copy them to one");
  const absl::StatusOr<std::string_view> body = open_envelope(kRawFormat, bytes);
  if (!body.ok()) return body.status();
  const std::string_view covered(bytes.data(), static_cast<std::size_t>(body->data() - bytes.data()) + body->size());
  if (covered.size() < kHeaderBytes) return malformed(kRawFormat, "the header is cut off");
  const auto form = static_cast<std::uint8_t>(covered[2]);
  RawView view;
  view.decimals = static_cast<std::uint8_t>(covered[3]);
  std::uint32_t samples = 0;
  std::uint32_t runs = 0;
  std::memcpy(&samples, covered.data() + 4, sizeof samples);
  std::memcpy(&runs, covered.data() + 8, sizeof runs);
  if (form > (kScaled | kPaced) || view.decimals > model::kMaxScaledDecimals)
    return malformed(kRawFormat, fmt::format("found form {} with {} decimals", form, view.decimals));
  if (samples > kMaxPackedSamples || runs > kMaxPackedSamples)
    return malformed(kRawFormat, fmt::format("found {} samples in {} runs, expected at most {} of each", samples, runs,
                                             kMaxPackedSamples));
  Columns columns(covered);
  view.series = columns.take<std::uint32_t>(runs);
  view.lengths = columns.take<std::uint32_t>(runs);
  if ((form & kPaced) != 0) {
    view.starts = columns.take<std::int64_t>(runs);
    view.steps = columns.take<std::int64_t>(runs);
  } else {
    view.times = columns.take<std::int64_t>(samples);
  }
  if ((form & kScaled) != 0) {
    view.scaled = columns.take<std::int32_t>(samples);
  } else {
    view.values = columns.take<double>(samples);
  }
  if (!columns.finished())
    return malformed(kRawFormat, fmt::format("{} bytes are not those of its columns", bytes.size()));
  std::uint64_t covered_samples = 0;
  for (const std::uint32_t length : view.lengths) covered_samples += length;
  if (covered_samples != samples)
    return malformed(kRawFormat, fmt::format("the runs cover {} of {} samples", covered_samples, samples));
  return view;
}

std::unique_ptr<SampleCodec> make_raw_codec() { return std::make_unique<RawCodec>(); }

}  // namespace orla::codec
