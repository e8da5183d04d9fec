// The format of a frame of samples. It is an envelope (see envelope.h) of kind "B", version 1, whose body is
//
//   flags      1 byte   1: what follows is compressed; 2: values are doubles; 4: times are paces; 8 and 16: the unit of
//                       time as a number 0..3, for 1 ns, 1 us, 1 ms, 1 s; the others are zero
//   decimals   1 byte   0..15
//   samples    varint   at most kMaxPackedSamples
//   runs       varint   at most kMaxPackedSamples
//   origin     signed   the first time (or start), in ns; 0 without samples
//   column     of the runs' series numbers
//   column     of the runs' lengths, in samples; they add up to the number of samples
//   times      see below
//   values     see below
//
// "signed" is a zigzag varint, "column" a sequence of numbers cut into blocks of 256, the last one shorter. Blocks are
// those of int_block_encode.cc. When the first flag is set there follow the size of the plain rest (varint) and the
// rest as one zstd frame, instead of what comes after the flags.
//
// Samples are cut into stretches: every run of at least 16 samples is one, and so are the shorter ones between two
// such. A stretch is cut into blocks of 256 samples, the last one shorter. A time is stored as its distance from a
// reference, in units, modulo 2^64; kRaw blocks hold times in ns themselves.
//
//   times, paces:   column of the runs' starts, from the origin, and column of their steps, in units
//   times, else:    the way of each stretch, 2 bits each, least significant first, in ceil(stretches / 4) bytes; then
//   for
//                   each stretch, after its way
//                     0  evenly spaced: signed, the first time from the first one of the stretch before; signed, the
//                     step 1  the times of the stretch before, which is as long; nothing 2  blocks: references are the
//                     first time of the stretch before, then the last time of the block before
//                   (for the first stretch, "the first time of the stretch before" is the origin)
//   values, doubles:  blocks of value * 10^decimals as an integer, or kRaw blocks of the doubles' bits
//   values, else:     blocks of value * 10^decimals as an integer of 32 bits, neither kRaw nor kWide
//
// A value counts as an integer when it is the double nearest to integer / 10^decimals.
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "codec/bit_varint.h"
#include "codec/int_block.h"
#include "codec/packed.h"
#include "codec/packed_format.h"
#include "codec/sample_codec.h"
#include "fmt/format.h"
#include "model/power_of_ten.h"

namespace orla::codec {

using model::Batch;
using model::Time;

namespace {

constexpr std::size_t kFewRuns = 16;  // samples per run, from which on paces pay
constexpr std::int64_t kExactInteger = std::int64_t{1} << 53;

std::int64_t distance(std::int64_t to, std::int64_t from) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
}

const std::int64_t* ns(const Time* times) {
  static_assert(sizeof(Time) == sizeof(std::int64_t));
  return reinterpret_cast<const std::int64_t*>(times);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// value * unit when that is an integer up to 2^53 and value the double nearest to its quotient by unit.
bool exact_integer(double value, double unit, std::int64_t& integer) {
  const double large = std::round(value * unit);
  if (!(std::fabs(large) <= static_cast<double>(kExactInteger))) return false;
  integer = static_cast<std::int64_t>(large);
  return same_bits(static_cast<double>(integer) / unit, value);
}

// The fewest decimals, at least `least`, with which the value fits into 32 bits; -1: none.
int decimals_of(double value, int least) {
  for (int decimals = least; decimals <= model::kMaxScaledDecimals; ++decimals) {
    std::int64_t integer = 0;
    if (exact_integer(value, model::power_of_ten(decimals), integer) && std::abs(integer) <= INT32_MAX) return decimals;
  }
  return -1;
}

bool evenly_spaced(const std::int64_t* t, std::size_t n, std::int64_t step) {
  std::uint64_t differs = 0;
  std::size_t i = 1;
  for (; i + 8 <= n && differs == 0; i += 8)
    for (std::size_t k = i; k < i + 8; ++k) differs |= static_cast<std::uint64_t>(distance(t[k], t[k - 1]) ^ step);
  if (differs != 0) return false;
  for (; i < n; ++i) differs |= static_cast<std::uint64_t>(distance(t[i], t[i - 1]) ^ step);
  return differs == 0;
}

}  // namespace

struct PackedEncoder::Work {
  explicit Work(PackedOptions options) : options(options) {}

  void room(std::size_t more) {
    if (bytes.size() - used < more) bytes.resize(2 * (bytes.size() + more));
  }
  std::uint8_t* next() { return bytes.data() + used; }
  void put_byte(unsigned byte) {
    room(1);
    bytes[used++] = static_cast<std::uint8_t>(byte);
  }
  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_byte((value & 0x7f) | 0x80);
    put_byte(static_cast<unsigned>(value));
  }
  void put_signed(std::int64_t value) { put_varint(base::zigzag(value)); }
  void put_block(const std::int32_t* v, std::size_t n, std::int64_t base) {
    room(kBlockRoom);
    used += blocks->ints(v, n, base, next());
  }
  void put_raw(const void* words, std::size_t n) {
    room(kBlockRoom);
    used += encode_raw_block(words, n, next());
  }

  // A block of any integers.
  void put_long_block(const std::int64_t* v, std::size_t n) {
    if (convert->offsets(v, n, 1, small)) return put_block(small, n, v[0]);
    room(kBlockRoom);
    const std::size_t size = encode_wide_block(v, n, next());
    if (size == 0) return put_raw(v, n);
    used += size;
  }

  template <typename F>
  void put_column(std::size_t count, F value) {
    std::int64_t v[kBlockValues];
    for (std::size_t i = 0; i < count; i += kBlockValues) {
      const std::size_t n = std::min(kBlockValues, count - i);
      for (std::size_t k = 0; k < n; ++k) v[k] = value(i + k);
      put_long_block(v, n);
    }
  }

  // Whether all runs are evenly spaced forwards; then `paces` says how.
  bool find_paces(const Batch& batch) {
    if (batch.size() < kFewRuns * batch.runs.size()) return false;
    paces.clear();
    for (const Batch::Run& run : batch.runs) {
      const std::int64_t* const t = ns(batch.times.data()) + run.begin;
      const std::size_t n = run.end - run.begin;
      Batch::Pace pace;
      if (n > 0) pace.start = model::from_ns(t[0]);
      if (n > 1) {
        pace.step = model::Duration(distance(t[1], t[0]));
        if (pace.step.count() < 0 || t[n - 1] < t[0] || !evenly_spaced(t, n, pace.step.count())) return false;
      }
      paces.push_back(pace);
    }
    return true;
  }

  // The largest unit of which all starts (from the origin) and steps are multiples.
  unsigned pace_unit(const std::vector<Batch::Pace>& all, std::int64_t origin) const {
    for (unsigned unit = 3;; --unit) {
      const auto whole = [&](const Batch::Pace& pace) {
        return distance(model::to_ns(pace.start), origin) % kPackedUnits[unit] == 0 &&
               pace.step.count() % kPackedUnits[unit] == 0;
      };
      if (unit == 0 || std::all_of(all.begin(), all.end(), whole)) return unit;
    }
  }

  void put_paces(const std::vector<Batch::Pace>& all, std::int64_t origin, std::int32_t unit) {
    put_column(all.size(), [&](std::size_t i) { return distance(model::to_ns(all[i].start), origin) / unit; });
    put_column(all.size(), [&](std::size_t i) { return all[i].step.count() / unit; });
  }

  // False when the unit is too coarse.
  bool put_time_block(const std::int64_t* t, std::size_t n, std::int64_t reference, std::int32_t unit) {
    const std::int64_t first = distance(t[0], reference);
    if (first % unit != 0) return false;
    if (convert->offsets(t, n, unit, small)) {
      room(kBlockRoom);
      used += blocks->steps(small, n, first / unit, next());
      return true;
    }
    std::int64_t counts[kBlockValues];
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t ahead = distance(t[i], reference);
      if (ahead % unit != 0) return false;
      counts[i] = ahead / unit;
    }
    room(kBlockRoom);
    const std::size_t size = encode_wide_block(counts, n, next());
    if (size == 0) put_raw(t, n);
    used += size;
    return true;
  }

  bool put_stretch_times(const Batch& batch, std::int64_t origin, std::int32_t unit) {
    const std::int64_t* const t = ns(batch.times.data());
    std::size_t stretches = 0;
    each_stretch(batch.runs, batch.size(), [&](std::size_t, std::size_t) { return ++stretches > 0; });
    const std::size_t ways = used;
    room((stretches + 3) / 4);
    std::memset(next(), 0, (stretches + 3) / 4);
    used += (stretches + 3) / 4;
    std::size_t stretch = 0;
    std::size_t before = 0;  // begin and length of the stretch before
    std::size_t length_before = 0;
    return each_stretch(batch.runs, batch.size(), [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      const std::int64_t reference = stretch == 0 ? origin : t[before];
      TimesOf way = TimesOf::kBlocks;
      if (n == length_before && std::memcmp(t + begin, t + before, n * sizeof *t) == 0) {
        way = TimesOf::kAsBefore;
      } else if (n > 2 && evenly_spaced(t + begin, n, distance(t[begin + 1], t[begin]))) {
        way = TimesOf::kPaced;
      }
      bytes[ways + stretch / 4] |= static_cast<std::uint8_t>(static_cast<unsigned>(way) << (stretch % 4 * 2));
      if (way == TimesOf::kPaced) {
        const std::int64_t first = distance(t[begin], reference);
        const std::int64_t step = distance(t[begin + 1], t[begin]);
        if (first % unit != 0 || step % unit != 0) return false;
        put_signed(first / unit);
        put_signed(step / unit);
      } else if (way == TimesOf::kBlocks) {
        for (std::size_t i = begin; i < end; i += kBlockValues) {
          const std::size_t size = std::min(kBlockValues, end - i);
          if (!put_time_block(t + i, size, i == begin ? reference : t[i - 1], unit)) return false;
        }
      }
      before = begin;
      length_before = n;
      ++stretch;
      return true;
    });
  }

  // The decimals that some of the values have.
  static int probe_decimals(const std::vector<double>& x) {
    int decimals = 0;
    const std::size_t probes = std::clamp<std::size_t>(x.size() / 32, 1, 32);
    for (std::size_t i = 0; i < probes; ++i)
      decimals = std::max(decimals, decimals_of(x[i * x.size() / probes], decimals));
    return decimals;
  }

  // A block of doubles that are not all decimals of 32 bits close to each other.
  void put_odd_block(const double* x, std::size_t n, double unit) {
    std::int64_t wide[kBlockValues];
    for (std::size_t i = 0; i < n; ++i)
      if (!exact_integer(x[i], unit, wide[i])) return put_raw(x, n);
    if (convert->offsets(wide, n, 1, small)) return put_block(small, n, wide[0]);
    room(kBlockRoom);
    const std::size_t size = encode_wide_block(wide, n, next());
    if (size == 0) return put_raw(x, n);
    used += size;
  }

  // Writes the values with so many decimals, or finds that some need more (then `decimals` says how many), or that they
  // are no decimals of 32 bits (then `doubles` does), and has to be called again.
  bool try_doubles(const Batch& batch, int& decimals, bool& doubles) {
    const double unit = model::power_of_ten(decimals);
    return each_stretch(batch.runs, batch.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; i += kBlockValues) {
        const std::size_t n = std::min(kBlockValues, end - i);
        const double* const x = batch.values.data() + i;
        if (convert->decimals(x, n, unit, small)) {
          if (!doubles) {
            put_block(small, n, 0);
            continue;
          }
          const auto [least, most] = std::minmax_element(small, small + n);
          if (std::int64_t{*most} - *least <= INT32_MAX) {
            put_block(small, n, 0);
            continue;
          }
        } else {
          for (std::size_t k = 0; k < n; ++k) {
            const int needed = decimals_of(x[k], decimals);
            if (needed <= decimals) continue;
            decimals = needed;
            return false;
          }
          if (!doubles) {
            doubles = true;
            return false;
          }
        }
        put_odd_block(x, n, unit);
      }
      return true;
    });
  }

  void put_values(const Batch& batch, int& decimals, bool& doubles) {
    if (batch.values.empty()) {
      each_stretch(batch.runs, batch.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; i += kBlockValues) {
          const std::size_t n = std::min(kBlockValues, end - i);
          const std::int32_t* v = batch.scaled.data() + i;
          if (i + n + kValueSlack > batch.scaled.size()) {
            std::memcpy(small, v, n * sizeof *small);
            v = small;
          }
          put_block(v, n, 0);
        }
        return true;
      });
      return;
    }
    decimals = probe_decimals(batch.values);
    const std::size_t begin = used;
    while (!try_doubles(batch, decimals, doubles)) used = begin;
  }

  absl::Status compress(std::size_t plain_begin, std::string& out) const {
    const std::size_t plain = used - plain_begin;
    out.assign(reinterpret_cast<const char*>(bytes.data()), plain_begin);
    out[2] = static_cast<char>(static_cast<std::uint8_t>(out[2]) | kPackedCompressed);
    base::ByteWriter(out).varint(plain);
    const std::size_t begin = out.size();
    out.resize(begin + ZSTD_compressBound(plain));
    const std::size_t size =
        ZSTD_compress(out.data() + begin, out.size() - begin, bytes.data() + plain_begin, plain, options.zstd_level);
    if (ZSTD_isError(size) != 0)
      return absl::InternalError(fmt::format("packed samples: zstd: {}", ZSTD_getErrorName(size)));
    out.resize(begin + size);
    end_envelope(out);
    return absl::OkStatus();
  }

  absl::Status encode(const Batch& batch, std::string& out) {
    absl::Status status = check_columns(batch);
    if (!status.ok()) return status;
    blocks = &block_encoder();
    convert = &int_converter();
    used = 0;
    const bool found = batch.paces.empty() && !batch.times.empty() && find_paces(batch);
    const std::vector<Batch::Pace>& all = batch.paces.empty() ? paces : batch.paces;
    const bool paced = found || !batch.paces.empty();
    std::int64_t origin = 0;
    if (paced && !all.empty()) origin = model::to_ns(all.front().start);
    if (!paced && !batch.times.empty()) origin = model::to_ns(batch.times.front());
    int decimals = batch.decimals;
    bool doubles = false;
    unsigned unit = paced ? pace_unit(all, origin) : 3;

    put_byte(static_cast<std::uint8_t>(kPackedFormat.kind));
    put_byte(kPackedFormat.version);
    put_byte(0);
    const std::size_t plain_begin = used;
    put_byte(0);
    put_varint(batch.size());
    put_varint(batch.runs.size());
    put_signed(origin);
    put_column(batch.runs.size(), [&](std::size_t i) { return std::int64_t{model::index(batch.runs[i].series)}; });
    put_column(batch.runs.size(), [&](std::size_t i) { return std::int64_t{batch.runs[i].end} - batch.runs[i].begin; });
    if (paced) {
      put_paces(all, origin, kPackedUnits[unit]);
    } else {
      const std::size_t begin = used;
      while (!put_stretch_times(batch, origin, kPackedUnits[unit])) {
        used = begin;
        --unit;  // of 1 ns everything is a multiple
      }
    }
    put_values(batch, decimals, doubles);
    bytes[2] = static_cast<std::uint8_t>((doubles ? kPackedDoubles : 0U) | (paced ? kPackedPaced : 0U) |
                                         unit << kPackedUnitShift);
    bytes[plain_begin] = static_cast<std::uint8_t>(decimals);
    if (options.zstd_level != 0) return compress(plain_begin, out);
    const std::string_view covered(reinterpret_cast<const char*>(bytes.data()), used);
    const std::uint64_t sum = base::hash64(covered);
    out.assign(covered);
    base::ByteWriter(out).u64(sum);
    return absl::OkStatus();
  }

  const PackedOptions options;
  const BlockEncoder* blocks = nullptr;
  const IntConverter* convert = nullptr;
  std::vector<std::uint8_t> bytes;
  std::size_t used = 0;
  std::vector<Batch::Pace> paces;
  std::int32_t small[kBlockValues + kValueSlack] = {};
};

PackedEncoder::PackedEncoder(PackedOptions options) : work_(std::make_unique<Work>(options)) {}
PackedEncoder::~PackedEncoder() = default;
PackedEncoder::PackedEncoder(PackedEncoder&&) noexcept = default;
PackedEncoder& PackedEncoder::operator=(PackedEncoder&&) noexcept = default;

absl::Status PackedEncoder::encode(const Batch& batch, std::string& out) { return work_->encode(batch, out); }

absl::StatusOr<std::string> encode_packed(const Batch& batch, PackedOptions options) {
  std::string out;
  absl::Status status = PackedEncoder(options).encode(batch, out);
  if (!status.ok()) return status;
  return out;
}

}  // namespace orla::codec
