// Where the cells of CSV text end, many at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orla::ingest {

struct CsvMarks {
  std::size_t count = 0;  // of marks
  bool plain = true;      // there is neither a quote nor a NUL byte in the text
};
// Writes the offset of every delimiter and every \n to `out`, which has room for one more than the text has bytes.
// 64 bytes behind the text can be read.
CsvMarks find_csv_marks(std::string_view text, char delimiter, std::uint32_t* out);

}  // namespace orla::ingest
