// Any bytes as a DEBS 2014 file: every promise of a batch is kept, the fast path gives what the careful one gives, and
// neither the cutting of the bytes nor stopping and going on changes anything.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/byte_source.h"
#include "ingest/csv_debs.h"
#include "ingest/read_all.h"

namespace {

using namespace orla::ingest;

std::unique_ptr<Input> open(const std::string& text, DebsPath path, std::size_t piece, BatchLimits limits,
                            const orla::model::Position& from = {}) {
  auto parser = make_debs_parser(Selection(Selection::Accepted{{"household", {"0", "1"}}}), path);
  auto input = make_csv_input(orla::base::bytes_in_memory(text, piece), "x", std::move(parser), "e/0", limits, from);
  if (!input.ok()) std::abort();
  return *std::move(input);
}

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 61;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);

  const Everything whole = read_all(*open(text, DebsPath::kFast, text.size() + 1, {.rows = 1000}));
  require(whole.broken.empty(), whole.broken.c_str());
  require(whole.status.ok(), "a plain file has no errors");
  require(whole.position.offset == text.size(), "everything is read");
  require(same_but_status(whole, read_all(*open(text, DebsPath::kCareful, piece, {.rows = 1000}))), "both paths agree");

  std::vector<orla::model::Position> positions;
  const BatchLimits small{.rows = 1 + piece % 3};
  const Everything cut = read_all(*open(text, DebsPath::kFast, piece, small), &positions);
  require(cut.broken.empty(), cut.broken.c_str());
  require(same_but_status(whole, cut), "small batches and pieces change nothing");

  const std::size_t stride = 1 + positions.size() / 3;
  for (std::size_t i = 0; i < positions.size(); i += stride) {
    Everything both;
    std::vector<std::string> series;
    orla::model::InputBatch batch;
    auto first = open(text, DebsPath::kFast, piece, small);
    for (std::size_t k = 0; k <= i; ++k) {
      require(*first->next(batch), "as many batches as before");
      add_batch(both, series, batch);
    }
    auto second = open(text, DebsPath::kFast, piece, {.rows = 1000}, positions[i]);
    series.clear();
    while (*second->next(batch)) add_batch(both, series, batch);
    require(both.broken.empty(), both.broken.c_str());
    require(same_but_status(whole, both), "going on gives what would have followed");
  }
  return 0;
}
