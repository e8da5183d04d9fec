#include "verify/csv_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace orla::verify {
namespace {

model::InputSpec debs() {
  model::InputSpec spec;
  spec.key = "edge-1/0";
  return spec;
}

// One line per row that is anything: "2 load{...}@<seconds>=<value> ..." or "3 malformed".
std::string show(const model::InputSpec& spec, const std::string& bytes) {
  auto rows = read_csv_rows(spec, base::bytes_in_memory(bytes));
  if (!rows.ok()) return std::string(rows.status().message());
  std::string out;
  Row row;
  for (;;) {
    const auto more = (*rows)->next(row);
    if (!more.ok()) return out + std::string(more.status().message());
    if (!*more) return out + fmt::format("{} lines", row.number);
    if (row.rejected != nullptr) out += fmt::format("{} {}\n", row.number, row.rejected);
    if (row.samples.empty()) continue;
    out += fmt::format("{}", row.number);
    for (const Row::Sample& s : row.samples) {
      out += fmt::format(" {}@{}={}", model::to_string((*rows)->series()[s.series]),
                         model::to_ns(s.time) / 1'000'000'000, s.value);
    }
    out += "\n";
  }
}

TEST(Debs2014Rows, ReadsTheSevenColumns) {
  EXPECT_EQ(show(debs(), "1,1377986401,68.451,0,11,0,0\r\n2,1377986401,19.927,1,11,0,0\n"),
            "1 work{house=0,household=0,plug=11}@1377986401=68.451\n"
            "2 load{house=0,household=0,plug=11}@1377986401=19.927\n"
            "2 lines");
}

TEST(Debs2014Rows, TheLastLineMayLackItsEndOrBeHalfWritten) {
  EXPECT_EQ(show(debs(), "1,5,1,1,2,3,4\n2,6,1,1,2,3,4"),
            "1 load{house=4,household=3,plug=2}@5=1\n2 load{house=4,household=3,plug=2}@6=1\n2 lines");
  EXPECT_EQ(show(debs(), "1,5,1,1,2,3,4\n2,6,1,1,2,"), "1 load{house=4,household=3,plug=2}@5=1\n2 malformed\n2 lines");
  EXPECT_EQ(show(debs(), ""), "0 lines");
}

TEST(Debs2014Rows, OneFaultOneRejection) {
  EXPECT_EQ(show(debs(),
                 "x,5,1,1,2,3,4\n"
                 "1,5,nan,1,2,3,4\n"
                 "1,5,-Infinity,1,2,3,4\n"
                 "1,5,1e999,1,2,3,4\n"
                 "1,5,,1,2,3,4\n"
                 "1,-5,1,1,2,3,4\n"
                 "1,99999999999,nan,1,2,3,4\n"
                 "\n"
                 "1,5,1,2,2,3,4\n"
                 "1,5,1,1,-2,3,4\n"
                 "1,5,1,1,2,3,4294967296\n"
                 "1,5,1,1,2,3\n"
                 "1,5,1,1,2,3,4,\n"
                 "1, 5,1,1,2,3,4\n"
                 "1,5,1,1,007,3,4\n"),
            "1 malformed\n2 not_finite\n3 not_finite\n4 not_finite\n5 malformed\n6 bad_time\n7 bad_time\n9 malformed\n"
            "10 malformed\n11 malformed\n12 malformed\n13 malformed\n14 bad_time\n"
            "15 load{house=4,household=3,plug=7}@5=1\n15 lines");
  EXPECT_EQ(show(debs(), std::string(70000, '1') + "\n1,5,1,1,2,3,4\n"),
            "1 too_long\n2 load{house=4,household=3,plug=2}@5=1\n2 lines");
}

TEST(Debs2014Rows, RowsNotSelectedAreNotThisInputs) {
  model::InputSpec spec = debs();
  spec.select = {{"house", {"4", "5"}}, {"plug", {"2"}}};
  EXPECT_EQ(show(spec,
                 "1,5,1,1,2,3,4\n"
                 "1,5,1,1,2,3,6\n"
                 "1,5,nan,1,2,3,6\n"  // readable labels, not selected
                 "1,5,nan,1,2,3,5\n"
                 "1,5,nan,1,2,3,x\n"  // labels that cannot be read count everywhere
                 "1,5,1,1,3,3,4\n"),
            "1 load{house=4,household=3,plug=2}@5=1\n4 not_finite\n5 not_finite\n6 lines");
}

model::InputSpec mapped() {
  model::InputSpec spec;
  spec.key = "edge-1/0";
  spec.schema = model::InputSpec::Schema::kMapping;
  spec.mapping.time_column = "time";
  spec.mapping.time_format = "unix";
  spec.mapping.labels = {{"room", "place"}};
  spec.mapping.values = {{"t", "temperature"}, {"h", "humidity"}};
  return spec;
}

TEST(MappedRows, AHeaderAndItsColumns) {
  model::InputSpec spec = mapped();
  spec.mapping.missing = {"", "-200"};
  spec.mapping.constant_labels = {{"building", "b"}};
  EXPECT_EQ(show(spec,
                 "\xef\xbb\xbf\n"
                 "humidity,time,place,temperature\n"
                 "40,100,\"kitchen, big\",20.5\n"
                 "-200,101,hall,21\n"
                 ",102,hall,-200.0\n"
                 "nan,103,hall,1\n"
                 "1,x,hall,1\n"
                 "1,104,hall\n"
                 "1,105,hall,2,3\n"
                 "1,106,\"hall,2\n"
                 "1,107,\xff,2\n"),
            "3 t{building=b,room=kitchen, big}@100=20.5 h{building=b,room=kitchen, big}@100=40\n"
            "4 t{building=b,room=hall}@101=21\n"
            "6 not_finite\n7 bad_time\n8 malformed\n9 malformed\n10 malformed\n11 bad_label\n11 lines");
}

TEST(MappedRows, WithoutAHeaderColumnsAreNumbers) {
  model::InputSpec spec = mapped();
  spec.mapping.header = false;
  spec.mapping.delimiter = ';';
  spec.mapping.decimal_mark = ',';
  spec.mapping.time_column = "1+2";
  spec.mapping.time_format = "%d/%m/%Y %H.%M.%S";
  spec.mapping.time_zone = "Europe/Berlin";
  spec.mapping.labels = {};
  spec.mapping.values = {{"co", "3"}};
  EXPECT_EQ(show(spec,
                 "10/03/2004;18.00.00;2,6;;\n"
                 "10/03/2004;19.00.00;2.6\n"
                 "10/03/2004;20.00.00\n"),
            "1 co@1078938000=2.6\n2 malformed\n3 malformed\n3 lines");
}

TEST(MappedRows, SelectionComesBeforeTimeAndValues) {
  model::InputSpec spec = mapped();
  spec.select = {{"room", {"hall"}}};
  EXPECT_EQ(show(spec, "time,place,temperature,humidity\nx,attic,nan,1\nx,hall,nan,1\n5,hall,1,2\n"),
            "3 bad_time\n4 t{room=hall}@5=1 h{room=hall}@5=2\n4 lines");
}

TEST(MappedRows, AnUnknownColumnIsAnError) {
  EXPECT_EQ(show(mapped(), "time,place,temp,humidity\n"), "there is not exactly one column \"temperature\"");
  EXPECT_EQ(show(mapped(), "time,place,temperature,humidity,place\n"), "there is not exactly one column \"place\"");
  EXPECT_EQ(show(mapped(), ""), "0 lines");
  model::InputSpec spec = mapped();
  spec.mapping.time_zone = "Mars/Olympus";
  EXPECT_EQ(show(spec, ""), "\"Mars/Olympus\" is not a known time zone");
}

}  // namespace
}  // namespace orla::verify
