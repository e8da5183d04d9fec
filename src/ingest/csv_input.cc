#include "ingest/csv_input.h"

#include <fmt/format.h>

#include <utility>

#include "ingest/csv_debs.h"
#include "ingest/csv_mapping.h"

namespace orla::ingest {

namespace {

class CsvInput final : public Input {
 public:
  CsvInput(std::unique_ptr<base::ByteSource> source, std::string name, std::unique_ptr<RowParser> parser,
           std::string input_key, BatchLimits limits)
      : reader_(std::move(source)), name_(std::move(name)), parser_(std::move(parser)), batch_(input_key, limits) {}

  absl::Status open(const model::Position& from) {
    if (parser_->wants_header()) {
      if (absl::Status s = read_header(); !s.ok()) return s;
    }
    if (from.offset <= reader_.position().offset) return absl::OkStatus();
    const absl::Status moved = reader_.go_to(from);
    if (moved.ok()) return moved;
    return absl::Status(moved.code(),
                        fmt::format("{}: going on after line {}: {}", name_, from.row, std::string(moved.message())));
  }

  absl::StatusOr<bool> next(model::InputBatch& out) override {
    if (!failure_.ok()) return failure_;
    if (ended_) return false;
    const std::uint64_t first_row = reader_.position().row;
    batch_.begin(out);
    while (!batch_.full()) {
      absl::StatusOr<LineReader::Block> block = reader_.next();
      if (!block.ok()) {
        failure_ = absl::Status(
            block.status().code(),
            fmt::format("{}, after line {}: {}", name_, reader_.position().row, std::string(block.status().message())));
        break;
      }
      if (block->at_end()) {
        ended_ = true;
        out.end_of_input = true;
        break;
      }
      if (block->too_long) {
        batch_.count_lines(1);
        batch_.reject(reader_.position().row, too_long(0));
        continue;
      }
      const RowParser::Used used = parser_->parse(block->lines, reader_.position().row, batch_);
      reader_.consume(used.bytes, used.rows);
      batch_.count_lines(used.rows);
      if (used.bytes < block->lines.size()) break;  // full, or the next row belongs to another batch
    }
    batch_.finish(reader_.position());
    if (!failure_.ok() && reader_.position().row == first_row) return failure_;
    return true;
  }

  double progress() const override { return ended_ ? 1 : reader_.progress(); }

 private:
  absl::Status read_header() {
    for (;;) {
      absl::StatusOr<LineReader::Block> block = reader_.next();
      if (!block.ok()) return absl::Status(block.status().code(), name_ + ": " + std::string(block.status().message()));
      if (block->at_end()) return absl::OkStatus();  // no header and no rows
      if (block->too_long) {
        return absl::InvalidArgumentError(fmt::format("{}, line {}: found a header of more than {} bytes", name_,
                                                      reader_.position().row, kMaxLineBytes));
      }
      const std::size_t size = block->lines.find('\n') + 1;
      const std::string line(without_line_end(block->lines.substr(0, size)));
      reader_.consume(size, 1);
      if (line.empty()) continue;
      const absl::Status status = parser_->read_header(line);
      if (status.ok()) return status;
      return absl::Status(status.code(),
                          fmt::format("{}, line {}: {}", name_, reader_.position().row, std::string(status.message())));
    }
  }

  LineReader reader_;
  std::string name_;
  std::unique_ptr<RowParser> parser_;
  BatchBuilder batch_;
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
                                                      BatchLimits limits, const model::Position& from) {
  auto input =
      std::make_unique<CsvInput>(std::move(source), std::move(name), std::move(parser), std::move(input_key), limits);
  if (absl::Status s = input->open(from); !s.ok()) return s;
  return input;
}

absl::StatusOr<std::unique_ptr<RowParser>> make_row_parser(const model::InputSpec& spec) {
  if (spec.schema == model::InputSpec::Schema::kDebs2014)
    return make_debs_parser(Selection(spec.select), DebsPath::kFast);
  return make_mapping_parser(spec.mapping, Selection(spec.select));
}

}  // namespace orla::ingest
