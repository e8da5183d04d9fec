// An array that grows by blocks: what is in it stays where it is, growing copies nothing, and never is more than a
// block unused.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace orla::model {

// kPerBlock: a power of two. Not thread-safe.
template <typename T, std::size_t kPerBlock>
class Blocks {
 public:
  T& operator[](std::size_t i) { return blocks_[i / kPerBlock][i % kPerBlock]; }
  const T& operator[](std::size_t i) const { return blocks_[i / kPerBlock][i % kPerBlock]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& push_back(T value) {
    if (size_ == blocks_.size() * kPerBlock) blocks_.push_back(std::make_unique<T[]>(kPerBlock));
    T& added = (*this)[size_++];
    added = std::move(value);
    return added;
  }
  T& back() { return (*this)[size_ - 1]; }
  // Frees the memory.
  void clear() {
    blocks_.clear();
    blocks_.shrink_to_fit();
    size_ = 0;
  }

 private:
  static_assert((kPerBlock & (kPerBlock - 1)) == 0);
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace orla::model
