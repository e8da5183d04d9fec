// Decoder of the frames whose format is at the head of packed_encode.cc.
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "codec/packed.h"
#include "codec/packed_format.h"
#include "fmt/format.h"
#include "model/power_of_ten.h"

namespace orla::codec {

using model::Batch;

namespace {

// A compressed frame whose plain size is above this is refused unread: larger than any encoder makes.
constexpr std::size_t kMaxPlainBytes = kMaxPackedSamples * 48;
// zstd gives at least a byte for so many, or the frame is refused: memory stays in proportion to the bytes received.
constexpr std::size_t kMaxRatio = 4096;

std::int64_t* ns(model::Time* times) { return reinterpret_cast<std::int64_t*>(times); }

class Reader {
 public:
  Reader(std::string_view body, std::uint8_t flags, Batch& out)
      : out_(out),
        bytes_{reinterpret_cast<const std::uint8_t*>(body.data()),
               reinterpret_cast<const std::uint8_t*>(body.data()) + body.size()},
        doubles_((flags & kPackedDoubles) != 0),
        paced_((flags & kPackedPaced) != 0),
        unit_(kPackedUnits[(flags >> kPackedUnitShift) & 3]) {}

  // What is wrong, or null.
  const char* read() {
    if (bytes_.next == bytes_.end) return "the decimals are missing";
    const int decimals = *bytes_.next++;
    if (decimals > model::kMaxScaledDecimals) return "more decimals than 15";
    std::uint64_t samples = 0;
    std::uint64_t runs = 0;
    if (!varint(samples) || !varint(runs) || !read_signed(bytes_.next, bytes_.end, origin_))
      return "the sizes are cut off";
    if (samples > kMaxPackedSamples || runs > kMaxPackedSamples) return "more samples or runs than a frame may hold";
    samples_ = samples;
    const char* wrong = read_runs(runs);
    if (wrong == nullptr) wrong = paced_ ? read_paces() : read_times();
    if (wrong == nullptr) wrong = read_values(model::power_of_ten(decimals));
    if (wrong == nullptr && bytes_.next != bytes_.end) wrong = "there are bytes behind the last value";
    out_.decimals = doubles_ ? 0 : decimals;
    return wrong;
  }

 private:
  bool varint(std::uint64_t& value) {
    base::ByteReader reader(std::string_view(reinterpret_cast<const char*>(bytes_.next),
                                             static_cast<std::size_t>(bytes_.end - bytes_.next)));
    value = reader.varint();
    bytes_.next = bytes_.end - reader.left();
    return !reader.failed();
  }

  // f(index, number)
  template <typename F>
  const char* read_column(std::size_t count, F f) {
    std::int64_t v[kBlockValues + kValueSlack];
    for (std::size_t i = 0; i < count; i += kBlockValues) {
      const std::size_t n = std::min(kBlockValues, count - i);
      const char* wrong = blocks_.times(bytes_, n, 0, 1, v);
      if (wrong != nullptr) return wrong;
      for (std::size_t k = 0; k < n; ++k)
        if (!f(i + k, v[k])) return "a number of a run is out of range";
    }
    return nullptr;
  }

  const char* read_runs(std::size_t runs) {
    out_.runs.resize(runs);
    const char* wrong = read_column(runs, [this](std::size_t i, std::int64_t v) {
      out_.runs[i].series = static_cast<model::SeriesId>(v);
      return v >= 0 && v <= std::int64_t{UINT32_MAX};
    });
    if (wrong != nullptr) return wrong;
    std::size_t end = 0;
    wrong = read_column(runs, [&](std::size_t i, std::int64_t v) {
      if (v < 0 || static_cast<std::uint64_t>(v) > samples_ - end) return false;
      out_.runs[i].begin = static_cast<std::uint32_t>(end);
      end += static_cast<std::size_t>(v);
      longest_run_ = std::max(longest_run_, v);
      out_.runs[i].end = static_cast<std::uint32_t>(end);
      return true;
    });
    if (wrong != nullptr) return wrong;
    return end == samples_ ? nullptr : "the runs do not cover the samples";
  }

  // As each_stretch(), without a look at the runs when all are short.
  template <typename F>
  bool stretches(F f) const {
    if (longest_run_ < kLongRun) return samples_ == 0 || f(std::size_t{0}, samples_);
    return each_stretch(out_.runs, samples_, f);
  }

  std::int64_t scaled(std::int64_t reference, std::int64_t count) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(reference) +
                                     static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(unit_));
  }

  const char* read_paces() {
    out_.times.clear();
    out_.paces.resize(out_.runs.size());
    const char* wrong = read_column(out_.runs.size(), [this](std::size_t i, std::int64_t v) {
      out_.paces[i].start = model::from_ns(scaled(origin_, v));
      return true;
    });
    if (wrong != nullptr) return wrong;
    return read_column(out_.runs.size(), [this](std::size_t i, std::int64_t v) {
      Batch::Pace& pace = out_.paces[i];
      const std::int64_t samples = std::int64_t{out_.runs[i].end} - out_.runs[i].begin;
      std::int64_t step = 0;
      std::int64_t last = 0;
      if (v < 0 || __builtin_mul_overflow(v, std::int64_t{unit_}, &step)) return false;
      if (samples > 1 && (__builtin_mul_overflow(step, samples - 1, &last) ||
                          __builtin_add_overflow(model::to_ns(pace.start), last, &last)))
        return false;
      pace.step = model::Duration(step);
      return true;
    });
  }

  const char* read_times() {
    out_.paces.clear();
    out_.times.resize(samples_ + kValueSlack);
    std::int64_t* const t = ns(out_.times.data());
    std::size_t count = 0;
    stretches([&](std::size_t, std::size_t) { return ++count > 0; });
    const std::uint8_t* const ways = bytes_.next;
    if (static_cast<std::size_t>(bytes_.end - bytes_.next) < (count + 3) / 4) return "the times are cut off";
    bytes_.next += (count + 3) / 4;
    std::size_t stretch = 0;
    std::size_t before = 0;
    std::size_t length_before = 0;
    const char* wrong = nullptr;
    stretches([&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      const std::int64_t reference = stretch == 0 ? origin_ : t[before];
      switch (static_cast<TimesOf>(ways[stretch / 4] >> (stretch % 4 * 2) & 3)) {
        case TimesOf::kPaced: {
          std::int64_t first = 0;
          std::int64_t step = 0;
          if (read_signed(bytes_.next, bytes_.end, first) && read_signed(bytes_.next, bytes_.end, step)) {
            blocks_.paced(scaled(reference, first), scaled(0, step), n, t + begin);
          } else {
            wrong = "the times are cut off";
          }
          break;
        }
        case TimesOf::kAsBefore:
          if (n == length_before) {
            std::memcpy(t + begin, t + before, n * sizeof *t);
          } else {
            wrong = "times repeat those of a stretch of another length";
          }
          break;
        case TimesOf::kBlocks:
          for (std::size_t i = begin; i < end && wrong == nullptr; i += kBlockValues)
            wrong =
                blocks_.times(bytes_, std::min(kBlockValues, end - i), i == begin ? reference : t[i - 1], unit_, t + i);
          break;
        default:
          wrong = "unknown way of times";
      }
      before = begin;
      length_before = n;
      ++stretch;
      return wrong == nullptr;
    });
    out_.times.resize(samples_);
    return wrong;
  }

  template <typename T, typename F>
  const char* read_value_blocks(std::vector<T>& values, F block) {
    values.resize(samples_ + kValueSlack);
    const char* wrong = nullptr;
    stretches([&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end && wrong == nullptr; i += kBlockValues)
        wrong = block(std::min(kBlockValues, end - i), values.data() + i);
      return wrong == nullptr;
    });
    values.resize(samples_);
    return wrong;
  }

  const char* read_values(double unit) {
    if (doubles_) {
      out_.scaled.clear();
      return read_value_blocks(out_.values,
                               [&](std::size_t n, double* to) { return blocks_.doubles(bytes_, n, unit, to); });
    }
    out_.values.clear();
    return read_value_blocks(out_.scaled, [&](std::size_t n, std::int32_t* to) { return blocks_.ints(bytes_, n, to); });
  }

  const BlockDecoder& blocks_ = block_decoder();
  Batch& out_;
  BlockBytes bytes_;
  const bool doubles_;
  const bool paced_;
  const std::int32_t unit_;
  std::int64_t origin_ = 0;
  std::size_t samples_ = 0;
  std::int64_t longest_run_ = 0;
};

}  // namespace

absl::Status PackedDecoder::decode(std::string_view bytes, Batch& out) {
  const auto refused = [&](absl::Status status) {
    out.clear();
    return status;
  };
  const absl::StatusOr<std::string_view> opened = open_envelope(kPackedFormat, bytes);
  if (!opened.ok()) return refused(opened.status());
  std::string_view body = *opened;
  if (body.empty()) return refused(malformed(kPackedFormat, "the flags are missing"));
  const auto flags = static_cast<std::uint8_t>(body.front());
  if ((flags & ~kPackedFlags) != 0)
    return refused(malformed(kPackedFormat, fmt::format("found flags {}, expected at most {}", flags, kPackedFlags)));
  body.remove_prefix(1);
  if ((flags & kPackedCompressed) != 0) {
    base::ByteReader reader(body);
    const std::uint64_t size = reader.varint();
    const std::string_view compressed = reader.raw(reader.left());
    if (reader.failed() || size > std::min(kMaxPlainBytes, compressed.size() * kMaxRatio))
      return refused(
          malformed(kPackedFormat, fmt::format("{} compressed bytes claim to hold {}", compressed.size(), size)));
    plain_.resize(size);
    const std::size_t got = ZSTD_decompress(plain_.data(), plain_.size(), compressed.data(), compressed.size());
    if (ZSTD_isError(got) != 0 || got != size)
      return refused(malformed(
          kPackedFormat,
          fmt::format("zstd: {}", ZSTD_isError(got) != 0 ? ZSTD_getErrorName(got) : "another size than stated")));
    body = plain_;
  }
  const char* wrong = Reader(body, flags, out).read();
  if (wrong != nullptr) return refused(malformed(kPackedFormat, wrong));
  return absl::OkStatus();
}

absl::Status decode_packed(std::string_view bytes, Batch& out) { return PackedDecoder().decode(bytes, out); }

}  // namespace orla::codec
