// Many definitions in little memory: what is told apart by a kind and its labels, with every text kept once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "model/series.h"

namespace orla::model {

// Texts by dense number: 4 bytes, a length and a place in a hash set beside the text itself. Not thread-safe.
class Texts {
 public:
  Texts() : numbers_(0, Hash{this}, Equal{this}) {}
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  // The text's number, given out when it is new.
  std::uint32_t add(std::string_view text);
  std::optional<std::uint32_t> find(std::string_view text) const;
  // Stays where it is until clear().
  std::string_view operator[](std::uint32_t number) const;
  std::size_t size() const { return places_.size(); }
  void clear();

 private:
  static constexpr std::size_t kBlockBytes = 1U << 16U;

  struct Hash {
    using is_transparent = void;
    const Texts* texts;
    std::size_t operator()(std::string_view text) const;
    std::size_t operator()(std::uint32_t number) const { return (*this)((*texts)[number]); }
  };
  struct Equal {
    using is_transparent = void;
    const Texts* texts;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(std::uint32_t a, std::string_view b) const { return (*texts)[a] == b; }
    bool operator()(std::string_view a, std::uint32_t b) const { return a == (*texts)[b]; }
  };

  // Of a text: its length as a varint, then its bytes, within one block. A text that is longer than a block has one of
  // its own, which counts as several.
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t free_ = 0;               // bytes left in the last block
  std::vector<std::uint32_t> places_;  // by number: block and byte in it
  absl::flat_hash_set<std::uint32_t, Hash, Equal> numbers_;
};

// Things by dense number. `texts` outlives it and may be shared. Not thread-safe.
class LabelTable {
 public:
  explicit LabelTable(Texts& texts) : texts_(texts), numbers_(0, Hash{this}, Equal{this}) {}
  LabelTable(const LabelTable&) = delete;
  LabelTable& operator=(const LabelTable&) = delete;

  // The number of what was added with this kind and these labels, in this order.
  std::optional<std::uint32_t> find(std::uint32_t kind, const std::vector<Label>& labels) const;
  // It is not there yet; its number is size().
  std::uint32_t add(std::uint32_t kind, const std::vector<Label>& labels);
  std::uint32_t kind(std::uint32_t number) const { return shapes_[things_[number].shape].kind; }
  std::vector<Label> labels(std::uint32_t number) const;
  std::size_t size() const { return things_.size(); }
  void clear();

 private:
  // What things with the same kind and names of labels have in common.
  struct Shape {
    std::uint32_t kind = 0;
    std::vector<std::uint32_t> names;  // numbers of texts
  };
  struct Thing {
    std::uint32_t shape = 0;
    std::uint32_t values = 0;  // where they begin in values_: as many as the shape has names
  };
  struct Key {
    std::uint32_t shape = 0;
    const std::uint32_t* values = nullptr;
  };
  struct Hash {
    using is_transparent = void;
    const LabelTable* table;
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(std::uint32_t number) const { return (*this)(table->key(number)); }
  };
  struct Equal {
    using is_transparent = void;
    const LabelTable* table;
    bool operator()(const Key& a, const Key& b) const;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(std::uint32_t a, const Key& b) const { return (*this)(table->key(a), b); }
    bool operator()(const Key& a, std::uint32_t b) const { return (*this)(a, table->key(b)); }
  };
  Key key(std::uint32_t number) const { return {things_[number].shape, values_.data() + things_[number].values}; }

  Texts& texts_;
  std::vector<Shape> shapes_;
  absl::flat_hash_map<std::vector<std::uint32_t>, std::uint32_t> shape_numbers_;  // by kind, then names
  std::vector<Thing> things_;
  std::vector<std::uint32_t> values_;  // numbers of texts
  absl::flat_hash_set<std::uint32_t, Hash, Equal> numbers_;
};

}  // namespace orla::model
