// orla version
#include "base/version.h"

#include <fmt/format.h>

#include "commands.h"
#include "link/messages.h"

namespace orla::apps {

void add_version(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("version", "Version, commit and protocol");
  command->footer("Example:\n  orla version");
  command->callback([&chosen] {
    chosen.run = []() -> int {
      fmt::print("orla {} (commit {}, protocol {}.{})\n", base::Version(), base::Commit(), link::kProtocolMajor,
                 link::kProtocolMinor);
      return kOk;
    };
  });
}

}  // namespace orla::apps
