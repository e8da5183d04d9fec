// Taking batches of decimals allocates nothing once the engine knows its series and the slice is open. Every allocation
// of this binary is counted, by the operators below.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "stream/edge_for_tests.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto to = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(to, (bytes + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*nothrow*/) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace orla::stream::edge_tests {
namespace {

enum class Form { kPlain, kDecimals, kPaced };
enum class Order { kRuns, kSingles };

class EdgeAllocations : public testing::TestWithParam<std::tuple<Form, Order, std::size_t>> {
 protected:
  static constexpr std::uint32_t kPlugs = 50;
  static constexpr int kSamples = 100;  // of each plug in a batch, 10 ms apart

  static InputBatch batch(Form form, Order order, int number) {
    InputBatch out;
    if (number == 0)
      for (std::uint32_t p = 0; p < kPlugs; ++p) out.new_series.push_back(plug("load", 1, static_cast<int>(p)));
    model::Batch& b = out.samples;
    const auto add = [&](int i) {
      b.times.push_back(kStart + std::chrono::seconds(number) + std::chrono::milliseconds(10 * i));
      if (form == Form::kPlain)
        b.values.push_back(i % 1000 / 10.0);
      else
        b.scaled.push_back(i % 1000);
    };
    b.decimals = form == Form::kPlain ? 0 : 1;
    if (order == Order::kRuns) {
      for (std::uint32_t p = 0; p < kPlugs; ++p) {
        b.runs.push_back({model::SeriesId{p}, p * kSamples, (p + 1) * kSamples});
        for (int i = 0; i < kSamples; ++i) add(i);
      }
    } else {
      for (std::uint32_t i = 0; i < kSamples * kPlugs; ++i) {
        b.runs.push_back({model::SeriesId{i % kPlugs}, i, i + 1});
        add(static_cast<int>(i / kPlugs));
      }
    }
    if (form == Form::kPaced) {
      for (const model::Batch::Run& run : b.runs)
        b.paces.push_back({b.times[run.begin], std::chrono::milliseconds(run.end - run.begin > 1 ? 10 : 0)});
      b.times.clear();
    }
    out.received = b.size();
    out.position = {static_cast<std::uint64_t>(number) + 1, static_cast<std::uint64_t>(number) + 1};
    return out;
  }
};

TEST_P(EdgeAllocations, NoneWhileASliceIsFilled) {
  const auto [form, order, shards] = GetParam();
  const model::Plan plan = make_test_plan();
  ThreadShards workers(shards);
  EdgeEngine engine(plan, keys(plan), EngineLimits{}, &workers);
  std::vector<InputBatch> batches;
  for (int i = 0; i < 50; ++i) batches.push_back(batch(form, order, i));  // one minute is a slice
  ASSERT_TRUE(engine.apply(0, batches[0], Time{}).ok());
  ASSERT_TRUE(engine.apply(0, batches[1], Time{}).ok());
  const std::uint64_t before = allocations.load();
  EXPECT_GT(before, 0U) << "allocations are not counted";
  bool ok = true;
  for (std::size_t i = 2; i < batches.size(); ++i) ok = engine.apply(0, batches[i], Time{}).ok() && ok;
  const std::uint64_t after = allocations.load();
  EXPECT_TRUE(ok);
  EXPECT_EQ(after - before, 0U);
  EXPECT_EQ(engine.input(0).ledger.aggregated, batches.size() * kPlugs * kSamples);
}

INSTANTIATE_TEST_SUITE_P(Forms, EdgeAllocations,
                         testing::Combine(testing::Values(Form::kPlain, Form::kDecimals, Form::kPaced),
                                          testing::Values(Order::kRuns, Order::kSingles), testing::Values(1, 3)));

}  // namespace
}  // namespace orla::stream::edge_tests
