// orla up FLEET
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/absl_view.h"
#include "commands.h"
#include "load.h"
#include "model/fleet_file.h"
#include "model/window.h"
#include "node/role.h"
#include "node/supervisor.h"

namespace orla::apps {

namespace {

struct Options {
  std::string path;
  std::string run_for;
  std::string drain_timeout;
  std::string state;
  bool verify = false;
  bool json = false;
  LogOptions log;
};

int run(const Options& o) {
  node::UpOptions options;
  for (const auto& [text, name] : {std::pair(&o.run_for, "--for"), std::pair(&o.drain_timeout, "--drain-timeout")}) {
    if (text->empty()) continue;
    const absl::StatusOr<model::Duration> duration = model::parse_duration(*text);
    if (!duration.ok()) {
      fmt::print(stderr, "orla up: {}: {}\n", name, base::message(duration.status()));
      return kUsage;
    }
    if (text == &o.run_for) {
      options.run_for = *duration;
    } else {
      options.drain_timeout = std::chrono::ceil<std::chrono::milliseconds>(*duration);
    }
  }
  std::optional<model::Fleet> fleet = load_fleet_or_complain(o.path);
  if (!fleet) return kUsage;
  if (const absl::Status status = model::check_files(*fleet); !status.ok()) {
    fmt::print(stderr, "{}\n", base::message(status));
    return kUsage;
  }
  if (o.drain_timeout.empty()) options.drain_timeout = node::limit_ms(*fleet, "drain_timeout_ms");
  options.fleet = *std::move(fleet);
  options.fleet_path = o.path;
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) {
    fmt::print(stderr, "orla up: cannot tell where this program is: {}\n", error.message());
    return kFailed;
  }
  const auto choice = [](bool yes) { return yes ? node::Choice::kYes : node::Choice::kNo; };
  options.verify = choice(o.verify);
  options.json = choice(o.json);
  options.state = o.state;
  options.log_level = o.log.level;
  options.log_json = choice(o.log.json);
  switch (node::run_up(std::move(options))) {
    case node::UpEnd::kClean:
      return kOk;
    case node::UpEnd::kDifferent:
      return kDifferent;
    case node::UpEnd::kDrainTimeout:
      return kDrainTimeout;
    case node::UpEnd::kFailed:
      break;
  }
  return kFailed;
}

}  // namespace

void add_up(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = app.add_subcommand("up", "Run a whole fleet on this machine, one process per node");
  command->add_option("FLEET", options->path, "The fleet file")->required();
  command->add_option("--for", options->run_for,
                      "Stop the inputs after this time (or when they end), drain, and end; by default the fleet stays "
                      "up until Ctrl-C");
  command->add_flag("--verify", options->verify,
                    "Compute every window again from the rows and compare; exit 1 on any difference");
  command->add_flag("--json", options->json, "One JSON object a line: at the start, and a summary at the end");
  command->add_option(
      "--state", options->state,
      "Keep state here and go on where it stopped; by default a temporary directory, removed at the end");
  command->add_option("--drain-timeout", options->drain_timeout,
                      "How long to wait, after the inputs ended, until the cloud has everything (exit 3)");
  add_log_options(*command, options->log);
  command->footer("Example:\n  orla up examples/smart-grid/fleet.toml --for 60s --verify");
  command->callback([options, &chosen] { chosen.run = [options] { return run(*options); }; });
}

}  // namespace orla::apps
