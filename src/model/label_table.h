// Many definitions in little memory: what is told apart by a kind and its labels, with every text kept once. Of a
// million things with a label of their own: text 10 bytes and 5 in a hash set, thing 8 and 5.5.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/blocks.h"
#include "model/number_set.h"
#include "model/series.h"

namespace orla::model {

// Texts, by a number that says where they lie. Not thread-safe.
class Texts {
 public:
  Texts() = default;
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  // The text's number, given out when it is new.
  std::uint32_t add(std::string_view text);
  std::optional<std::uint32_t> find(std::string_view text) const;
  // Stays where it is until clear().
  std::string_view operator[](std::uint32_t number) const;
  void clear();

 private:
  static constexpr std::size_t kBlockBytes = 1U << 16U;

  void index(std::uint32_t number, std::uint64_t hash);

  // Of a text: its length and one as a varint, then its bytes, within one block; behind the last one of a block there
  // is a 0, or its end. A text that is longer than a block has one of its own, which counts as several.
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t free_ = 0;  // bytes left in the last block
  NumberSet numbers_;     // of texts: block and byte in it
};

// Things by dense number. `texts` outlives it and may be shared. Not thread-safe.
class LabelTable {
 public:
  explicit LabelTable(Texts& texts) : texts_(texts) {}
  LabelTable(const LabelTable&) = delete;
  LabelTable& operator=(const LabelTable&) = delete;

  // The number of what was added with this kind and these labels, in this order.
  std::optional<std::uint32_t> find(std::uint32_t kind, const std::vector<Label>& labels) const;
  // It is not there yet; its number is size().
  std::uint32_t add(std::uint32_t kind, const std::vector<Label>& labels);
  std::uint32_t kind(std::uint32_t number) const { return shapes_[*thing(number)].kind; }
  std::vector<Label> labels(std::uint32_t number) const;
  std::size_t size() const { return size_; }
  void clear();

 private:
  // What things with the same kind and names of labels have in common.
  struct Shape {
    std::uint32_t kind = 0;
    std::vector<std::uint32_t> names;  // numbers of texts
  };
  // Of a thing its shape, and for each name of it the number of the value's text; within one block.
  static constexpr std::size_t kBlockWords = 1U << 14U;
  static constexpr std::uint32_t kBlockEnd =
      UINT32_MAX;  // in the place of a shape: the next thing is in the next block
  static constexpr std::uint32_t kPerStart = 8;

  std::size_t words_of(const std::uint32_t* thing) const { return 1 + shapes_[*thing].names.size(); }
  std::size_t next(std::size_t at) const;
  const std::uint32_t* at(std::size_t place) const { return blocks_[place / kBlockWords].get() + place % kBlockWords; }
  const std::uint32_t* thing(std::uint32_t number) const;
  std::uint64_t hash(const std::uint32_t* thing) const;
  std::optional<std::uint32_t> find_shape(std::uint32_t kind, const std::vector<std::uint32_t>& names) const;
  std::optional<std::uint32_t> find(const std::vector<std::uint32_t>& thing) const;

  Texts& texts_;
  std::vector<Shape> shapes_;
  absl::flat_hash_map<std::vector<std::uint32_t>, std::uint32_t> shape_numbers_;  // by names, then kind
  std::vector<std::unique_ptr<std::uint32_t[]>> blocks_;  // a thing longer than a block has one that counts as several
  std::size_t free_ = 0;                                  // words left in the last block
  Blocks<std::uint32_t, 1024> starts_;                    // where things 0, 8, 16, ... lie
  std::size_t size_ = 0;
  NumberSet numbers_;
};

}  // namespace orla::model
