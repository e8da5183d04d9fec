#include "bench_replay_truth.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/byte_source.h"

namespace orla::apps {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kColumns = 7;

struct Row {
  std::int64_t time_s = 0;
  double value = 0;
  std::string_view property, plug, household, house;
};

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Row> read_row(std::string_view line) {
  std::string_view cells[kColumns];
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i == kColumns - 1)) return std::nullopt;
    cells[i] = line.substr(0, comma);
    if (i < kColumns - 1) line.remove_prefix(comma + 1);
  }
  for (const std::size_t i : {0, 1, 3, 4, 5, 6}) {
    if (!all_digits(cells[i])) return std::nullopt;
  }
  Row row;
  row.property = cells[3];
  row.plug = cells[4];
  row.household = cells[5];
  row.house = cells[6];
  const char* end = cells[1].data() + cells[1].size();
  if (std::from_chars(cells[1].data(), end, row.time_s).ec != std::errc()) return std::nullopt;
  end = cells[2].data() + cells[2].size();
  const std::from_chars_result value = std::from_chars(cells[2].data(), end, row.value);
  if (value.ec != std::errc() || value.ptr != end || !std::isfinite(row.value)) return std::nullopt;
  if (row.property != "0" && row.property != "1") return std::nullopt;
  return row;
}

class Totals {
 public:
  absl::Status add(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return absl::OkStatus();
    const std::optional<Row> row = read_row(line);
    if (!row) {
      ++totals_.rejected;
      return absl::OkStatus();
    }
    const double thousandths = std::round(row->value * 1000);
    if (!(std::fabs(thousandths) < 0x1p43) || thousandths / 1000 != row->value) {
      return absl::InvalidArgumentError(fmt::format(
          "found the value {} in row {}, expected values of at most three decimals: the plain computation that checks "
          "the result sums thousandths",
          row->value, totals_.rows + totals_.rejected + 1));
    }
    PlugMinute& to = minutes_of(*row)[row->time_s / 60];
    to.min = to.count == 0 ? row->value : std::min(to.min, row->value);
    to.max = to.count == 0 ? row->value : std::max(to.max, row->value);
    ++to.count;
    to.sum_thousandths += static_cast<std::int64_t>(thousandths);
    ++totals_.rows;
    return absl::OkStatus();
  }

  ReplayTotals take() { return std::move(totals_); }

 private:
  std::map<std::int64_t, PlugMinute>& minutes_of(const Row& row) {
    key_ = row.property;
    for (const std::string_view part : {row.plug, row.household, row.house}) (key_ += ',') += part;
    auto*& known = known_[key_];
    if (known == nullptr) {
      known =
          &totals_
               .plugs[{row.property == "0" ? "work" : "load", plain(row.house), plain(row.household), plain(row.plug)}];
    }
    return *known;
  }
  static std::string plain(std::string_view digits) {  // without leading zeros
    const std::size_t first = digits.find_first_not_of('0');
    return std::string(first == std::string_view::npos ? "0" : digits.substr(first));
  }

  ReplayTotals totals_;
  std::string key_;
  std::unordered_map<std::string, std::map<std::int64_t, PlugMinute>*> known_;
};

}  // namespace

absl::StatusOr<ReplayTotals> plain_totals(const std::string& path) {
  absl::StatusOr<std::unique_ptr<base::ByteSource>> source = base::open_bytes(path);
  if (!source.ok()) return source.status();
  Totals totals;
  std::vector<char> piece(kPieceBytes);
  std::string rest;  // of a line whose end is not read yet
  for (;;) {
    const absl::StatusOr<std::size_t> n = (*source)->read(piece);
    if (!n.ok()) return n.status();
    if (*n == 0) break;
    std::string_view text(piece.data(), *n);
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      absl::Status added;
      if (rest.empty()) {
        added = totals.add(text.substr(0, end));
      } else {
        rest += text.substr(0, end);
        added = totals.add(rest);
        rest.clear();
      }
      if (!added.ok()) return added;
      text.remove_prefix(end + 1);
    }
    rest += text;
  }
  if (absl::Status added = totals.add(rest); !added.ok()) return added;
  return totals.take();
}

std::string difference(const ReplayTotals& found, const ReplayTotals& expected) {
  if (found.rows != expected.rows || found.rejected != expected.rejected) {
    return fmt::format("found {} rows and {} rejected, expected {} and {}", found.rows, found.rejected, expected.rows,
                       expected.rejected);
  }
  if (found.plugs.size() != expected.plugs.size()) {
    return fmt::format("found {} series, expected {}", found.plugs.size(), expected.plugs.size());
  }
  for (const auto& [series, minutes] : expected.plugs) {
    const auto& [metric, house, household, plug] = series;
    const std::string name = fmt::format("{}{{house={},household={},plug={}}}", metric, house, household, plug);
    const auto other = found.plugs.find(series);
    if (other == found.plugs.end()) return "found nothing of " + name;
    if (other->second.size() != minutes.size()) {
      return fmt::format("{}: found {} minutes, expected {}", name, other->second.size(), minutes.size());
    }
    for (const auto& [minute, plain] : minutes) {
      const auto cell = other->second.find(minute);
      if (cell == other->second.end()) return fmt::format("{}: found nothing in minute {}", name, minute);
      if (cell->second == plain) continue;
      const PlugMinute& is = cell->second;
      return fmt::format("{}, minute {}: found count {}, sum {}/1000, min {}, max {}, expected {}, {}/1000, {}, {}",
                         name, minute, is.count, is.sum_thousandths, is.min, is.max, plain.count, plain.sum_thousandths,
                         plain.min, plain.max);
    }
  }
  return "";
}

}  // namespace orla::apps
