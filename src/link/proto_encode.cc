// The half of proto_codec.h that writes.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/utf8.h"
#include "link.pb.h"
#include "link/message_limits.h"
#include "link/proto_codec.h"

namespace orla::link {

namespace {

namespace wire = ::orla::link::v1;

std::string text_for_people(const std::string& text) {
  std::string valid = base::to_utf8(text);
  if (valid.size() > kMaxTextBytes) valid = base::to_utf8(valid.substr(0, kMaxTextBytes - 16));
  return valid;
}

// ---- pieces ----

wire::Layer to_wire(model::Layer layer) {
  switch (layer) {
    case model::Layer::kEdge:
      return wire::LAYER_EDGE;
    case model::Layer::kAggregator:
      return wire::LAYER_AGGREGATOR;
    case model::Layer::kCloud:
      return wire::LAYER_CLOUD;
  }
  return wire::LAYER_UNSPECIFIED;
}

wire::Refused::Reason to_wire(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kCursor:
      return wire::Refused::REASON_CURSOR;
    case RefusalReason::kDigest:
      return wire::Refused::REASON_DIGEST;
    case RefusalReason::kFull:
      return wire::Refused::REASON_FULL;
    case RefusalReason::kMalformed:
      return wire::Refused::REASON_MALFORMED;
  }
  return wire::Refused::REASON_UNSPECIFIED;
}

void put(const std::string& input, const model::Ledger& ledger, wire::Ledger& out) {
  out.set_input(input);
  out.set_received(ledger.received);
  out.set_aggregated(ledger.aggregated);
  out.set_unmatched(ledger.unmatched);
  out.set_late(ledger.late.count);
  out.set_late_set(ledger.late.sum);
  for (const auto& [reason, count] : ledger.rejected) {
    out.add_rejected_reasons(reason);
    out.add_rejected_counts(count);
  }
  out.set_rejected(ledger.rejected_set.count);
  out.set_rejected_set(ledger.rejected_set.sum);
  for (const auto& [reason, count] : ledger.dropped) {
    out.add_dropped_reasons(reason);
    out.add_dropped_counts(count);
  }
  out.set_held(ledger.held);
}

void put(model::StateEntry entry, wire::State& out) {
  out.set_snapshot(entry.snapshot);
  out.set_content(std::move(entry.bytes));
}

void put(const model::Tombstone& tombstone, wire::Tombstone& out) {
  out.set_first(tombstone.first);
  out.set_last(tombstone.last);
  out.set_reason(tombstone.reason);
  for (const auto& [input, samples] : tombstone.samples) {
    out.add_inputs(input);
    out.add_samples(samples);
  }
  out.set_from_ns(model::to_ns(tombstone.from));
  out.set_to_ns(model::to_ns(tombstone.to));
  out.set_raw_samples(tombstone.raw_samples);
}

void put(const model::Loss& loss, wire::Loss& out) {
  out.set_reason(loss.reason);
  out.set_chunks(loss.chunks);
  out.set_raw_samples(loss.raw_samples);
  for (const auto& [input, samples] : loss.samples) {
    out.add_inputs(input);
    out.add_samples(samples);
  }
}

void put(model::OriginNote note, wire::Note& out) {
  for (const model::Publication& publication : note.publications) {
    out.add_metrics(publication.metric);
    out.add_publication_times_ns(model::to_ns(publication.time));
  }
  for (const auto& [input, ledger] : note.ledgers) put(input, ledger, *out.add_ledgers());
  for (model::StateEntry& entry : note.states) put(std::move(entry), *out.add_states());
  for (const model::Tombstone& tombstone : note.tombstones) put(tombstone, *out.add_tombstones());
}

void put(model::Range range, wire::Range& out) {
  out.set_node(range.node);
  out.set_epoch(static_cast<std::uint64_t>(range.epoch));
  out.set_first(range.first);
  out.set_last(range.last);
  out.set_chain_before_high(range.chain_before.high);
  out.set_chain_before_low(range.chain_before.low);
  out.set_chain_after_high(range.chain_after.high);
  out.set_chain_after_low(range.chain_after.low);
  if (range.note != model::OriginNote{}) put(std::move(range.note), *out.mutable_note());
}

void put(const model::Cursor& cursor, wire::Cursors& out) {
  out.add_nodes(cursor.node);
  out.add_epochs(static_cast<std::uint64_t>(cursor.epoch));
  out.add_lasts(cursor.last);
  out.add_chain_highs(cursor.chain.high);
  out.add_chain_lows(cursor.chain.low);
  if (cursor.tombstones.empty()) return;
  while (out.tombstone_counts_size() < out.nodes_size() - 1) out.add_tombstone_counts(0);
  out.add_tombstone_counts(static_cast<std::uint32_t>(cursor.tombstones.size()));
  for (const model::SequenceRange& range : cursor.tombstones) {
    out.add_tombstone_firsts(range.first);
    out.add_tombstone_lasts(range.last);
  }
}

void put(const std::vector<model::Cursor>& cursors, wire::Cursors& out) {
  for (const model::Cursor& cursor : cursors) put(cursor, out);
  while (out.tombstone_counts_size() > 0 && out.tombstone_counts_size() < out.nodes_size()) {
    out.add_tombstone_counts(0);
  }
}

// ---- messages ----

void put(Hello m, wire::Up& up) {
  wire::Hello& out = *up.mutable_hello();
  out.set_major(m.major);
  out.set_minor(m.minor);
  out.set_fleet(m.fleet);
  out.set_node(m.node);
  out.set_layer(to_wire(m.layer));
}

void put(Dictionary m, wire::Up& up) {
  wire::Dictionary& out = *up.mutable_dictionary();
  std::map<std::string, std::uint32_t> shapes;  // by the bytes of the shape
  for (const Dictionary::Entry& entry : m.entries) {
    const model::GroupDef& group = entry.group;
    wire::Shape shape;
    shape.set_stream(group.stream);
    shape.set_definition(group.definition);
    shape.set_slice_ns(group.slice_ns);
    shape.set_decimals(static_cast<std::uint32_t>(group.decimals));
    for (const model::Label& label : group.labels) {
      shape.add_label_names(label.first);
      out.add_label_values(label.second);
    }
    const auto [at, fresh] = shapes.try_emplace(shape.SerializeAsString(), static_cast<std::uint32_t>(shapes.size()));
    if (fresh) out.add_shapes()->Swap(&shape);
    out.add_ids(model::index(entry.id));
    out.add_shape_of(at->second);
  }
}

void put(FrameMessage m, wire::Up& up) {
  wire::Frame& out = *up.mutable_frame();
  out.set_id(m.id);
  for (model::Range& range : m.ranges) put(std::move(range), *out.add_ranges());
  out.set_rows(std::move(m.rows));
}

void put(OpenEpoch m, wire::Up& up) {
  wire::OpenEpoch& out = *up.mutable_open_epoch();
  out.set_request(m.request);
  out.set_node(m.node);
  out.set_epoch(static_cast<std::uint64_t>(m.epoch));
  out.set_replaces(static_cast<std::uint64_t>(m.replaces));
}

void put(Heartbeat, wire::Up& up) { up.mutable_heartbeat(); }

void put(Welcome m, wire::Down& down) {
  wire::Welcome& out = *down.mutable_welcome();
  out.set_major(m.major);
  out.set_minor(m.minor);
  out.set_node(m.node);
  out.set_heartbeat_ms(m.heartbeat_ms);
  out.set_credit_bytes(m.credit_bytes);
}

void put(Acknowledge m, wire::Down& down) { put(m.cursors, *down.mutable_acknowledge()->mutable_cursors()); }

void put(Refused m, wire::Down& down) {
  wire::Refused& out = *down.mutable_refused();
  out.set_frame(m.frame);
  out.set_reason(to_wire(m.reason));
  put(m.cursors, *out.mutable_cursors());
  out.set_text(text_for_people(m.message));
}

void put(Opened m, wire::Down& down) {
  wire::Opened& out = *down.mutable_opened();
  out.set_request(m.request);
  out.set_opened(m.opened);
  put(m.current, *out.mutable_current());
  if (m.replaced_last.has_value()) out.set_replaced_last(*m.replaced_last);
  for (model::StateEntry& entry : m.states) put(std::move(entry), *out.add_states());
  for (const model::SequenceRange& range : m.replaced_tombstones) {
    out.add_replaced_tombstone_firsts(range.first);
    out.add_replaced_tombstone_lasts(range.last);
  }
  for (const model::Loss& loss : m.losses) put(loss, *out.add_losses());
}

void put(Rejected m, wire::Down& down) { down.mutable_rejected()->set_message(text_for_people(m.message)); }

void put(Heartbeat, wire::Down& down) { down.mutable_heartbeat(); }

// ---- cutting ----

// Cuts `all` into pieces of about kSplitBytes by what `bytes` says of one element; at least one piece.
template <typename T, typename Bytes>
std::vector<std::vector<T>> pieces(std::vector<T> all, Bytes bytes) {
  std::vector<std::vector<T>> out(1);
  std::size_t size = 0;
  for (T& one : all) {
    const std::size_t more = bytes(one);
    if (size + more > kSplitBytes && !out.back().empty()) {
      out.emplace_back();
      size = 0;
    }
    size += more;
    out.back().push_back(std::move(one));
  }
  return out;
}

std::vector<UpMessage> split(UpMessage message) {
  std::vector<UpMessage> out;
  if (auto* dictionary = std::get_if<Dictionary>(&message)) {
    const auto bytes = [](const Dictionary::Entry& entry) {
      std::size_t n = 32;
      for (const model::Label& label : entry.group.labels) n += label.first.size() + label.second.size() + 8;
      return n;
    };
    for (auto& piece : pieces(std::move(dictionary->entries), bytes)) out.push_back(Dictionary{std::move(piece)});
  } else {
    out.push_back(std::move(message));
  }
  return out;
}

std::vector<DownMessage> split(DownMessage message) {
  std::vector<DownMessage> out;
  if (auto* acknowledge = std::get_if<Acknowledge>(&message)) {
    const auto bytes = [](const model::Cursor& cursor) {
      return cursor.node.size() + 48 + cursor.tombstones.size() * 20;
    };
    for (auto& piece : pieces(std::move(acknowledge->cursors), bytes)) out.push_back(Acknowledge{std::move(piece)});
  } else {
    out.push_back(std::move(message));
  }
  return out;
}

template <typename Wire, typename Message>
absl::StatusOr<std::vector<std::string>> encode_as(Message message) {
  if (absl::Status checked = check_limits(message); !checked.ok()) return checked;
  std::vector<std::string> out;
  for (Message& piece : split(std::move(message))) {
    Wire built;
    std::visit([&](auto&& m) { put(std::move(m), built); }, std::move(piece));
    const std::size_t bytes = built.ByteSizeLong();
    if (bytes > kMaxMessageBytes) {
      return absl::ResourceExhaustedError(
          fmt::format("a message of {} bytes is too large to send; at most {}", bytes, kMaxMessageBytes));
    }
    std::string& text = out.emplace_back();
    built.SerializeToString(&text);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> encode(UpMessage message) { return encode_as<wire::Up>(std::move(message)); }
absl::StatusOr<std::vector<std::string>> encode(DownMessage message) {
  return encode_as<wire::Down>(std::move(message));
}

}  // namespace orla::link
