// Numbers the series of an input that several parsers read, each with numbers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/label_table.h"
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
  bool knows(const model::Series& series) const { return find(series).has_value(); }
  std::size_t size() const { return series_.size(); }
  std::size_t left() const { return limit_ - series_.size(); }

 private:
  std::optional<std::uint32_t> find(const model::Series& series) const;

  std::size_t limit_;
  model::Texts texts_;
  model::LabelTable series_{texts_};  // kind: the metric's name, a number of texts_
};

}  // namespace orla::ingest
