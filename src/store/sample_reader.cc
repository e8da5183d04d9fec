#include "store/sample_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "base/bytes.h"
#include "store/cloud_schema.h"
#include "store/columns.h"
#include "store/partial_bytes.h"

namespace orla::store {

using model::Time;

namespace {

struct Position {
  std::vector<model::Label> labels;
  Time time{};
  std::uint64_t same = 0;  // samples of that time that were told
};

absl::StatusOr<Position> parse_position(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      fmt::format("\"{}\" is no position in an answer; take it from the page before, unchanged", text.substr(0, 80)));
  const std::optional<std::string> bytes = bytes_of_hex(text);
  if (!bytes) return wrong;
  base::ByteReader from(*bytes);
  Position out;
  out.time = model::from_ns(base::unzigzag(from.varint()));
  out.same = from.varint();
  absl::StatusOr<std::vector<model::Label>> labels = labels_of(from.raw(from.left()));
  if (from.failed() || !labels.ok()) return wrong;
  out.labels = *std::move(labels);
  return out;
}

struct Series {
  std::int64_t number = 0;
  std::vector<model::Label> labels;
};

struct Sample {
  Time time;
  double value;
  std::uint32_t rank;  // of the piece it comes from, in order of acceptance
  std::uint32_t at;    // in the piece
  friend bool operator<(const Sample& a, const Sample& b) {
    return std::tie(a.time, a.rank, a.at) < std::tie(b.time, b.rank, b.at);
  }
};

class Scan {
 public:
  Scan(Database& database, const SampleFormat& format, const SampleQuery& query,
       const std::function<Continue(const SampleAnswer&)>& some)
      : database_(database), format_(format), query_(query), some_(some) {}

  absl::Status run(std::vector<Series> series) {
    if (query_.limit == 0 || series.empty()) return absl::OkStatus();
    if (!query_.after.empty()) {
      absl::StatusOr<Position> position = parse_position(query_.after);
      if (!position.ok()) return position.status();
      after_ = *std::move(position);
      std::erase_if(series, [&](const Series& s) { return compare_labels(s.labels, after_->labels) < 0; });
    }
    absl::Status status = prepare_all(
        database_, {{&blocks_,
                     "SELECT id,first_ns,last_ns FROM sample_blocks WHERE series=?1 AND hour_ns>=?2 AND hour_ns<=?3"
                     " ORDER BY id"},
                    {&block_, "SELECT samples FROM sample_blocks WHERE id=?1"},
                    {&tail_, "SELECT samples FROM sample_tail ORDER BY id"}});
    if (status.ok()) status = load_tail(series);
    for (const Series& each : series) {
      if (!status.ok() || done_) break;
      status = walk(each);
    }
    return status;
  }

 private:
  struct Piece {
    std::int64_t block = 0;  // 0: what the tail has
    std::uint32_t rank = 0;
    Time first{};
    Time last{};
  };
  struct Column {
    std::vector<Time> times;
    std::vector<double> values;
  };

  absl::Status load_tail(const std::vector<Series>& series) {
    for (const Series& each : series) tails_[each.number];
    model::Batch batch;
    absl::StatusOr<bool> row = tail_.step();
    for (; row.ok() && *row; row = tail_.step()) {
      if (absl::Status status = format_.decode(tail_.blob(0), batch); !status.ok()) return status;
      batch.make_plain();
      for (const model::Batch::Run& run : batch.runs) {
        const auto found = tails_.find(model::index(run.series));
        if (found == tails_.end()) continue;
        Column& column = found->second;
        column.times.insert(column.times.end(), batch.times.begin() + run.begin, batch.times.begin() + run.end);
        column.values.insert(column.values.end(), batch.values.begin() + run.begin, batch.values.begin() + run.end);
      }
    }
    return row.status();
  }

  absl::StatusOr<std::vector<Piece>> pieces_of(const Series& series) {
    const Time last = query_.to ? *query_.to - model::Duration(1) : model::kMaxTime;
    std::vector<Piece> pieces;
    blocks_.bind(1, series.number).bind(2, hour_of(from_)).bind(3, hour_of(last));
    absl::StatusOr<bool> row = blocks_.step();
    for (; row.ok() && *row; row = blocks_.step()) {
      const Piece piece{blocks_.integer(0), static_cast<std::uint32_t>(pieces.size()),
                        model::from_ns(blocks_.integer(1)), model::from_ns(blocks_.integer(2))};
      if (piece.last >= from_ && piece.first <= last) pieces.push_back(piece);
    }
    if (!row.ok()) return row.status();
    const Column& tail = tails_[series.number];
    if (!tail.times.empty()) {
      const auto [least, greatest] = std::minmax_element(tail.times.begin(), tail.times.end());
      pieces.push_back({0, UINT32_MAX, *least, *greatest});
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return std::tie(a.first, a.rank) < std::tie(b.first, b.rank); });
    return pieces;
  }

  absl::Status walk(const Series& series) {
    const bool resumes = after_ && compare_labels(series.labels, after_->labels) == 0;
    from_ = query_.from.value_or(model::kMinTime);
    skip_ = 0;
    last_time_ = model::kMinTime;
    last_count_ = 0;
    if (resumes && after_->time >= from_) {
      from_ = after_->time;
      skip_ = after_->same;
    }
    if (query_.to && *query_.to <= from_) return absl::OkStatus();
    absl::StatusOr<std::vector<Piece>> pieces = pieces_of(series);
    if (!pieces.ok()) return pieces.status();
    waiting_.clear();
    for (std::size_t i = 0; i < pieces->size() && !done_; ++i) {
      const Piece& piece = (*pieces)[i];
      absl::StatusOr<const Column*> column = load(series, piece);
      if (!column.ok()) return column.status();
      const bool alone = waiting_.empty() && (i + 1 == pieces->size() || (*pieces)[i + 1].first > piece.last);
      if (alone && std::is_sorted((*column)->times.begin(), (*column)->times.end())) {
        tell(series, (*column)->times, (*column)->values);
        continue;
      }
      for (std::uint32_t k = 0; k < (*column)->times.size(); ++k) {
        waiting_.push_back({(*column)->times[k], (*column)->values[k], piece.rank, k});
      }
      tell_before(series, i + 1 == pieces->size() ? model::kMaxTime : (*pieces)[i + 1].first);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const Column*> load(const Series& series, const Piece& piece) {
    if (piece.block == 0) return &tails_[series.number];
    absl::StatusOr<bool> row = block_.bind(1, piece.block).step();
    if (!row.ok()) return row.status();
    const absl::Status status =
        *row ? format_.decode(block_.blob(0), batch_) : absl::DataLossError("the block is not there");
    block_.reset();
    if (!status.ok()) {
      return absl::DataLossError(fmt::format("{}: block {} of samples cannot be read: {}; restore the file from a copy",
                                             database_.path(), piece.block,
                                             std::string_view(status.message().data(), status.message().size())));
    }
    batch_.make_plain();
    column_.times.swap(batch_.times);
    column_.values.swap(batch_.values);
    return &column_;
  }

  // Tells what waits and lies before the time (kMaxTime: all).
  void tell_before(const Series& series, Time bound) {
    if (!std::is_sorted(waiting_.begin(), waiting_.end())) std::sort(waiting_.begin(), waiting_.end());
    const auto end = bound == model::kMaxTime
                         ? waiting_.end()
                         : std::lower_bound(waiting_.begin(), waiting_.end(), bound,
                                            [](const Sample& sample, Time time) { return sample.time < time; });
    if (end == waiting_.begin()) return;
    told_.times.clear();
    told_.values.clear();
    for (auto at = waiting_.begin(); at != end; ++at) {
      told_.times.push_back(at->time);
      told_.values.push_back(at->value);
    }
    waiting_.erase(waiting_.begin(), end);
    tell(series, told_.times, told_.values);
  }

  // Sorted, and not before what was told.
  void tell(const Series& series, std::span<const Time> times, std::span<const double> values) {
    auto begin = static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), from_) - times.begin());
    for (; skip_ > 0 && begin < times.size() && times[begin] == from_; ++begin, --skip_) {
      last_time_ = from_;
      ++last_count_;
    }
    std::size_t end = times.size();
    if (query_.to) {
      end = static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), *query_.to) - times.begin());
    }
    if (begin >= end) return;
    if (end - begin > query_.limit - given_) end = begin + static_cast<std::size_t>(query_.limit - given_);
    const SampleAnswer answer{series.labels, times.subspan(begin, end - begin), values.subspan(begin, end - begin),
                              times[begin] == last_time_ ? last_count_ : 0};
    if (times[end - 1] != last_time_) {
      last_time_ = times[end - 1];
      last_count_ = 0;
    }
    for (std::size_t i = end; i > begin && times[i - 1] == last_time_; --i) ++last_count_;
    given_ += end - begin;
    done_ = some_(answer) == Continue::kNo || given_ == query_.limit;
  }

  Database& database_;
  const SampleFormat& format_;
  const SampleQuery& query_;
  const std::function<Continue(const SampleAnswer&)>& some_;
  Statement blocks_, block_, tail_;
  std::optional<Position> after_;
  absl::flat_hash_map<std::int64_t, Column> tails_;  // by series
  Time from_{};
  std::uint64_t skip_ = 0;  // samples at from_ that were told before
  Time last_time_{};
  std::uint64_t last_count_ = 0;  // samples of last_time_ that are past
  std::vector<Sample> waiting_;
  model::Batch batch_;
  Column column_, told_;
  std::uint64_t given_ = 0;
  bool done_ = false;
};

}  // namespace

std::string position(const SampleAnswer& answer, std::size_t i) {
  std::uint64_t same = 1;
  while (same <= i && answer.times[i - same] == answer.times[i]) ++same;
  if (same == i + 1) same += answer.same_before;
  std::string bytes;
  base::ByteWriter to(bytes);
  to.varint(base::zigzag(model::to_ns(answer.times[i])));
  to.varint(same);
  put_labels(bytes, answer.labels);
  return hex_of_bytes(bytes);
}

absl::StatusOr<std::unique_ptr<SampleReader>> SampleReader::open(const std::string& path, SampleFormat format) {
  absl::StatusOr<std::unique_ptr<Database>> database = open_cloud_file(path);
  if (!database.ok()) return database.status();
  return std::unique_ptr<SampleReader>(new SampleReader(*std::move(database), std::move(format)));
}

absl::StatusOr<std::vector<std::string>> SampleReader::metrics() {
  absl::StatusOr<Statement> get = database_->prepare(
      "SELECT metric FROM sample_metrics WHERE current=1 UNION SELECT metric FROM sample_series ORDER BY 1");
  if (!get.ok()) return get.status();
  std::vector<std::string> out;
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) out.emplace_back(get->text(0));
  if (!row.ok()) return row.status();
  return out;
}

namespace {

absl::StatusOr<std::vector<Series>> series_of(Database& database, const std::string& metric) {
  absl::StatusOr<Statement> get = database.prepare("SELECT id,key FROM sample_series WHERE metric=?1");
  if (!get.ok()) return get.status();
  std::vector<Series> out;
  get->bind_text(1, metric);
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    absl::StatusOr<std::vector<model::Label>> labels = labels_of(get->blob(1));
    if (!labels.ok()) return labels.status();
    out.push_back({get->integer(0), *std::move(labels)});
  }
  if (!row.ok()) return row.status();
  std::sort(out.begin(), out.end(),
            [](const Series& a, const Series& b) { return compare_labels(a.labels, b.labels) < 0; });
  return out;
}

std::set<std::string> names_of(const std::vector<Series>& series) {
  std::set<std::string> names;
  for (const Series& each : series) {
    for (const model::Label& label : each.labels) names.insert(label.first);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SampleReader::labels(const std::string& metric) {
  absl::StatusOr<std::vector<Series>> series = series_of(*database_, metric);
  if (!series.ok()) return series.status();
  const std::set<std::string> names = names_of(*series);
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<SampleFacts> SampleReader::facts() {
  absl::StatusOr<Statement> get = database_->prepare(
      "SELECT (SELECT count(*) FROM sample_series),(SELECT count(*) FROM sample_blocks),"
      "(SELECT sum(count) FROM sample_blocks),(SELECT sum(length(samples)) FROM sample_blocks),"
      "(SELECT sum(count) FROM sample_tail),(SELECT sum(length(samples)) FROM sample_tail)");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  if (!row.ok()) return row.status();
  SampleFacts facts;
  std::uint64_t* const out[] = {&facts.series,      &facts.blocks,       &facts.block_samples,
                                &facts.block_bytes, &facts.tail_samples, &facts.tail_bytes};
  for (int i = 0; i < 6; ++i) *out[i] = from_column(get->integer(i));
  return facts;
}

absl::Status SampleReader::samples(const SampleQuery& query, const std::function<Continue(const SampleAnswer&)>& some) {
  // One read transaction: everything is of one commit.
  absl::Status status = database_->execute("BEGIN");
  if (!status.ok()) return status;
  status = [&]() -> absl::Status {
    absl::StatusOr<std::vector<std::string>> known = metrics();
    if (!known.ok()) return known.status();
    if (std::find(known->begin(), known->end(), query.metric) == known->end()) {
      return absl::InvalidArgumentError(
          fmt::format("no samples of \"{}\" are kept; {}", query.metric,
                      known->empty() ? std::string("of no metric they are: a rollup asks for them with keep = \"raw\"")
                                     : fmt::format("those of {} are", fmt::join(*known, ", "))));
    }
    absl::StatusOr<std::vector<Series>> series = series_of(*database_, query.metric);
    if (!series.ok()) return series.status();
    const std::set<std::string> names = names_of(*series);
    for (const model::Label& wanted : query.where) {
      if (series->empty() || names.contains(wanted.first)) continue;
      return absl::InvalidArgumentError(fmt::format("no series of \"{}\" has a label \"{}\"; there are: {}",
                                                    query.metric, wanted.first, fmt::join(names, ", ")));
    }
    std::erase_if(*series, [&](const Series& each) {
      return !std::all_of(query.where.begin(), query.where.end(), [&](const model::Label& wanted) {
        return std::find(each.labels.begin(), each.labels.end(), wanted) != each.labels.end();
      });
    });
    return Scan(*database_, format_, query, some).run(*std::move(series));
  }();
  const absl::Status end = database_->execute("COMMIT");
  return status.ok() ? end : status;
}

}  // namespace orla::store
