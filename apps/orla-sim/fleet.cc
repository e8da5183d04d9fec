// orla-sim fleet: what a fleet of some size carries, in simulated time.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/absl_view.h"
#include "base/clock.h"
#include "commands.h"
#include "sim/capacity_world.h"

namespace orla::apps {

namespace {

struct Options {
  sim::CapacityOptions world;
  int seconds = 60;
  int slice_s = 10;
  double lan_us = 300;
  double wan_ms = 25;
  bool json = false;
};

nlohmann::ordered_json to_json(const sim::CapacityOptions& o, const sim::CapacityReport& r, double took_s) {
  nlohmann::ordered_json out;
  out["simulated"] = true;
  out["fleet"] = {{"nodes", r.nodes},
                  {"sites", o.sites},
                  {"edges_per_site", o.edges},
                  {"aggregators_per_site", o.aggregators},
                  {"series_per_edge", o.series},
                  {"slice_s", o.slice.count()}};
  out["costs_ns"] = {{"sample", o.costs.sample_ns},
                     {"row", o.costs.row_ns},
                     {"message", o.costs.message_ns},
                     {"window", o.costs.window_ns}};
  out["simulated_s"] = r.simulated_s;
  out["took_s"] = took_s;
  out["samples_asked"] = r.samples_asked;
  out["samples"] = r.samples;
  out["samples_folded"] = r.made;
  out["windows"] = r.windows;
  out["drained_after_s"] = r.drained_after_s;
  out["first_full"] = {{"what", r.first_full}, {"use", r.first_full_use}};
  for (const sim::LayerReport& l : r.layers) {
    out["layers"].push_back({{"layer", l.layer},
                             {"nodes", l.nodes},
                             {l.layer == "edge" ? "samples_per_s" : "frames_in_per_s", l.in_per_s},
                             {"rows_per_s", l.rows_per_s},
                             {"messages_per_s", l.messages_per_s},
                             {"bytes_up_per_s", l.bytes_up_per_s},
                             {"cpu_mean", l.cpu_mean},
                             {"cpu_max", l.cpu_max},
                             {"link_mean", l.link_mean},
                             {"link_max", l.link_max},
                             {"lag_s", {{"p50", l.lag_s.p50}, {"p99", l.lag_s.p99}, {"max", l.lag_s.max}}},
                             {"outbox_bytes_max", l.outbox_bytes}});
  }
  return out;
}

void show(const sim::CapacityOptions& o, const sim::CapacityReport& r, double took_s) {
  std::string text = fmt::format(
      "simulated: {} nodes, {} sites of {} edges and {} aggregators, {} series per edge, slices of {} s\n"
      "costs: {:.0f} ns/sample, {:.0f} ns/row, {:.0f} ns/message, {:.0f} ns/window; one core per node\n"
      "links: {:.0f} Mbit/s at a site, {:.0f} Mbit/s and {} ms to the cloud\n\n"
      "{:<11} {:>5} {:>13} {:>10} {:>10} {:>11} {:>15} {:>15} {:>18} {:>8}\n",
      r.nodes, o.sites, o.edges, o.aggregators, o.series, o.slice.count(), o.costs.sample_ns, o.costs.row_ns,
      o.costs.message_ns, o.costs.window_ns, o.lan_mbit_s, o.wan_mbit_s, o.wan_delay.count(), "layer", "nodes", "in/s",
      "rows/s", "messages/s", "bytes up/s", "cpu mean/max", "link mean/max", "lag p50/p99 s", "outbox");
  for (const sim::LayerReport& l : r.layers) {
    text += fmt::format("{:<11} {:>5} {:>13.0f} {:>10.0f} {:>10.0f} {:>11.0f} {:>15} {:>15} {:>18} {:>8}\n", l.layer,
                        l.nodes, l.in_per_s, l.rows_per_s, l.messages_per_s, l.bytes_up_per_s,
                        fmt::format("{:.1f}/{:.1f} %", 100 * l.cpu_mean, 100 * l.cpu_max),
                        fmt::format("{:.2f}/{:.2f} %", 100 * l.link_mean, 100 * l.link_max),
                        fmt::format("{:.2f}/{:.2f}", l.lag_s.p50, l.lag_s.p99), l.outbox_bytes);
  }
  text += fmt::format(
      "\nin: samples (edges), frames (others). {} of {} samples asked for, {} windows, totals verified; drained {:.1f} "
      "s "
      "after the last sample.\nFull first: {}, {:.1f} % used.",
      r.samples, r.samples_asked, r.windows, r.drained_after_s, r.first_full, 100 * r.first_full_use);
  if (r.first_full_use > 0 && r.first_full_use < 1)
    text += fmt::format(" About {:.1f} times this load fits.", 1 / r.first_full_use);
  std::printf("%s\nsimulated %.0f s in %.1f s\n", text.c_str(), r.simulated_s, took_s);
}

}  // namespace

CLI::App* add_fleet(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* fleet = app.add_subcommand(
      "fleet", "What a fleet of some size carries, in simulated time: the real roles, on links and nodes with costs");
  sim::CapacityOptions& world = options->world;
  fleet->add_option("--sites", world.sites, "Sites")->check(CLI::Range(1, 1000))->capture_default_str();
  fleet->add_option("--edges", world.edges, "Edges of each site")->check(CLI::Range(1, 4000))->capture_default_str();
  fleet->add_option("--aggregators", world.aggregators, "Aggregators of each site")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  fleet->add_option("--series", world.series, "Series of each edge")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  fleet->add_option("--rate", world.rate, "Samples/s of each edge")->check(CLI::Range(1.0, 1e9))->capture_default_str();
  fleet->add_option("--seconds", options->seconds, "How long samples come")
      ->check(CLI::Range(10, 3600))
      ->capture_default_str();
  fleet->add_option("--slice", options->slice_s, "Slice and window, in seconds; divides 60")
      ->check(CLI::IsMember({1, 2, 5, 10, 15, 20, 30, 60}))
      ->capture_default_str();
  fleet->add_option("--lan-mbit", world.lan_mbit_s, "Mbit/s from an edge to its aggregator")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  fleet->add_option("--wan-mbit", world.wan_mbit_s, "Mbit/s from a site to the cloud, per aggregator")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  fleet->add_option("--lan-us", options->lan_us, "Microseconds one way within a site")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  fleet->add_option("--wan-ms", options->wan_ms, "Milliseconds one way to the cloud")
      ->check(CLI::Range(0.0, 1e4))
      ->capture_default_str();
  fleet->add_option("--sample-ns", world.costs.sample_ns, "Processor time of one sample at an edge")
      ->capture_default_str();
  fleet->add_option("--row-ns", world.costs.row_ns, "... of one partial, where it is sent or received")
      ->capture_default_str();
  fleet->add_option("--message-ns", world.costs.message_ns, "... of one message, likewise")->capture_default_str();
  fleet->add_option("--window-ns", world.costs.window_ns, "... of one window written at the cloud")
      ->capture_default_str();
  fleet->add_option("--fleet-seed", world.seed, "Seed")->capture_default_str();
  fleet->add_flag("--json", options->json, "As JSON");
  fleet->callback([options, &exit_code] {
    sim::CapacityOptions& o = options->world;
    o.time = std::chrono::seconds(options->seconds);
    o.slice = std::chrono::seconds(options->slice_s);
    o.lan_delay = std::chrono::microseconds(static_cast<std::int64_t>(options->lan_us));
    o.wan_delay = std::chrono::milliseconds(static_cast<std::int64_t>(options->wan_ms));
    const base::SystemClock clock;
    const base::SteadyTime started = clock.steady_now();
    const absl::StatusOr<sim::CapacityReport> report = sim::run_capacity(o);
    const double took_s = std::chrono::duration<double>(clock.steady_now() - started).count();
    if (!report.ok()) {
      std::fprintf(stderr, "orla-sim: %s\n", base::message(report.status()).c_str());
      exit_code = kWrong;
      return;
    }
    if (options->json) {
      std::printf("%s\n", to_json(o, *report, took_s).dump(2).c_str());
    } else {
      show(o, *report, took_s);
    }
  });
  return fleet;
}

}  // namespace orla::apps
