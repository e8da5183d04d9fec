#include "ingest/line_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/input.h"

namespace orla::ingest {
namespace {

// All lines without \n; "<long>" stands for one that is too long.
std::vector<std::string> lines_of(LineReader& reader) {
  std::vector<std::string> lines;
  for (;;) {
    absl::StatusOr<LineReader::Block> block = reader.next();
    EXPECT_TRUE(block.ok()) << block.status();
    if (!block.ok() || block->at_end()) return lines;
    if (block->too_long) {
      lines.emplace_back("<long>");
      continue;
    }
    // One line of the block at a time: the rest comes again.
    const std::size_t size = block->lines.find('\n') + 1;
    lines.emplace_back(block->lines.substr(0, size - 1));
    reader.consume(size, 1);
  }
}

LineReader reader_of(std::string text, std::size_t piece = 1 << 20) {
  return LineReader(base::bytes_in_memory(std::move(text), piece));
}

TEST(LineReader, CutsLinesHoweverTheBytesCome) {
  const std::string text = "a,b\n\nc\r\n\n last";
  for (const std::size_t piece : {1, 2, 3, 5, 100}) {
    LineReader reader = reader_of(text, piece);
    EXPECT_EQ(lines_of(reader), (std::vector<std::string>{"a,b", "", "c\r", "", " last"}));
    EXPECT_EQ(reader.position(), (model::Position{text.size(), 5}));
  }
}

TEST(LineReader, EmptyAndUnterminated) {
  LineReader empty = reader_of("");
  EXPECT_TRUE(lines_of(empty).empty());
  EXPECT_EQ(empty.position(), model::Position{});
  LineReader one = reader_of("x");
  EXPECT_EQ(lines_of(one), std::vector<std::string>{"x"});
  EXPECT_EQ(one.position(), (model::Position{1, 1}));
  LineReader newline = reader_of("\n");
  EXPECT_EQ(lines_of(newline), std::vector<std::string>{""});
  EXPECT_EQ(newline.position(), (model::Position{1, 1}));
}

TEST(LineReader, ByteOrderMarkAtTheStartOnly) {
  const std::string bom = "\xef\xbb\xbf";
  for (const std::size_t piece : {1, 2, 100}) {
    LineReader reader = reader_of(bom + "a\n" + bom + "b\n", piece);
    EXPECT_EQ(lines_of(reader), (std::vector<std::string>{"a", bom + "b"}));
    EXPECT_EQ(reader.position(), (model::Position{10, 2}));
  }
  LineReader alone = reader_of(bom);
  EXPECT_TRUE(lines_of(alone).empty());
  LineReader part = reader_of("\xef\xbb");
  EXPECT_EQ(lines_of(part), std::vector<std::string>{"\xef\xbb"});
}

TEST(LineReader, LinesAtTheLimit) {
  const std::string longest(kMaxLineBytes, 'x');
  for (const std::size_t piece : {1000, 1 << 20}) {
    // Buffers hold some lines over the limit as well: those are given, and the parsers refuse them.
    LineReader reader = reader_of("a\n" + longest + "\r\n" + std::string(5 * kMaxLineBytes, 'y') + "\nb\n", piece);
    EXPECT_EQ(lines_of(reader), (std::vector<std::string>{"a", longest + "\r", "<long>", "b"}));
    EXPECT_EQ(reader.position(), (model::Position{2 + kMaxLineBytes + 2 + 5 * kMaxLineBytes + 1 + 2, 4}));
  }
  LineReader last = reader_of("a\n" + std::string(5 * kMaxLineBytes, 'y'), 4096);
  EXPECT_EQ(lines_of(last), (std::vector<std::string>{"a", "<long>"}));
  EXPECT_EQ(last.position(), (model::Position{2 + 5 * kMaxLineBytes, 2}));
}

TEST(LineReader, GoesOnFromAnyPosition) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::to_string(i * i) + "\n";
  text += "end";
  std::vector<model::Position> positions = {{}};
  std::vector<std::string> all;
  {
    LineReader reader = reader_of(text, 64);
    for (;;) {
      absl::StatusOr<LineReader::Block> block = reader.next();
      if (block->at_end()) break;
      const std::size_t size = block->lines.find('\n') + 1;
      all.emplace_back(block->lines.substr(0, size - 1));
      reader.consume(size, 1);
      positions.push_back(reader.position());
    }
  }
  ASSERT_EQ(all.size(), 201U);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    LineReader reader = reader_of(text, 64);
    if (i > 0) {
      ASSERT_TRUE(reader.next().ok());  // something is in the buffer
      ASSERT_TRUE(reader.go_to(positions[i]).ok());
    }
    EXPECT_EQ(lines_of(reader), std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(i), all.end()));
    EXPECT_EQ(reader.position(), (model::Position{text.size(), 201}));
  }
  LineReader reader = reader_of(text);
  EXPECT_EQ(reader.go_to({text.size() + 1, 5}).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace orla::ingest
