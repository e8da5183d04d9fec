#include "store/cloud_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "base/bytes.h"
#include "store/cloud_schema.h"
#include "store/columns.h"
#include "store/origin_rows.h"
#include "store/partial_bytes.h"
#include "store/rollup_rows.h"

namespace orla::store {
namespace {

// One kind of rows: a window of a rollup, or a step length of its forecasts.
struct Kind {
  std::int64_t number = 0;
  std::int64_t rollup = 0;
  std::string rollup_name;
  std::string name;
  std::int64_t step_ns = 0;  // forecasts
  bool has_order = true;
  model::Time published = model::kMinTime;
  model::Duration allowed_lateness{};
};

struct Group {
  std::int64_t number = 0;
  std::vector<model::Label> labels;
};

struct Position {
  std::string rollup;
  std::string name;
  model::Time start{};
  std::vector<model::Label> labels;
};

std::string position_text(std::string_view rollup, std::string_view name, model::Time start,
                          const std::vector<model::Label>& labels) {
  std::string bytes;
  base::ByteWriter to(bytes);
  to.text(rollup);
  to.text(name);
  to.varint(base::zigzag(model::to_ns(start)));
  put_labels(bytes, labels);
  return hex_of_bytes(bytes);
}

absl::StatusOr<Position> parse_position(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      fmt::format("\"{}\" is no position in an answer; take it from the page before, unchanged", text.substr(0, 80)));
  const std::optional<std::string> bytes = bytes_of_hex(text);
  if (!bytes) return wrong;
  base::ByteReader from(*bytes);
  Position out;
  out.rollup = std::string(from.text());
  out.name = std::string(from.text());
  out.start = model::from_ns(base::unzigzag(from.varint()));
  absl::StatusOr<std::vector<model::Label>> labels = labels_of(from.raw(from.left()));
  if (from.failed() || !labels.ok()) return wrong;
  out.labels = *std::move(labels);
  return out;
}

// Digits without leading zeros, or nothing when the text is no plain number.
std::optional<std::string_view> digits(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const std::size_t first = text.find_first_not_of('0');
  return first == std::string_view::npos ? text.substr(text.size() - 1) : text.substr(first);
}

int sign(std::size_t a, std::size_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int compare_values(std::string_view a, std::string_view b) {
  const auto x = digits(a);
  const auto y = digits(b);
  if (x && y) {
    if (x->size() != y->size()) return sign(x->size(), y->size());
    if (const int c = x->compare(*y); c != 0) return c;
  } else if (x.has_value() != y.has_value()) {
    return x ? -1 : 1;
  }
  return a.compare(b);
}

bool matches(const std::vector<model::Label>& labels, const std::vector<model::Label>& where) {
  return std::all_of(where.begin(), where.end(), [&](const model::Label& wanted) {
    return std::find(labels.begin(), labels.end(), wanted) != labels.end();
  });
}

// The parts of the SQL in which windows and forecasts differ.
struct WindowCell {
  static constexpr std::string_view kTable = "window_rows";
  static constexpr std::string_view kColumns =
      "end_ns,count,sum,min,max,mean,stddev,first,last,revision,p50,p90,p99,p999,distinct_count";
  model::Time end{};
  model::Statistics shown;
  std::uint64_t revision = 0;

  void read(const Statement& from, int at) {
    end = model::from_ns(from.integer(at));
    shown.count = from_column(from.integer(at + 1));
    shown.sum = from.real(at + 2);
    shown.min = from.real(at + 3);
    shown.max = from.real(at + 4);
    shown.mean = from.real(at + 5);
    shown.stddev = from.real(at + 6);
    shown.first = from.real(at + 7);
    shown.last = from.real(at + 8);
    revision = from_column(from.integer(at + 9));
    int column = at + 10;
    for (std::optional<double>* quantile : {&shown.p50, &shown.p90, &shown.p99, &shown.p999}) {
      *quantile = from.is_null(column) ? std::nullopt : std::optional(from.real(column));
      ++column;
    }
    shown.distinct = from.is_null(column) ? std::nullopt : std::optional(from_column(from.integer(column)));
  }
  WindowAnswer answer(const Kind& kind, const Group& group, model::Time start) const {
    const bool final = kind.published >= model::add_clamped(end, kind.allowed_lateness);
    return {kind.rollup_name, kind.name, group.labels, start, end, shown, kind.has_order, revision, final};
  }
};

struct ForecastCell {
  static constexpr std::string_view kTable = "forecast_rows";
  static constexpr std::string_view kColumns = "made_at_ns,predicted,reason,actual";
  model::Time made_at{};
  std::optional<double> predicted;
  std::string reason;
  std::optional<double> actual;

  void read(const Statement& from, int at) {
    made_at = model::from_ns(from.integer(at));
    predicted = from.is_null(at + 1) ? std::nullopt : std::optional(from.real(at + 1));
    reason = std::string(from.text(at + 2));
    actual = from.is_null(at + 3) ? std::nullopt : std::optional(from.real(at + 3));
  }
  ForecastAnswer answer(const Kind& kind, const Group& group, model::Time start) const {
    const model::Time end = model::add_clamped(start, model::Duration(kind.step_ns));
    return {kind.rollup_name, kind.name, group.labels, made_at, start, end, predicted, reason, actual};
  }
};

// Walks the rows of the kinds in order.
template <typename Cell, typename Answer>
class Scan {
 public:
  Scan(Database& database, const Query& query, const std::function<Continue(const Answer&)>& row)
      : database_(database), query_(query), row_(row) {}

  absl::Status run(const std::vector<Kind>& kinds) {
    if (query_.limit == 0) return absl::OkStatus();
    if (!query_.after.empty()) {
      absl::StatusOr<Position> position = parse_position(query_.after);
      if (!position.ok()) return position.status();
      after_ = *std::move(position);
    }
    absl::Status status = prepare_all(
        database_,
        {{&next_,
          fmt::format("SELECT min(start_ns) FROM {} WHERE kind=?1 AND start_ns>=?2 AND start_ns<=?3", Cell::kTable)},
         {&point_, fmt::format("SELECT start_ns,grp,{} FROM {} WHERE kind=?1 AND start_ns=?2 AND grp=?3",
                               Cell::kColumns, Cell::kTable)},
         {&range_,
          fmt::format(
              "SELECT start_ns,grp,{} FROM {} WHERE kind=?1 AND start_ns>=?2 AND start_ns<=?3 ORDER BY start_ns",
              Cell::kColumns, Cell::kTable)}});
    for (const Kind& kind : kinds) {
      if (!status.ok() || done_) return status;
      if (after_ && std::tie(kind.rollup_name, kind.name) < std::tie(after_->rollup, after_->name)) continue;
      status = walk(kind);
    }
    return status;
  }

 private:
  struct Row {
    std::size_t rank = 0;
    Cell cell;
  };

  absl::Status walk(const Kind& kind) {
    const absl::Status status = load_groups(kind.rollup);
    if (!status.ok() || groups_.empty()) return status;
    model::Time from = query_.from.value_or(model::kMinTime);
    const bool resumes = after_ && kind.rollup_name == after_->rollup && kind.name == after_->name;
    if (resumes) from = std::max(from, after_->start);
    if (query_.to && *query_.to <= from) return absl::OkStatus();
    const model::Time last = query_.to ? *query_.to - model::Duration(1) : model::kMaxTime;
    // A few groups of many: look each of them up instead of reading past the others.
    if (groups_.size() * 8 < all_groups_) return look_up(kind, from, last);
    return read_all(kind, from, last);
  }

  absl::Status load_groups(std::int64_t rollup) {
    if (rollup == loaded_rollup_) return absl::OkStatus();
    groups_.clear();
    ranks_.clear();
    all_groups_ = 0;
    absl::StatusOr<Statement> get = database_.prepare("SELECT id,key FROM groups WHERE rollup=?1");
    if (!get.ok()) return get.status();
    get->bind(1, rollup);
    absl::StatusOr<bool> row = get->step();
    for (; row.ok() && *row; row = get->step()) {
      absl::StatusOr<std::vector<model::Label>> labels = labels_of(get->blob(1));
      if (!labels.ok()) return labels.status();
      ++all_groups_;
      if (matches(*labels, query_.where)) groups_.push_back({get->integer(0), *std::move(labels)});
    }
    if (!row.ok()) return row.status();
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return compare_labels(a.labels, b.labels) < 0; });
    for (std::size_t i = 0; i < groups_.size(); ++i) ranks_[groups_[i].number] = i;
    loaded_rollup_ = rollup;
    return absl::OkStatus();
  }

  absl::Status read_all(const Kind& kind, model::Time from, model::Time last) {
    range_.bind(1, kind.number).bind(2, model::to_ns(from)).bind(3, model::to_ns(last));
    model::Time start{};
    absl::StatusOr<bool> row = range_.step();
    for (; row.ok() && *row; row = range_.step()) {
      const model::Time here = model::from_ns(range_.integer(0));
      if (here != start) {
        hand_over(kind, start);
        if (done_) {
          range_.reset();
          return absl::OkStatus();
        }
        start = here;
      }
      keep(range_);
    }
    if (!row.ok()) return row.status();
    hand_over(kind, start);
    return absl::OkStatus();
  }

  absl::Status look_up(const Kind& kind, model::Time from, model::Time last) {
    while (!done_) {
      absl::StatusOr<bool> row =
          next_.bind(1, kind.number).bind(2, model::to_ns(from)).bind(3, model::to_ns(last)).step();
      if (!row.ok()) return row.status();
      const bool none = !*row || next_.is_null(0);
      const model::Time start = none ? model::Time{} : model::from_ns(next_.integer(0));
      next_.reset();
      if (none) return absl::OkStatus();
      for (const Group& group : groups_) {
        row = point_.bind(1, kind.number).bind(2, model::to_ns(start)).bind(3, group.number).step();
        if (!row.ok()) return row.status();
        if (*row) keep(point_);
        point_.reset();
      }
      hand_over(kind, start);
      if (start == last) return absl::OkStatus();
      from = start + model::Duration(1);
    }
    return absl::OkStatus();
  }

  void keep(const Statement& from) {
    const auto rank = ranks_.find(from.integer(1));
    if (rank == ranks_.end()) return;
    Row& row = rows_.emplace_back();
    row.rank = rank->second;
    row.cell.read(from, 2);
  }

  // The rows of one start, in the order of their labels.
  void hand_over(const Kind& kind, model::Time start) {
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
    const bool resumes =
        after_ && kind.rollup_name == after_->rollup && kind.name == after_->name && start == after_->start;
    for (const Row& row : rows_) {
      if (done_) break;
      const Group& group = groups_[row.rank];
      if (resumes && compare_labels(group.labels, after_->labels) <= 0) continue;
      if (row_(row.cell.answer(kind, group, start)) == Continue::kNo || ++given_ == query_.limit) done_ = true;
    }
    rows_.clear();
  }

  Database& database_;
  const Query& query_;
  const std::function<Continue(const Answer&)>& row_;
  std::optional<Position> after_;
  Statement next_, point_, range_;
  std::int64_t loaded_rollup_ = -1;
  std::size_t all_groups_ = 0;
  std::vector<Group> groups_;  // those that match, sorted
  absl::flat_hash_map<std::int64_t, std::size_t> ranks_;
  std::vector<Row> rows_;
  std::uint64_t given_ = 0;
  bool done_ = false;
};

// The rollups and kinds a query is about; an error for names that do not exist.
absl::StatusOr<std::vector<Kind>> kinds_of(Database& database, const Query& query,
                                           const std::vector<RollupInfo>& rollups, std::string_view sql) {
  std::vector<std::string> names;
  const RollupInfo* asked = nullptr;
  for (const RollupInfo& rollup : rollups) {
    if (!rollup.hidden) names.push_back(rollup.name);
    if (rollup.name == query.rollup) asked = &rollup;
  }
  if (!query.rollup.empty() && asked == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("no rollup \"{}\"; there are: {}", query.rollup, fmt::join(names, ", ")));
  }
  if (asked != nullptr && !asked->labels.empty()) {
    for (const model::Label& label : query.where) {
      if (std::find(asked->labels.begin(), asked->labels.end(), label.first) != asked->labels.end()) continue;
      return absl::InvalidArgumentError(fmt::format("rollup \"{}\" has no label \"{}\"; it has: {}", query.rollup,
                                                    label.first, fmt::join(asked->labels, ", ")));
    }
  }
  const bool hidden_too = query.show == Show::kHiddenToo || (asked != nullptr && asked->hidden);

  absl::StatusOr<Statement> get = database.prepare(sql);
  if (!get.ok()) return get.status();
  std::vector<Kind> kinds;
  std::vector<std::string> known;
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    Kind kind;
    kind.number = get->integer(0);
    kind.rollup = get->integer(1);
    kind.rollup_name = std::string(get->text(2));
    kind.name = std::string(get->text(3));
    kind.step_ns = get->integer(4);
    kind.has_order = get->is_null(5);
    if (!get->is_null(6)) kind.published = model::from_ns(get->integer(6));
    kind.allowed_lateness = model::Duration(get->integer(7));
    const bool hidden = get->integer(8) != 0;
    if ((hidden && !hidden_too) || (asked != nullptr && kind.rollup_name != query.rollup)) continue;
    if (query.window.empty() || kind.name == query.window) {
      kinds.push_back(std::move(kind));
    } else if (std::find(known.begin(), known.end(), kind.name) == known.end()) {
      known.push_back(kind.name);
    }
  }
  if (!row.ok()) return row.status();
  if (kinds.empty() && !query.window.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("no window or step \"{}\"; there are: {}", query.window, fmt::join(known, ", ")));
  }
  std::sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
    return std::tie(a.rollup_name, a.name) < std::tie(b.rollup_name, b.name);
  });
  return kinds;
}

constexpr char kWindowKinds[] =
    "SELECT k.id,r.id,r.name,k.window,0,r.across,r.published_ns,r.allowed_lateness_ns,k.hidden OR r.hidden"
    " FROM rollups r JOIN rollup_windows k ON k.rollup=r.id WHERE r.current=1";
constexpr char kStepKinds[] =
    "SELECT s.id,r.id,r.name,s.step,s.step_ns,r.across,r.published_ns,r.allowed_lateness_ns,r.hidden"
    " FROM rollups r JOIN forecast_steps s ON s.rollup=r.id WHERE r.current=1";

template <typename Cell, typename Answer>
absl::Status answer(Database& database, const Query& query, std::string_view kinds_sql,
                    const std::function<Continue(const Answer&)>& row) {
  // One read transaction: everything is of one commit.
  absl::Status status = database.execute("BEGIN");
  if (!status.ok()) return status;
  status = [&] {
    absl::StatusOr<std::vector<RollupInfo>> rollups = read_rollups(database);
    if (!rollups.ok()) return rollups.status();
    absl::StatusOr<std::vector<Kind>> kinds = kinds_of(database, query, *rollups, kinds_sql);
    if (!kinds.ok()) return kinds.status();
    return Scan<Cell, Answer>(database, query, row).run(*kinds);
  }();
  const absl::Status end = database.execute("COMMIT");
  return status.ok() ? end : status;
}

}  // namespace

std::string position(const WindowAnswer& answer) {
  return position_text(answer.rollup, answer.window, answer.start, answer.labels);
}

std::string position(const ForecastAnswer& answer) {
  return position_text(answer.rollup, answer.step, answer.start, answer.labels);
}

int compare_labels(const std::vector<model::Label>& a, const std::vector<model::Label>& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int c = a[i].first.compare(b[i].first); c != 0) return c;
    if (const int c = compare_values(a[i].second, b[i].second); c != 0) return c;
  }
  return sign(a.size(), b.size());
}

absl::StatusOr<std::unique_ptr<CloudReader>> CloudReader::open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Database>> database = open_cloud_file(path);
  if (!database.ok()) return database.status();
  return std::unique_ptr<CloudReader>(new CloudReader(*std::move(database)));
}

absl::StatusOr<std::vector<RollupInfo>> CloudReader::rollups() { return read_rollups(*database_); }

absl::StatusOr<std::vector<OriginRow>> CloudReader::origins() { return read_origins(*database_); }

absl::Status CloudReader::windows(const Query& query, const std::function<Continue(const WindowAnswer&)>& row) {
  return answer<WindowCell, WindowAnswer>(*database_, query, kWindowKinds, row);
}

absl::Status CloudReader::forecasts(const Query& query, const std::function<Continue(const ForecastAnswer&)>& row) {
  return answer<ForecastCell, ForecastAnswer>(*database_, query, kStepKinds, row);
}

}  // namespace orla::store
