// Arrays of numbers as JSON text and back: the inner loops of the encodings `json`. RFC 8259, strictly.
//
// A double is written as the shortest text that reads back as the same double, or, when it has few decimals, as these;
// what JSON has no number for (NaN, infinities) as a string of the 16 hexadecimal digits of its bits, so that every
// double comes back to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orla::codec {

// "[1.5,2,...]" behind `out`.
void write_json(const std::vector<double>& numbers, std::string& out);
void write_json(const std::vector<float>& numbers, std::string& out);
void write_json(const std::vector<std::int64_t>& numbers, std::string& out);
// integer / 10^decimals, without trailing zeros.
void write_json_decimals(const std::vector<std::int32_t>& integers, int decimals, std::string& out);

// Reads one JSON text from front to back. What is read ends the text or fails: the first fault is kept, everything
// after it fails too. `text` outlives it.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text)
      : begin_(text.data()), next_(text.data()), end_(text.data() + text.size()) {}

  bool failed() const { return wrong_ != nullptr; }
  // "<what> at byte <n>". failed().
  std::string problem() const;
  std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }

  // White space, then this character or word; false, without fault, when something else stands there.
  bool take(char c);
  bool take(std::string_view word);
  // The same, as a fault.
  void expect(char c);
  void expect(std::string_view word);
  void finish();
  // A whole number in [least, most].
  std::int64_t integer(std::int64_t least, std::int64_t most);
  // An array, behind `numbers`; memory grows with what was read. Decimals: numbers of at most so many decimals, as
  // number * 10^decimals.
  void array(std::vector<double>& numbers);
  void array(std::vector<float>& numbers);
  void array(std::vector<std::int64_t>& numbers);
  void array_of_decimals(int decimals, std::vector<std::int32_t>& integers);
  // Past an array of numbers, whose elements are not looked at.
  void skip_array();

  void fail(const char* what);

 private:
  void space();
  template <typename T, typename F>
  void each(std::vector<T>& numbers, F read);
  template <typename T>
  bool read_float(T& number);
  template <typename T, typename Bits>
  bool read_bits(T& number);
  bool read_integer(std::int64_t& number);
  bool read_decimal(int decimals, std::int32_t& integer);

  const char* begin_;
  const char* next_;
  const char* end_;
  const char* wrong_ = nullptr;
};

}  // namespace orla::codec
