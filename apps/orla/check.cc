// orla check FLEET
#include <fmt/format.h>

#include <memory>

#include "base/absl_view.h"
#include "commands.h"
#include "load.h"
#include "model/fleet_file.h"

namespace orla::apps {

void add_check(CLI::App& app, Chosen& chosen) {
  auto path = std::make_shared<std::string>();  // with the callback
  CLI::App* command = app.add_subcommand("check", "Find every mistake in a fleet file");
  command->add_option("FLEET", *path, "The fleet file")->required();
  command->footer("Example:\n  orla check examples/smart-grid/fleet.toml");
  command->callback([path, &chosen] {
    chosen.run = [path]() -> int {
      const std::optional<model::Fleet> fleet = load_fleet_or_complain(*path);
      if (!fleet) return kUsage;
      if (const absl::Status status = model::check_files(*fleet); !status.ok()) {
        fmt::print(stderr, "{}\n", base::message(status));
        return kUsage;
      }
      fmt::print("{}: fleet \"{}\" is fine: {} nodes, {} inputs, {} rollups, {} forecasts\n", *path, fleet->name,
                 fleet->nodes.size(), fleet->inputs.size(), fleet->rollups.size(), fleet->forecasts.size());
      return kOk;
    };
  });
}

}  // namespace orla::apps
