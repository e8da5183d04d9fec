// orla status FLEET | --url URL
#include <fmt/format.h>

#include <memory>

#include "base/absl_view.h"
#include "base/environment.h"
#include "commands.h"
#include "load.h"
#include "node/fleet_watch.h"
#include "node/http_client.h"
#include "node/state_directory.h"
#include "node/up_report.h"

namespace orla::apps {

namespace {

constexpr std::chrono::seconds kPatience{3};
// Between two looks, for rates.
constexpr std::chrono::milliseconds kBetween{500};

struct Options {
  std::string path;
  std::string url;
  std::string state;
  bool json = false;
};

int one_node(const Options& o) {
  std::string url = o.url;
  while (!url.empty() && url.back() == '/') url.pop_back();
  const absl::StatusOr<node::HttpReply> reply = node::http_request("GET", url + "/api/v1/status", "", kPatience);
  if (!reply.ok() || reply->status != 200) {
    fmt::print(stderr, "orla status: {}\n",
               reply.ok() ? fmt::format("{} answered {}", o.url, reply->status) : base::message(reply.status()));
    return kFailed;
  }
  fmt::print("{}", reply->body);
  return kOk;
}

int whole_fleet(const Options& o) {
  const std::optional<model::Fleet> fleet = load_fleet_or_complain(o.path);
  if (!fleet) return kUsage;
  const base::SystemEnvironment environment;
  const base::SystemClock clock;
  std::string state = o.state;
  if (state.empty()) state = node::RunRecord(o.path, environment).running().value_or("orla-state").string();
  node::FleetWatch watch(*fleet, state, clock);
  watch.poll(kPatience);
  clock.sleep(kBetween);
  watch.poll(kPatience);
  fmt::print("{}", o.json ? node::started_json(fleet->name, watch.nodes(), state)
                          : node::live_table(watch.nodes(), watch.progress()));
  return watch.all_reachable() ? kOk : kFailed;
}

}  // namespace

void add_status(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = app.add_subcommand("status", "How the nodes of a running fleet are");
  CLI::Option* fleet = command->add_option("FLEET", options->path, "The fleet file: every node of it on this machine");
  command->add_option("--url", options->url, "One node's status as JSON, e.g. http://127.0.0.1:8401")->excludes(fleet);
  command->add_option("--state", options->state, "The state directory the fleet runs with");
  command->add_flag("--json", options->json, "As JSON");
  command->footer("Example:\n  orla status examples/smart-grid/fleet.toml\n\nExit code 4 when a node does not answer.");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> int {
      if (options->path.empty() == options->url.empty()) {
        fmt::print(stderr, "orla status: give a fleet file, or --url of one node\n");
        return kUsage;
      }
      return options->url.empty() ? whole_fleet(*options) : one_node(*options);
    };
  });
}

}  // namespace orla::apps
