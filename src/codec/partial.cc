// Format (in an envelope, kind "P"): count as a varint; when it is not 0: min, max, first, last as 8 bytes each, first
// and last time in ns as 8 bytes each, then ExactSum::encode() up to the end. Version 2, of a partial with sketches:
// before the sums Sketches::encode() with its length.
#include "codec/partial.h"

#include <bit>
#include <cmath>

#include "codec/envelope.h"

namespace orla::codec {

namespace {
constexpr Format kFormat = {'P', 1, "partial"};
constexpr Format kWithSketches = {'P', 2, "partial"};
}  // namespace

std::string encode_partial(const model::Partial& partial) {
  const bool sketched = partial.count > 0 && !partial.sketches.none();
  std::string out = begin_envelope(sketched ? kWithSketches : kFormat);
  base::ByteWriter to(out);
  to.varint(partial.count);
  if (partial.count > 0) {
    for (const double v : {partial.min, partial.max, partial.first, partial.last})
      to.u64(std::bit_cast<std::uint64_t>(v + 0.0));  // -0.0 is 0.0
    for (const model::Time t : {partial.first_time, partial.last_time})
      to.u64(static_cast<std::uint64_t>(model::to_ns(t)));
    if (sketched) to.text(partial.sketches.encode());
    to.raw(partial.sums.encode());
  }
  end_envelope(out);
  return out;
}

absl::StatusOr<model::Partial> decode_partial(std::string_view bytes) {
  const bool sketched = version_of(bytes) == kWithSketches.version;
  const absl::StatusOr<std::string_view> body = open_envelope(sketched ? kWithSketches : kFormat, bytes);
  if (!body.ok()) return body.status();
  base::ByteReader from(*body);
  model::Partial p;
  p.count = from.varint();
  if (p.count > 0) {
    for (double* v : {&p.min, &p.max, &p.first, &p.last}) {
      *v = std::bit_cast<double>(from.u64());
      if (!std::isfinite(*v) || (*v == 0 && std::signbit(*v))) return malformed(kFormat, "a value that is not finite");
    }
    for (model::Time* t : {&p.first_time, &p.last_time}) *t = model::from_ns(static_cast<std::int64_t>(from.u64()));
    if (p.min > p.max || p.first_time > p.last_time) return malformed(kFormat, "min after max or first after last");
    if (sketched) {
      absl::StatusOr<model::Sketches> sketches = model::Sketches::decode(from.text());
      if (!sketches.ok()) return malformed(kFormat, std::string(sketches.status().message()));
      p.sketches = *std::move(sketches);
    }
    absl::StatusOr<model::ExactSum> sums = model::ExactSum::decode(from.raw(from.left()));
    if (!sums.ok()) return malformed(kFormat, std::string(sums.status().message()));
    p.sums = *std::move(sums);
  }
  if (p.count == 0 && sketched) return malformed(kFormat, "sketches of no samples");
  if (!from.finished()) return malformed(kFormat, "too short or too long");
  return p;
}

}  // namespace orla::codec
