// The table of settings as documents: Markdown and plain text.
#include <fmt/format.h>

#include "model/settings.h"

namespace orla::model {
namespace {

std::string default_of(const Setting& setting) {
  if (setting.presence == Presence::kRequired) return "required";
  return setting.fallback.empty() ? "-" : std::string(setting.fallback);
}

std::string type_of(const Setting& setting) {
  if (setting.unit.empty()) return std::string(type_name(setting.type));
  return fmt::format("{}, {}", type_name(setting.type), setting.unit);
}

// Bars separate cells in Markdown tables.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", cell(text)); }

// Breaks at spaces; every line starts with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::string line(indent, ' ');
  bool empty = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + '\n';
      line.assign(indent, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return empty ? out : out + line + '\n';
}

}  // namespace

std::string settings_reference() {
  std::string out =
      "# Settings of a fleet file\n\n"
      "Written by `orla settings --markdown` from the table in `src/model/settings.cc`; a test keeps this page equal "
      "to "
      "it.\n\n"
      "A fleet file is TOML. Sections in double brackets may occur several times.\n\n"
      "- **Durations** are a number and a unit of `ns us ms s m h d` (a day is 24 h): `\"90s\"`, `\"1h30m\"`.\n"
      "- **Windows** are durations below a day, or `\"1d\"`, `\"1w\"`, `\"1mo\"` of the calendar in the fleet's zone, "
      "or "
      "`\"1h/5m\"` (an hour long, starting every five minutes).\n"
      "- **Names** are letters, digits and `_ . -`, at most 64, not beginning with `.` or `-`.\n"
      "- **Environment variables** in texts: `${NAME}`, `${NAME:-default}` (when it is not set or empty); `$$` is a "
      "dollar sign. A text with a variable may stand where a number or true/false is expected: `speed = "
      "\"${SPEED:-0}\"`.\n";
  for (const SettingSection& section : setting_sections()) {
    out += fmt::format(
        "\n## `{}`\n\n{}\n\n| setting | type | default | bounds | what it does | example |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        section.header, section.text);
    for (const Setting& setting : settings()) {
      if (setting.section != section.name) continue;
      out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", setting.key, cell(type_of(setting)),
                         setting.presence == Presence::kRequired ? "required" : code(setting.fallback),
                         code(setting.bounds), cell(setting.text), code(setting.example));
    }
  }
  return out;
}

std::string settings_text(std::string_view section, std::size_t width) {
  std::string out;
  for (const SettingSection& part : setting_sections()) {
    if (!section.empty() && part.name != section) continue;
    if (!out.empty()) out += '\n';
    out += fmt::format("{}\n{}", part.header, wrapped(part.text, 2, width));
    for (const Setting& setting : settings()) {
      if (setting.section != part.name) continue;
      out += fmt::format("\n  {}  ({}; default: {}", setting.key, type_of(setting), default_of(setting));
      if (!setting.bounds.empty()) out += fmt::format("; {}", setting.bounds);
      out += ")\n" + wrapped(setting.text, 6, width) + wrapped(fmt::format("e.g. {}", setting.example), 6, width);
    }
  }
  return out;
}

}  // namespace orla::model
