#include "model/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.h"
#include "model/fleet_section.h"

namespace orla::model {
namespace {

using testing::HasSubstr;

TEST(Settings, EverySectionAndKeyIsDeclaredOnce) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(seen.emplace(setting.section, setting.key).second) << setting.section << " " << setting.key;
    EXPECT_NE(find_section(setting.section), nullptr) << setting.section;
    EXPECT_FALSE(setting.text.empty()) << setting.key;
    EXPECT_EQ(find_setting(setting.section, setting.key), &setting);
  }
  EXPECT_EQ(find_setting("fleet", "nothing"), nullptr);
}

TEST(Settings, LimitsAreWholeNumbersWithUnits) {
  for (const Setting& setting : settings()) {
    if (setting.section != "limits") continue;
    EXPECT_EQ(setting.type, SettingType::kInteger) << setting.key;
    EXPECT_FALSE(setting.unit.empty()) << setting.key;
  }
  EXPECT_EQ(default_limits().at("commit_interval_ms"), 200);
  EXPECT_EQ(default_limits().at("outbox_bytes"), std::int64_t{4} << 30);
}

// Reads the setting from a section that holds only it, whatever its type.
void read(SectionReader& section, const Setting& setting) {
  switch (setting.type) {
    case SettingType::kText:
    case SettingType::kName:
    case SettingType::kZone:
    case SettingType::kAddress:
      section.text(setting.key);
      break;
    case SettingType::kChoice:
      section.choice(setting.key);
      break;
    case SettingType::kBoolean:
      section.boolean(setting.key);
      break;
    case SettingType::kInteger:
      section.integer(setting.key);
      break;
    case SettingType::kNumber:
      section.number(setting.key);
      break;
    case SettingType::kDuration:
      section.duration(setting.key);
      break;
    case SettingType::kTime:
      section.time(setting.key, "UTC");
      break;
    case SettingType::kCharacter:
      section.character(setting.key);
      break;
    case SettingType::kTexts:
    case SettingType::kNames:
      section.texts(setting.key);
      break;
    case SettingType::kParents:
      section.parents(setting.key);
      break;
    case SettingType::kLocation:
      section.location(setting.key);
      break;
    case SettingType::kDurations:
      section.durations(setting.key);
      break;
    case SettingType::kWindows:
      section.windows(setting.key);
      break;
    case SettingType::kSelection:
      section.selection(setting.key);
      break;
    case SettingType::kColumns:
    case SettingType::kConstants:
      section.pairs(setting.key);
      break;
    case SettingType::kTable:
      break;
  }
}

std::string errors_of(const Setting& setting, const std::string& line) {
  FleetErrors errors("x");
  const auto none = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
  const auto tree = parse_tree(line, none, errors);
  if (!tree) return to_string(errors.take());
  FleetErrors missing("x");  // other required keys, which the line has not
  SectionReader section(setting.section, *tree, missing);
  FleetErrors here("x");
  SectionReader again(setting.section, *tree, here);
  here.take();
  read(again, setting);
  return to_string(here.take());
}

TEST(Settings, ExamplesAndDefaultsAreWithinBounds) {
  for (const Setting& setting : settings()) {
    std::string example(setting.example);
    // The one example with a variable in it has a default.
    EXPECT_EQ(errors_of(setting, example), "") << example;
    EXPECT_THAT(example, testing::StartsWith(std::string(setting.key) + " = "));
    if (setting.fallback.empty()) continue;
    const bool bare = setting.type == SettingType::kInteger || setting.type == SettingType::kNumber ||
                      setting.type == SettingType::kBoolean || setting.type == SettingType::kTime;
    const std::string quote = bare ? "" : "\"";
    const std::string line = std::string(setting.key) + " = " + quote + std::string(setting.fallback) + quote;
    EXPECT_EQ(errors_of(setting, line), "") << line;
  }
}

TEST(Settings, TextForATerminalIsWrapped) {
  const std::string text = settings_text("limits", 60);
  EXPECT_THAT(text, HasSubstr("heartbeat_ms  (whole number, ms; default: 500; 10..60000)\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("[[rollup]]")));
  EXPECT_THAT(settings_text("", 100), HasSubstr("[[rollup]]"));
}

// `orla settings --markdown > docs/settings.md` writes it anew.
TEST(Settings, ReferencePageIsTheTable) {
  const auto page = base::read_file("docs/settings.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, settings_reference());
}

}  // namespace
}  // namespace orla::model
