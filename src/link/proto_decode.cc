// The half of proto_codec.h that reads.
#include <fmt/format.h>

#include <utility>

#include "link.pb.h"
#include "link/message_limits.h"
#include "link/proto_codec.h"
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

// ---- pieces ----

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

template <typename Inputs, typename Counts>
absl::Status take_samples(std::string_view field, Inputs& inputs, const Counts& counts,
                          std::vector<std::pair<std::string, std::uint64_t>>& out) {
  if (absl::Status same = same_length(field, counts.size(), inputs.size()); !same.ok()) return same;
  for (int i = 0; i < inputs.size(); ++i) out.emplace_back(std::move(inputs[i]), counts[i]);
  return absl::OkStatus();
}

absl::Status take(wire::Tombstone& in, model::Tombstone& out) {
  out.first = in.first();
  out.last = in.last();
  out.reason = std::move(*in.mutable_reason());
  out.from = model::from_ns(in.from_ns());
  out.to = model::from_ns(in.to_ns());
  out.raw_samples = in.raw_samples();
  return take_samples("tombstone.samples", *in.mutable_inputs(), in.samples(), out.samples);
}

absl::Status take(wire::Loss& in, model::Loss& out) {
  out.reason = std::move(*in.mutable_reason());
  out.chunks = in.chunks();
  out.raw_samples = in.raw_samples();
  return take_samples("loss.samples", *in.mutable_inputs(), in.samples(), out.samples);
}

// Sorted and not overlapping.
template <typename Numbers>
absl::Status take_numbers(std::string_view field, const Numbers& firsts, const Numbers& lasts, int begin, int count,
                          std::vector<model::SequenceRange>& out) {
  for (int i = begin; i < begin + count; ++i) {
    if (firsts[i] > lasts[i] || (!out.empty() && firsts[i] <= out.back().last)) {
      return malformed(field, fmt::format("{}..{}", firsts[i], lasts[i]), "ranges that are sorted and do not overlap");
    }
    out.push_back({firsts[i], lasts[i]});
  }
  return absl::OkStatus();
}

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
  for (wire::Tombstone& tombstone : *in.mutable_tombstones()) {
    if (absl::Status taken = take(tombstone, out.tombstones.emplace_back()); !taken.ok()) return taken;
  }
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
  if (in.tombstone_counts_size() > 0) {
    same.Update(same_length("cursors.tombstone_counts", in.tombstone_counts_size(), in.nodes_size()));
  }
  same.Update(same_length("cursors.tombstone_lasts", in.tombstone_lasts_size(), in.tombstone_firsts_size()));
  std::uint64_t sum = 0;
  for (const std::uint32_t count : in.tombstone_counts()) sum += count;
  if (same.ok() && sum != static_cast<std::uint64_t>(in.tombstone_firsts_size())) {
    same = malformed("cursors.tombstone_firsts", fmt::format("{} elements", in.tombstone_firsts_size()),
                     fmt::format("the sum of tombstone_counts, {}", sum));
  }
  if (!same.ok()) return same;
  int next = 0;
  for (int i = 0; i < in.nodes_size(); ++i) {
    out.push_back({std::move(*in.mutable_nodes(i)),
                   model::Epoch{in.epochs(i)},
                   in.lasts(i),
                   {in.chain_highs(i), in.chain_lows(i)}});
    if (i >= in.tombstone_counts_size()) continue;
    const auto count = static_cast<int>(in.tombstone_counts(i));
    if (absl::Status taken = take_numbers("cursors.tombstone_firsts", in.tombstone_firsts(), in.tombstone_lasts(), next,
                                          count, out.back().tombstones);
        !taken.ok()) {
      return taken;
    }
    next += count;
  }
  return absl::OkStatus();
}

// ---- messages ----

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
  const int replaced = in.replaced_tombstone_firsts_size();
  absl::Status taken = same_length("opened.replaced_tombstone_lasts", in.replaced_tombstone_lasts_size(), replaced);
  if (taken.ok()) {
    taken = take_numbers("opened.replaced_tombstone_firsts", in.replaced_tombstone_firsts(),
                         in.replaced_tombstone_lasts(), 0, replaced, m.replaced_tombstones);
  }
  for (wire::Loss& loss : *in.mutable_losses()) {
    if (taken.ok()) taken = take(loss, m.losses.emplace_back());
  }
  if (!taken.ok()) return taken;
  return m;
}

absl::StatusOr<DownMessage> take(wire::Rejected& in) { return Rejected{std::move(*in.mutable_message())}; }

// A stream has taken its pieces and confirmations out before (src/link/pieces.h).
absl::Status inside_a_message() {
  return malformed("piece", "one inside another message", "pieces and confirmations by themselves");
}

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
    case wire::Up::kPiece:
    case wire::Up::kReceived:
      return inside_a_message();
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
    case wire::Down::kPiece:
    case wire::Down::kReceived:
      return inside_a_message();
    case wire::Down::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  if (!taken.ok()) return taken.status();
  return std::optional<DownMessage>(*std::move(taken));
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

absl::StatusOr<std::optional<UpMessage>> decode_up(std::string_view bytes) {
  return decode_as<UpMessage, wire::Up>(bytes);
}
absl::StatusOr<std::optional<DownMessage>> decode_down(std::string_view bytes) {
  return decode_as<DownMessage, wire::Down>(bytes);
}

}  // namespace orla::link
