#include "function/spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace orla::function {
namespace {

bool is_label_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace

absl::Status check_label(std::string_view what, std::string_view text) {
  constexpr std::string_view kRule = "lower-case letters, digits and '-', which is neither first nor last";
  if (text.empty()) {
    return absl::InvalidArgumentError(fmt::format("the {} is empty; expected 1 to {} {}", what, kMaxLabelBytes, kRule));
  }
  if (text.size() > kMaxLabelBytes) {
    return absl::InvalidArgumentError(
        fmt::format("the {} has {} bytes; expected at most {}", what, text.size(), kMaxLabelBytes));
  }
  if (!std::all_of(text.begin(), text.end(), is_label_letter) || text.front() == '-' || text.back() == '-') {
    return absl::InvalidArgumentError(fmt::format("the {} is \"{}\"; expected {}", what, text, kRule));
  }
  return absl::OkStatus();
}

FunctionKey key_of(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {.name = std::string(text)};
  return {.name = std::string(text.substr(0, dot)), .space = std::string(text.substr(dot + 1))};
}

}  // namespace orla::function
