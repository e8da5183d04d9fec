#include "codec/json_numbers.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "fast_float/fast_float.h"
#include "fmt/format.h"
#include "model/power_of_ten.h"

namespace orla::codec {

namespace {

// A number takes at most so many characters, comma included: -2.2250738585072014e-308, "7ff8000000000001".
constexpr std::size_t kMostCharacters = 32;
// Doubles with up to this many decimals, of up to 15 digits in all, are written digit by digit.
constexpr int kFewDecimals = 3;
constexpr double kFewUnit = 1000;
constexpr double kManyDigits = 1e15;

constexpr std::array<char, 200> kPairs = [] {
  std::array<char, 200> pairs{};
  for (unsigned i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Makes room at the end of a text ahead of a loop of writes through a pointer.
class Room {
 public:
  Room(std::string& out, std::size_t bytes) : out_(out), begin_(out.size()) {
    out.resize(begin_ + bytes);
    next = out.data() + begin_;
  }
  ~Room() { out_.resize(static_cast<std::size_t>(next - out_.data())); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  char* next;

 private:
  std::string& out_;
  std::size_t begin_;
};

char* write_digits(char* out, std::uint64_t number) {
  char digits[20];
  char* first = digits + sizeof digits;
  while (number >= 100) {
    first -= 2;
    std::memcpy(first, &kPairs[2 * (number % 100)], 2);
    number /= 100;
  }
  if (number >= 10) {
    first -= 2;
    std::memcpy(first, &kPairs[2 * number], 2);
  } else {
    *--first = static_cast<char>('0' + number);
  }
  const auto size = static_cast<std::size_t>(digits + sizeof digits - first);
  std::memcpy(out, first, size);
  return out + size;
}

// magnitude / 10^decimals without trailing zeros.
char* write_decimal(char* out, std::uint64_t magnitude, int decimals, std::uint64_t unit) {
  out = write_digits(out, magnitude / unit);
  std::uint64_t rest = magnitude % unit;
  if (rest == 0) return out;
  *out++ = '.';
  char* end = out + decimals;
  for (char* digit = end; digit != out; rest /= 10) *--digit = static_cast<char>('0' + rest % 10);
  while (end[-1] == '0') --end;
  return end;
}

template <typename T>
char* write_float(char* out, T number) {
  if (!std::isfinite(number)) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return fmt::format_to(out, "\"{:0{}x}\"", std::bit_cast<Bits>(number), 2 * sizeof(T));
  }
  return std::to_chars(out, out + kMostCharacters, number).ptr;
}

char* write_double(char* out, double number) {
  const double large = number * kFewUnit;
  if (std::fabs(large) < kManyDigits) {
    const auto integer = static_cast<std::int64_t>(large < 0 ? large - 0.5 : large + 0.5);
    if (static_cast<double>(integer) / kFewUnit == number && !(integer == 0 && std::signbit(number))) {
      if (integer < 0) *out++ = '-';
      return write_decimal(out, static_cast<std::uint64_t>(integer < 0 ? -integer : integer), kFewDecimals, 1000);
    }
  }
  return write_float(out, number);
}

template <typename T, typename F>
void write_array(const std::vector<T>& numbers, std::string& out, F write) {
  out += '[';
  constexpr std::size_t kAtOnce = 1024;
  for (std::size_t i = 0; i < numbers.size(); i += kAtOnce) {
    const std::size_t end = std::min(numbers.size(), i + kAtOnce);
    Room room(out, (end - i) * kMostCharacters);
    for (std::size_t k = i; k < end; ++k) {
      room.next = write(room.next, numbers[k]);
      *room.next++ = ',';
    }
  }
  if (numbers.empty()) {
    out += ']';
  } else {
    out.back() = ']';
  }
}

}  // namespace

void write_json(const std::vector<double>& numbers, std::string& out) { write_array(numbers, out, write_double); }

void write_json(const std::vector<float>& numbers, std::string& out) { write_array(numbers, out, write_float<float>); }

void write_json(const std::vector<std::int64_t>& numbers, std::string& out) {
  write_array(numbers, out, [](char* to, std::int64_t number) {
    if (number < 0) *to++ = '-';
    return write_digits(to, number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number));
  });
}

void write_json_decimals(const std::vector<std::int32_t>& integers, int decimals, std::string& out) {
  const auto unit = static_cast<std::uint64_t>(model::power_of_ten(decimals));
  write_array(integers, out, [=](char* to, std::int32_t integer) {
    if (integer < 0) *to++ = '-';
    const auto magnitude = static_cast<std::uint64_t>(integer < 0 ? -std::int64_t{integer} : std::int64_t{integer});
    return write_decimal(to, magnitude, decimals, unit);
  });
}

std::string JsonReader::problem() const { return fmt::format("{} at byte {}", wrong_, next_ - begin_); }

void JsonReader::fail(const char* what) {
  if (wrong_ == nullptr) wrong_ = what;
}

void JsonReader::space() {
  while (next_ != end_ && (*next_ == ' ' || *next_ == '\n' || *next_ == '\r' || *next_ == '\t')) ++next_;
}

bool JsonReader::take(char c) {
  if (failed()) return false;
  if (next_ == end_ || *next_ != c) {
    space();
    if (next_ == end_ || *next_ != c) return false;
  }
  ++next_;
  return true;
}

bool JsonReader::take(std::string_view word) {
  if (failed()) return false;
  space();
  if (left() < word.size() || std::memcmp(next_, word.data(), word.size()) != 0) return false;
  next_ += word.size();
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) fail("found another character than the format has");
}

void JsonReader::expect(std::string_view word) {
  if (!take(word)) fail("found another member than the format has");
}

void JsonReader::finish() {
  if (failed()) return;
  space();
  if (next_ != end_) fail("there is more text behind the value");
}

void JsonReader::skip_array() {
  expect('[');
  if (failed()) return;
  const void* end = left() == 0 ? nullptr : std::memchr(next_, ']', left());
  if (end == nullptr) return fail("an array has no end");
  next_ = static_cast<const char*>(end) + 1;
}

bool JsonReader::read_integer(std::int64_t& number) {
  const char* p = next_;
  if (p != end_ && *p == '-') ++p;
  if (p == end_ || !is_digit(*p) || (*p == '0' && end_ - p > 1 && is_digit(p[1]))) return false;
  const auto [after, error] = std::from_chars(next_, end_, number);
  if (error != std::errc()) return false;
  next_ = after;
  return true;
}

std::int64_t JsonReader::integer(std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  if (failed()) return least;
  space();
  if (!read_integer(number)) {
    fail("expected a whole number of 64 bits");
  } else if (number < least || number > most) {
    fail("a number is out of range");
  } else {
    return number;
  }
  return least;
}

// The bits of a number that JSON has no text for.
template <typename T, typename Bits>
bool JsonReader::read_bits(T& number) {
  constexpr std::size_t kDigits = 2 * sizeof(Bits);
  if (left() < kDigits + 2 || next_[kDigits + 1] != '"') return false;
  Bits bits = 0;
  const auto [after, error] = std::from_chars(next_ + 1, next_ + 1 + kDigits, bits, 16);
  if (error != std::errc() || after != next_ + 1 + kDigits) return false;
  number = std::bit_cast<T>(bits);
  if (std::isfinite(number)) return false;
  next_ += kDigits + 2;
  return true;
}

template <typename T>
bool JsonReader::read_float(T& number) {
  const char* p = next_;
  if (p == end_) return false;
  if (*p == '"') return read_bits<T, std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>(number);
  // What the library takes and JSON does not: no digit before or behind the point, zeros in front, words.
  if (*p == '-') ++p;
  if (p == end_ || !is_digit(*p)) return false;
  if (*p == '0') {
    ++p;
    if (p != end_ && is_digit(*p)) return false;
  } else {
    while (p != end_ && is_digit(*p)) ++p;
  }
  if (p != end_ && *p == '.' && (end_ - p < 2 || !is_digit(p[1]))) return false;
  const auto [after, error] = fast_float::from_chars(next_, end_, number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  next_ = after;
  return true;
}

bool JsonReader::read_decimal(int decimals, std::int32_t& integer) {
  const char* p = next_;
  const bool negative = p != end_ && *p == '-';
  if (negative) ++p;
  if (p == end_ || !is_digit(*p) || (*p == '0' && end_ - p > 1 && is_digit(p[1]))) return false;
  std::int64_t number = 0;
  for (; p != end_ && is_digit(*p) && number <= INT32_MAX; ++p) number = 10 * number + (*p - '0');
  int places = 0;
  if (p != end_ && *p == '.') {
    ++p;
    if (p == end_ || !is_digit(*p)) return false;
    for (; p != end_ && is_digit(*p) && places <= decimals && number <= 2 * std::int64_t{INT32_MAX}; ++p, ++places)
      number = 10 * number + (*p - '0');
  }
  if (places > decimals) return false;
  for (; places < decimals && number <= 2 * std::int64_t{INT32_MAX}; ++places) number *= 10;
  if (negative) number = -number;
  if (number < INT32_MIN || number > INT32_MAX || (negative && number == 0)) return false;
  integer = static_cast<std::int32_t>(number);
  next_ = p;
  return true;
}

template <typename T, typename F>
void JsonReader::each(std::vector<T>& numbers, F read) {
  expect('[');
  if (take(']') || failed()) return;
  for (;;) {
    T number{};
    if (next_ == end_ || *next_ <= ' ') space();
    if (!read(number)) return fail("expected a number of the format");
    numbers.push_back(number);
    if (next_ != end_ && *next_ == ',') {
      ++next_;
      continue;
    }
    if (take(',')) continue;
    expect(']');
    return;
  }
}

void JsonReader::array(std::vector<double>& numbers) {
  each(numbers, [this](double& number) { return read_float(number); });
}

void JsonReader::array(std::vector<float>& numbers) {
  each(numbers, [this](float& number) { return read_float(number); });
}

void JsonReader::array(std::vector<std::int64_t>& numbers) {
  each(numbers, [this](std::int64_t& number) { return read_integer(number); });
}

void JsonReader::array_of_decimals(int decimals, std::vector<std::int32_t>& integers) {
  each(integers, [this, decimals](std::int32_t& integer) { return read_decimal(decimals, integer); });
}

}  // namespace orla::codec
