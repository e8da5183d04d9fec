// The lines of a file, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/byte_source.h"

namespace orla::verify {

// A line ends at \n, and a \r right before that belongs to the end; the last line may lack its end. A UTF-8 byte order
// mark at the start of the file is no content. Not thread-safe.
class Lines {
 public:
  static constexpr std::size_t kMaxLineBytes = 64 * 1024;

  explicit Lines(std::unique_ptr<base::ByteSource> source) : source_(std::move(source)) {}

  // The next line without its end, good until the next call; false at the end of the file. Of a line longer than
  // kMaxLineBytes only too_long() is known; `line` is then empty.
  absl::StatusOr<bool> next(std::string_view& line);
  bool too_long() const { return too_long_; }

 private:
  absl::StatusOr<bool> read_more();

  std::unique_ptr<base::ByteSource> source_;
  std::string buffer_;  // from at_ on: not given out yet
  std::size_t at_ = 0;
  bool at_start_ = true;
  bool at_end_ = false;
  bool too_long_ = false;
};

}  // namespace orla::verify
