#include "store/partial_bytes.h"

#include <fmt/format.h>

#include <bit>

#include "base/bytes.h"

namespace orla::store {
namespace {

constexpr std::uint8_t kWide = 1;
constexpr std::uint8_t kOrder = 2;
constexpr std::uint8_t kSketches = 4;

absl::Status unreadable(std::string_view what) {
  return absl::DataLossError(fmt::format("{} cannot be decoded", what));
}

// Times may lie far apart; the difference wraps, and wraps back when it is added.
std::uint64_t offset(model::Time time, model::Time start) {
  return base::zigzag(static_cast<std::int64_t>(static_cast<std::uint64_t>(model::to_ns(time)) -
                                                static_cast<std::uint64_t>(model::to_ns(start))));
}

model::Time moved(model::Time start, std::uint64_t offset) {
  return model::from_ns(static_cast<std::int64_t>(static_cast<std::uint64_t>(model::to_ns(start)) +
                                                  static_cast<std::uint64_t>(base::unzigzag(offset))));
}

void put_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

void put_labels(std::string& out, const std::vector<model::Label>& labels) {
  base::ByteWriter to(out);
  to.varint(labels.size());
  for (const model::Label& label : labels) {
    to.text(label.first);
    to.text(label.second);
  }
}

absl::StatusOr<std::vector<model::Label>> labels_of(std::string_view bytes) {
  base::ByteReader from(bytes);
  std::vector<model::Label> labels;
  const std::uint64_t count = from.varint();
  for (std::uint64_t i = 0; i < count && !from.failed(); ++i) {
    const std::string_view name = from.text();
    const std::string_view value = from.text();
    labels.emplace_back(name, value);
  }
  if (!from.finished()) return unreadable("a group's labels");
  return labels;
}

std::string labels_json(const std::vector<model::Label>& labels) {
  std::string out = "{";
  for (const model::Label& label : labels) {
    if (out.size() > 1) out += ',';
    put_json_text(out, label.first);
    out += ':';
    put_json_text(out, label.second);
  }
  out += '}';
  return out;
}

std::string names_json(const std::vector<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) {
    if (out.size() > 1) out += ',';
    put_json_text(out, name);
  }
  out += ']';
  return out;
}

void window_state(std::string& out, const model::Partial& partial, model::Time start, HasOrder has_order) {
  out.clear();
  base::ByteWriter to(out);
  const bool wide = partial.sums.has_wide();
  const bool order = has_order == HasOrder::kYes;
  const bool sketches = !partial.sketches.none();
  to.u8(static_cast<std::uint8_t>((wide ? kWide : 0) | (order ? kOrder : 0) | (sketches ? kSketches : 0)));
  if (order) {
    to.varint(offset(partial.first_time, start));
    to.varint(offset(partial.last_time, start));
  }
  if (sketches) to.text(partial.sketches.encode());
  if (wide) {
    to.raw(partial.sums.encode());
  } else {
    to.varint128(base::zigzag128(partial.sums.decimal_sum()));
    to.varint128(static_cast<base::UInt128>(partial.sums.decimal_squares()));
  }
}

absl::Status read_window_state(std::string_view bytes, model::Time start, model::Partial& into) {
  base::ByteReader from(bytes);
  const std::uint8_t flags = from.u8();
  if ((flags & kOrder) != 0) {
    into.first_time = moved(start, from.varint());
    into.last_time = moved(start, from.varint());
  }
  if ((flags & kSketches) != 0) {
    absl::StatusOr<model::Sketches> sketches = model::Sketches::decode(from.text());
    if (from.failed() || !sketches.ok()) return unreadable("the state of a window");
    into.sketches = *std::move(sketches);
  }
  if ((flags & kWide) != 0) {
    absl::StatusOr<model::ExactSum> sums = model::ExactSum::decode(from.raw(from.left()));
    if (from.failed() || !sums.ok()) return unreadable("the state of a window");
    into.sums = *std::move(sums);
    return absl::OkStatus();
  }
  const base::Int128 sum = base::unzigzag128(from.varint128());
  const auto squares = static_cast<base::Int128>(from.varint128());
  if (!from.finished() || squares < 0 || flags > (kWide | kOrder | kSketches))
    return unreadable("the state of a window");
  into.sums = model::ExactSum::from_decimals(sum, squares);
  return absl::OkStatus();
}

std::string partial_bytes(const model::Partial& partial) {
  std::string out;
  base::ByteWriter to(out);
  to.varint(partial.count);
  if (partial.count == 0) return out;
  for (const double v : {partial.min, partial.max, partial.first, partial.last})
    to.u64(std::bit_cast<std::uint64_t>(v));
  std::string state;
  window_state(state, partial, model::Time{}, HasOrder::kYes);
  to.raw(state);
  return out;
}

absl::StatusOr<model::Partial> partial_of(std::string_view bytes) {
  base::ByteReader from(bytes);
  model::Partial out;
  out.count = from.varint();
  if (out.count == 0) {
    if (!from.finished()) return unreadable("a partial");
    return out;
  }
  for (double* v : {&out.min, &out.max, &out.first, &out.last}) *v = std::bit_cast<double>(from.u64());
  if (from.failed()) return unreadable("a partial");
  const absl::Status status = read_window_state(from.raw(from.left()), model::Time{}, out);
  if (!status.ok()) return status;
  return out;
}

}  // namespace orla::store
