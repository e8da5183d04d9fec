#include "link/proto_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "base/utf8.h"
#include "link.pb.h"
#include "link/message_limits.h"
#include "link/wire_shape.h"

namespace orla::link {

namespace {

namespace wire = ::orla::link::v1;

absl::Status malformed(std::string_view field, std::string_view found, std::string_view expected) {
  return absl::InvalidArgumentError(fmt::format("{}: found {}, expected {}", field, found, expected));
}

// Columns of one table have one length.
absl::Status same_length(std::string_view field, int found, int expected) {
  if (found == expected) return absl::OkStatus();
  return malformed(field, fmt::format("{} elements", found), fmt::format("{}", expected));
}

std::string text_for_people(const std::string& text) {
  std::string valid = base::to_utf8(text);
  if (valid.size() > kMaxTextBytes) valid = base::to_utf8(valid.substr(0, kMaxTextBytes - 16));
  return valid;
}

// ---- pieces, out ----

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

void put(model::OriginNote note, wire::Note& out) {
  for (const model::Publication& publication : note.publications) {
    out.add_metrics(publication.metric);
    out.add_publication_times_ns(model::to_ns(publication.time));
  }
  for (const auto& [input, ledger] : note.ledgers) put(input, ledger, *out.add_ledgers());
  for (model::StateEntry& entry : note.states) put(std::move(entry), *out.add_states());
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
}

void put(const std::vector<model::Cursor>& cursors, wire::Cursors& out) {
  for (const model::Cursor& cursor : cursors) put(cursor, out);
}

// ---- messages, out ----

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
}

void put(Rejected m, wire::Down& down) { down.mutable_rejected()->set_message(text_for_people(m.message)); }

void put(Heartbeat, wire::Down& down) { down.mutable_heartbeat(); }

// ---- pieces, in ----

absl::StatusOr<model::Layer> from_wire(wire::Layer layer) {
  switch (layer) {
    case wire::LAYER_EDGE:
      return model::Layer::kEdge;
    case wire::LAYER_AGGREGATOR:
      return model::Layer::kAggregator;
    case wire::LAYER_CLOUD:
      return model::Layer::kCloud;
    default:
      return malformed("hello.layer", fmt::format("{}", static_cast<int>(layer)), "1 (edge), 2 or 3");
  }
}

absl::StatusOr<RefusalReason> from_wire(wire::Refused::Reason reason) {
  switch (reason) {
    case wire::Refused::REASON_CURSOR:
      return RefusalReason::kCursor;
    case wire::Refused::REASON_DIGEST:
      return RefusalReason::kDigest;
    case wire::Refused::REASON_FULL:
      return RefusalReason::kFull;
    case wire::Refused::REASON_MALFORMED:
      return RefusalReason::kMalformed;
    default:
      return malformed("refused.reason", fmt::format("{}", static_cast<int>(reason)), "1 to 4");
  }
}

template <typename Reasons, typename Counts>
absl::Status take_reasons(std::string_view field, const Reasons& reasons, const Counts& counts,
                          model::ReasonCounts& out) {
  if (absl::Status same = same_length(field, counts.size(), reasons.size()); !same.ok()) return same;
  for (int i = 0; i < reasons.size(); ++i) {
    if (!out.emplace(reasons[i], counts[i]).second) {
      return malformed(field, fmt::format("\"{}\" twice", reasons[i].substr(0, 80)), "each reason once");
    }
  }
  return absl::OkStatus();
}

absl::Status take(wire::Ledger& in, std::pair<std::string, model::Ledger>& out) {
  out.first = std::move(*in.mutable_input());
  model::Ledger& ledger = out.second;
  ledger.received = in.received();
  ledger.aggregated = in.aggregated();
  ledger.unmatched = in.unmatched();
  ledger.late = {in.late(), in.late_set()};
  ledger.rejected_set = {in.rejected(), in.rejected_set()};
  ledger.held = in.held();
  absl::Status taken =
      take_reasons("ledger.rejected_counts", in.rejected_reasons(), in.rejected_counts(), ledger.rejected);
  taken.Update(take_reasons("ledger.dropped_counts", in.dropped_reasons(), in.dropped_counts(), ledger.dropped));
  return taken;
}

model::StateEntry take(wire::State& in) { return {in.snapshot(), std::move(*in.mutable_content())}; }

absl::Status take(wire::Note& in, model::OriginNote& out) {
  if (absl::Status same = same_length("note.publication_times_ns", in.publication_times_ns_size(), in.metrics_size());
      !same.ok()) {
    return same;
  }
  for (int i = 0; i < in.metrics_size(); ++i) {
    out.publications.push_back({std::move(*in.mutable_metrics(i)), model::from_ns(in.publication_times_ns(i))});
  }
  for (wire::Ledger& ledger : *in.mutable_ledgers()) {
    if (absl::Status taken = take(ledger, out.ledgers.emplace_back()); !taken.ok()) return taken;
  }
  for (wire::State& state : *in.mutable_states()) out.states.push_back(take(state));
  return absl::OkStatus();
}

absl::Status take(wire::Range& in, model::Range& out) {
  out.node = std::move(*in.mutable_node());
  out.epoch = model::Epoch{in.epoch()};
  out.first = in.first();
  out.last = in.last();
  out.chain_before = {in.chain_before_high(), in.chain_before_low()};
  out.chain_after = {in.chain_after_high(), in.chain_after_low()};
  return in.has_note() ? take(*in.mutable_note(), out.note) : absl::OkStatus();
}

absl::Status take(wire::Cursors& in, std::vector<model::Cursor>& out) {
  absl::Status same = same_length("cursors.epochs", in.epochs_size(), in.nodes_size());
  same.Update(same_length("cursors.lasts", in.lasts_size(), in.nodes_size()));
  same.Update(same_length("cursors.chain_highs", in.chain_highs_size(), in.nodes_size()));
  same.Update(same_length("cursors.chain_lows", in.chain_lows_size(), in.nodes_size()));
  if (!same.ok()) return same;
  for (int i = 0; i < in.nodes_size(); ++i) {
    out.push_back({std::move(*in.mutable_nodes(i)),
                   model::Epoch{in.epochs(i)},
                   in.lasts(i),
                   {in.chain_highs(i), in.chain_lows(i)}});
  }
  return absl::OkStatus();
}

// ---- messages, in ----

absl::StatusOr<UpMessage> take(wire::Hello& in) {
  Hello m{in.major(), in.minor(), std::move(*in.mutable_fleet()), std::move(*in.mutable_node()), model::Layer::kEdge};
  const absl::StatusOr<model::Layer> layer = from_wire(in.layer());
  if (layer.ok()) {
    m.layer = *layer;
  } else if (m.major == kProtocolMajor) {
    return layer.status();
  }
  return m;
}

absl::StatusOr<UpMessage> take(wire::Dictionary& in) {
  if (absl::Status same = same_length("dictionary.shape_of", in.shape_of_size(), in.ids_size()); !same.ok())
    return same;
  Dictionary m;
  m.entries.reserve(static_cast<std::size_t>(in.ids_size()));
  int value = 0;
  for (int i = 0; i < in.ids_size(); ++i) {
    const std::uint32_t shape_index = in.shape_of(i);
    if (shape_index >= static_cast<std::uint32_t>(in.shapes_size())) {
      return malformed("dictionary.shape_of", fmt::format("{}", shape_index),
                       fmt::format("less than {}", in.shapes_size()));
    }
    const wire::Shape& shape = in.shapes(static_cast<int>(shape_index));
    if (shape.decimals() > 15) return malformed("dictionary.decimals", fmt::format("{}", shape.decimals()), "0 to 15");
    if (in.label_values_size() - value < shape.label_names_size()) {
      return malformed("dictionary.label_values", fmt::format("{}", in.label_values_size()), "one for each label name");
    }
    Dictionary::Entry& entry = m.entries.emplace_back();
    entry.id = model::GroupId{in.ids(i)};
    entry.group.stream = shape.stream();
    entry.group.definition = shape.definition();
    entry.group.slice_ns = shape.slice_ns();
    entry.group.decimals = static_cast<int>(shape.decimals());
    entry.group.labels.reserve(static_cast<std::size_t>(shape.label_names_size()));
    for (const std::string& name : shape.label_names()) {
      entry.group.labels.emplace_back(name, std::move(*in.mutable_label_values(value++)));
    }
  }
  if (absl::Status same = same_length("dictionary.label_values", in.label_values_size(), value); !same.ok())
    return same;
  return m;
}

absl::StatusOr<UpMessage> take(wire::Frame& in) {
  FrameMessage m;
  m.id = in.id();
  m.ranges.reserve(static_cast<std::size_t>(in.ranges_size()));
  for (wire::Range& range : *in.mutable_ranges()) {
    if (absl::Status taken = take(range, m.ranges.emplace_back()); !taken.ok()) return taken;
  }
  m.rows = std::move(*in.mutable_rows());
  return m;
}

absl::StatusOr<UpMessage> take(wire::OpenEpoch& in) {
  return OpenEpoch{in.request(), std::move(*in.mutable_node()), model::Epoch{in.epoch()}, model::Epoch{in.replaces()}};
}

absl::StatusOr<DownMessage> take(wire::Welcome& in) {
  return Welcome{in.major(), in.minor(), std::move(*in.mutable_node()), in.heartbeat_ms(), in.credit_bytes()};
}

absl::StatusOr<DownMessage> take(wire::Acknowledge& in) {
  Acknowledge m;
  if (absl::Status taken = take(*in.mutable_cursors(), m.cursors); !taken.ok()) return taken;
  return m;
}

absl::StatusOr<DownMessage> take(wire::Refused& in) {
  const absl::StatusOr<RefusalReason> reason = from_wire(in.reason());
  if (!reason.ok()) return reason.status();
  Refused m{in.frame(), *reason, {}, std::move(*in.mutable_text())};
  if (absl::Status taken = take(*in.mutable_cursors(), m.cursors); !taken.ok()) return taken;
  return m;
}

absl::StatusOr<DownMessage> take(wire::Opened& in) {
  std::vector<model::Cursor> current;
  if (absl::Status taken = take(*in.mutable_current(), current); !taken.ok()) return taken;
  if (current.size() != 1) return malformed("opened.current", fmt::format("{} cursors", current.size()), "1");
  Opened m;
  m.request = in.request();
  m.opened = in.opened();
  m.current = std::move(current.front());
  if (in.has_replaced_last()) m.replaced_last = in.replaced_last();
  for (wire::State& state : *in.mutable_states()) m.states.push_back(take(state));
  return m;
}

absl::StatusOr<DownMessage> take(wire::Rejected& in) { return Rejected{std::move(*in.mutable_message())}; }

absl::StatusOr<std::optional<UpMessage>> take(wire::Up& in) {
  absl::StatusOr<UpMessage> taken;
  switch (in.message_case()) {
    case wire::Up::kHello:
      taken = take(*in.mutable_hello());
      break;
    case wire::Up::kDictionary:
      taken = take(*in.mutable_dictionary());
      break;
    case wire::Up::kFrame:
      taken = take(*in.mutable_frame());
      break;
    case wire::Up::kOpenEpoch:
      taken = take(*in.mutable_open_epoch());
      break;
    case wire::Up::kHeartbeat:
      taken = UpMessage(Heartbeat{});
      break;
    case wire::Up::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  if (!taken.ok()) return taken.status();
  return std::optional<UpMessage>(*std::move(taken));
}

absl::StatusOr<std::optional<DownMessage>> take(wire::Down& in) {
  absl::StatusOr<DownMessage> taken;
  switch (in.message_case()) {
    case wire::Down::kWelcome:
      taken = take(*in.mutable_welcome());
      break;
    case wire::Down::kAcknowledge:
      taken = take(*in.mutable_acknowledge());
      break;
    case wire::Down::kRefused:
      taken = take(*in.mutable_refused());
      break;
    case wire::Down::kOpened:
      taken = take(*in.mutable_opened());
      break;
    case wire::Down::kRejected:
      taken = take(*in.mutable_rejected());
      break;
    case wire::Down::kHeartbeat:
      taken = DownMessage(Heartbeat{});
      break;
    case wire::Down::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  if (!taken.ok()) return taken.status();
  return std::optional<DownMessage>(*std::move(taken));
}

// ---- both directions ----

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
    const auto bytes = [](const model::Cursor& cursor) { return cursor.node.size() + 48; };
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

template <typename Message, typename Wire>
absl::StatusOr<std::optional<Message>> decode_as(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("a message of {} bytes is too large; at most {}", bytes.size(), kMaxMessageBytes));
  }
  if (absl::Status shape = check_shape(bytes, *Wire::descriptor(), kMaxMessageElements); !shape.ok()) return shape;
  Wire parsed;
  if (!parsed.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes that are no message of link.proto, or a text that is not UTF-8", bytes.size()));
  }
  absl::StatusOr<std::optional<Message>> message = take(parsed);
  if (message.ok() && message->has_value()) {
    if (absl::Status checked = check_limits(**message); !checked.ok()) return checked;
  }
  return message;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> encode(UpMessage message) { return encode_as<wire::Up>(std::move(message)); }
absl::StatusOr<std::vector<std::string>> encode(DownMessage message) {
  return encode_as<wire::Down>(std::move(message));
}

absl::StatusOr<std::optional<UpMessage>> decode_up(std::string_view bytes) {
  return decode_as<UpMessage, wire::Up>(bytes);
}
absl::StatusOr<std::optional<DownMessage>> decode_down(std::string_view bytes) {
  return decode_as<DownMessage, wire::Down>(bytes);
}

}  // namespace orla::link
