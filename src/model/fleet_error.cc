#include "model/fleet_error.h"

#include <fmt/format.h>

#include <algorithm>

namespace orla::model {
namespace {

constexpr std::size_t kMaxShownBytes = 80;
constexpr std::size_t kMaxShownCandidates = 12;
constexpr std::size_t kMaxComparedBytes = 64;

// Damerau-Levenshtein distance (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string to_string(const FleetError& error) {
  std::string text = error.line == 0 ? fmt::format("{}: {}", error.file, error.found)
                                     : fmt::format("{}:{}:{}: {}", error.file, error.line, error.column, error.found);
  if (!error.expected.empty()) text += fmt::format("; expected {}", error.expected);
  if (!error.hint.empty()) text += fmt::format("; {}", error.hint);
  return text;
}

std::string to_string(std::span<const FleetError> errors) {
  std::string text;
  for (const FleetError& error : errors) {
    if (!text.empty()) text += '\n';
    text += to_string(error);
  }
  return text;
}

void FleetErrors::add(Place place, std::string found, std::string expected, std::string hint) {
  if (places_.insert(place).second) add_missing(place, std::move(found), std::move(expected), std::move(hint));
}

void FleetErrors::add_missing(Place place, std::string found, std::string expected, std::string hint) {
  if (errors_.size() == kMaxFleetErrors) return;
  errors_.push_back({file_, place.line, place.column, std::move(found), std::move(expected), std::move(hint)});
}

std::vector<FleetError> FleetErrors::take() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const FleetError& a, const FleetError& b) {
    return Place{a.line, a.column} < Place{b.line, b.column};
  });
  errors_.erase(std::unique(errors_.begin(), errors_.end()), errors_.end());
  return std::move(errors_);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxComparedBytes) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxComparedBytes) continue;
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return fmt::format("did you mean {}?", in_quotes(near));
  if (candidates.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < candidates.size() && i < kMaxShownCandidates; ++i) {
    list += (i == 0 ? "" : ", ") + in_quotes(candidates[i]);
  }
  if (candidates.size() > kMaxShownCandidates) list += ", ...";
  return (candidates.size() == 1 ? "known is " : "known are ") + list;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    // Cut between characters, not inside one.
    if (i >= kMaxShownBytes && (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return out + "...\"";
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

}  // namespace orla::model
