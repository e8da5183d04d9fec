// Rows of partials to bytes and back: the content of chunks, frames and of journalled open rows. The format is at the
// head of rows.cc.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/partial.h"

namespace orla::codec {

// Rows of one encoding at most.
inline constexpr std::size_t kMaxRows = std::size_t{1} << 22;

// rows: canonical (see model::canonicalize), every count > 0, at most kMaxRows.
std::string encode_rows(const model::PartialRows& rows);

// Only canonical rows are accepted, whose numbers agree with each other (min <= first <= max, ...). Memory taken before
// the whole is known to be well-formed is in proportion to bytes.size().
absl::StatusOr<model::PartialRows> decode_rows(std::string_view bytes);

}  // namespace orla::codec
