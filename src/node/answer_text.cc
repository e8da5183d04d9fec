#include "node/answer_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "node/time_text.h"

namespace orla::node {

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string time_text(model::Time time, TimeForm form) {
  return form == TimeForm::kEpochNs ? std::to_string(model::to_ns(time)) : rfc3339(time);
}

std::string time_json(model::Time time, TimeForm form) {
  return form == TimeForm::kEpochNs ? time_text(time, form) : absl::StrCat("\"", time_text(time, form), "\"");
}

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string labels_json(const std::vector<model::Label>& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", json_text(name), ":", json_text(value));
  }
  return out + "}";
}

void append_labels(std::string& out, const std::vector<std::string>& columns, const std::vector<model::Label>& labels) {
  for (const std::string& column : columns) {
    for (const auto& [name, value] : labels) {
      if (name == column) out += csv_cell(value);
    }
    out += ',';
  }
}

}  // namespace orla::node
