// How the cloud's file keeps Partials and labels in its BLOB columns.
//
// labels       count; name, value of each, as texts (see base/bytes.h)
// partial      count, then unless it is 0: the bits of min, max, first and last as words, then as a window state whose
//              start is 1970-01-01
// window state flags: 1 = the sums are wide, 2 = first and last are meaningful, 4 = there are sketches
//              with flag 2: first_time - start, last_time - start, zigzag
//              with flag 4: Sketches::encode with its length
//              sum as zigzag and sum of squares as varints; when wide, ExactSum::encode to the end
// What a window state lacks (count, min, max, first, last) is in columns beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/partial.h"
#include "model/series.h"

namespace orla::store {

// Appends.
void put_labels(std::string& out, const std::vector<model::Label>& labels);
absl::StatusOr<std::vector<model::Label>> labels_of(std::string_view bytes);
// {"house":"3","plug":"7"}, for people and SQL.
std::string labels_json(const std::vector<model::Label>& labels);
// ["house","plug"]
std::string names_json(const std::vector<std::string>& names);

enum class HasOrder : std::uint8_t { kNo, kYes };

// Replaces `out`. partial.count > 0.
void window_state(std::string& out, const model::Partial& partial, model::Time start, HasOrder has_order);
// Fills sums, sketches, first_time and last_time of a Partial whose other members are set.
absl::Status read_window_state(std::string_view bytes, model::Time start, model::Partial& into);

std::string partial_bytes(const model::Partial& partial);
absl::StatusOr<model::Partial> partial_of(std::string_view bytes);

}  // namespace orla::store
