#include "ingest/csv_debs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "ingest/csv_debs_rows.h"
#include "ingest/number.h"

namespace orla::ingest {

namespace {

constexpr std::size_t kColumns = 7;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Rows before 1970 cannot be written: the timestamp has no sign.
constexpr std::uint64_t kLatestSecond = static_cast<std::uint64_t>(model::to_ns(kLatestTime) / kNsPerSecond);

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

// One row of a form that is nearly as common as that of read_debs_rows(), read byte by byte: at most nine digits per
// id, a value of at most 15 digits. False for any other, which may still be good.
struct PlainRow {
  DebsRow row;  // without its value
  Decimal value;
  std::string_view labels;  // the text of the last four columns, with a \r behind it

  // `p` is the start of a line that ends with \n; on success it is after that.
  bool read(const char*& p) {
    const char* q = p;
    while (digit(*q) <= 9) ++q;
    if (q == p || q - p > 19 || *q++ != ',') return false;  // 19 digits always fit 64 bits
    const char* begin = q;
    row.time_s = 0;
    while (digit(*q) <= 9) row.time_s = row.time_s * 10 + digit(*q++);
    if (q == begin || q - begin > 19 || *q++ != ',' || row.time_s >= kLatestSecond) return false;
    const std::size_t size = read_decimal(q, value);
    q += size;
    if (size == 0 || *q++ != ',') return false;
    begin = q;
    row.property = digit(*q);
    if (row.property > 1 || q[1] != ',') return false;
    q += 2;
    if (!id(q, row.plug) || *q++ != ',') return false;
    if (!id(q, row.household) || *q++ != ',') return false;
    if (!id(q, row.house)) return false;
    if (*q == '\r') ++q;
    if (*q != '\n') return false;
    labels = {begin, static_cast<std::size_t>(q - begin)};
    p = q + 1;
    return true;
  }

 private:
  static bool id(const char*& q, std::uint32_t& out) {
    const char* begin = q;
    std::uint32_t value = 0;
    while (digit(*q) <= 9) value = value * 10 + digit(*q++);
    out = value;
    const auto digits = q - begin;
    return digits > 0 && digits <= 9;
  }
};

class DebsParser final : public RowParser {
 public:
  DebsParser(Selection selection, DebsPath path) : selection_(std::move(selection)), path_(path) {}

  std::unique_ptr<RowParser> another() const override { return std::make_unique<DebsParser>(selection_, path_); }

  Used parse(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) override {
    const char* const begin = lines.data();
    const char* const end = begin + lines.size();
    const char* p = begin;
    std::uint64_t rows = 0;
    PlainRow plain;
    while (p != end && batch.rows_left() > 0) {
      if (path_ == DebsPath::kFast) {
        if (take_many(p, end, rows, batch)) continue;
        const char* next = p;
        if (plain.read(next)) {
          if (!take(plain.row, plain.value, plain.labels, rows_before + rows + 1, batch)) break;
          p = next;
          ++rows;
          continue;
        }
      }
      const char* next = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
      const std::string_view line = without_line_end({p, static_cast<std::size_t>(next - p)});
      if (!line.empty() && !take_careful(line, rows_before + rows + 1, batch)) break;
      p = next;
      ++rows;
    }
    return {static_cast<std::size_t>(p - begin), rows};
  }

 private:
  // The quick way, as far as it goes; false when it does not go on from here. Where it never does it is tried less
  // often.
  bool take_many(const char*& p, const char* end, std::uint64_t& rows, BatchBuilder& batch) {
    SampleColumns& columns = batch.columns();
    if (!batch.limits().any_time() || !columns.is_scaled() || columns.decimals() > DebsRows::kMaxDecimals) return false;
    if (pause_ > 0) {
      --pause_;
      return false;
    }
    DebsRows in;
    in.begin = p;
    in.end = end;
    in.max_samples = std::min(batch.rows_left(), kSamplesAtOnce);
    in.unwanted = SeriesTable::kUnwanted;
    in.decimals = columns.decimals();
    in.to = columns.room(in.max_samples + 1);
    const DebsRowsRead read = read_debs_rows(in, labels_, last_);
    columns.grown(read.samples);
    p = read.next;
    rows += read.rows;
    next_pause_ = read.rows > 0 ? 0 : std::min(2 * next_pause_ + 1, kMostPause);
    pause_ = next_pause_;
    return read.rows > 0;
  }

  // False when the row belongs into another batch. `value`: Decimal or double. `labels`: the row's, when they have the
  // form that read_debs_rows() can find again.
  template <typename Value>
  bool take(const DebsRow& row, const Value& value, std::string_view labels, std::uint64_t number,
            BatchBuilder& batch) {
    const Key key = key_of(row);
    std::uint32_t series = table_.find(key);
    const model::Time time = model::from_ns(static_cast<std::int64_t>(row.time_s) * kNsPerSecond);
    if (series == SeriesTable::kUnknown) {
      model::Series fresh = debs_series(row.property, row.plug, row.household, row.house);
      if (!selection_.wants(fresh.labels)) {
        if (table_.size() >= 2 * kMaxSeries) return true;
        series = SeriesTable::kUnwanted;
      } else {
        if (!batch.fits(time)) return false;
        const std::optional<model::SeriesId> id = batch.define(std::move(fresh));
        if (!id) {
          batch.reject(number,
                       {kTooManySeries, 0, fmt::format("found a series more than the {} of one input", kMaxSeries)});
          return true;
        }
        series = model::index(*id);
      }
      table_.insert(key, series);
    }
    labels_.insert(labels, series);
    if (series == SeriesTable::kUnwanted) return true;
    if (!batch.fits(time)) return false;
    batch.add(model::SeriesId{series}, time, value);
    return true;
  }

  bool take_careful(std::string_view line, std::uint64_t number, BatchBuilder& batch) {
    DebsRow row;
    std::optional<Fault> fault = read_debs_row(line, row);
    if (!fault) return take(row, row.value, {}, number, batch);
    if (row.labelled && !selection_.wants(debs_series(row.property, row.plug, row.household, row.house).labels)) {
      return true;
    }
    batch.reject(number, std::move(*fault));
    return true;
  }

  // So that the columns need no more room than they use.
  static constexpr std::size_t kSamplesAtOnce = 4096;
  static constexpr unsigned kMostPause = 63;

  Selection selection_;
  DebsPath path_;
  SeriesTable table_;
  DebsLabels labels_;
  DebsLast last_;
  unsigned pause_ = 0;       // rows until the quick way is tried again
  unsigned next_pause_ = 0;  // when it fails then
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
