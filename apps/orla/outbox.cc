// orla outbox inspect|verify|drain DIR
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/absl_view.h"
#include "commands.h"
#include "load.h"
#include "model/time.h"
#include "model/window.h"
#include "node/node_process.h"
#include "node/outbox_report.h"

namespace orla::apps {

namespace {

struct Options {
  std::string directory;
  bool json = false;
  std::string fleet;
  std::string limit = "10m";
  LogOptions log;
};

enum class Look { kInspect, kVerify };

int look(const Options& o, Look what) {
  const absl::StatusOr<node::OutboxReport> report = node::report_outbox(o.directory);
  if (!report.ok()) {
    fmt::print(stderr, "orla outbox: {}\n", base::message(report.status()));
    return report.status().code() == absl::StatusCode::kNotFound ? kUsage : kFailed;
  }
  if (o.json) {
    fmt::print("{}", node::outbox_json(*report));
  } else if (what == Look::kInspect || !report->sound()) {
    fmt::print("{}", node::outbox_table(*report));
  } else {
    fmt::print("{}: everything is sound\n", o.directory);
  }
  return what == Look::kVerify && !report->sound() ? kDifferent : kOk;
}

int drain(const Options& o) {
  std::optional<model::Fleet> fleet = load_fleet_or_complain(o.fleet);
  if (!fleet) return kUsage;
  std::error_code error;
  std::filesystem::path directory = std::filesystem::absolute(o.directory, error).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  const std::string name = directory.filename().string();
  const model::NodeSpec* spec = fleet->node(name);
  if (spec == nullptr || spec->layer != model::Layer::kEdge || spec->durability != model::Durability::kDisk) {
    fmt::print(stderr,
               "orla outbox drain: \"{}\" is no edge of fleet \"{}\" that keeps its state on disk; DIR is STATE/NAME\n",
               name, fleet->name);
    return kUsage;
  }
  const absl::StatusOr<model::Duration> limit = model::parse_duration(o.limit);
  if (!limit.ok()) {
    fmt::print(stderr, "orla outbox drain: --limit: {}\n", base::message(limit.status()));
    return kUsage;
  }
  // Looked at first: a directory without an outbox would be one that a node begins.
  const absl::StatusOr<node::OutboxReport> report = node::report_outbox(directory.string());
  if (!report.ok()) {
    fmt::print(stderr, "orla outbox drain: {}\n", base::message(report.status()));
    return report.status().code() == absl::StatusCode::kNotFound ? kUsage : kFailed;
  }
  node::NodeOptions options;
  options.node = name;
  options.state = directory.parent_path().string();
  options.fleet = *std::move(fleet);
  options.log_level = *base::parse_log_level(o.log.level);
  options.log_format = o.log.json ? base::LogFormat::kJson : base::LogFormat::kText;
  options.drain_limit = *limit;
  switch (node::run_node(std::move(options))) {
    case node::NodeEnd::kClean:
      return kOk;
    case node::NodeEnd::kNotDrained:
      return kDrainTimeout;
    case node::NodeEnd::kLeftBehind:
    case node::NodeEnd::kFailed:
      break;
  }
  return kFailed;
}

}  // namespace

void add_outbox(CLI::App& app, Chosen& chosen) {
  CLI::App* outbox = app.add_subcommand("outbox", "What a stopped edge keeps on disk for the cloud");
  outbox->require_subcommand(1);
  const auto add = [&](const char* name, const char* text, const char* footer) {
    auto options = std::make_shared<Options>();  // with the callback
    CLI::App* command = outbox->add_subcommand(name, text);
    command->add_option("DIR", options->directory, "Directory of the node, STATE/NAME")->required();
    command->footer(footer);
    return std::pair(command, options);
  };
  const auto [inspect, inspected] =
      add("inspect", "Files, numbers, samples, times and damage; changes nothing",
          "Example:\n  orla outbox inspect orla-state/edge-1\n\nThe node must not run (exit code 4).");
  inspect->add_flag("--json", inspected->json, "As JSON");
  inspect->callback(
      [options = inspected, &chosen] { chosen.run = [options] { return look(*options, Look::kInspect); }; });

  const auto [verify, verified] =
      add("verify", "Read everything and say whether anything is damaged; changes nothing",
          "Example:\n  orla outbox verify orla-state/edge-1\n\nExit code 1 when something is damaged or lost, 4 while "
          "the node runs.");
  verify->add_flag("--json", verified->json, "As JSON");
  verify->callback([options = verified, &chosen] { chosen.run = [options] { return look(*options, Look::kVerify); }; });

  const auto [empty, emptied] =
      add("drain", "Send what is kept to the cloud, reading no input, and end",
          "Example:\n  orla outbox drain orla-state/edge-1 --fleet fleet.toml --limit 5m\n\nExit code 3 when the time "
          "runs out. What is in no chunk yet stays in the journal.");
  empty->add_option("--fleet", emptied->fleet, "The fleet file: it says who the parents are")->required();
  empty->add_option("--limit", emptied->limit, "End after this time at the latest")->capture_default_str();
  add_log_options(*empty, emptied->log);
  empty->callback([options = emptied, &chosen] { chosen.run = [options] { return drain(*options); }; });
}

}  // namespace orla::apps
