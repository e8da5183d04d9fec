// The atoms of answers as CSV and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/series.h"
#include "model/time.h"

namespace orla::node {

enum class AnswerFormat : std::uint8_t { kCsv, kJson };
enum class TimeForm : std::uint8_t { kRfc3339, kEpochNs };

// In quotes when it has to be.
std::string csv_cell(std::string_view text);
std::string time_text(model::Time time, TimeForm form);
// A time in JSON: text, or an integer.
std::string time_json(model::Time time, TimeForm form);
std::string json_text(std::string_view text);
std::string labels_json(const std::vector<model::Label>& labels);
// The label's values in the order of the columns, each followed by a comma; a label the row lacks is empty.
void append_labels(std::string& out, const std::vector<std::string>& columns, const std::vector<model::Label>& labels);

}  // namespace orla::node
