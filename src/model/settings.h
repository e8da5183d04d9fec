// Every setting of a fleet file, declared once: reading, bounds, defaults, error messages, `orla settings` and
// docs/settings.md all come from this table.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orla::model {

// What may be written for a setting. Every type names one reader in fleet_section.h.
enum class SettingType : std::uint8_t {
  kText,
  kName,    // letters, digits and _ . - ; begins with a letter, digit or _
  kChoice,  // one of the words in `bounds`
  kBoolean,
  kInteger,
  kNumber,
  kDuration,   // "90s"
  kTime,       // RFC 3339, or a TOML date and time
  kZone,       // an IANA time zone
  kAddress,    // "127.0.0.1:7411"
  kCharacter,  // a text of one character
  kTexts,      // a list of texts
  kNames,      // a name, or a list of names
  kParents,    // a list of names and of lists of names
  kLocation,   // [latitude, longitude]
  kDurations,  // a list of durations
  kWindows,    // a list of windows
  kSelection,  // a table: label = value or list of values
  kColumns,    // a table: name = column
  kConstants,  // a table: name = text
  kTable,      // settings of their own, declared under "<section>.<key>"
};

enum class Presence : std::uint8_t { kRequired, kOptional };

struct Setting {
  std::string_view section;  // "node"; "input.time" for the settings of a table inside [[input]]
  std::string_view key;
  SettingType type = SettingType::kText;
  Presence presence = Presence::kOptional;
  std::string_view unit;      // of plain numbers
  std::string_view fallback;  // the default, as text; empty: none, see `text`
  // kInteger, kNumber, kDuration: "lowest..highest". Lists and tables: the number of items. kText: the number of bytes.
  // kChoice: "one | other".
  std::string_view bounds;
  std::string_view text;     // what it does, a sentence or two
  std::string_view example;  // as written in a fleet file
};

struct SettingSection {
  std::string_view name;    // "node"
  std::string_view header;  // "[[node]]"
  std::string_view text;
};

// In the order of the reference.
std::span<const SettingSection> setting_sections();
std::span<const Setting> settings();
// Null when there is none.
const Setting* find_setting(std::string_view section, std::string_view key);
const SettingSection* find_section(std::string_view name);
// The keys of a section.
std::vector<std::string> setting_keys(std::string_view section);
// The words of a kChoice, in order.
std::vector<std::string> choices_of(const Setting& setting);
// "duration", "list of names": how a person reads the type.
std::string_view type_name(SettingType type);

// The section [limits] with nothing set.
std::map<std::string, std::int64_t> default_limits();

// Markdown; docs/settings.md is this text.
std::string settings_reference();
// The same for a terminal, `width` columns wide (at least 40). `section` limits it to one section; empty: all.
std::string settings_text(std::string_view section, std::size_t width);

}  // namespace orla::model
