// The rows of one stream and slice by group: small ones (see small_row.h), and full partials for what does not fit.
// 59 bytes for a row when groups of neighbouring numbers have one, up to 280 when none has.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/blocks.h"
#include "model/partial.h"
#include "stream/small_row.h"

namespace orla::stream {

// Not thread-safe. Rows stay where they are.
class SliceRows {
 public:
  static constexpr std::uint32_t kNoInput = UINT32_MAX >> 1U;

  // stream: a number of the caller's; the sketches that its rows have, and its decimals.
  SliceRows(std::size_t stream, model::Time start, model::SketchKinds sketches, int decimals)
      : stream_(stream), start_(start), sketches_(sketches), decimals_(decimals) {}

  struct Place {
    SliceRows* slice = nullptr;
    std::uint32_t block = 0;
    std::uint32_t bit = 0;
    SmallRow* row = nullptr;
  };
  // The row, opened empty when there is none, with the stream's sketches.
  Place at(model::GroupId group);

  std::size_t stream() const { return stream_; }
  model::Time start() const { return start_; }
  std::size_t size() const { return size_; }
  bool changed() const { return changed_; }
  void mark_all_changed();

  // These are about a place of this slice. A sample reaches its quantiles, too; sums leave sketches as they are.
  void add(const Place& place, model::Time time, double value);
  void add_sums(const Place& place, const DecimalSummary& summary);
  void add_sums(const Place& place, const model::Partial& partial);
  void replace(const Place& place, const model::Partial& partial);
  // null: the stream has none.
  model::Sketches* sketches(const Place& place) {
    return sketches_.any() ? &full_[place.row->number()]->sketches : nullptr;
  }
  void mark_changed(const Place& place) {
    blocks_[place.block].changed |= static_cast<std::uint16_t>(1U << place.bit);
    changed_ = true;
  }
  // The group's row counts as changed, if there is one.
  void mark_changed(model::GroupId group);
  std::uint64_t count(const SmallRow& row) const { return is_full(row) ? full_[row.number()]->count : row.count(); }
  // The input that contributed last; kNoInput: not known (restored).
  static std::uint32_t input(const SmallRow& row) { return row.note & kNoInput; }
  static void set_input(SmallRow& row, std::uint32_t input) { row.note = (row.note & kFull) | input; }

  template <typename Visit>  // visit(group, row) of every row, in any order
  void each(Visit visit) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[b];
      for (std::uint32_t bits = block.present; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
        visit(model::GroupId{block.key * kGroups + bit}, rows_[block.rows[bit]]);
      }
    }
  }

  void forget_changes();

  // The row as it is shown; its partial is moved out of it, or copied.
  void move_out(model::GroupId group, SmallRow& row, model::PartialRow& out);
  void copy_out(model::GroupId group, const SmallRow& row, model::PartialRow& out) const;

 private:
  friend class RowOrder;
  static constexpr std::uint32_t kFull = ~kNoInput;  // in a row's note: its number is that of a full partial
  static constexpr std::uint32_t kGroups = 16;       // of a block
  struct Block {
    std::uint32_t key = 0;  // groups from key * kGroups on
    std::uint16_t present = 0;
    std::uint16_t changed = 0;  // since forget_changes()
    std::array<std::uint32_t, kGroups> rows{};
  };

  static bool is_full(const SmallRow& row) { return (row.note & kFull) != 0; }
  std::uint32_t block_of(std::uint32_t key);
  // Makes it full.
  model::Partial& expand(SmallRow& row);

  const std::size_t stream_;
  const model::Time start_;
  const model::SketchKinds sketches_;
  const int decimals_;
  std::size_t size_ = 0;
  bool changed_ = false;
  model::Blocks<SmallRow, 32> rows_;
  model::Blocks<Block, 8> blocks_;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> numbers_;  // of blocks, by key
  std::uint32_t last_ = 0;                                     // block that was asked for
  std::vector<std::unique_ptr<model::Partial>> full_;
};

// Rows of several slices in canonical order. Neither rows nor changes are added to them as long as it lives.
class RowOrder {
 public:
  enum class Which : std::uint8_t {
    kAll,
    kChanged,         // rows that have changed
    kPartsOfChanged,  // of slices that hold parts of the same rows: all parts of those of which one has changed
  };
  RowOrder(std::span<SliceRows* const> slices, Which which);

  std::size_t rows() const { return rows_; }
  template <typename Visit>  // visit(slice, group, row) by group, then start, then as the slices were given
  void visit(Visit visit) const {
    for (std::size_t begin = 0; begin < parts_.size();) {
      std::size_t end = begin;
      std::uint32_t bits = 0;
      for (; end < parts_.size() && parts_[end].key == parts_[begin].key; ++end) bits |= parts_[end].mask;
      for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
        for (std::size_t p = begin; p < end; ++p) {
          const Part& part = parts_[p];
          if ((part.mask >> bit & 1U) == 0) continue;
          SliceRows& slice = *slices_[part.slice];
          const std::uint32_t row = slice.blocks_[part.block].rows[bit];
          visit(slice, model::GroupId{part.key * SliceRows::kGroups + bit}, slice.rows_[row]);
        }
      }
      begin = end;
    }
  }

 private:
  struct Part {  // a block
    std::uint32_t key;
    std::uint32_t slice;  // index into slices_
    std::uint32_t block;
    std::uint32_t mask;  // the rows that are visited
    bool operator<(const Part& other) const { return key != other.key ? key < other.key : slice < other.slice; }
  };

  std::vector<SliceRows*> slices_;  // by start
  std::vector<Part> parts_;
  std::size_t rows_ = 0;
};

}  // namespace orla::stream
