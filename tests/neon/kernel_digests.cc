// Runs the SIMD kernels over random data and prints a digest of each one's results, to the bit. tools/neon builds it
// for another processor twice, with and without vectors, and compares what the two print.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codec/int_block.h"
#include "codec/number_block.h"
#include "hwy/highway.h"
#include "ingest/csv_debs_rows.h"
#include "ingest/csv_marks.h"
#include "ingest/line_blocks.h"
#include "model/exact_sum.h"
#include "model/power_of_ten.h"
#include "model/quantile_sketch.h"
#include "stream/run_kernels.h"

namespace orla {
namespace {

std::mt19937_64 bits{2026};  // the same numbers everywhere
std::uint64_t below(std::uint64_t bound) { return bits() % bound; }

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// FNV-1a.
class Digest {
 public:
  explicit Digest(const char* name) : name_(name) {}
  ~Digest() { std::printf("%s %016llx of %zu bytes\n", name_, static_cast<unsigned long long>(hash_), bytes_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3ULL;
    bytes_ += size;
  }
  template <typename T>
  void add(const T& value) {
    add(&value, sizeof value);
  }

 private:
  const char* name_;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::size_t bytes_ = 0;
};

constexpr std::size_t kPlaces = codec::kBlockValues + codec::kValueSlack;

// Values up to some width, a few up to another, now and then rising or all the same.
std::array<std::int32_t, kPlaces> some_values(std::size_t n) {
  std::array<std::int32_t, kPlaces> v{};
  const std::uint64_t width = below(33);
  const std::uint64_t other = below(33);
  const std::uint64_t shape = below(4);
  std::int32_t before = static_cast<std::int32_t>(below(1000));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t w = below(16) == 0 ? other : width;
    const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(w == 0 ? 0 : bits() >> (64 - w)));
    v[i] = x;
    if (shape == 1) v[i] = before = static_cast<std::int32_t>((static_cast<std::uint32_t>(before) + (x & 1023)) >> 0);
    if (shape == 2) v[i] = (x >> 4) - (1 << 20);
  }
  return v;
}

void blocks() {
  Digest ints("encoded blocks");
  Digest steps("encoded steps");
  Digest decoded("decoded times and doubles");
  for (int round = 0; round < 6000; ++round) {
    const std::size_t n = 1 + below(codec::kBlockValues);
    const std::array<std::int32_t, kPlaces> v = some_values(n);
    const auto base = static_cast<std::int64_t>(bits()) >> below(64);
    std::uint8_t bytes[codec::kBlockRoom];
    const std::size_t size = codec::block_encoder().ints(v.data(), n, base, bytes);
    ints.add(bytes, size);
    std::int32_t back[kPlaces];
    codec::BlockBytes from{bytes, bytes + size};
    if (codec::block_decoder().ints(from, n, back) != nullptr || from.next != from.end) fail("a block is not read");
    for (std::size_t i = 0; i < n; ++i)
      if (back[i] != static_cast<std::int32_t>(static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(v[i])))
        fail("a block does not come back");
    std::int64_t times[kPlaces];
    from.next = bytes;
    if (codec::block_decoder().times(from, n, 1'377'986'400, 1'000'000'000, times) != nullptr) fail("no times");
    decoded.add(times, n * sizeof *times);
    double doubles[kPlaces];
    from.next = bytes;
    if (codec::block_decoder().doubles(from, n, 1000, doubles) != nullptr) fail("no doubles");
    decoded.add(doubles, n * sizeof *doubles);

    std::array<std::int32_t, kPlaces> rising{};
    for (std::size_t i = 1; i < n; ++i) rising[i] = rising[i - 1] + static_cast<std::int32_t>(below(1 + below(1000)));
    const std::size_t step_size = codec::block_encoder().steps(rising.data(), n, base, bytes);
    steps.add(bytes, step_size);
    from = {bytes, bytes + step_size};
    if (codec::block_decoder().times(from, n, 5, 1, times) != nullptr || from.next != from.end) fail("no steps");
    decoded.add(times, n * sizeof *times);
  }
}

void numbers() {
  Digest digest("columns of numbers");
  for (int round = 0; round < 2000; ++round) {
    const std::size_t n = 1 + below(codec::kBlockValues);
    const std::uint64_t shift = below(64);
    std::vector<std::int64_t> v(n);
    for (std::int64_t& x : v) x = static_cast<std::int64_t>(bits()) >> shift;
    std::vector<std::uint8_t> bytes(codec::kNumbersRoom);
    const std::uint8_t* const end = codec::write_number_block(v.data(), n, bytes.data());
    digest.add(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
    std::vector<std::int64_t> back(n + codec::kValueSlack);
    codec::BlockBytes from{bytes.data(), end};
    if (codec::read_number_block(from, n, back.data()) != nullptr) fail("numbers are not read");
    back.resize(n);
    if (back != v) fail("numbers do not come back");
  }
}

double some_decimal(int decimals) {
  const auto whole = static_cast<double>(static_cast<std::int32_t>(bits()) >> below(32));
  double value = whole / model::power_of_ten(decimals);
  if (below(40) == 0) value = std::nextafter(value, below(2) == 0 ? 1e9 : -1e9);
  if (below(80) == 0) value = (whole + 0.5) / model::power_of_ten(decimals);
  if (below(400) == 0) value = -0.0;
  if (below(400) == 0) value = std::numeric_limits<double>::infinity();
  return value;
}

void conversions() {
  Digest offsets("offsets");
  Digest decimals("decimals of blocks");
  for (int round = 0; round < 4000; ++round) {
    const std::size_t n = 1 + below(codec::kBlockValues);
    const std::int32_t unit = static_cast<std::int32_t>(model::power_of_ten(static_cast<int>(below(10))));
    std::vector<std::int64_t> t(n);
    const auto begin = static_cast<std::int64_t>(bits() >> 3);
    for (std::size_t i = 0; i < n; ++i)
      t[i] = begin + unit * (static_cast<std::int64_t>(below(std::uint64_t{1} << below(32))) - 1000);
    if (below(4) == 0) t[below(n)] += 1;
    std::int32_t v[kPlaces] = {};
    const bool whole = codec::int_converter().offsets(t.data(), n, unit, v);
    offsets.add(whole);
    if (whole) offsets.add(v, n * sizeof *v);
    const int places = static_cast<int>(below(16));
    std::vector<double> x(n);
    const bool clean = below(2) == 0;
    for (double& value : x)
      value =
          clean ? (static_cast<std::int32_t>(bits()) >> below(31)) / model::power_of_ten(places) : some_decimal(places);
    const bool fits = codec::int_converter().decimals(x.data(), n, model::power_of_ten(places), v);
    decimals.add(fits);
    if (fits) decimals.add(v, n * sizeof *v);
  }
}

void runs() {
  Digest decimals("decimals of runs");
  Digest keys("quantile keys");
  Digest sums("summaries");
  Digest rising("rising times");
  for (int round = 0; round < 2000; ++round) {
    const std::size_t n = 1 + below(400);
    const int places = static_cast<int>(below(16));
    std::vector<double> values(n);
    for (double& value : values) value = some_decimal(places);
    std::vector<std::int32_t> out(n);
    stream::to_decimals(values, places, out);
    decimals.add(out.data(), n * sizeof out[0]);
    for (std::size_t i = 0; i < n; ++i) {
      const auto right = model::as_decimal(values[i], places);
      const bool fits = right && *right > INT32_MIN && *right <= INT32_MAX;
      if (out[i] != (fits ? static_cast<std::int32_t>(*right) : stream::kNoDecimal)) fail("another decimal");
    }
    std::vector<std::int32_t> scaled(n);
    for (std::int32_t& v : scaled) v = static_cast<std::int32_t>(bits()) >> (6 + below(26));
    std::vector<std::int32_t> key(n);
    stream::quantile_keys(scaled, places, key);
    keys.add(key.data(), n * sizeof key[0]);
    for (std::size_t i = 0; i < n; ++i)
      if (key[i] != model::quantile_key(scaled[i] / model::power_of_ten(places))) fail("another quantile key");
    const stream::RunSummary summary = stream::summarize(scaled);
    for (const std::int64_t part : {summary.sum, static_cast<std::int64_t>(summary.squares), std::int64_t{summary.min},
                                    std::int64_t{summary.max}})
      sums.add(part);
    std::vector<model::Time> times(n);
    std::int64_t at = static_cast<std::int64_t>(bits()) >> 2;
    for (model::Time& time : times)
      time = model::from_ns(at += static_cast<std::int64_t>(below(100) == 0 ? 0 : below(20)));
    for (const std::int64_t gap : {10, 18, 19, 1000}) rising.add(stream::rises(times, model::Duration(gap)));
  }
}

void texts() {
  Digest marks("CSV marks");
  Digest lines("lines");
  constexpr char kCharacters[] = ",;\n\n,,0123456789abc\r\"x";
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = below(400);
    std::string text(n, ' ');
    for (char& c : text) c = kCharacters[below(round % 3 == 0 ? sizeof kCharacters : 18)];
    const std::string padded = text + std::string(64, ',');
    std::vector<std::uint32_t> out(n + 1);
    const ingest::CsvMarks found = ingest::find_csv_marks({padded.data(), n}, ',', out.data());
    marks.add(found.count);
    marks.add(found.plain);
    marks.add(out.data(), found.count * sizeof out[0]);
    const std::size_t count = ingest::count_lines({padded.data(), n});
    if (count != static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'))) fail("another count of lines");
    lines.add(count);
  }
}

void rows() {
  Digest digest("DEBS rows");
  ingest::DebsLabels labels;
  const char* const known[] = {"1,11,0,3", "0,11,0,3", "1,1234,567,8", "1,2,0,3\r"};
  for (std::uint32_t i = 0; i < 4; ++i) labels.insert(known[i], i + 5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t i = 1 + below(40); i > 0; --i) {
      text += std::to_string(bits() >> (1 + below(60))) + "," + std::to_string(1'377'986'400 + below(100'000)) + ",";
      text += std::to_string(below(std::uint64_t{1} << below(20)));
      if (below(3) != 0) text += "." + std::to_string(below(1000));
      text += std::string(",") + (below(100) == 0 ? "7,7,7,7" : known[below(4)]) + "\n";
    }
    const std::string padded = text + std::string(64, 'x');
    std::vector<std::uint32_t> series(100);
    std::vector<model::Time> times(100);
    std::vector<std::int32_t> scaled(100);
    ingest::DebsRows in;
    in.begin = padded.data();
    in.end = padded.data() + text.size();
    in.max_samples = 90;
    in.unwanted = 99;
    in.decimals = static_cast<int>(below(5));
    in.to = {series.data(), times.data(), scaled.data()};
    ingest::DebsLast last;
    const ingest::DebsRowsRead read = ingest::read_debs_rows(in, labels, last);
    digest.add(read.next - in.begin);
    digest.add(read.rows);
    digest.add(series.data(), read.samples * sizeof series[0]);
    digest.add(times.data(), read.samples * sizeof times[0]);
    digest.add(scaled.data(), read.samples * sizeof scaled[0]);
  }
}

}  // namespace
}  // namespace orla

int main() {
  std::fprintf(stderr, "%s\n", hwy::TargetName(HWY_STATIC_TARGET));
  orla::blocks();
  orla::numbers();
  orla::conversions();
  orla::runs();
  orla::texts();
  orla::rows();
  return 0;
}
