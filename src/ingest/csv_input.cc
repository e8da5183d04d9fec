#include "ingest/csv_input.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/absl_view.h"
#include "ingest/csv_blocks.h"
#include "ingest/csv_debs.h"
#include "ingest/csv_mapping.h"
#include "ingest/series_numbers.h"

namespace orla::ingest {

namespace {

// The lines after the header, which the parser has read.
absl::Status read_header(LineBlocks& lines, RowParser& parser, const std::string& name) {
  LineBlock block;
  for (;;) {
    if (absl::Status s = lines.next(block); !s.ok()) return absl::Status(s.code(), name + ": " + base::message(s));
    if (block.too_long) {
      return absl::InvalidArgumentError(
          fmt::format("{}, line {}: found a header of more than {} bytes", name, block.after.row, kMaxLineBytes));
    }
    std::size_t at = 0;
    for (std::uint64_t rows = 1; at < block.lines.size(); ++rows) {
      const std::size_t size = block.lines.find('\n', at) + 1 - at;
      const std::string_view line = without_line_end(block.lines.substr(at, size));
      at += size;
      if (line.empty()) continue;
      const absl::Status status = parser.read_header(line);
      lines.give_back(block, at, rows);
      if (status.ok()) return status;
      return absl::Status(status.code(),
                          fmt::format("{}, line {}: {}", name, lines.position().row, base::message(status)));
    }
    if (block.is_last) return absl::OkStatus();  // no header and no rows
  }
}

// With one thread, blocks are parsed batch by batch as they are asked for. With several, blocks come parsed, each in
// the series numbers of its parser, and get those of the input here: in order of the blocks, so they are the same.
class CsvInput final : public Input {
 public:
  CsvInput(LineBlocks lines, std::string name, std::unique_ptr<RowParser> parser, const std::string& input_key,
           const BatchLimits& limits, std::size_t threads)
      : name_(std::move(name)),
        parser_(std::move(parser)),
        numbers_(limits.series),
        builder_(input_key, limits, threads > 1 ? &numbers_ : nullptr),
        numbers_of_(threads) {
    std::vector<std::unique_ptr<RowParser>> parsers;
    for (std::size_t i = 0; i < threads; ++i) parsers.push_back(parser_->another());
    blocks_.emplace(std::move(lines), std::move(parsers), input_key, limits);
    if (threads == 1) blocks_->stop_parsing();
  }

  absl::StatusOr<bool> next(model::InputBatch& out) override {
    if (!failure_.ok()) return failure_;
    if (ended_) return false;
    if (block_ == nullptr) {
      if (absl::Status s = next_block(); !s.ok()) return failure_ = s;
    }
    if (by_itself_ || !block_->parsed) {
      parse_batch(block_->lines, cursor_, *parser_, builder_, out);
      if (cursor_.done) block_ = nullptr;
    } else {
      std::swap(out, block_->batches[given_++]);
      number_series(out, numbers_of_[block_->parser]);
      if (given_ == block_->count) block_ = nullptr;
    }
    ended_ = out.end_of_input;
    return true;
  }

  double progress() const override { return ended_ ? 1 : progress_; }

 private:
  absl::Status next_block() {
    CsvBlock& block = blocks_->next();
    if (!block.failure.ok()) {
      return absl::Status(block.failure.code(), fmt::format("{}, after line {}: {}", name_, block.lines.at.row,
                                                            base::message(block.failure)));
    }
    block_ = &block;
    cursor_ = {};
    given_ = 0;
    progress_ = block.lines.progress;
    if (block.parsed && !by_itself_ && !has_room_for(block)) {
      by_itself_ = true;
      blocks_->stop_parsing();
    }
    // What its parser numbered in this block it need not know in the next one: the builder asks numbers_.
    if (by_itself_) parser_ = parser_->another();
    return absl::OkStatus();
  }

  // Whether all series of the block can be numbered. If not, some of its rows must be rejected, which only a parser
  // that asks numbers_ for each series can do.
  bool has_room_for(const CsvBlock& block) const {
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < block.count; ++i) {
      for (const model::Series& series : block.batches[i].new_series) unknown += numbers_.knows(series) ? 0 : 1;
    }
    return unknown <= numbers_.left();
  }

  void number_series(model::InputBatch& batch, std::vector<std::uint32_t>& numbers) {
    std::size_t kept = 0;
    for (model::Series& series : batch.new_series) {
      const SeriesNumbers::Numbered numbered = *numbers_.number(series);  // there is room: has_room_for()
      numbers.push_back(numbered.number);
      if (numbered.is_new) std::swap(batch.new_series[kept++], series);
    }
    batch.new_series.resize(kept);
    for (model::Batch::Run& run : batch.samples.runs) run.series = model::SeriesId{numbers[model::index(run.series)]};
  }

  std::string name_;
  std::unique_ptr<RowParser> parser_;
  SeriesNumbers numbers_;  // unused with one thread
  BatchBuilder builder_;
  std::vector<std::vector<std::uint32_t>> numbers_of_;  // by parser and its number of a series: the input's number
  std::optional<CsvBlocks> blocks_;

  CsvBlock* block_ = nullptr;  // that batches are taken from
  BlockCursor cursor_;         // of a block that is parsed here
  std::size_t given_ = 0;      // batches of a block that came parsed
  bool by_itself_ = false;     // blocks that come parsed are parsed again
  double progress_ = -1;
  absl::Status failure_;
  bool ended_ = false;
};

}  // namespace

absl::Status RowParser::read_header(std::string_view) { return absl::OkStatus(); }

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Fault too_long(std::size_t bytes) {
  const std::string found =
      bytes > 0 ? fmt::format("{} bytes", bytes) : fmt::format("more than {} bytes", kMaxLineBytes);
  return {kTooLong, 0, fmt::format("found a line of {}, expected at most {}", found, kMaxLineBytes)};
}

absl::StatusOr<std::unique_ptr<Input>> make_csv_input(std::unique_ptr<base::ByteSource> source, std::string name,
                                                      std::unique_ptr<RowParser> parser, std::string input_key,
                                                      BatchLimits limits, const model::Position& from,
                                                      const CsvReading& reading) {
  LineBlocks lines(std::move(source), reading.block_bytes);
  if (parser->wants_header()) {
    if (absl::Status s = read_header(lines, *parser, name); !s.ok()) return s;
  }
  if (from.offset > lines.position().offset) {
    if (absl::Status s = lines.go_to(from); !s.ok()) {
      return absl::Status(s.code(), fmt::format("{}: going on after line {}: {}", name, from.row, base::message(s)));
    }
  }
  return std::make_unique<CsvInput>(std::move(lines), std::move(name), std::move(parser), input_key, limits,
                                    reading.threads);
}

absl::StatusOr<std::unique_ptr<RowParser>> make_row_parser(const model::InputSpec& spec) {
  if (spec.schema == model::InputSpec::Schema::kDebs2014)
    return make_debs_parser(Selection(spec.select), DebsPath::kFast);
  return make_mapping_parser(spec.mapping, Selection(spec.select));
}

}  // namespace orla::ingest
