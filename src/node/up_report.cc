#include "node/up_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "node/number_text.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

using nlohmann::json;

// 1234567.8 -> "1.23M"
std::string short_number(double n) {
  if (n >= 9.95e8) return fmt::format("{:.2f}G", n / 1e9);
  if (n >= 9.995e5) return fmt::format("{:.2f}M", n / 1e6);
  if (n >= 9.995e3) return fmt::format("{:.1f}k", n / 1e3);
  if (n >= 100 || n == 0) return fmt::format("{:.0f}", n);
  return fmt::format("{:.1f}", n);
}

std::string state_of(const NodeView& n) {
  if (n.recovered >= 0) return fmt::format("reads its state: {:.0f}%", n.recovered * 100);
  if (!n.reachable) return "down";
  if (!n.errors.empty()) return "trouble";
  if (!n.ready) return "waits";
  if (n.layer == model::Layer::kEdge && n.inputs_done) return n.drained ? "done" : "drains";
  if (n.layer == model::Layer::kCloud && !n.drained) return "commits";
  if (n.progress >= 0) return fmt::format("{:.0f}%", n.progress * 100);
  return "runs";
}

json ledger_json(const model::Ledger& totals) {
  return {{"measurements", totals.received}, {"aggregated", totals.aggregated},     {"unmatched", totals.unmatched},
          {"late", totals.late.count},       {"rejected", totals.rejected_total()}, {"dropped", totals.dropped_total()},
          {"pending", totals.held}};
}

// One line of UTF-8, whatever bytes a message holds.
std::string line(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace

model::Ledger total_of(const std::map<std::string, InputReport>& inputs) {
  model::Ledger total;
  for (const auto& [key, input] : inputs) {
    const model::Ledger& l = input.ledger;
    total.received += l.received;
    total.aggregated += l.aggregated;
    total.unmatched += l.unmatched;
    total.late.add(l.late);
    for (const auto& [reason, n] : l.rejected) total.rejected[reason] += n;
    total.rejected_set.add(l.rejected_set);
    for (const auto& [reason, n] : l.dropped) total.dropped[reason] += n;
    total.held += l.held;
  }
  return total;
}

std::string started_text(const std::vector<NodeView>& nodes, const std::filesystem::path& state) {
  std::string out =
      fmt::format("{:<16} {:<11} {:>8}  {:<22} {}\n", "node", "layer", "pid", "listens on", "status page");
  for (const NodeView& n : nodes) {
    out += fmt::format("{:<16} {:<11} {:>8}  {:<22} http://{}/\n", n.node, model::to_string(n.layer), n.pid,
                       n.listen.empty() ? "-" : n.listen, n.http);
  }
  for (const NodeView& n : nodes) {
    if (!n.gateway.empty()) out += fmt::format("functions of {}: http://{}/\n", n.node, n.gateway);
  }
  return out + fmt::format("state and logs: {}\n\n", state.string());
}

std::string started_json(const std::string& fleet, const std::vector<NodeView>& nodes,
                         const std::filesystem::path& state) {
  json list = json::array();
  for (const NodeView& n : nodes) {
    list.push_back({{"node", n.node},
                    {"layer", model::to_string(n.layer)},
                    {"pid", n.pid},
                    {"listen", n.listen},
                    {"http", n.http},
                    {"gateway", n.gateway}});
  }
  return line({{"event", "started"}, {"fleet", fleet}, {"state", state.string()}, {"nodes", std::move(list)}});
}

std::string live_table(const std::vector<NodeView>& nodes, double progress) {
  std::string out = fmt::format("{:<16} {:<11} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>9}  {}\n", "node", "layer",
                                "in/s", "out/s", "bytes/s", "lag", "late", "rejected", "dropped", "state");
  for (const NodeView& n : nodes) {
    const bool edge = n.layer == model::Layer::kEdge;
    out +=
        fmt::format("{:<16} {:<11} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>9}  {}\n", n.node, model::to_string(n.layer),
                    short_number(n.in_per_s), short_number(n.out_per_s), short_number(n.bytes_per_s),
                    n.lag_s < 0 ? "-" : fmt::format("{:.1f}s", n.lag_s), edge ? grouped(n.late) : "-",
                    edge ? grouped(n.rejected) : "-", edge ? grouped(n.dropped) : "-", state_of(n));
  }
  if (progress >= 0) {
    constexpr int kWidth = 40;
    const int full = static_cast<int>(progress * kWidth);
    out += fmt::format("replay [{}{}] {:.0f}%\n", std::string(static_cast<std::size_t>(full), '#'),
                       std::string(static_cast<std::size_t>(kWidth - full), '.'), progress * 100);
  }
  return out;
}

std::string live_line(const std::vector<NodeView>& nodes, double progress) {
  std::uint64_t received = 0;
  double rate = 0;
  double lag = 0;
  std::string down;
  for (const NodeView& n : nodes) {
    received += n.received;
    if (n.layer == model::Layer::kEdge) rate += n.in_per_s;
    lag = std::max(lag, n.lag_s);
    if (!n.reachable && n.recovered < 0) down += " " + n.node;
  }
  return fmt::format("{} measurements, {}/s, lag {:.1f}s{}{}\n", grouped(received), short_number(rate), lag,
                     progress >= 0 ? fmt::format(", replay {:.0f}%", progress * 100) : "",
                     down.empty() ? "" : ", down:" + down);
}

std::string summary_text(const UpSummary& s) {
  std::string out;
  const model::Ledger& t = s.totals;
  out += fmt::format("\n{} measurements in {:.1f} s", grouped(t.received), s.seconds);
  if (s.seconds > 0) out += fmt::format(" ({}/s)", short_number(static_cast<double>(t.received) / s.seconds));
  out += fmt::format(": {} aggregated, {} unmatched, {} late, {} rejected, {} dropped, {} pending\n",
                     grouped(t.aggregated), grouped(t.unmatched), grouped(t.late.count), grouped(t.rejected_total()),
                     grouped(t.dropped_total()), grouped(t.held));
  for (const auto& [reason, n] : t.rejected) out += fmt::format("  rejected, {}: {}\n", reason, grouped(n));
  for (const std::string& rejection : s.rejections) out += fmt::format("  {}\n", rejection);
  for (const auto& [reason, n] : t.dropped) out += fmt::format("  dropped, {}: {}\n", reason, grouped(n));
  if (!s.forecasts.empty()) {
    out += fmt::format("\n{:<14} {:<26} {:>5}  {:<22} {:>10} {:>10}\n", "forecast of", "group", "step", "for",
                       "forecast", "actual");
    for (const ForecastLine& f : s.forecasts) {
      out += fmt::format("{:<14} {:<26} {:>5}  {:<22} {:>10.2f} {:>10.2f}\n", f.rollup, f.labels, f.step,
                         rfc3339(f.start), f.predicted.value_or(0), f.actual.value_or(0));
    }
    out += "\n";
  }
  if (s.interrupted && !s.drained) out += "interrupted before everything had reached the cloud\n";
  if (!s.interrupted && !s.drained) out += "NOT DRAINED: not everything has reached the cloud in time\n";
  if (s.verified) {
    const verify::Report& r = *s.verified;
    for (const std::string& warning : r.warnings) out += "note: " + warning + "\n";
    for (const std::string& example : r.examples) out += "  " + example + "\n";
    out += fmt::format(
        "verify: {} windows compared, {} different, {} missing, {} extra; {} inputs compared, {} different: {}\n",
        grouped(r.windows_compared), grouped(r.windows_different), grouped(r.windows_missing), grouped(r.windows_extra),
        r.inputs_compared, r.inputs_different,
        r.passed()                ? "all exact"
        : r.windows_compared == 0 ? "NOTHING WAS COMPARED"
                                  : "DIFFERENT");
  }
  if (s.verified && s.verified->raw_series_compared + s.verified->raw_series_different > 0) {
    const verify::Report& r = *s.verified;
    out += fmt::format("verify: {} raw samples of {} series compared, {} series different: {}\n",
                       grouped(r.raw_samples_compared), grouped(r.raw_series_compared), grouped(r.raw_series_different),
                       r.raw_series_different == 0 ? "all there" : "DIFFERENT");
  }
  if (!s.verify_error.empty()) out += fmt::format("verify: not possible: {}\n", s.verify_error);
  for (const std::string& error : s.errors) out += fmt::format("error: {}\n", error);
  return out;
}

std::string summary_json(const UpSummary& s) {
  json out = {{"event", "summary"}, {"fleet", s.fleet}, {"seconds", s.seconds}, {"drained", s.drained}};
  out.update(ledger_json(s.totals));
  out["rejected_by_reason"] = s.totals.rejected;
  out["rejections"] = s.rejections;
  out["dropped_by_reason"] = s.totals.dropped;
  out["rate_per_s"] = s.seconds > 0 ? static_cast<double>(s.totals.received) / s.seconds : 0;
  out["interrupted"] = s.interrupted;
  out["verified"] = s.verified ? json(s.verified->passed()) : json(nullptr);
  if (s.verified) {
    const verify::Report& r = *s.verified;
    // Every kind of difference counts here; the terms stand beside it.
    out["windows_compared"] = r.windows_compared;
    out["windows_different"] = r.windows_different + r.windows_missing + r.windows_extra;
    out["windows_missing"] = r.windows_missing;
    out["windows_extra"] = r.windows_extra;
    out["inputs_compared"] = r.inputs_compared;
    out["inputs_different"] = r.inputs_different;
    out["raw_samples_compared"] = r.raw_samples_compared;
    out["raw_series_compared"] = r.raw_series_compared;
    out["raw_series_different"] = r.raw_series_different;
    out["examples"] = r.examples;
    out["warnings"] = r.warnings;
  }
  if (!s.verify_error.empty()) out["verify_error"] = s.verify_error;
  out["errors"] = s.errors;
  json forecasts = json::array();
  for (const ForecastLine& f : s.forecasts) {
    forecasts.push_back({{"rollup", f.rollup},
                         {"labels", f.labels},
                         {"step", f.step},
                         {"start", rfc3339(f.start)},
                         {"predicted", f.predicted ? json(*f.predicted) : json(nullptr)},
                         {"actual", f.actual ? json(*f.actual) : json(nullptr)}});
  }
  out["forecasts"] = std::move(forecasts);
  out["state"] = s.state.string();
  out["status_page"] = s.status_page;
  out["exit_code"] = s.exit_code;
  return line(out);
}

}  // namespace orla::node
