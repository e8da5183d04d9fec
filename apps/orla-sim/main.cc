// orla-sim: runs simulated fleets, one per seed, and says what was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "sim/fleet_world.h"

namespace {

constexpr char kAbout[] =
    "Runs whole fleets in one thread, each from one seed: the real roles on simulated clocks, links, disks and "
    "inputs.\n"
    "Nodes crash, freeze and stop, links are cut, disks fail; then everything drains, and every window at the cloud "
    "is\n"
    "compared with a direct computation.\n\n"
    "  orla-sim --seeds 1..1000      a thousand fleets\n"
    "  orla-sim --seed 17 --trace    one of them, with everything that happens";
constexpr char kExitCodes[] = "Exit codes: 0 every invariant held; 1 one did not; 2 wrong usage.";

constexpr int kOk = 0;
constexpr int kWrong = 1;
constexpr int kUsage = 2;

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
};

std::optional<Seeds> parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto number = [](const std::string& digits) -> std::optional<std::uint64_t> {
    if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
      return std::nullopt;
    }
    return std::stoull(digits);
  };
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return std::nullopt;
  return Seeds{*first, *last};
}

}  // namespace

int main(int argc, char** argv) {
  using orla::sim::Bug;
  CLI::App app(kAbout, "orla-sim");
  app.footer(kExitCodes);
  std::string range = "1..100";
  std::uint64_t seed = 0;
  bool trace = false;
  bool each = false;
  Bug bug = Bug::kNone;
  CLI::Option* range_option = app.add_option("--seeds", range, "Which seeds: FIRST..LAST")->capture_default_str();
  CLI::Option* seed_option = app.add_option("--seed", seed, "One seed")->excludes(range_option);
  app.add_flag("--trace", trace, "Say on stderr what happens; with --seed")->needs(seed_option);
  app.add_flag("--each", each, "Say what every seed went through");
  const std::map<std::string, Bug> bugs = {{"lost-write", Bug::kLostWrite},
                                           {"forget-journal", Bug::kForgetJournal},
                                           {"cursors-apart", Bug::kCursorsApart},
                                           {"trim-on-read", Bug::kTrimOnRead},
                                           {"skip-rows", Bug::kSkipRows}};
  app.add_option("--plant", bug, "Plant a bug, to see that it is noticed")->transform(CLI::CheckedTransformer(bugs));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  std::optional<Seeds> seeds = seed_option->count() > 0 ? Seeds{seed, seed} : parse_seeds(range);
  if (!seeds) {
    std::fprintf(stderr, "orla-sim: --seeds is \"%s\"; expected FIRST..LAST, such as 1..1000\n", range.c_str());
    return kUsage;
  }

  std::string plant;
  for (const auto& [name, planted] : bugs) {
    if (planted == bug) plant = " --plant " + name;
  }
  const orla::base::SystemClock clock;
  const orla::base::SteadyTime started = clock.steady_now();
  orla::sim::Exercised all;
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  for (std::uint64_t s = seeds->first; s <= seeds->last; ++s) {
    orla::sim::WorldOptions options;
    options.seed = s;
    options.bug = bug;
    options.trace = trace ? orla::sim::Trace::kOn : orla::sim::Trace::kOff;
    orla::sim::FleetWorld world(options);
    const std::string wrong = world.run();
    ++runs;
    all.add(world.exercised());
    if (each) std::printf("seed %s: %s\n", std::to_string(s).c_str(), to_string(world.exercised()).c_str());
    if (wrong.empty()) continue;
    ++failures;
    std::printf("seed %s: %s\n  replay: orla-sim --seed %s --trace%s\n", std::to_string(s).c_str(), wrong.c_str(),
                std::to_string(s).c_str(), plant.c_str());
    std::fflush(stdout);
  }
  const std::chrono::duration<double> took = clock.steady_now() - started;
  std::printf("%s\n",
              fmt::format("{} seeds in {:.1f} s, {} failed: {}", runs, took.count(), failures, to_string(all)).c_str());
  // A run in which nothing happened proves nothing.
  if (runs >= 20 && (all.windows == 0 || all.crashes == 0 || all.refusals == 0 || all.cuts == 0)) {
    std::printf("nothing was exercised: that is a failure\n");
    return kWrong;
  }
  return failures == 0 ? kOk : kWrong;
}
