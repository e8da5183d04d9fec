// Any bytes as a CSV file under one of several mappings: every promise of a batch is kept, and neither the cutting of
// the bytes nor stopping and going on changes anything. The first byte chooses the mapping, the second the pieces.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/byte_source.h"
#include "ingest/csv_mapping.h"
#include "ingest/read_all.h"

namespace {

using namespace orla::ingest;

orla::model::CsvMapping mapping_of(unsigned choice) {
  static constexpr const char* kFormats[] = {"unix", "rfc3339", "%Y-%m-%d %H:%M:%S", "unix_ms",
                                             "%d/%m/%Y %H.%M.%E*S %z"};
  orla::model::CsvMapping m;
  m.header = (choice & 1) == 0;
  m.delimiter = (choice & 2) == 0 ? ',' : ';';
  m.decimal_mark = (choice & 4) == 0 ? '.' : ',';
  m.time_column = (choice & 8) == 0 ? "1" : "1+2";
  m.time_format = kFormats[(choice >> 4) % 5];
  m.time_zone = "Europe/Berlin";
  m.missing = {"", "NA", "-200"};
  m.labels = {{"room", "2"}};
  m.constant_labels = {{"building", "A"}};
  m.values = {{"temperature", "3"}, {"humidity", "4"}, {"temperature", "4"}};
  return m;
}

absl::StatusOr<std::unique_ptr<Input>> open(const orla::model::CsvMapping& mapping, const std::string& text,
                                            std::size_t piece, BatchLimits limits,
                                            const orla::model::Position& from = {}) {
  auto parser = make_mapping_parser(mapping, Selection(Selection::Accepted{{"building", {"A"}}}));
  if (!parser.ok()) std::abort();
  return make_csv_input(orla::base::bytes_in_memory(text, piece), "x", *std::move(parser), "e/0", limits, from);
}

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  const orla::model::CsvMapping mapping = mapping_of(data[0]);
  const std::size_t piece = 1 + data[1] % 61;
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);

  auto input = open(mapping, text, text.size() + 1, {.rows = 1000});
  if (!input.ok()) return 0;  // a header that does not fit
  const Everything whole = read_all(**input);
  require(whole.broken.empty(), whole.broken.c_str());
  require(whole.status.ok(), "a plain file has no errors");
  require(whole.position.offset == text.size(), "everything is read");

  std::vector<orla::model::Position> positions;
  const BatchLimits small{.rows = 1 + piece % 3};
  auto pieces = open(mapping, text, piece, small);
  require(pieces.ok(), "the header reads the same in pieces");
  const Everything cut = read_all(**pieces, &positions);
  require(cut.broken.empty(), cut.broken.c_str());
  require(same_but_status(whole, cut), "small batches and pieces change nothing");

  const std::size_t stride = 1 + positions.size() / 3;
  for (std::size_t i = 0; i < positions.size(); i += stride) {
    Everything both;
    std::vector<std::string> series;
    orla::model::InputBatch batch;
    auto first = open(mapping, text, piece, small);
    for (std::size_t k = 0; k <= i; ++k) {
      require(*(*first)->next(batch), "as many batches as before");
      add_batch(both, series, batch);
    }
    auto second = open(mapping, text, piece, {.rows = 1000}, positions[i]);
    require(second.ok(), "it goes on from its own positions");
    series.clear();
    while (*(*second)->next(batch)) add_batch(both, series, batch);
    require(both.broken.empty(), both.broken.c_str());
    require(same_but_status(whole, both), "going on gives what would have followed");
  }
  return 0;
}
