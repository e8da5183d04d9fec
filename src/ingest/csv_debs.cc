#include "ingest/csv_debs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "ingest/number.h"

namespace orla::ingest {

namespace {

constexpr std::size_t kColumns = 7;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Rows before 1970 cannot be written: the timestamp has no sign.
constexpr std::uint64_t kLatestSecond = static_cast<std::uint64_t>(model::to_ns(kLatestTime) / kNsPerSecond);

std::uint64_t load64(const char* p) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}
std::uint32_t load32(const char* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}
unsigned digit(char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0'; }

// What names a series here.
struct Key {
  std::uint64_t high = 0;  // house, household
  std::uint64_t low = 0;   // plug, property
  friend bool operator==(const Key&, const Key&) = default;
};
Key key_of(const DebsRow& row) {
  return {std::uint64_t{row.house} << 32 | row.household, std::uint64_t{row.plug} << 1 | row.property};
}

// Key -> the series' number. Open addressing; grows; nothing is ever taken out.
class SeriesTable {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  static constexpr std::uint32_t kUnwanted = UINT32_MAX - 1;

  SeriesTable() : slots_(std::size_t{1} << kFirstBits) {}

  std::uint32_t find(const Key& key) const {
    for (std::size_t i = place(key);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.number == kUnknown || slot.key == key) return slot.number;
    }
  }
  // `key` is unknown so far.
  void insert(const Key& key, std::uint32_t number) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    put(key, number);
    ++used_;
  }
  std::size_t size() const { return used_; }

 private:
  static constexpr int kFirstBits = 8;
  struct Slot {
    Key key;
    std::uint32_t number = kUnknown;
  };

  std::size_t place(const Key& key) const {
    const std::uint64_t mixed = (key.high * 0x9e3779b97f4a7c15ULL + key.low) * 0xd6e8feb86659fd93ULL;
    return static_cast<std::size_t>((mixed ^ (mixed >> 32)) & (slots_.size() - 1));
  }
  void put(const Key& key, std::uint32_t number) {
    std::size_t i = place(key);
    while (slots_[i].number != kUnknown) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, number};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kUnknown) put(slot.key, slot.number);
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

// One row of the common form: at most nine digits per id, a value of at most 15 digits. False for any other, which may
// still be good.
class FastRow {
 public:
  // `p` is the start of a line that ends with \n; on success it is after that.
  bool read(const char*& p, DebsRow& row) {
    const char* q = p;
    while (digit(*q) <= 9) ++q;
    if (q == p || q - p > 19 || *q != ',') return false;  // 19 digits always fit 64 bits
    ++q;
    if (!time(q, row) || !value(q, row)) return false;
    row.property = digit(*q);
    if (row.property > 1 || q[1] != ',') return false;
    q += 2;
    if (!id(q, row.plug) || *q++ != ',') return false;
    if (!id(q, row.household) || *q++ != ',') return false;
    if (!id(q, row.house)) return false;
    if (*q == '\r') ++q;
    if (*q != '\n') return false;
    p = q + 1;
    return true;
  }

 private:
  // Most rows repeat the time of the row before, so its ten digits and comma are compared first.
  bool time(const char*& q, DebsRow& row) {
    if (load64(q) == time_head_ && load32(q + 7) == time_tail_) {
      row.time_s = time_s_;
      q += 11;
      return true;
    }
    const char* begin = q;
    std::uint64_t value = 0;
    while (digit(*q) <= 9) value = value * 10 + digit(*q++);
    const auto digits = q - begin;
    if (digits == 0 || digits > 19 || *q != ',' || value >= kLatestSecond) return false;
    ++q;
    row.time_s = value;
    if (digits == 10) {
      time_head_ = load64(begin);
      time_tail_ = load32(begin + 7);
      time_s_ = value;
    }
    return true;
  }

  static bool value(const char*& q, DebsRow& row) {
    const bool negative = *q == '-';
    if (negative) ++q;
    const char* begin = q;
    std::uint64_t digits = 0;
    while (digit(*q) <= 9) digits = digits * 10 + digit(*q++);
    auto count = q - begin;
    std::ptrdiff_t decimals = 0;
    if (*q == '.') {
      const char* point = ++q;
      while (digit(*q) <= 9) digits = digits * 10 + digit(*q++);
      decimals = q - point;
      count += decimals;
    }
    if (count == 0 || count > 15 || *q != ',') return false;
    ++q;
    const double size = static_cast<double>(digits) / kPowersOfTen[static_cast<std::size_t>(decimals)];
    row.value = negative ? -size : size;
    return true;
  }

  static bool id(const char*& q, std::uint32_t& out) {
    const char* begin = q;
    std::uint32_t value = 0;
    while (digit(*q) <= 9) value = value * 10 + digit(*q++);
    out = value;
    const auto digits = q - begin;
    return digits > 0 && digits <= 9;
  }

  // The first 8 and the last 4 of its bytes, which overlap by one, and what they say.
  static constexpr char kTimeText[] = "0000000000,";
  std::uint64_t time_head_ = load64(kTimeText);
  std::uint32_t time_tail_ = load32(kTimeText + 7);
  std::uint64_t time_s_ = 0;
};

class DebsParser final : public RowParser {
 public:
  DebsParser(Selection selection, DebsPath path) : selection_(std::move(selection)), path_(path) {}

  Used parse(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) override {
    const char* const begin = lines.data();
    const char* const end = begin + lines.size();
    const char* p = begin;
    std::uint64_t rows = 0;
    const std::uint64_t max_rows = batch.lines_left();
    DebsRow row;
    while (p != end && rows < max_rows && batch.rows_left() > 0) {
      const char* next = p;
      if (path_ == DebsPath::kFast && fast_.read(next, row)) {
        if (!take(row, rows_before + rows + 1, batch)) break;
      } else {
        next = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
        const std::string_view line = without_line_end({p, static_cast<std::size_t>(next - p)});
        if (!line.empty() && !take_careful(line, rows_before + rows + 1, batch)) break;
      }
      p = next;
      ++rows;
    }
    return {static_cast<std::size_t>(p - begin), rows};
  }

 private:
  // False when the row belongs into another batch.
  bool take(const DebsRow& row, std::uint64_t number, BatchBuilder& batch) {
    const Key key = key_of(row);
    std::uint32_t series = table_.find(key);
    if (series == SeriesTable::kUnwanted) return true;
    const model::Time time = model::from_ns(static_cast<std::int64_t>(row.time_s) * kNsPerSecond);
    if (series == SeriesTable::kUnknown) {
      model::Series fresh = debs_series(row.property, row.plug, row.household, row.house);
      if (!selection_.wants(fresh.labels)) {
        if (table_.size() < kMaxSeries) table_.insert(key, SeriesTable::kUnwanted);
        return true;
      }
      if (!batch.fits(time)) return false;
      if (batch.series_count() >= kMaxSeries) {
        batch.reject(number,
                     {kTooManySeries, 0, fmt::format("found a series more than the {} of one input", kMaxSeries)});
        return true;
      }
      series = model::index(batch.define(std::move(fresh)));
      table_.insert(key, series);
    } else if (!batch.fits(time)) {
      return false;
    }
    batch.add(model::SeriesId{series}, time, row.value);
    return true;
  }

  bool take_careful(std::string_view line, std::uint64_t number, BatchBuilder& batch) {
    DebsRow row;
    std::optional<Fault> fault = read_debs_row(line, row);
    if (!fault) return take(row, number, batch);
    if (row.labelled && !selection_.wants(debs_series(row.property, row.plug, row.household, row.house).labels)) {
      return true;
    }
    batch.reject(number, std::move(*fault));
    return true;
  }

  Selection selection_;
  DebsPath path_;
  FastRow fast_;
  SeriesTable table_;
};

}  // namespace

std::unique_ptr<RowParser> make_debs_parser(Selection selection, DebsPath path) {
  return std::make_unique<DebsParser>(std::move(selection), path);
}

std::optional<Fault> read_debs_row(std::string_view line, DebsRow& row) {
  if (line.size() > kMaxLineBytes) return too_long(line.size());
  std::array<std::string_view, kColumns> cells;
  std::size_t columns = 0;
  for (std::size_t at = 0;; ++columns) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    if (columns < kColumns) cells[columns] = line.substr(at, comma - at);
    if (comma == line.size()) break;
    at = comma + 1;
  }
  ++columns;
  if (columns != kColumns) {
    return Fault{kMalformed, 0,
                 fmt::format("found {} column{}: {}, expected 7: "
                             "id,timestamp,value,property,plug_id,household_id,house_id",
                             columns, columns == 1 ? "" : "s", shown(line))};
  }

  std::optional<Fault> fault;
  const auto refuse = [&](std::size_t column, const char* reason, std::string_view expected) {
    if (fault) return;
    fault = Fault{reason, static_cast<std::uint32_t>(column + 1),
                  fmt::format("found {}, expected {}", shown(cells[column]), expected)};
  };
  std::uint64_t number = 0;
  if (!parse_unsigned(cells[0], UINT64_MAX, number)) refuse(0, kMalformed, "an id: digits alone");
  if (!parse_unsigned(cells[1], kLatestSecond - 1, row.time_s)) {
    refuse(1, kBadTime, "a time in Unix seconds before 2190: digits alone");
  }
  switch (parse_number(cells[2], row.value)) {
    case Parsed::kNumber:
      break;
    case Parsed::kNotFinite:
      refuse(2, kNotFinite, "a finite number");
      break;
    case Parsed::kNone:
      refuse(2, kMalformed, "a number");
      break;
  }
  row.labelled = true;
  const auto label = [&](std::size_t column, std::uint64_t max, std::string_view expected, std::uint32_t& out) {
    if (parse_unsigned(cells[column], max, number)) {
      out = static_cast<std::uint32_t>(number);
    } else {
      row.labelled = false;
      refuse(column, kMalformed, expected);
    }
  };
  label(3, 1, "the property 0 (work) or 1 (load)", row.property);
  label(4, UINT32_MAX, "a plug's id: digits alone, at most 4294967295", row.plug);
  label(5, UINT32_MAX, "a household's id: digits alone, at most 4294967295", row.household);
  label(6, UINT32_MAX, "a house's id: digits alone, at most 4294967295", row.house);
  return fault;
}

model::Series debs_series(std::uint32_t property, std::uint32_t plug, std::uint32_t household, std::uint32_t house) {
  return {property == 0 ? "work" : "load",
          {{"house", std::to_string(house)}, {"household", std::to_string(household)}, {"plug", std::to_string(plug)}}};
}

}  // namespace orla::ingest
