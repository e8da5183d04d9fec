// Numbers the series of an input that several parsers read, each with numbers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "model/series.h"

namespace orla::ingest {

// Not thread-safe.
class SeriesNumbers {
 public:
  explicit SeriesNumbers(std::size_t limit) : limit_(limit) {}

  struct Numbered {
    std::uint32_t number = 0;
    bool is_new = false;
  };
  // The number it has, else the next one; nothing when there are too many.
  std::optional<Numbered> number(const model::Series& series);
  bool knows(const model::Series& series) const;
  std::size_t size() const { return numbers_.size(); }
  std::size_t left() const { return limit_ - numbers_.size(); }

 private:
  std::size_t limit_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;  // by identity
};

}  // namespace orla::ingest
