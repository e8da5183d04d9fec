// What a rollup's partials summarize beside sums: sketches, each with the same few operations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/distinct_sketch.h"
#include "model/quantile_sketch.h"

namespace orla::model {

// Which ones a rollup asks for.
struct SketchKinds {
  bool quantiles = false;
  bool distinct = false;
  bool any() const { return quantiles || distinct; }
  friend bool operator==(const SketchKinds&, const SketchKinds&) = default;
};

// A value as large as a pointer, which is null when there are none.
class Sketches {
 public:
  Sketches() = default;
  explicit Sketches(SketchKinds kinds);  // empty ones
  Sketches(const Sketches& other);
  Sketches(Sketches&&) noexcept = default;
  Sketches& operator=(const Sketches& other);
  Sketches& operator=(Sketches&&) noexcept = default;
  ~Sketches() = default;

  bool none() const { return all_ == nullptr; }
  SketchKinds kinds() const;
  // Null: not there.
  QuantileSketch* quantiles() { return all_ != nullptr && all_->quantiles ? &*all_->quantiles : nullptr; }
  const QuantileSketch* quantiles() const { return all_ != nullptr && all_->quantiles ? &*all_->quantiles : nullptr; }
  DistinctSketch* distinct() { return all_ != nullptr && all_->distinct ? &*all_->distinct : nullptr; }
  const DistinctSketch* distinct() const { return all_ != nullptr && all_->distinct ? &*all_->distinct : nullptr; }

  // Keeps the kinds that both have.
  void merge(const Sketches& other);
  std::size_t memory_bytes() const;

  // Canonical bytes: equal ones give equal bytes. !none(). `decode` accepts only what encode() writes.
  std::string encode() const;
  static absl::StatusOr<Sketches> decode(std::string_view bytes);
  friend bool operator==(const Sketches& a, const Sketches& b);

 private:
  struct All {
    std::optional<QuantileSketch> quantiles;
    std::optional<DistinctSketch> distinct;
    friend bool operator==(const All&, const All&) = default;
  };
  std::unique_ptr<All> all_;
};

}  // namespace orla::model
