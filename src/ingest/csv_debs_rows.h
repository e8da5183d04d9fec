// The quick way through rows of the DEBS 2014 schema in their common form. What it does not know it leaves alone: such
// a row may still be good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ingest/batch_builder.h"
#include "model/time.h"

namespace orla::ingest {

// The text of a row's last four columns -> the series' number. Texts get here once a row that has them was read with
// care, so one that is found is known to be good. Nothing is taken out.
class DebsLabels {
 public:
  static constexpr std::size_t kMaxBytes = 12;         // longer texts are not kept
  static constexpr std::size_t kMaxTexts = 1u << 18u;  // nor more than so many

  DebsLabels() : entries_(kBefore + kBehind), slots_(std::size_t{1} << kFirstBits), bits_(kFirstBits) {}
  void insert(std::string_view text, std::uint32_t number);

  // The text's bytes, the first in the lowest byte, then zeros. UINT32_MAX: not known. Rows come in nearly the same
  // order again and again, so the texts that came next when they were new are looked at first; `entry`, 0 at first,
  // says where the row before was found.
  std::uint32_t find(std::uint64_t head, std::uint32_t tail, std::uint32_t& entry) const {
    const Entry* const near = entries_.data() + entry + kBefore;
    std::uint32_t step = 0;
    for (const int s : {3, -1, 2, 1}) {
      const bool same = (near[s].head == head) & (near[s].tail == tail);
      step = same ? static_cast<std::uint32_t>(s) : step;
    }
    if (step == 0) {
      const std::uint32_t found = slots_[slot(head, tail)];
      if (found == 0) return UINT32_MAX;
      entry = found - 1;
    } else {
      entry += step;
    }
    return entries_[entry + kBefore].number;
  }

 private:
  struct Entry {
    std::uint64_t head = 0;  // 0: none
    std::uint32_t tail = 0;
    std::uint32_t number = 0;
  };
  static constexpr std::size_t kBefore = 1;  // empty entries around the others, for find()
  static constexpr std::size_t kBehind = 4;
  static constexpr unsigned kFirstBits = 10;

  // Where the text is in slots_, or would be. The highest bits of a product depend on all bits of its factors.
  std::size_t slot(std::uint64_t head, std::uint32_t tail) const {
    const std::uint64_t mixed = (head ^ tail * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = static_cast<std::size_t>(mixed >> (64 - bits_));; i = (i + 1) & mask) {
      if (slots_[i] == 0) return i;
      const Entry& known = entries_[slots_[i] - 1 + kBefore];
      if (known.head == head && known.tail == tail) return i;
    }
  }

  std::vector<Entry> entries_;        // in order of insertion
  std::vector<std::uint32_t> slots_;  // 2^bits_, at most a quarter of them used: entry + 1; 0: none
  unsigned bits_;
};

// Of the row that was read last: where its labels were found, and the text of its time, ten digits and a comma, their
// first 8 and last 4 bytes.
struct DebsLast {
  std::uint32_t entry = 0;
  std::uint64_t head = 0;
  std::uint32_t tail = 0;
  model::Time time{};
};

struct DebsRows {
  const char* begin = nullptr;  // of a line
  const char* end = nullptr;    // after a \n; 64 bytes more can be read
  std::size_t max_samples = 0;
  std::uint32_t unwanted = 0;  // the number of series that are passed over
  int decimals = 0;            // of the column, 0..kMaxDecimals
  SampleColumns::Room to;      // of max_samples + 1
  static constexpr int kMaxDecimals = 9;
};
struct DebsRowsRead {
  const char* next = nullptr;  // of the first line that was not read
  std::uint64_t rows = 0;
  std::size_t samples = 0;
};
// Reads lines until the first that is not of the common form: at most 63 bytes; an id of at most 19 digits; a time of
// ten; a value without sign, of at most eight digits, that fits the column; labels that are known. Times are not
// compared with the limits of a batch.
DebsRowsRead read_debs_rows(const DebsRows& in, const DebsLabels& labels, DebsLast& last);

}  // namespace orla::ingest
