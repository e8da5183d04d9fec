// What is wrong in a fleet file, where, and what to do.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orla::model {

// A character of a file. Both count from 1; columns count code points. Line 0: the file as a whole.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct FleetError {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string found;     // `slice is "7s"`
  std::string expected;  // `a divisor of 24 h`; may be empty
  std::string hint;      // `did you mean "load"?`; may be empty
  friend bool operator==(const FleetError&, const FleetError&) = default;
};

// As compilers print it: `fleet.toml:12:9: unknown key "alowed_lateness" in [[metric]]; did you mean "..."?`
std::string to_string(const FleetError& error);
// One per line, in the order of the file.
std::string to_string(std::span<const FleetError> errors);

inline constexpr std::size_t kMaxFleetErrors = 1000;

// Collects the errors of one file, the first kMaxFleetErrors of them.
class FleetErrors {
 public:
  explicit FleetErrors(std::string file) : file_(std::move(file)) {}
  // One per place: what follows from a mistake already reported there is not repeated.
  void add(Place place, std::string found, std::string expected = "", std::string hint = "");
  // Of something a section, or the file, lacks: there may be several at its place.
  void add_missing(Place place, std::string found, std::string expected = "", std::string hint = "");
  bool empty() const { return errors_.empty(); }
  // Sorted by place, each once.
  std::vector<FleetError> take();

 private:
  std::string file_;
  std::set<Place> places_;  // of add()
  std::vector<FleetError> errors_;
};

// The candidate that differs least from `word` (edit distance with transpositions), if it is near enough to be what was
// meant; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// `did you mean "load"?`, or, with nothing near, `known are "load", "work"`; empty when there are no candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
// "load" in quotes; long texts are cut, control characters escaped.
std::string in_quotes(std::string_view text);

}  // namespace orla::model
