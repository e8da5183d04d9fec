#include "store/sample_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "model/batch_append.h"
#include "store/columns.h"
#include "store/partial_bytes.h"

namespace orla::store {

using model::Batch;
using model::BatchForm;
using model::Time;

namespace {

Time time_of(const Batch& batch, std::size_t run, std::uint32_t i) {
  if (batch.paces.empty()) return batch.times[i];
  return batch.paces[run].start + batch.paces[run].step * std::int64_t{i - batch.runs[run].begin};
}

std::string key_of(std::string_view metric, std::string_view labels) { return fmt::format("{}/{}", metric, labels); }

template <typename Pieces>
BatchForm common_form(const Pieces& pieces) {
  BatchForm form = model::form_of(*pieces.front().batch);
  for (const auto& piece : pieces) form = model::common(form, model::form_of(*piece.batch));
  return form;
}

}  // namespace

absl::Status SampleTable::prepare() {
  absl::Status status = prepare_all(
      database_,
      {{&put_series_, "INSERT INTO sample_series(id,metric,labels,key) VALUES(?1,?2,?3,?4)"},
       {&put_block_,
        "INSERT INTO sample_blocks(series,hour_ns,first_ns,last_ns,count,samples) VALUES(?1,?2,?3,?4,?5,?6)"},
       {&last_block_,
        "SELECT id,count,samples FROM sample_blocks WHERE series=?1 AND hour_ns=?2 ORDER BY id DESC LIMIT 1"},
       {&drop_block_, "DELETE FROM sample_blocks WHERE id=?1"},
       {&put_tail_, "INSERT INTO sample_tail(count,samples) VALUES(?1,?2)"},
       {&get_tail_, "SELECT samples FROM sample_tail ORDER BY id"},
       {&drop_tail_, "DELETE FROM sample_tail"}});
  if (!status.ok()) return status;
  absl::StatusOr<Statement> get = database_.prepare("SELECT id,metric,key FROM sample_series");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    series_[key_of(get->text(1), get->blob(2))] = get->integer(0);
    next_series_ = std::max(next_series_, get->integer(0) + 1);
  }
  return row.status();
}

void SampleTable::given_up() {
  for (const std::string& key : new_series_) series_.erase(key);
  next_series_ -= static_cast<std::int64_t>(new_series_.size());
  new_series_.clear();
  tail_known_ = false;
}

absl::StatusOr<std::int64_t> SampleTable::number_of(const model::Series& series) {
  std::string labels;
  put_labels(labels, series.labels);
  std::string key = key_of(series.metric, labels);
  const auto [known, added] = series_.try_emplace(key, next_series_);
  if (!added) return known->second;
  const std::string json = labels_json(series.labels);
  new_series_.push_back(std::move(key));
  ++next_series_;
  const std::int64_t number = known->second;
  const absl::Status status =
      put_series_.bind(1, number).bind_text(2, series.metric).bind_text(3, json).bind_blob(4, labels).run();
  if (!status.ok()) return status;
  return number;
}

// The runs of a batch, cut at full hours. A run's series is an index into `numbers`; without any, the number itself.
void SampleTable::cut(const Batch& batch, const std::vector<std::int64_t>& numbers, std::vector<Piece>& out) {
  for (std::uint32_t r = 0; r < batch.runs.size(); ++r) {
    const Batch::Run& run = batch.runs[r];
    const std::uint32_t index = model::index(run.series);
    const std::int64_t number = numbers.empty() ? index : numbers[index];
    const bool even = !batch.paces.empty() && run.begin < run.end;
    if (even && hour_of(time_of(batch, r, run.begin)) == hour_of(time_of(batch, r, run.end - 1))) {
      out.push_back({{number, hour_of(time_of(batch, r, run.begin))}, &batch, r, run.begin, run.end});
      continue;
    }
    for (std::uint32_t i = run.begin; i < run.end;) {
      const std::int64_t hour = hour_of(time_of(batch, r, i));
      const Time from = model::from_ns(hour);
      const Time to = model::add_clamped(from, model::kRawBlock);
      const std::uint32_t begin = i;
      for (++i; i < run.end; ++i) {
        const Time time = time_of(batch, r, i);
        if (time < from || time >= to) break;
      }
      out.push_back({{number, hour}, &batch, r, begin, i});
    }
  }
}

absl::Status SampleTable::load_tail() {
  if (tail_known_) return absl::OkStatus();
  tail_keys_.clear();
  tail_samples_ = tail_rows_ = 0;
  Batch batch;
  std::vector<Piece> pieces;
  absl::StatusOr<bool> row = get_tail_.step();
  for (; row.ok() && *row; row = get_tail_.step()) {
    if (absl::Status status = format_.decode(get_tail_.blob(0), batch); !status.ok()) {
      get_tail_.reset();
      return status;
    }
    pieces.clear();
    cut(batch, {}, pieces);
    for (const Piece& piece : pieces) tail_keys_.insert(piece.key);
    tail_samples_ += batch.size();
    ++tail_rows_;
  }
  tail_known_ = row.ok();
  return row.status();
}

absl::Status SampleTable::write(const std::vector<model::Series>& series, const std::vector<Batch>& samples) {
  if (samples.empty()) return absl::OkStatus();
  if (absl::Status status = load_tail(); !status.ok()) return status;
  std::vector<std::int64_t> numbers;
  for (const model::Series& each : series) {
    absl::StatusOr<std::int64_t> number = number_of(each);
    if (!number.ok()) return number.status();
    numbers.push_back(*number);
  }
  std::vector<Piece> pieces;
  for (const Batch& batch : samples) cut(batch, numbers, pieces);
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.key < b.key; });
  std::vector<Piece> small;
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t end = i;
    std::size_t count = 0;
    for (; end < pieces.size() && pieces[end].key == pieces[i].key; ++end) count += pieces[end].end - pieces[end].begin;
    const std::span<const Piece> some(pieces.data() + i, end - i);
    if (count >= kOwnBlockSamples && !tail_keys_.contains(pieces[i].key)) {
      if (absl::Status status = write_blocks(some); !status.ok()) return status;
    } else {
      small.insert(small.end(), some.begin(), some.end());
    }
    i = end;
  }
  if (absl::Status status = write_tail(small); !status.ok()) return status;
  return tail_samples_ > bounds_.samples || tail_rows_ > bounds_.rows ? sort_tail() : absl::OkStatus();
}

// Pieces of one key as blocks.
absl::Status SampleTable::write_blocks(std::span<const Piece> pieces) {
  block_.clear();
  const BatchForm form = common_form(pieces);
  for (const Piece& piece : pieces) {
    for (std::uint32_t i = piece.begin; i < piece.end;) {
      const std::uint32_t end =
          i + static_cast<std::uint32_t>(std::min<std::size_t>(piece.end - i, kBlockSamples - block_.size()));
      model::append(block_, form, model::SeriesId{0}, *piece.batch, piece.run, i, end);
      i = end;
      if (block_.size() < kBlockSamples) continue;
      if (absl::Status status = write_block(piece.key); !status.ok()) return status;
    }
  }
  return block_.size() == 0 ? absl::OkStatus() : write_block(pieces.front().key);
}

// block_, which is empty then.
absl::Status SampleTable::write_block(const Key& key) {
  if (absl::Status status = format_.encode(block_, bytes_); !status.ok()) return status;
  Time first = model::kMaxTime;
  Time last = model::kMinTime;
  for (std::size_t r = 0; r < block_.runs.size(); ++r) {
    if (block_.paces.empty()) break;
    first = std::min(first, time_of(block_, r, block_.runs[r].begin));
    last = std::max(last, time_of(block_, r, block_.runs[r].end - 1));
  }
  for (const Time time : block_.times) {
    first = std::min(first, time);
    last = std::max(last, time);
  }
  const auto count = static_cast<std::int64_t>(block_.size());
  block_.clear();
  return put_block_.bind(1, key.first)
      .bind(2, key.second)
      .bind(3, model::to_ns(first))
      .bind(4, model::to_ns(last))
      .bind(5, count)
      .bind_blob(6, bytes_)
      .run();
}

absl::Status SampleTable::write_tail(std::span<const Piece> pieces) {
  if (pieces.empty()) return absl::OkStatus();
  block_.clear();
  const BatchForm form = common_form(pieces);
  for (const Piece& piece : pieces) {
    tail_keys_.insert(piece.key);
    for (std::uint32_t i = piece.begin; i < piece.end;) {
      const std::uint32_t end =
          i + static_cast<std::uint32_t>(std::min<std::size_t>(piece.end - i, kBlockSamples - block_.size()));
      model::append(block_, form, model::SeriesId{static_cast<std::uint32_t>(piece.key.first)}, *piece.batch, piece.run,
                    i, end);
      i = end;
      if (block_.size() < kBlockSamples) continue;
      if (absl::Status status = write_tail_row(); !status.ok()) return status;
    }
  }
  return block_.size() == 0 ? absl::OkStatus() : write_tail_row();
}

// block_, which is empty then.
absl::Status SampleTable::write_tail_row() {
  if (absl::Status status = format_.encode(block_, bytes_); !status.ok()) return status;
  tail_samples_ += block_.size();
  ++tail_rows_;
  const auto count = static_cast<std::int64_t>(block_.size());
  block_.clear();
  return put_tail_.bind(1, count).bind_blob(2, bytes_).run();
}

absl::Status SampleTable::sort_tail() {
  std::deque<Batch> rows;  // which pieces point into
  std::vector<Piece> pieces;
  absl::StatusOr<bool> row = get_tail_.step();
  for (; row.ok() && *row; row = get_tail_.step()) {
    if (absl::Status status = format_.decode(get_tail_.blob(0), rows.emplace_back()); !status.ok()) {
      get_tail_.reset();
      return status;
    }
    cut(rows.back(), {}, pieces);
  }
  if (!row.ok()) return row.status();
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t end = i;
    while (end < pieces.size() && pieces[end].key == pieces[i].key) ++end;
    if (absl::Status status = merge_last({pieces.data() + i, end - i}); !status.ok()) return status;
    i = end;
  }
  tail_keys_.clear();
  tail_samples_ = tail_rows_ = 0;
  return drop_tail_.run();
}

// Pieces of one key as blocks; when the last block there is small, with what it holds.
absl::Status SampleTable::merge_last(std::span<const Piece> pieces) {
  const Key key = pieces.front().key;
  absl::StatusOr<bool> found = last_block_.bind(1, key.first).bind(2, key.second).step();
  if (!found.ok()) return found.status();
  if (!*found || from_column(last_block_.integer(1)) >= kOwnBlockSamples) {
    last_block_.reset();
    return write_blocks(pieces);
  }
  const std::int64_t id = last_block_.integer(0);
  Batch before;
  absl::Status status = format_.decode(last_block_.blob(2), before);
  last_block_.reset();
  if (status.ok()) status = drop_block_.bind(1, id).run();
  if (!status.ok()) return status;
  std::vector<Piece> all;
  cut(before, {key.first}, all);
  all.insert(all.end(), pieces.begin(), pieces.end());
  return write_blocks(all);
}

}  // namespace orla::store
