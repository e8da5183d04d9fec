// orla node FLEET NAME
#include <fmt/format.h>

#include <memory>

#include "base/absl_view.h"
#include "base/environment.h"
#include "commands.h"
#include "load.h"
#include "model/fleet_file.h"
#include "node/node_process.h"
#include "node/state_directory.h"

namespace orla::apps {

namespace {

constexpr char kDefaultState[] = "orla-state";

struct Options {
  std::string path;
  std::string name;
  std::string state;
  LogOptions log;
};

int run(const Options& o) {
  std::optional<model::Fleet> fleet = load_fleet_or_complain(o.path);
  if (!fleet) return kUsage;
  if (fleet->node(o.name) == nullptr) {
    fmt::print(stderr, "orla node: fleet \"{}\" has no node \"{}\"; it has:", fleet->name, o.name);
    for (const model::NodeSpec& node : fleet->nodes) fmt::print(stderr, " {}", node.name);
    fmt::print(stderr, "\n");
    return kUsage;
  }
  if (const absl::Status status = model::check_files(*fleet, o.name); !status.ok()) {
    fmt::print(stderr, "{}\n", base::message(status));
    return kUsage;
  }
  node::NodeOptions options;
  options.node = o.name;
  options.state = o.state;
  if (options.state.empty()) {
    const base::SystemEnvironment environment;
    const std::optional<std::filesystem::path> running = node::RunRecord(o.path, environment).running();
    options.state = running ? running->string() : kDefaultState;
    fmt::print(stderr, "state directory: {}{}\n", options.state,
               running ? " (of the `orla up` that runs this fleet)" : "");
  }
  options.fleet = *std::move(fleet);
  options.log_level = *base::parse_log_level(o.log.level);
  options.log_format = o.log.json ? base::LogFormat::kJson : base::LogFormat::kText;
  switch (node::run_node(std::move(options))) {
    case node::NodeEnd::kClean:
      return kOk;
    case node::NodeEnd::kLeftBehind:
      return kLeftBehind;
    case node::NodeEnd::kNotDrained:
    case node::NodeEnd::kFailed:
      break;
  }
  return kFailed;
}

}  // namespace

void add_node(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = app.add_subcommand("node", "Run one node of a fleet, here");
  command->add_option("FLEET", options->path, "The fleet file")->required();
  command->add_option("NAME", options->name, "Which of its nodes")->required();
  command->add_option("--state", options->state,
                      "Directory of the fleet's state on this machine; by default that of a running `orla up FLEET`, "
                      "else ./orla-state");
  add_log_options(*command, options->log);
  command->footer("Example:\n  orla node fleet.toml edge-1 --state orla-state");
  command->callback([options, &chosen] { chosen.run = [options] { return run(*options); }; });
}

}  // namespace orla::apps
