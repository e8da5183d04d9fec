// Format: number n of hashes as a varint. Up to kMostExact: the hashes, rising, the first and then each minus (the one
// before + 1). n = kMostExact + 1: the registers follow, 6 bits each, from the low bits of the first byte on.
#include "model/distinct_sketch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace orla::model {
namespace {

constexpr int kIndexBits = 12;
constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
constexpr int kRankBits = 64 - kIndexBits;  // a register holds up to one more
constexpr std::size_t kRegisterBytes = kRegisters * 6 / 8;

double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1;
  double z = x;
  for (double before = -1; z != before; y += y) {
    x *= x;
    before = z;
    z += x * y;
  }
  return z;
}

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1;
  double z = 1 - x;
  for (double before = -1; z != before;) {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) * (1 - x) * y;
  }
  return z / 3;
}

}  // namespace

void DistinctSketch::put(std::uint64_t hash) {
  const std::uint64_t rest = hash << kIndexBits;
  const int rank = rest == 0 ? kRankBits + 1 : std::countl_zero(rest) + 1;
  std::uint8_t& at = registers_[hash >> kRankBits];
  at = std::max(at, static_cast<std::uint8_t>(rank));
}

void DistinctSketch::make_registers() {
  registers_.assign(kRegisters, 0);
  for (const std::uint64_t hash : hashes_) put(hash);
  hashes_ = std::vector<std::uint64_t>();  // `= {}` would keep its memory
}

void DistinctSketch::add(std::uint64_t hash) {
  if (!registers_.empty()) return put(hash);
  const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), hash);
  if (at != hashes_.end() && *at == hash) return;
  hashes_.insert(at, hash);
  if (hashes_.size() > kMostExact) make_registers();
}

void DistinctSketch::merge(const DistinctSketch& other) {
  if (&other == this) return;
  if (registers_.empty() && other.registers_.empty()) {
    std::vector<std::uint64_t> both;
    both.reserve(hashes_.size() + other.hashes_.size());
    std::set_union(hashes_.begin(), hashes_.end(), other.hashes_.begin(), other.hashes_.end(),
                   std::back_inserter(both));
    hashes_ = std::move(both);
    if (hashes_.size() > kMostExact) make_registers();
    return;
  }
  if (registers_.empty()) make_registers();
  for (const std::uint64_t hash : other.hashes_) put(hash);
  for (std::size_t i = 0; i < other.registers_.size(); ++i)
    registers_[i] = std::max(registers_[i], other.registers_[i]);
}

std::uint64_t DistinctSketch::estimate() const {
  if (exact()) return hashes_.size();
  std::array<std::uint32_t, kRankBits + 2> of_rank{};
  for (const std::uint8_t rank : registers_) ++of_rank[rank];
  const auto m = static_cast<double>(kRegisters);
  double z = m * tau(1 - of_rank[kRankBits + 1] / m);
  for (int rank = kRankBits; rank > 0; --rank) z = 0.5 * (z + of_rank[static_cast<std::size_t>(rank)]);
  z += m * sigma(of_rank[0] / m);
  const double alpha = 0.5 / std::log(2.0);
  return static_cast<std::uint64_t>(std::llround(std::min(alpha * m * m / z, 0x1p62)));
}

std::size_t DistinctSketch::memory_bytes() const {
  return sizeof *this + hashes_.capacity() * sizeof(std::uint64_t) + registers_.capacity();
}

void DistinctSketch::write(base::ByteWriter& to) const {
  if (exact()) {
    to.varint(hashes_.size());
    std::uint64_t next = 0;
    for (const std::uint64_t hash : hashes_) {
      to.varint(hash - next);
      next = hash + 1;
    }
    return;
  }
  to.varint(kMostExact + 1);
  for (std::size_t i = 0; i < kRegisters; i += 4) {
    const std::uint32_t four = registers_[i] | static_cast<std::uint32_t>(registers_[i + 1]) << 6 |
                               static_cast<std::uint32_t>(registers_[i + 2]) << 12 |
                               static_cast<std::uint32_t>(registers_[i + 3]) << 18;
    for (const int shift : {0, 8, 16}) to.u8(static_cast<std::uint8_t>(four >> shift));
  }
}

bool DistinctSketch::read(base::ByteReader& from, DistinctSketch& into) {
  const std::uint64_t count = from.varint();
  DistinctSketch out;
  if (count > kMostExact + 1 || count > from.left()) return false;
  if (count <= kMostExact) {
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t gap = from.varint();
      if (from.failed() || (i > 0 && next == 0) || gap > UINT64_MAX - next) return false;
      out.hashes_.push_back(next + gap);
      next += gap + 1;  // 0: there is none after the last
    }
  } else {
    const std::string_view bytes = from.raw(kRegisterBytes);
    if (from.failed()) return false;
    out.registers_.reserve(kRegisters);
    bool any = false;
    for (std::size_t i = 0; i < kRegisterBytes; i += 3) {
      const std::uint32_t four = static_cast<std::uint8_t>(bytes[i]) |
                                 static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i + 1])) << 8 |
                                 static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i + 2])) << 16;
      for (const int shift : {0, 6, 12, 18}) {
        const auto rank = static_cast<std::uint8_t>(four >> shift & 63);
        if (rank > kRankBits + 1) return false;
        any = any || rank > 0;
        out.registers_.push_back(rank);
      }
    }
    if (!any) return false;
  }
  into = std::move(out);
  return true;
}

}  // namespace orla::model
