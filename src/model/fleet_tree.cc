#include "model/fleet_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/utf8.h"

// toml++ is compiled here only. Its assertions are off: that of parse_key fails for a file with "[/", which the code
// after it reports as it should.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

namespace orla::model {
namespace {

Place place_of(const toml::source_region& region) { return {region.begin.line, region.begin.column}; }

bool is_name_character(char c, std::size_t index) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (index > 0 && c >= '0' && c <= '9');
}

class Converter {
 public:
  Converter(const EnvironmentLookup& environment, FleetErrors& errors) : environment_(environment), errors_(errors) {}

  TreeValue convert(const toml::node& node, Place fallback, int depth) {
    TreeValue value;
    value.place = node.source().begin ? place_of(node.source()) : fallback;
    switch (node.type()) {
      case toml::node_type::string:
        value.kind = TreeValue::Kind::kText;
        value.text = substitute(node.as_string()->get(), value.place, value.substituted);
        break;
      case toml::node_type::integer:
        value.kind = TreeValue::Kind::kInteger;
        value.integer = node.as_integer()->get();
        value.number = static_cast<double>(value.integer);
        break;
      case toml::node_type::floating_point:
        value.kind = TreeValue::Kind::kNumber;
        value.number = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        value.kind = TreeValue::Kind::kBoolean;
        value.boolean = node.as_boolean()->get();
        break;
      case toml::node_type::date:
        set_time(value, node.as_date()->get());
        break;
      case toml::node_type::time:
        set_time(value, node.as_time()->get());
        break;
      case toml::node_type::date_time:
        set_time(value, node.as_date_time()->get());
        break;
      case toml::node_type::array:
        value.kind = TreeValue::Kind::kList;
        if (too_deep(depth, value.place)) break;
        for (const toml::node& item : *node.as_array()) value.items.push_back(convert(item, value.place, depth + 1));
        break;
      case toml::node_type::table:
        value.kind = TreeValue::Kind::kTable;
        if (too_deep(depth, value.place)) break;
        convert_table(*node.as_table(), value, depth);
        break;
      case toml::node_type::none:
        break;
    }
    return value;
  }

 private:
  template <typename T>
  static void set_time(TreeValue& value, const T& time) {
    value.kind = TreeValue::Kind::kTime;
    std::ostringstream text;
    text << time;
    value.text = text.str();
  }

  bool too_deep(int depth, Place place) {
    if (depth < kMaxFleetDepth) return false;
    errors_.add(place, "values are nested too deep", fmt::format("at most {} levels", kMaxFleetDepth));
    return true;
  }

  void convert_table(const toml::table& table, TreeValue& value, int depth) {
    for (const auto& [key, node] : table) {
      TreeEntry entry;
      entry.key = std::string(key.str());
      entry.place = key.source().begin ? place_of(key.source()) : value.place;
      entry.value = convert(node, entry.place, depth + 1);
      value.entries.push_back(std::move(entry));
    }
    std::stable_sort(value.entries.begin(), value.entries.end(),
                     [](const TreeEntry& a, const TreeEntry& b) { return a.place < b.place; });
  }

  std::string substitute(std::string_view text, Place place, bool& substituted) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '$') {
        out += text[at++];
      } else if (text.substr(at, 2) == "$$") {
        out += '$';
        at += 2;
      } else if (text.substr(at, 2) == "${") {
        const std::size_t end = text.find('}', at);
        if (end == std::string_view::npos) {
          errors_.add(place, "\"${\" without \"}\"", "${NAME} or ${NAME:-default}", "write $$ for a dollar sign");
          return out;
        }
        substituted = true;
        out += variable(text.substr(at + 2, end - at - 2), place);
        at = end + 1;
      } else {
        errors_.add(place, "a dollar sign that begins no variable", "${NAME} or ${NAME:-default}",
                    "write $$ for a dollar sign");
        return out;
      }
    }
    return out;
  }

  std::string variable(std::string_view inside, Place place) {
    std::size_t length = 0;
    while (length < inside.size() && is_name_character(inside[length], length)) ++length;
    const std::string_view name = inside.substr(0, length);
    const std::string_view rest = inside.substr(length);
    if (name.empty() || (!rest.empty() && rest.substr(0, 2) != ":-") || rest.find('$') != std::string_view::npos) {
      errors_.add(place, fmt::format("{} is no variable", in_quotes(fmt::format("${{{}}}", inside))),
                  "${NAME} or ${NAME:-default}, where NAME is of letters, digits and _");
      return "";
    }
    std::optional<std::string> value = environment_ ? environment_(name) : std::nullopt;
    if (!rest.empty() && (!value || value->empty())) return std::string(rest.substr(2));
    if (!value) {
      errors_.add(place, fmt::format("environment variable {} is not set", in_quotes(name)), "",
                  fmt::format("set it, or give it a default: ${{{}:-default}}", name));
      return "";
    }
    if (!base::is_utf8(*value)) {
      errors_.add(place, fmt::format("environment variable {} is not UTF-8", in_quotes(name)));
      return "";
    }
    return *value;
  }

  const EnvironmentLookup& environment_;
  FleetErrors& errors_;
};

// What is checked before the parser sees the text: it takes neither invalid UTF-8 nor unlimited nesting well.
bool readable(std::string_view text, FleetErrors& errors) {
  if (text.size() > kMaxFleetFileBytes) {
    errors.add({}, fmt::format("the file has {} bytes", text.size()), fmt::format("at most {}", kMaxFleetFileBytes));
    return false;
  }
  std::uint32_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.size() > kMaxFleetLineBytes) {
      errors.add({number, 1}, fmt::format("the line has {} bytes", line.size()),
                 fmt::format("at most {}", kMaxFleetLineBytes));
      return false;
    }
    if (!base::is_utf8(line)) {
      std::size_t length = 0;
      std::uint32_t column = 1;
      for (std::size_t n = 1; n <= line.size() && n <= length + 4; ++n) {
        if (base::is_utf8(line.substr(length, n - length))) {
          length = n;
          ++column;
        }
      }
      errors.add({number, column}, "a byte that is not UTF-8", "UTF-8 text");
      return false;
    }
    begin = end + 1;
  }
  return true;
}

}  // namespace

const TreeValue* TreeValue::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const TreeEntry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

std::string describe(const TreeValue& value) {
  switch (value.kind) {
    case TreeValue::Kind::kText:
      return in_quotes(value.text);
    case TreeValue::Kind::kInteger:
      return fmt::format("{}", value.integer);
    case TreeValue::Kind::kNumber:
      return fmt::format("{}", value.number);
    case TreeValue::Kind::kBoolean:
      return value.boolean ? "true" : "false";
    case TreeValue::Kind::kTime:
      return value.text;
    case TreeValue::Kind::kList:
      return "a list";
    case TreeValue::Kind::kTable:
      return "a table";
  }
  return "";
}

std::optional<TreeValue> parse_tree(std::string_view text, const EnvironmentLookup& environment, FleetErrors& errors) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  if (!readable(text, errors)) return std::nullopt;
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    errors.add(place_of(parsed.error().source()), std::string(parsed.error().description()), "", "");
    return std::nullopt;
  }
  return Converter(environment, errors).convert(parsed.table(), {1, 1}, 0);
}

}  // namespace orla::model
