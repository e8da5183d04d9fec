// What a partial costs on its way: encoded by a child, decoded and merged by an aggregator.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "codec/rows.h"
#include "model/partial.h"

namespace {

constexpr std::uint32_t kRows = 20'000;

orla::model::PartialRows made(std::uint32_t first) {
  orla::model::PartialRows rows;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    orla::model::PartialRow row;
    row.group = orla::model::GroupId{first + 2 * i};
    row.slice = orla::model::from_ns(1'380'585'600'000'000'000);
    for (int k = 0; k < 10; ++k) {
      row.partial.add(row.slice + std::chrono::seconds(k),
                      static_cast<double>((i * 31U + static_cast<unsigned>(k) * 7U) % 4000U), 0);
    }
    rows.push_back(row);
  }
  return rows;
}

void encode(benchmark::State& state) {
  const orla::model::PartialRows rows = made(0);
  for (auto _ : state) benchmark::DoNotOptimize(orla::codec::encode_rows(rows));
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(encode);

void decode(benchmark::State& state) {
  const std::string bytes = orla::codec::encode_rows(made(0));
  for (auto _ : state) benchmark::DoNotOptimize(orla::codec::decode_rows(bytes));
  state.SetItemsProcessed(state.iterations() * kRows);
  state.counters["bytes_per_row"] = static_cast<double>(bytes.size()) / kRows;
}
BENCHMARK(decode);

void merge_two(benchmark::State& state) {
  const orla::model::PartialRows one = made(0);
  const orla::model::PartialRows two = made(1);
  for (auto _ : state) {
    orla::model::PartialRows all = one;
    all.insert(all.end(), two.begin(), two.end());
    orla::model::canonicalize(all);
    benchmark::DoNotOptimize(all);
  }
  state.SetItemsProcessed(state.iterations() * 2 * kRows);
}
BENCHMARK(merge_two);

}  // namespace
