#include "function/http_environment.h"

#include <algorithm>

namespace orla::function {

namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string variable_of(std::string_view header) {
  std::string name = "Http_";
  bool first = true;
  for (const char c : header) {
    if (!is_letter_or_digit(c)) {
      name += '_';  // '=' and the like have no place in a name
      first = c == '-';
      continue;
    }
    if (first && c >= 'a' && c <= 'z') {
      name += static_cast<char>(c - 'a' + 'A');
    } else if (!first && c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c - 'A' + 'a');
    } else {
      name += c;
    }
    first = false;
  }
  return name;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> http_environment(const CallHead& head) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto add = [&](std::string name, std::string_view value) {
    const bool there =
        std::any_of(variables.begin(), variables.end(), [&](const auto& has) { return has.first == name; });
    if (!there) variables.emplace_back(std::move(name), value.substr(0, value.find('\0')));
  };
  // What the watchdog says itself comes first: a header cannot say otherwise.
  add("Http_Method", head.method);
  add("Http_Path", head.path);
  if (!head.query.empty()) add("Http_Query", head.query);
  add("Http_Host", head.host);
  const std::string length = head.content_length ? std::to_string(*head.content_length) : "-1";
  add("Http_ContentLength", length);
  add("Http_Content_Length", length);
  if (!head.content_length) add("Http_Transfer_Encoding", "chunked");
  for (const auto& [name, value] : head.headers) add(variable_of(name), value);
  return variables;
}

}  // namespace orla::function
