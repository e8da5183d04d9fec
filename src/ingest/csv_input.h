// A CSV file as an input: blocks of lines, through parsers of rows, into batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ingest/batch_builder.h"
#include "ingest/input.h"
#include "ingest/line_blocks.h"

namespace orla::ingest {

// Knows one schema. Not thread-safe.
class RowParser {
 public:
  virtual ~RowParser() = default;

  struct Used {
    std::size_t bytes = 0;
    std::uint64_t rows = 0;
  };
  // Reads whole lines off the front of `lines` (each ends with \n; LineBlock::kSlackBytes can be read behind) into the
  // batch, until they end, or the batch is full, or the next row does not fit into it. `rows_before` is the number of
  // the line before.
  virtual Used parse(std::string_view lines, std::uint64_t rows_before, BatchBuilder& batch) = 0;

  // One more parser of the same, that has seen the header and no rows.
  virtual std::unique_ptr<RowParser> another() const = 0;

  // The schema's first line is a header: called with the first line that is not empty, without its end.
  virtual bool wants_header() const { return false; }
  virtual absl::Status read_header(std::string_view line);
};

// The line without its \n and a \r before that.
std::string_view without_line_end(std::string_view line);
// The rejection of a line over kMaxLineBytes.
Fault too_long(std::size_t bytes);

// How a file is read. What it gives is the same, and so are its batches; other block_bytes cut other batches.
struct CsvReading {
  // That parse, the caller's included: it parses as well when it would have to wait. > 0.
  std::size_t threads = 1;
  std::size_t block_bytes = LineBlocks::kUsualBytes;  // what one thread parses at a time, about
};

// `name` is what messages call the input.
absl::StatusOr<std::unique_ptr<Input>> make_csv_input(std::unique_ptr<base::ByteSource> source, std::string name,
                                                      std::unique_ptr<RowParser> parser, std::string input_key,
                                                      BatchLimits limits, const model::Position& from,
                                                      const CsvReading& reading = {});

// The parser that the spec asks for.
absl::StatusOr<std::unique_ptr<RowParser>> make_row_parser(const model::InputSpec& spec);

}  // namespace orla::ingest
