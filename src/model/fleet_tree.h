// A fleet file's text as a tree of values that know their place, with environment variables filled in.
//
// Variables, in strings only: ${NAME} is the variable's value, ${NAME:-text} is `text` when the variable is not set or
// empty, $$ is a dollar sign. Any other dollar sign is an error, so that a misspelt variable never passes for text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fleet_error.h"
#include "model/fleet_file.h"

namespace orla::model {

struct TreeEntry;

struct TreeValue {
  enum class Kind : std::uint8_t { kText, kInteger, kNumber, kBoolean, kTime, kList, kTable };
  Kind kind = Kind::kTable;
  Place place;
  std::string text;          // kText; kTime as RFC 3339 writes it
  bool substituted = false;  // kText: had a variable in it
  std::int64_t integer = 0;
  double number = 0;  // kNumber and kInteger
  bool boolean = false;
  std::vector<TreeValue> items;    // kList
  std::vector<TreeEntry> entries;  // kTable, in the order of the file

  const TreeValue* find(std::string_view key) const;
};

struct TreeEntry {
  std::string key;
  Place place;  // of the key
  TreeValue value;
};

// What the value is, for a message: `"7s"`, `12`, `a table`, ...
std::string describe(const TreeValue& value);

inline constexpr std::size_t kMaxFleetFileBytes = 1 << 20;
inline constexpr std::size_t kMaxFleetLineBytes = 1 << 14;
inline constexpr int kMaxFleetDepth = 16;

// Syntax errors and variables that are not set go to `errors`; nothing is returned when the text is not TOML.
std::optional<TreeValue> parse_tree(std::string_view text, const EnvironmentLookup& environment, FleetErrors& errors);

}  // namespace orla::model
