#include "model/label_table.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"

namespace orla::model {

std::size_t Texts::Hash::operator()(std::string_view text) const { return base::hash64(text); }

std::uint32_t Texts::add(std::string_view text) {
  if (const std::optional<std::uint32_t> known = find(text)) return *known;
  std::string length;
  base::ByteWriter(length).varint(text.size());
  const std::size_t needed = length.size() + text.size();
  if (needed > free_) {
    const std::size_t blocks = (needed + kBlockBytes - 1) / kBlockBytes;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(blocks * kBlockBytes));
    blocks_.resize(blocks_.size() + blocks - 1);
    // What follows a long text in its blocks stays unused: a place names the block that it is allocated with.
    free_ = blocks == 1 ? kBlockBytes : 0;
    places_.push_back(static_cast<std::uint32_t>((blocks_.size() - blocks) * kBlockBytes));
    if (blocks == 1) free_ -= needed;
  } else {
    places_.push_back(static_cast<std::uint32_t>(blocks_.size() * kBlockBytes - free_));
    free_ -= needed;
  }
  const auto number = static_cast<std::uint32_t>(places_.size() - 1);
  char* const to = blocks_[places_[number] / kBlockBytes].get() + places_[number] % kBlockBytes;
  std::memcpy(to, length.data(), length.size());
  std::memcpy(to + length.size(), text.data(), text.size());
  numbers_.insert(number);
  return number;
}

std::optional<std::uint32_t> Texts::find(std::string_view text) const {
  const auto found = numbers_.find(text);
  if (found == numbers_.end()) return std::nullopt;
  return *found;
}

std::string_view Texts::operator[](std::uint32_t number) const {
  const char* at = blocks_[places_[number] / kBlockBytes].get() + places_[number] % kBlockBytes;
  std::size_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    length |= static_cast<std::size_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) return {at, length};
  }
}

void Texts::clear() {
  numbers_.clear();
  places_.clear();
  blocks_.clear();
  free_ = 0;
}

std::size_t LabelTable::Hash::operator()(const Key& key) const {
  const std::size_t count = table->shapes_[key.shape].names.size();
  return base::hash64({reinterpret_cast<const char*>(key.values), count * sizeof *key.values}, key.shape);
}

bool LabelTable::Equal::operator()(const Key& a, const Key& b) const {
  return a.shape == b.shape && std::equal(a.values, a.values + table->shapes_[a.shape].names.size(), b.values);
}

std::optional<std::uint32_t> LabelTable::find(std::uint32_t kind, const std::vector<Label>& labels) const {
  std::vector<std::uint32_t> shape = {kind};
  std::vector<std::uint32_t> values;
  for (const auto& [name, value] : labels) {
    const std::optional<std::uint32_t> name_number = texts_.find(name);
    const std::optional<std::uint32_t> value_number = texts_.find(value);
    if (!name_number || !value_number) return std::nullopt;
    shape.push_back(*name_number);
    values.push_back(*value_number);
  }
  const auto known = shape_numbers_.find(shape);
  if (known == shape_numbers_.end()) return std::nullopt;
  const auto found = numbers_.find(Key{known->second, values.data()});
  if (found == numbers_.end()) return std::nullopt;
  return *found;
}

std::uint32_t LabelTable::add(std::uint32_t kind, const std::vector<Label>& labels) {
  std::vector<std::uint32_t> shape = {kind};
  const auto begin = static_cast<std::uint32_t>(values_.size());
  for (const auto& [name, value] : labels) {
    shape.push_back(texts_.add(name));
    values_.push_back(texts_.add(value));
  }
  const auto [known, is_new] = shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  if (is_new) shapes_.push_back({kind, {shape.begin() + 1, shape.end()}});
  const auto number = static_cast<std::uint32_t>(things_.size());
  things_.push_back({known->second, begin});
  numbers_.insert(number);
  return number;
}

std::vector<Label> LabelTable::labels(std::uint32_t number) const {
  const Thing& thing = things_[number];
  const std::vector<std::uint32_t>& names = shapes_[thing.shape].names;
  std::vector<Label> out;
  out.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) out.emplace_back(texts_[names[i]], texts_[values_[thing.values + i]]);
  return out;
}

void LabelTable::clear() {
  numbers_.clear();
  values_.clear();
  things_.clear();
  shape_numbers_.clear();
  shapes_.clear();
}

}  // namespace orla::model
