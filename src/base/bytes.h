// Reading and writing of the byte formats' atoms: little-endian words, LEB128 varints, zigzag.
//
// A varint carries 7 bits per byte, least significant first; the high bit of a byte says that another follows. Only the
// shortest form is read: a number has one encoding. Zigzag maps 0, -1, 1, -2, ... to 0, 1, 2, 3, ...
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace orla::base {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

constexpr std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t v) { return static_cast<std::int64_t>((v >> 1) ^ (0 - (v & 1))); }
constexpr UInt128 zigzag128(Int128 v) { return (static_cast<UInt128>(v) << 1) ^ static_cast<UInt128>(v >> 127); }
constexpr Int128 unzigzag128(UInt128 v) { return static_cast<Int128>((v >> 1) ^ (0 - (v & 1))); }

// Appends to a string.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u64(std::uint64_t v) {
    static_assert(std::endian::native == std::endian::little);
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    out_.append(raw, sizeof raw);
  }
  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      u8(static_cast<std::uint8_t>(v) | 0x80);
      v >>= 7;
    }
    u8(static_cast<std::uint8_t>(v));
  }
  void varint128(UInt128 v) {
    while (v >= 0x80) {
      u8(static_cast<std::uint8_t>(v) | 0x80);
      v >>= 7;
    }
    u8(static_cast<std::uint8_t>(v));
  }
  void raw(std::string_view bytes) { out_.append(bytes); }
  // Length, then the bytes.
  void text(std::string_view bytes) {
    varint(bytes.size());
    raw(bytes);
  }

 private:
  std::string& out_;
};

// Reads from bytes that outlive it. After a read past the end, or of a varint that is not the shortest form or does
// not fit, failed() is true and stays so, and every read gives zero.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  // Everything was read, and nothing failed.
  bool finished() const { return !failed_ && rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

  std::uint8_t u8() {
    if (rest_.empty()) return fail();
    const auto v = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return v;
  }
  std::uint64_t u64() {
    std::uint64_t v = 0;
    if (rest_.size() < sizeof v) return fail();
    std::memcpy(&v, rest_.data(), sizeof v);
    rest_.remove_prefix(sizeof v);
    return v;
  }
  std::uint64_t varint() { return read_varint<std::uint64_t, 64>(); }
  UInt128 varint128() { return read_varint<UInt128, 128>(); }
  std::string_view raw(std::uint64_t size) {
    if (rest_.size() < size) {
      fail();
      return {};
    }
    const std::string_view v = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return v;
  }
  std::string_view text() { return raw(varint()); }

  std::uint8_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }

 private:
  template <typename T, int bits>
  T read_varint() {
    T v = 0;
    for (int shift = 0; shift < bits; shift += 7) {
      const std::uint8_t byte = u8();
      if (failed_) return 0;
      const T part = byte & 0x7f;
      if (shift + 7 > bits && (part >> (bits - shift)) != 0) return fail();  // beyond the type
      v |= part << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) return fail();  // a longer form
        return v;
      }
    }
    return fail();
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace orla::base
