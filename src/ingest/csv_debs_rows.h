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
// care, so one that is found is known to be good. Open addressing, at most a quarter full; nothing is taken out.
class DebsLabels {
 public:
  static constexpr std::size_t kMaxBytes = 12;         // longer texts are not kept
  static constexpr std::size_t kMaxTexts = 1u << 18u;  // nor more than so many
  // The text's bytes, little end first, then zeros.
  struct Slot {
    std::uint64_t head = 0;  // 0: empty
    std::uint32_t tail = 0;
    std::uint32_t number = 0;
  };

  DebsLabels() : slots_(std::size_t{1} << kFirstBits), bits_(kFirstBits) {}
  void insert(std::string_view text, std::uint32_t number);

  // UINT32_MAX: not known.
  std::uint32_t find(std::uint64_t head, std::uint32_t tail) const {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    for (std::size_t i = place(head, tail);; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.head == head && slot.tail == tail) return slot.number;
      if (slot.head == 0) return UINT32_MAX;
    }
  }

 private:
  static constexpr unsigned kFirstBits = 10;
  // The highest bits of a product depend on all bits of its factors.
  std::size_t place(std::uint64_t head, std::uint32_t tail) const {
    const std::uint64_t mixed = (head ^ tail * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
    return static_cast<std::size_t>(mixed >> (64 - bits_));
  }
  void put(const Slot& slot);

  std::vector<Slot> slots_;  // 2^bits_
  unsigned bits_;
  std::size_t used_ = 0;
};

// The text of a row's time that was read last: ten digits and a comma, their first 8 and last 4 bytes.
struct DebsTime {
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
DebsRowsRead read_debs_rows(const DebsRows& in, const DebsLabels& labels, DebsTime& time);

}  // namespace orla::ingest
