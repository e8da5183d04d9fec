// orla-sim --seeds: one fleet per seed, with faults; what failed is shrunk.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "commands.h"
#include "sim/fleet_world.h"
#include "sim/shrink.h"

namespace orla::apps {

namespace {

using sim::Bug;

struct Options {
  std::string range = "1..100";
  std::uint64_t seed = 0;
  bool one = false;
  bool swarm = false;
  bool trace = false;
  bool each = false;
  bool no_shrink = false;
  bool first = false;
  double shrink_s = 10;
  std::string keep;
  std::string plant;
  Bug bug = Bug::kNone;
};

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
};

std::optional<std::uint64_t> number(const std::string& digits) {
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoull(digits);
}

std::optional<Seeds> parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return std::nullopt;
  return Seeds{*first, *last};
}

// "3,7,9" or "none".
std::optional<std::vector<std::size_t>> parse_keep(const std::string& text) {
  std::vector<std::size_t> kept;
  if (text == "none") return kept;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto one = number(text.substr(at, comma - at));
    if (!one) return std::nullopt;
    kept.push_back(*one);
    at = comma + 1;
  }
  return kept;
}

std::string keep_text(const std::vector<std::size_t>& kept) {
  std::string text;
  for (const std::size_t i : kept) text += fmt::format("{}{}", text.empty() ? "" : ",", i);
  return text.empty() ? "none" : text;
}

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {}
  int run(const Seeds& seeds, const std::optional<std::vector<std::size_t>>& keep);

 private:
  sim::WorldOptions world_options(std::uint64_t seed) const {
    sim::WorldOptions world;
    world.seed = seed;
    world.bug = options_.bug;
    world.mix = options_.swarm ? sim::Mix::kSwarm : sim::Mix::kAll;
    return world;
  }
  std::string command(std::uint64_t seed) const {
    return fmt::format("orla-sim --seed {}{}{}", seed, options_.swarm ? " --swarm" : "",
                       options_.bug == Bug::kNone ? "" : fmt::format(" --plant {}", to_string(options_.bug)));
  }
  void shorten(const sim::WorldOptions& world, const std::vector<sim::Fault>& faults);

  const Options options_;
  const base::SystemClock clock_;
  int shrunk_ = 0;
};

void Runner::shorten(const sim::WorldOptions& world, const std::vector<sim::Fault>& faults) {
  constexpr int kShrunk = 3;  // of the failures of one run
  if (options_.no_shrink || ++shrunk_ > kShrunk) return;
  std::vector<std::size_t> kept(faults.size());
  std::iota(kept.begin(), kept.end(), 0);
  if (world.keep) kept = *world.keep;
  const base::SteadyTime until =
      clock_.steady_now() + std::chrono::nanoseconds(static_cast<std::int64_t>(options_.shrink_s * 1e9));
  const auto fails = [&](const std::vector<std::size_t>& some) {
    sim::WorldOptions with = world;
    with.trace = sim::Trace::kOff;
    with.keep = some;
    return !sim::FleetWorld(with).run().empty();
  };
  const std::size_t before = kept.size();
  kept = sim::shrink(std::move(kept), fails, [&] { return clock_.steady_now() < until; });
  say(fmt::format("  it fails with {} of {} faults:", kept.size(), before));
  for (const std::size_t i : kept) {
    if (i < faults.size()) say(fmt::format("    {:3} {}", i, to_string(faults[i])));
  }
  say(fmt::format("  replay: {} --keep {} --trace", command(world.seed), keep_text(kept)));
}

int Runner::run(const Seeds& seeds, const std::optional<std::vector<std::size_t>>& keep) {
  const base::SteadyTime started = clock_.steady_now();
  sim::Exercised all;
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    sim::WorldOptions options = world_options(seed);
    options.trace = options_.trace ? sim::Trace::kOn : sim::Trace::kOff;
    options.keep = keep;
    auto world = std::make_unique<sim::FleetWorld>(options);
    const std::string wrong = world->run();
    ++runs;
    all.add(world->exercised());
    if (options_.each) say(fmt::format("seed {}: {}", seed, to_string(world->exercised())));
    if (wrong.empty()) continue;
    ++failures;
    say(fmt::format("seed {}: {}\n  replay: {}{} --trace", seed, wrong, command(seed),
                    keep ? " --keep " + keep_text(*keep) : ""));
    const std::vector<sim::Fault> faults = world->faults();
    world.reset();
    shorten(options, faults);
    if (options_.first) break;
  }
  const std::chrono::duration<double> took = clock_.steady_now() - started;
  say(fmt::format("{} seeds in {:.1f} s, {} failed: {}", runs, took.count(), failures, to_string(all)));
  // A run in which nothing happened proves nothing.
  if (runs >= 20 && !keep &&
      (all.windows == 0 || all.crashes == 0 || all.refusals == 0 || all.cuts == 0 || all.failovers == 0 ||
       all.failed_writes == 0)) {
    say("nothing was exercised: that is a failure");
    return kWrong;
  }
  // Rarer things come up in so many.
  constexpr std::uint64_t kMany = 1000;
  if (runs >= kMany && !keep) {
    const std::pair<std::uint64_t, const char*> rare[] = {
        {all.tombstones, "tombstones"},
        {all.power_losses, "power losses"},
        {all.takeovers, "closed epochs"},
        {all.failed_syncs, "failed syncs"},
        {all.failed_removals, "failed removals"},
        {all.cached_starts, "starts from the cache after a failed sync"},
        {all.cached_losses, "power losses after such a start"},
        {all.journal_checks, "journals at their bound"},
        {all.refused, "samples refused at the bound of an outbox"},
        {all.memory_dropped, "chunks dropped by memory edges"},
        {all.raw_samples, "raw samples"},
        {all.raw_lost, "raw samples lost"},
        {all.lagging, "publications beside a lagging series"},
        {all.returns, "returns to the preferred parent"}};
    for (const auto& [count, what] : rare) {
      if (count > 0) continue;
      say(fmt::format("never exercised: {}: that is a failure", what));
      return kWrong;
    }
  }
  return failures == 0 ? kOk : kWrong;
}

}  // namespace

std::function<int()> add_seeds(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::Option* range = app.add_option("--seeds", options->range, "Which seeds: FIRST..LAST")->capture_default_str();
  CLI::Option* seed = app.add_option("--seed", options->seed, "One seed")->excludes(range);
  app.add_flag("--swarm", options->swarm, "Of every run only some kinds of faults, each more or less often and severe");
  app.add_flag("--trace", options->trace, "Say on stderr what happens; with --seed")->needs(seed);
  app.add_flag("--each", options->each, "Say what every seed went through");
  app.add_flag("--first", options->first, "Stop at the first failure");
  app.add_option("--keep", options->keep, "Only these of the faults drawn, such as 3,7,9, or none; with --seed")
      ->needs(seed);
  app.add_option("--shrink", options->shrink_s, "Seconds to look for the faults that a failure needs")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_flag("--no-shrink", options->no_shrink, "Do not");
  std::vector<std::string> names;
  std::string text = "Plant a bug, to see that it is noticed:";
  for (const sim::BugInfo& info : sim::bugs()) {
    names.emplace_back(info.name);
    text += fmt::format("\n{} ({})", info.name, info.text);
  }
  app.add_option("--plant", options->plant, text)->check(CLI::IsMember(names).description(""))->type_name("BUG");
  return [options, seed] {
    options->one = seed->count() > 0;
    for (const sim::BugInfo& info : sim::bugs()) {
      if (info.name == options->plant) options->bug = info.bug;
    }
    const std::optional<Seeds> seeds = options->one ? Seeds{options->seed, options->seed} : parse_seeds(options->range);
    if (!seeds) {
      std::fprintf(stderr, "orla-sim: --seeds is \"%s\"; expected FIRST..LAST, such as 1..1000\n",
                   options->range.c_str());
      return kUsage;
    }
    std::optional<std::vector<std::size_t>> keep;
    if (!options->keep.empty() && !(keep = parse_keep(options->keep))) {
      std::fprintf(stderr, "orla-sim: --keep is \"%s\"; expected numbers such as 3,7,9, or none\n",
                   options->keep.c_str());
      return kUsage;
    }
    return Runner(*options).run(*seeds, keep);
  };
}

}  // namespace orla::apps
