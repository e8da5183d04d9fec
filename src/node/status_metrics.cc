#include <fmt/format.h>

#include <set>

#include "node/metrics_writer.h"
#include "node/status.h"

namespace orla::node {

namespace {

void account(MetricsWriter& out, const NodeStatus& s) {
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    out.family(name, "counter", help);
    for (const InputStatus& input : s.inputs) out.sample({{"input", input.key}}, value(input.ledger));
  };
  each("orla_received_samples_total", "Samples received; an unreadable row is one.",
       [](const model::Ledger& l) { return l.received; });
  each("orla_aggregated_samples_total", "Samples accepted and folded into partials.",
       [](const model::Ledger& l) { return l.aggregated; });
  each("orla_unmatched_samples_total", "Samples no rollup wants.", [](const model::Ledger& l) { return l.unmatched; });
  each("orla_late_samples_total", "Samples older than allowed_lateness.",
       [](const model::Ledger& l) { return l.late.count; });
  out.family("orla_rejected_samples_total", "counter", "Samples and rows refused, by reason.");
  for (const InputStatus& input : s.inputs) {
    if (input.ledger.rejected.empty()) out.sample({{"input", input.key}, {"reason", "none"}}, 0);
    for (const auto& [reason, n] : input.ledger.rejected) out.sample({{"input", input.key}, {"reason", reason}}, n);
  }
  out.family("orla_dropped_samples_total", "counter", "Samples dropped at a bound, by reason.");
  for (const InputStatus& input : s.inputs) {
    if (input.ledger.dropped.empty()) out.sample({{"input", input.key}, {"reason", "none"}}, 0);
    for (const auto& [reason, n] : input.ledger.dropped) out.sample({{"input", input.key}, {"reason", reason}}, n);
  }
  out.family("orla_pending_samples", "gauge", "Samples received and not yet decided (held for max_jump).");
  for (const InputStatus& input : s.inputs) out.sample({{"input", input.key}}, input.ledger.held);
}

// What edges lost for good and the cloud heard of.
void losses(MetricsWriter& out, const CloudStatus& cloud) {
  out.family("orla_lost_chunks_total", "counter", "Chunks folded in as tombstones: lost at their edge, by reason.");
  for (const OriginStatus& origin : cloud.origins) {
    for (const model::Loss& loss : origin.losses) {
      out.sample({{"node", origin.node}, {"reason", loss.reason}}, loss.chunks);
    }
  }
  out.family("orla_lost_raw_samples_total", "counter", "Samples of metrics kept raw in these chunks.");
  for (const OriginStatus& origin : cloud.origins) {
    for (const model::Loss& loss : origin.losses) {
      if (loss.raw_samples > 0) out.sample({{"node", origin.node}, {"reason", loss.reason}}, loss.raw_samples);
    }
  }
  out.family("orla_lost_samples_total", "counter", "Accepted samples in these chunks, by input.");
  for (const OriginStatus& origin : cloud.origins) {
    for (const model::Loss& loss : origin.losses) {
      for (const auto& [input, n] : loss.samples) {
        out.sample({{"node", origin.node}, {"input", input}, {"reason", loss.reason}}, n);
      }
    }
  }
}

void pushes(MetricsWriter& out, const PushStatus& push) {
  out.family("orla_push_requests_total", "counter", "Pushes answered, by HTTP status.");
  if (push.answers.empty()) out.sample({{"code", "204"}}, 0);
  for (const auto& [code, count] : push.answers) out.sample({{"code", fmt::format("{}", code)}}, count);
  out.number("orla_push_kept_total", "counter", "Pushes that became durable.", push.kept);
  out.number("orla_push_duplicates_total", "counter", "Pushes sent again that were there already.", push.duplicates);
  out.number("orla_push_refused_total", "counter", "Pushes not taken: a bound, or something that is away.",
             push.refused);
  out.number("orla_push_unknown_total", "counter", "Pushes answered before they were durable.", push.unknown);
  out.number("orla_push_waiting", "gauge", "Pushes taken and not durable yet.", push.waiting);
  out.number("orla_push_waiting_bytes", "gauge", "Bytes of them.", push.waiting_bytes);
  out.family("orla_push_wait_seconds", "summary", "From taken to durable.");
  out.sample_of("_sum", {}, push.wait_s);
  out.sample_of("_count", {}, push.kept);
  out.number("orla_push_longest_wait_seconds", "gauge", "The longest of them since the start.", push.longest_wait_s);
  out.number("orla_push_producers", "gauge", "Producers whose sequence numbers are kept.", push.producers);
  out.number("orla_clock_set", "gauge", "0 when this node's clock is before this program was built.",
             push.clock_set ? 1 : 0);
}

}  // namespace

std::string status_metrics(const NodeStatus& s) {
  MetricsWriter out;
  out.family("orla_node_info", "gauge", "Who this node is; always 1.");
  out.sample({{"node", s.node}, {"site", s.site}, {"fleet", s.fleet}, {"version", s.version}}, 1);
  out.number("orla_uptime_seconds", "gauge", "Seconds since this process started.", s.uptime_s);
  out.number("orla_ready", "gauge", "1 when the node does its work, else 0.", s.ready.empty() ? 1 : 0);
  if (s.lag_s >= 0)
    out.number("orla_lag_seconds", "gauge", "How far publication is behind the newest sample.", s.lag_s);
  out.number("orla_commit_failures_total", "counter", "Commits to disk that failed and were tried again.",
             s.commit_failures);
  out.number("orla_alarms", "gauge", "Alarms that need a person.", s.alarms.size());
  if (s.layer == model::Layer::kEdge) account(out, s);
  if (s.push) pushes(out, *s.push);
  if (s.uplink) {
    out.number("orla_uplink_connected", "gauge", "1 while connected to a parent.", s.uplink->connected ? 1 : 0);
    out.number("orla_uplink_connects_total", "counter", "Connections that were welcomed.", s.uplink->connects);
    out.number("orla_uplink_frames_total", "counter", "Frames sent to parents.", s.uplink->frames_sent);
    out.number("orla_uplink_bytes_total", "counter", "Bytes of frames sent to parents.", s.uplink->bytes_sent);
    out.number("orla_uplink_refusals_total", "counter", "Frames a parent refused.", s.uplink->refusals);
    out.number("orla_uplink_in_flight_bytes", "gauge", "Bytes sent and neither acknowledged nor refused.",
               s.uplink->in_flight_bytes);
  }
  if (s.outbox) {
    out.number("orla_outbox_chunks", "gauge", "Chunks the cloud has not acknowledged.", s.outbox->chunks);
    out.number("orla_outbox_bytes", "gauge", "Bytes the cloud has not acknowledged.", s.outbox->bytes);
    out.number("orla_outbox_disk_bytes", "gauge", "Bytes of journal and outbox on disk, dead space included.",
               s.outbox->disk_bytes);
    out.number("orla_outbox_tombstones", "gauge", "Chunks the cloud has not acknowledged whose rows are lost.",
               s.outbox->tombstones);
    out.family("orla_intake", "gauge", "What becomes of what comes in: 1 for the present state.");
    for (const std::string_view state : {"open", "blocked", "refusing"}) {
      out.sample({{"state", std::string(state)}}, s.outbox->intake == state ? 1 : 0);
    }
  }
  if (s.layer != model::Layer::kEdge) {
    out.number("orla_children", "gauge", "Connected children.", s.children.size());
    out.number("orla_frames_received_total", "counter", "Frames received from children.", s.frames_in);
    out.number("orla_bytes_received_total", "counter", "Bytes of frames received from children.", s.bytes_in);
  }
  if (s.chunks) {
    out.number("orla_chunks_received_total", "counter", "Chunks received from children.", s.chunks->received);
    out.number("orla_chunks_applied_total", "counter", "Chunks folded in at the cloud.", s.chunks->applied);
    out.number("orla_chunks_duplicate_total", "counter", "Chunks received that were, or became, covered or void.",
               s.chunks->duplicate);
    out.number("orla_chunks_pending", "gauge", "Chunks received and not yet applied.", s.chunks->pending);
  }
  if (s.cloud) {
    out.number("orla_samples_kept_total", "counter", "Raw samples written to the store.", s.cloud->samples_kept);
    out.number("orla_rows_folded_total", "counter", "Partials folded into windows.", s.cloud->rows_folded);
    out.number("orla_windows_written_total", "counter", "Window rows written.", s.cloud->windows_written);
    out.number("orla_forecasts_written_total", "counter", "Forecast rows written.", s.cloud->forecasts_written);
    out.number("orla_commits_total", "counter", "Commits to the store.", s.cloud->commits);
    out.number("orla_parked_rows", "gauge", "Partials whose definition is not known yet.", s.cloud->parked_rows);
    losses(out, *s.cloud);
  }
  return out.take();
}

}  // namespace orla::node
