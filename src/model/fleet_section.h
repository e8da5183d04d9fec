// Reads the settings of one section of a fleet file as the table in settings.h declares them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/fleet_tree.h"
#include "model/settings.h"
#include "model/window.h"

namespace orla::model {

// Borrows the tree and the errors. Keys the table does not know and required ones that are missing are reported at
// construction; a value of the wrong form when it is read, and the default is returned in its place. An item of a list
// that cannot be read leaves an empty text, a zero duration or WindowSpec{}, so that items keep their places.
class SectionReader {
 public:
  SectionReader(std::string_view section, const TreeValue& table, FleetErrors& errors);

  bool has(std::string_view key) const { return table_.find(key) != nullptr; }
  const TreeValue& table() const { return table_; }

  std::string text(std::string_view key);  // also names and zones, which are checked for their form
  // Index into choices_of(the setting); nothing without a value and a default.
  std::optional<std::size_t> choice(std::string_view key);
  bool boolean(std::string_view key);
  std::int64_t integer(std::string_view key);
  double number(std::string_view key);
  Duration duration(std::string_view key);
  Time time(std::string_view key, const std::string& zone);
  char character(std::string_view key);
  std::vector<std::string> texts(std::string_view key);  // also names
  std::vector<std::vector<std::string>> parents(std::string_view key);
  std::optional<std::pair<double, double>> location(std::string_view key);
  std::vector<Duration> durations(std::string_view key);
  std::vector<WindowSpec> windows(std::string_view key);
  // kColumns and kConstants, in the order of the file; columns that are numbers become text.
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view key);
  // Ranges are written out.
  std::vector<std::pair<std::string, std::vector<std::string>>> selection(std::string_view key);

 private:
  const Setting& setting(std::string_view key) const;
  void wrong(std::string_view key, const TreeValue& value, std::string expected, std::string hint = "");
  std::optional<std::string> text_of(std::string_view key, const TreeValue& value);
  std::optional<std::string> name_of(std::string_view key, const TreeValue& value);
  std::optional<Duration> duration_of(std::string_view key, const TreeValue& value);
  std::optional<WindowSpec> window_of(std::string_view key, const TreeValue& value);
  std::optional<std::string> scalar_of(std::string_view key, const TreeValue& value);
  void select_value(std::string_view key, const TreeValue& value, std::vector<std::string>& values);
  // The items of a list, or the value itself where a list is expected; checks their number.
  std::vector<const TreeValue*> items_of(std::string_view key);
  const TreeValue* table_value(std::string_view key);

  std::string_view section_;
  std::string header_;
  const TreeValue& table_;
  FleetErrors& errors_;
};

// The place of a value, or of its i-th item when it is a list; the table's own when the key is not there.
Place place_of(const TreeValue& table, std::string_view key);
Place place_of(const TreeValue& table, std::string_view key, std::size_t item);

// Reports keys of the table that the section does not declare, and required ones that are missing.
void check_keys(std::string_view section, const TreeValue& table, FleetErrors& errors);

inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kMaxSelectedValues = 100'000;

}  // namespace orla::model
