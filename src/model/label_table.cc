#include "model/label_table.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"

namespace orla::model {

namespace {

struct Length {
  const char* text;
  std::size_t size;
};
// Of the length at `at`, which is not 0.
Length read_length(const char* at) {
  std::size_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    length |= static_cast<std::size_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) return {at, length - 1};
  }
}

}  // namespace

std::uint32_t Texts::add(std::string_view text) {
  if (const std::optional<std::uint32_t> known = find(text)) return *known;
  std::string length;
  base::ByteWriter(length).varint(text.size() + 1);
  const std::size_t needed = length.size() + text.size();
  if (needed > free_) {
    const std::size_t blocks = (needed + kBlockBytes - 1) / kBlockBytes;
    blocks_.push_back(std::make_unique<char[]>(blocks * kBlockBytes));
    blocks_.resize(blocks_.size() + blocks - 1);
    // What follows a long text in its blocks stays unused: a place names the block that it is allocated with.
    free_ = blocks * kBlockBytes;
  }
  const auto number = static_cast<std::uint32_t>(blocks_.size() * kBlockBytes - free_);
  free_ = needed > kBlockBytes ? 0 : free_ - needed;
  char* const to = blocks_[number / kBlockBytes].get() + number % kBlockBytes;
  std::memcpy(to, length.data(), length.size());
  std::memcpy(to + length.size(), text.data(), text.size());
  index(number, base::hash64(text));
  return number;
}

void Texts::index(std::uint32_t number, std::uint64_t hash) {
  if (numbers_.has_room(number)) return numbers_.insert(number, hash);
  numbers_.grow(number);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b] == nullptr) continue;  // part of a long one
    const char* const begin = blocks_[b].get();
    const char* at = begin;
    while (at < begin + kBlockBytes && *at != 0) {
      const Length length = read_length(at);
      numbers_.insert(static_cast<std::uint32_t>(b * kBlockBytes + static_cast<std::size_t>(at - begin)),
                      base::hash64({length.text, length.size}));
      at = length.text + length.size;
    }
  }
}

std::optional<std::uint32_t> Texts::find(std::string_view text) const {
  return numbers_.find(base::hash64(text), [&](std::uint32_t number) { return (*this)[number] == text; });
}

std::string_view Texts::operator[](std::uint32_t number) const {
  const Length length = read_length(blocks_[number / kBlockBytes].get() + number % kBlockBytes);
  return {length.text, length.size};
}

void Texts::clear() {
  numbers_.clear();
  blocks_.clear();
  free_ = 0;
}

std::uint64_t LabelTable::hash(const std::uint32_t* thing) const {
  return base::hash64({reinterpret_cast<const char*>(thing), words_of(thing) * sizeof *thing});
}

// Where the thing behind the one at `place` lies.
std::size_t LabelTable::next(std::size_t place) const {
  const auto rounded = [](std::size_t p) { return (p + kBlockWords - 1) / kBlockWords * kBlockWords; };
  const std::size_t words = words_of(at(place));
  const std::size_t behind = place + words;
  if (words > kBlockWords) return rounded(behind);
  return behind % kBlockWords != 0 && *at(behind) == kBlockEnd ? rounded(behind) : behind;
}

const std::uint32_t* LabelTable::thing(std::uint32_t number) const {
  std::size_t place = starts_[number / kPerStart];
  for (std::uint32_t i = number % kPerStart; i > 0; --i) place = next(place);
  return at(place);
}

std::optional<std::uint32_t> LabelTable::find_shape(std::uint32_t kind, const std::vector<std::uint32_t>& names) const {
  // Nearly always that of the last new one.
  if (!shapes_.empty() && shapes_.back().kind == kind && shapes_.back().names == names)
    return static_cast<std::uint32_t>(shapes_.size() - 1);
  std::vector<std::uint32_t> key = names;
  key.push_back(kind);
  const auto known = shape_numbers_.find(key);
  if (known == shape_numbers_.end()) return std::nullopt;
  return known->second;
}

std::optional<std::uint32_t> LabelTable::find(const std::vector<std::uint32_t>& wanted) const {
  return numbers_.find(hash(wanted.data()), [&](std::uint32_t number) {
    const std::uint32_t* const known = thing(number);
    return *known == wanted[0] && std::equal(wanted.begin(), wanted.end(), known);
  });
}

std::optional<std::uint32_t> LabelTable::find(std::uint32_t kind, const std::vector<Label>& labels) const {
  std::vector<std::uint32_t> names;
  std::vector<std::uint32_t> wanted = {0};
  names.reserve(labels.size());
  wanted.reserve(labels.size() + 1);
  for (const auto& [name, value] : labels) {
    const std::optional<std::uint32_t> name_number = texts_.find(name);
    const std::optional<std::uint32_t> value_number = texts_.find(value);
    if (!name_number || !value_number) return std::nullopt;
    names.push_back(*name_number);
    wanted.push_back(*value_number);
  }
  const std::optional<std::uint32_t> shape = find_shape(kind, names);
  if (!shape) return std::nullopt;
  wanted[0] = *shape;
  return find(wanted);
}

std::uint32_t LabelTable::add(std::uint32_t kind, const std::vector<Label>& labels) {
  std::vector<std::uint32_t> names;
  std::vector<std::uint32_t> values;
  for (const auto& [name, value] : labels) {
    names.push_back(texts_.add(name));
    values.push_back(texts_.add(value));
  }
  std::optional<std::uint32_t> shape = find_shape(kind, names);
  if (!shape) {
    shape = static_cast<std::uint32_t>(shapes_.size());
    std::vector<std::uint32_t> key = names;
    key.push_back(kind);
    shape_numbers_.emplace(std::move(key), *shape);
    shapes_.push_back({kind, std::move(names)});
  }
  const std::size_t needed = 1 + values.size();
  if (needed > free_) {
    if (free_ > 0) blocks_.back()[kBlockWords - free_] = kBlockEnd;
    const std::size_t blocks = (needed + kBlockWords - 1) / kBlockWords;
    blocks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(blocks * kBlockWords));
    blocks_.resize(blocks_.size() + blocks - 1);
    free_ = blocks * kBlockWords;
  }
  const std::size_t place = blocks_.size() * kBlockWords - free_;
  free_ = needed > kBlockWords ? 0 : free_ - needed;
  std::uint32_t* const to = blocks_[place / kBlockWords].get() + place % kBlockWords;
  to[0] = *shape;
  std::copy(values.begin(), values.end(), to + 1);

  const auto number = static_cast<std::uint32_t>(size_++);
  if (number % kPerStart == 0) starts_.push_back(static_cast<std::uint32_t>(place));
  if (numbers_.has_room(number)) {
    numbers_.insert(number, hash(to));
    return number;
  }
  numbers_.grow(number);
  std::size_t each = 0;
  for (std::uint32_t n = 0; n < size_; ++n) {
    numbers_.insert(n, hash(at(each)));
    if (n + 1 < size_) each = next(each);
  }
  return number;
}

std::vector<Label> LabelTable::labels(std::uint32_t number) const {
  const std::uint32_t* const known = thing(number);
  const std::vector<std::uint32_t>& names = shapes_[*known].names;
  std::vector<Label> out;
  out.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) out.emplace_back(texts_[names[i]], texts_[known[1 + i]]);
  return out;
}

void LabelTable::clear() {
  numbers_.clear();
  blocks_.clear();
  starts_.clear();
  free_ = 0;
  size_ = 0;
  shape_numbers_.clear();
  shapes_.clear();
}

}  // namespace orla::model
