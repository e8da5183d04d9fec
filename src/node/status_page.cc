#include <fmt/format.h>

#include "node/number_text.h"
#include "node/status.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

// One HTML page that reads well on a phone, works without scripts and without the internet, and renews itself.
constexpr char kHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="3">
<style>
:root{color-scheme:light dark}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem}
h1{font-size:1.3rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:1.4rem 0 .3rem}
p{margin:.2rem 0}.dim{opacity:.7}
.ok{color:#1a7f37}.bad{color:#c4232b}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.2rem .5rem;border-bottom:1px solid #8884;vertical-align:top}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
@media(max-width:40rem){body{font-size:14px;padding:.6rem}th,td{padding:.2rem .25rem}}
</style>
)";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// How far something is published, for people.
std::string published_text(model::Time time) {
  if (time == model::kMinTime) return "nothing yet";
  if (time == model::kMaxTime) return "everything";
  return rfc3339(time);
}

std::string rate(double per_s) {
  if (per_s >= 1e6) return fmt::format("{:.2f} M", per_s / 1e6);
  if (per_s >= 1e3) return fmt::format("{:.1f} k", per_s / 1e3);
  return fmt::format("{:.1f}", per_s);
}

std::string value(const std::optional<double>& v) { return v ? fmt::format("{:.2f}", *v) : "–"; }

class Table {
 public:
  Table(std::string& out, std::initializer_list<std::string_view> heads) : out_(out) {
    out_ += "<div class=\"wide\"><table><tr>";
    for (const std::string_view head : heads) out_ += fmt::format("<th>{}</th>", head);
    out_ += "</tr>\n";
  }
  ~Table() { out_ += "</table></div>\n"; }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  void row(std::initializer_list<std::string> cells) {
    out_ += "<tr>";
    for (const std::string& cell : cells) out_ += fmt::format("<td>{}</td>", escape(cell));
    out_ += "</tr>\n";
  }

 private:
  std::string& out_;
};

void inputs_section(std::string& out, const NodeStatus& s) {
  out += "<h2>Sources</h2>\n";
  {
    Table table(out, {"input", "received", "aggregated", "late", "rejected", "unmatched", "dropped", "pending",
                      "newest", "state"});
    for (const InputStatus& i : s.inputs) {
      std::string state = i.ended ? "ended" : i.stopped ? "stopped" : "running";
      if (!i.ended && !i.stopped && i.progress >= 0) state = fmt::format("{:.0f} %", i.progress * 100);
      if (!i.error.empty()) state = "failed";
      table.row({i.key, grouped(i.ledger.received), grouped(i.ledger.aggregated), grouped(i.ledger.late.count),
                 grouped(i.ledger.rejected_total()), grouped(i.ledger.unmatched), grouped(i.ledger.dropped_total()),
                 grouped(i.ledger.held), i.newest == model::kMinTime ? "–" : rfc3339(i.newest), state});
    }
  }
  for (const InputStatus& i : s.inputs) {
    if (!i.error.empty()) out += fmt::format("<p class=\"bad\">{}: {}</p>\n", escape(i.key), escape(i.error));
    for (const model::Rejection& r : i.rejections) {
      out += fmt::format("<p class=\"dim\">{} line {}: {} ({})</p>\n", escape(i.key), r.row, escape(r.message),
                         escape(r.reason));
    }
  }
}

void cloud_section(std::string& out, const CloudStatus& cloud) {
  out += "<h2>Edges as the cloud knows them</h2>\n";
  {
    Table table(out, {"input", "received", "late", "rejected", "published up to"});
    for (const OriginStatus& origin : cloud.origins) {
      std::string published;
      for (const model::Publication& p : origin.publications) {
        published += (published.empty() ? "" : ", ") + p.metric + ": " + published_text(p.time);
      }
      for (const auto& [key, ledger] : origin.ledgers) {
        table.row(
            {key, grouped(ledger.received), grouped(ledger.late.count), grouped(ledger.rejected_total()), published});
      }
    }
  }
  for (const OriginStatus& origin : cloud.origins) {
    for (const model::Loss& loss : origin.losses) {
      out += fmt::format("<p class=\"bad\">{} lost {} samples for good ({}, {} chunks{})</p>\n", escape(origin.node),
                         grouped(model::lost_samples(loss)), escape(loss.reason), grouped(loss.chunks),
                         loss.raw_samples > 0 ? fmt::format(", {} raw samples", grouped(loss.raw_samples)) : "");
    }
  }
  out += "<h2>Rollups</h2>\n";
  {
    Table table(out, {"rollup", "published up to"});
    for (const TableStatus& t : cloud.tables) table.row({t.rollup, published_text(t.publication)});
  }
  if (!cloud.latest_forecasts.empty()) {
    out += "<h2>Last forecasts</h2>\n";
    Table table(out, {"what", "for", "forecast", "actual"});
    for (const ForecastLine& f : cloud.latest_forecasts) {
      table.row({f.rollup + ", " + f.step + ": " + f.labels, rfc3339(f.start), value(f.predicted), value(f.actual)});
    }
  }
}

}  // namespace

std::string status_page(const NodeStatus& s) {
  std::string out = kHead;
  out += fmt::format("<title>{} – Orla</title></head><body>\n", escape(s.node));
  out += fmt::format("<h1>{} <span class=\"dim\">{}{}</span></h1>\n", escape(s.node), model::to_string(s.layer),
                     s.site.empty() ? "" : " at " + escape(s.site));
  out += fmt::format("<p>fleet {} · orla {} · up {:.0f} s · {}</p>\n", escape(s.fleet), escape(s.version), s.uptime_s,
                     s.ready.empty() ? "<span class=\"ok\">ready</span>"
                                     : fmt::format("<span class=\"bad\">{}</span>", escape(s.ready)));
  for (const std::string& alarm : s.alarms) out += fmt::format("<p class=\"bad\">{}</p>\n", escape(alarm));
  {
    Table table(out, {"rate", "now"});
    table.row({s.layer == model::Layer::kEdge ? "samples in/s" : "frames in/s", rate(s.in_per_s)});
    if (s.layer != model::Layer::kEdge) table.row({"bytes in/s", rate(s.bytes_in_per_s)});
    if (s.uplink) table.row({"bytes out/s", rate(s.bytes_out_per_s)});
    if (s.lag_s >= 0) table.row({"lag", fmt::format("{:.1f} s", s.lag_s)});
  }
  if (s.uplink) {
    out += "<h2>Way up</h2>\n";
    out += s.uplink->connected
               ? fmt::format("<p><span class=\"ok\">connected</span> to {}</p>\n", escape(s.uplink->parent))
               : fmt::format("<p><span class=\"bad\">not connected</span> {} {}</p>\n", escape(s.uplink->parent),
                             escape(s.uplink->error));
    if (s.outbox) {
      out += fmt::format("<p>not yet acknowledged: {} chunks, {} bytes</p>\n", grouped(s.outbox->chunks),
                         grouped(s.outbox->bytes));
    }
  }
  if (!s.inputs.empty()) inputs_section(out, s);
  if (s.push) {
    out += "<h2>Pushes</h2>\n";
    if (!s.push->clock_set) {
      out += "<p class=\"bad\">this node's clock was never set: nothing counts as future</p>\n";
    }
    Table table(out, {"kept", "sent again", "refused", "outcome unknown", "waiting", "mean wait"});
    table.row(
        {grouped(s.push->kept), grouped(s.push->duplicates), grouped(s.push->refused), grouped(s.push->unknown),
         grouped(s.push->waiting),
         s.push->kept == 0 ? "–" : fmt::format("{:.1f} ms", 1e3 * s.push->wait_s / static_cast<double>(s.push->kept))});
  }
  if (!s.children.empty()) {
    out += "<h2>Children</h2>\n";
    Table table(out, {"node", "connected for", "frames", "bytes"});
    for (const ChildStatus& child : s.children) {
      table.row({child.node + " (" + child.layer + ")", fmt::format("{:.0f} s", child.since_s), grouped(child.frames),
                 grouped(child.bytes)});
    }
  }
  if (s.cloud) cloud_section(out, *s.cloud);
  out +=
      "<p class=\"dim\"><a href=\"api/v1/status\">status as JSON</a> · <a href=\"metrics\">metrics</a></p>\n"
      "</body></html>\n";
  return out;
}

}  // namespace orla::node
