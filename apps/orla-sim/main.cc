// orla-sim: runs simulated fleets, and says what was wrong, or how they fared.
#include <CLI/CLI.hpp>
#include <functional>

#include "commands.h"

namespace {

constexpr char kAbout[] =
    "Runs whole fleets in one thread, each from one seed: the real roles on simulated clocks, links, disks and "
    "inputs.\n"
    "Nodes crash, freeze and stop, links are cut, disks fail; then everything drains, and every window at the cloud "
    "is\n"
    "compared with a direct computation.\n\n"
    "  orla-sim --seeds 1..1000          a thousand fleets\n"
    "  orla-sim --seeds 1..1000 --swarm  each with some kinds of faults only, more or less often and severe\n"
    "  orla-sim --seed 17 --trace        one of them, with everything that happens\n"
    "  orla-sim fleet --sites 15         what a fleet of that size carries";
constexpr char kExitCodes[] = "Exit codes: 0 every invariant held; 1 one did not; 2 wrong usage.";

}  // namespace

int main(int argc, char** argv) {
  using namespace orla::apps;
  CLI::App app(kAbout, "orla-sim");
  app.footer(kExitCodes);
  const std::function<int()> run_seeds = add_seeds(app);
  int exit_code = kOk;
  const CLI::App* fleet = add_fleet(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return fleet->parsed() ? exit_code : run_seeds();
}
