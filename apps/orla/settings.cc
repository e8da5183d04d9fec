// orla settings [SECTION] [--markdown]
#include "model/settings.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>

#include "commands.h"

namespace orla::apps {

namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 100;
  return size.ws_col;
}

}  // namespace

void add_settings(CLI::App& app, Chosen& chosen) {
  struct Options {
    std::string section;
    bool markdown = false;
  };
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = app.add_subcommand("settings", "All settings of a fleet file: type, unit, default, bounds");
  std::vector<std::string> sections;
  for (const model::SettingSection& section : model::setting_sections()) sections.emplace_back(section.name);
  command->add_option("SECTION", options->section, "Only this section")->check(CLI::IsMember(sections));
  command->add_flag("--markdown", options->markdown, "As docs/settings.md");
  command->footer("Example:\n  orla settings rollup");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> int {
      fmt::print("{}", options->markdown ? model::settings_reference()
                                         : model::settings_text(options->section, terminal_width()));
      return kOk;
    };
  });
}

}  // namespace orla::apps
