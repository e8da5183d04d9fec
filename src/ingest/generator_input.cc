#include "ingest/generator_input.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "ingest/csv_debs.h"
#include "ingest/generator.h"

namespace orla::ingest {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kPlugBits = 32;

class GeneratorInput final : public Input {
 public:
  GeneratorInput(Generator generator, std::string input_key, BatchLimits limits, const model::Position& from)
      : generator_(std::move(generator)),
        batch_(std::move(input_key), limits),
        series_(2 * generator_.plugs().size(), kUnused),
        second_(generator_.first_second() + static_cast<std::int64_t>(from.offset >> kPlugBits)),
        plug_(static_cast<std::size_t>(from.offset & UINT32_MAX)),
        row_(from.row) {}

  absl::StatusOr<bool> next(model::InputBatch& out) override {
    if (ended_) return false;
    batch_.begin(out);
    const std::size_t plugs = generator_.plugs().size();
    std::size_t seconds = 0;
    while (second_ < generator_.end_second() && !batch_.full() && seconds < kMaxBatchSeconds) {
      const model::Time time = model::from_ns(second_ * kNsPerSecond);
      if (!batch_.fits(time)) break;
      generator_.go_to(second_);
      for (; plug_ < plugs && batch_.rows_left() > 0; ++plug_) {
        generator_.rows(plug_, [&](unsigned property, std::int64_t thousandths) { add(property, time, thousandths); });
      }
      if (plug_ < plugs) break;
      plug_ = 0;
      ++second_;
      ++seconds;
    }
    ended_ = second_ >= generator_.end_second();
    row_ += batch_.samples();
    const auto passed = static_cast<std::uint64_t>(second_ - generator_.first_second());
    out.end_of_input = ended_;
    batch_.finish({passed << kPlugBits | plug_, row_});
    return true;
  }

  double progress() const override {
    const auto whole = static_cast<double>(generator_.end_second() - generator_.first_second());
    return whole > 0 ? static_cast<double>(second_ - generator_.first_second()) / whole : 1;
  }

 private:
  static constexpr std::uint32_t kUnused = UINT32_MAX;
  // Bounds a batch when few plugs, or none, are wanted.
  static constexpr std::size_t kMaxBatchSeconds = 3600;

  void add(unsigned property, model::Time time, std::int64_t thousandths) {
    std::uint32_t& series = series_[2 * plug_ + property];
    if (series == kUnused) {
      const GeneratedPlug& p = generator_.plugs()[plug_];
      // Of kMaxHouses houses there are far fewer than kMaxSeries.
      series = model::index(*batch_.define(debs_series(property, p.plug, p.household, p.house)));
    }
    batch_.add(model::SeriesId{series}, time, Decimal{thousandths, 3, thousandths < 0});
  }

  Generator generator_;
  BatchBuilder batch_;
  std::vector<std::uint32_t> series_;  // by plug and property
  std::int64_t second_;
  std::size_t plug_;
  std::uint64_t row_;
  bool ended_ = false;
};

// Appends lines to a buffer.
class CsvWriter {
 public:
  explicit CsvWriter(const std::vector<GeneratedPlug>& plugs) : buffer_(kBufferBytes) {
    for (const GeneratedPlug& p : plugs) {
      for (unsigned property = 0; property < 2; ++property) {
        ends_.push_back(fmt::format(",{},{},{},{}\n", property, p.plug, p.household, p.house));
      }
    }
  }

  void begin_second(std::int64_t second) { time_ = fmt::format(",{},", second); }
  bool has_room() const { return size_ + kMaxRowBytes <= buffer_.size(); }
  std::string_view text() const { return {buffer_.data(), size_}; }
  void clear() { size_ = 0; }

  void row(std::size_t plug, unsigned property, std::int64_t thousandths) {
    char* p = buffer_.data() + size_;
    p = std::to_chars(p, p + 20, ++id_).ptr;
    p = put(p, time_);
    p = std::to_chars(p, p + 20, thousandths / 1000).ptr;
    if (auto rest = static_cast<int>(thousandths % 1000); rest != 0) {
      *p++ = '.';
      for (int unit = 100; rest != 0; rest %= unit, unit /= 10) *p++ = static_cast<char>('0' + rest / unit);
    }
    p = put(p, ends_[2 * plug + property]);
    size_ = static_cast<std::size_t>(p - buffer_.data());
  }

 private:
  static constexpr std::size_t kBufferBytes = 256 * 1024;
  static constexpr std::size_t kMaxRowBytes = 160;

  static char* put(char* p, const std::string& text) {
    std::memcpy(p, text.data(), text.size());
    return p + text.size();
  }

  std::vector<char> buffer_;
  std::size_t size_ = 0;
  std::uint64_t id_ = 0;
  std::string time_;
  std::vector<std::string> ends_;  // by plug and property: what follows the value
};

}  // namespace

absl::StatusOr<std::unique_ptr<Input>> make_generator_input(const model::GeneratorSpec& spec, Selection selection,
                                                            std::string input_key, BatchLimits limits,
                                                            const model::Position& from) {
  absl::StatusOr<Generator> generator = Generator::make(spec, selection);
  if (!generator.ok()) return generator.status();
  const auto seconds = static_cast<std::uint64_t>(generator->end_second() - generator->first_second());
  const std::uint64_t second = from.offset >> kPlugBits;
  const std::uint64_t plug = from.offset & UINT32_MAX;
  if (second > seconds || plug > generator->plugs().size()) {
    return absl::OutOfRangeError(
        fmt::format("found a position after {} s and {} plugs, expected one within {} s of {} plugs: the generator's "
                    "settings are not those it was read with before",
                    second, plug, seconds, generator->plugs().size()));
  }
  return std::make_unique<GeneratorInput>(*std::move(generator), std::move(input_key), limits, from);
}

absl::Status write_debs2014_csv(const model::GeneratorSpec& spec,
                                const std::function<absl::Status(std::string_view piece)>& sink) {
  absl::StatusOr<Generator> generator = Generator::make(spec, Selection());
  if (!generator.ok()) return generator.status();
  CsvWriter writer(generator->plugs());
  for (std::int64_t second = generator->first_second(); second < generator->end_second(); ++second) {
    generator->go_to(second);
    writer.begin_second(second);
    for (std::size_t plug = 0; plug < generator->plugs().size(); ++plug) {
      generator->rows(plug,
                      [&](unsigned property, std::int64_t thousandths) { writer.row(plug, property, thousandths); });
      if (writer.has_room()) continue;
      if (absl::Status s = sink(writer.text()); !s.ok()) return s;
      writer.clear();
    }
  }
  return writer.text().empty() ? absl::OkStatus() : sink(writer.text());
}

}  // namespace orla::ingest
