// Format: flags, 1 byte: 1 = quantiles, 2 = distinct; then each that is there, as at the head of its file.
#include "model/sketches.h"

#include "base/bytes.h"

namespace orla::model {
namespace {

constexpr std::uint8_t kQuantiles = 1;
constexpr std::uint8_t kDistinct = 2;

}  // namespace

Sketches::Sketches(SketchKinds kinds) {
  if (!kinds.any()) return;
  all_ = std::make_unique<All>();
  if (kinds.quantiles) all_->quantiles.emplace();
  if (kinds.distinct) all_->distinct.emplace();
}

Sketches::Sketches(const Sketches& other)
    : all_(other.all_ == nullptr ? nullptr : std::make_unique<All>(*other.all_)) {}

Sketches& Sketches::operator=(const Sketches& other) {
  if (this != &other) *this = Sketches(other);
  return *this;
}

SketchKinds Sketches::kinds() const {
  if (none()) return {};
  return {all_->quantiles.has_value(), all_->distinct.has_value()};
}

void Sketches::merge(const Sketches& other) {
  if (none()) return;
  if (other.none()) {
    all_.reset();
    return;
  }
  if (all_->quantiles && other.all_->quantiles)
    all_->quantiles->merge(*other.all_->quantiles);
  else
    all_->quantiles.reset();
  if (all_->distinct && other.all_->distinct)
    all_->distinct->merge(*other.all_->distinct);
  else
    all_->distinct.reset();
  if (!kinds().any()) all_.reset();
}

std::size_t Sketches::memory_bytes() const {
  if (none()) return 0;
  std::size_t bytes = sizeof(All);
  if (all_->quantiles) bytes += all_->quantiles->memory_bytes() - sizeof(QuantileSketch);
  if (all_->distinct) bytes += all_->distinct->memory_bytes() - sizeof(DistinctSketch);
  return bytes;
}

std::string Sketches::encode() const {
  std::string out;
  base::ByteWriter to(out);
  const SketchKinds kinds = this->kinds();
  to.u8(static_cast<std::uint8_t>((kinds.quantiles ? kQuantiles : 0) | (kinds.distinct ? kDistinct : 0)));
  if (kinds.quantiles) all_->quantiles->write(to);
  if (kinds.distinct) all_->distinct->write(to);
  return out;
}

absl::StatusOr<Sketches> Sketches::decode(std::string_view bytes) {
  base::ByteReader from(bytes);
  const std::uint8_t flags = from.u8();
  bool good = flags != 0 && flags <= (kQuantiles | kDistinct);
  Sketches out;
  if (good) {
    out = Sketches(SketchKinds{(flags & kQuantiles) != 0, (flags & kDistinct) != 0});
    if (out.all_->quantiles) good = QuantileSketch::read(from, *out.all_->quantiles);
    if (good && out.all_->distinct) good = DistinctSketch::read(from, *out.all_->distinct);
  }
  if (!good || !from.finished())
    return absl::InvalidArgumentError("sketches: the bytes are not the canonical form of one");
  return out;
}

bool operator==(const Sketches& a, const Sketches& b) {
  if (a.none() || b.none()) return a.none() == b.none();
  return *a.all_ == *b.all_;
}

}  // namespace orla::model
