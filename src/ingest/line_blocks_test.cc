#include "ingest/line_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "ingest/input.h"

namespace orla::ingest {
namespace {

// All lines without \n; "<long>" stands for one that is too long.
std::vector<std::string> lines_of(LineBlocks& blocks) {
  std::vector<std::string> lines;
  LineBlock block;
  for (;;) {
    const model::Position before = blocks.position();
    const absl::Status status = blocks.next(block);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return lines;
    EXPECT_GE(block.at.offset, before.offset);
    EXPECT_EQ(block.after, blocks.position());
    if (block.too_long) lines.emplace_back("<long>");
    std::uint64_t rows = 0;
    for (std::size_t at = 0; at < block.lines.size(); ++rows) {
      EXPECT_EQ(block.position(at, rows).offset, block.at.offset + at);
      const std::size_t end = block.lines.find('\n', at);
      if (end == std::string_view::npos) {
        ADD_FAILURE() << "half a line in a block";
        return lines;
      }
      lines.emplace_back(block.lines.substr(at, end - at));
      at = end + 1;
    }
    EXPECT_EQ(block.at.row + rows + (block.too_long ? 1 : 0), block.after.row);
    if (block.is_last) return lines;
    EXPECT_TRUE(block.too_long || rows > 0);
  }
}

LineBlocks blocks_of(std::string text, std::size_t piece = 1 << 20, std::size_t block_bytes = 1 << 20) {
  return LineBlocks(base::bytes_in_memory(std::move(text), piece), block_bytes);
}

TEST(LineBlocks, CutsLinesHoweverTheBytesCome) {
  const std::string text = "a,b\n\nc\r\n\n last";
  for (const std::size_t piece : {1, 2, 3, 5, 100}) {
    for (const std::size_t block_bytes : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 100}) {
      LineBlocks blocks = blocks_of(text, piece, block_bytes);
      EXPECT_EQ(lines_of(blocks), (std::vector<std::string>{"a,b", "", "c\r", "", " last"}));
      EXPECT_EQ(blocks.position(), (model::Position{text.size(), 5}));
    }
  }
}

TEST(LineBlocks, EmptyAndUnterminated) {
  LineBlocks empty = blocks_of("");
  EXPECT_TRUE(lines_of(empty).empty());
  EXPECT_EQ(empty.position(), model::Position{});
  LineBlocks one = blocks_of("x");
  EXPECT_EQ(lines_of(one), std::vector<std::string>{"x"});
  EXPECT_EQ(one.position(), (model::Position{1, 1}));
  LineBlocks newline = blocks_of("\n");
  EXPECT_EQ(lines_of(newline), std::vector<std::string>{""});
  EXPECT_EQ(newline.position(), (model::Position{1, 1}));
}

TEST(LineBlocks, ByteOrderMarkAtTheStartOnly) {
  const std::string bom = "\xef\xbb\xbf";
  for (const std::size_t piece : {1, 2, 100}) {
    for (const std::size_t block_bytes : {1, 4, 100}) {
      LineBlocks blocks = blocks_of(bom + "a\n" + bom + "b\n", piece, block_bytes);
      EXPECT_EQ(lines_of(blocks), (std::vector<std::string>{"a", bom + "b"}));
      EXPECT_EQ(blocks.position(), (model::Position{10, 2}));
    }
  }
  LineBlocks alone = blocks_of(bom);
  EXPECT_TRUE(lines_of(alone).empty());
  EXPECT_EQ(alone.position(), (model::Position{3, 0}));
  LineBlocks part = blocks_of("\xef\xbb");
  EXPECT_EQ(lines_of(part), std::vector<std::string>{"\xef\xbb"});
}

TEST(LineBlocks, LinesAtTheLimit) {
  const std::string longest(kMaxLineBytes, 'x');
  const std::string text = "a\n" + longest + "\r\n" + std::string(5 * kMaxLineBytes, 'y') + "\nb\n";
  for (const std::size_t piece : {1000, 1 << 20}) {
    for (const std::size_t block_bytes : {std::size_t{1}, kMaxLineBytes / 3, 2 * kMaxLineBytes}) {
      LineBlocks blocks = blocks_of(text, piece, block_bytes);
      EXPECT_EQ(lines_of(blocks), (std::vector<std::string>{"a", longest + "\r", "<long>", "b"}));
      EXPECT_EQ(blocks.position(), (model::Position{text.size(), 4}));
      LineBlocks last = blocks_of("a\n" + std::string(5 * kMaxLineBytes, 'y'), piece, block_bytes);
      EXPECT_EQ(lines_of(last), (std::vector<std::string>{"a", "<long>"}));
      EXPECT_EQ(last.position(), (model::Position{2 + 5 * kMaxLineBytes, 2}));
    }
  }
  // Blocks hold some lines over the limit as well: those are given, and the parsers refuse them.
  LineBlocks whole = blocks_of(text, 1 << 20, 1 << 20);
  EXPECT_EQ(lines_of(whole)[2], std::string(5 * kMaxLineBytes, 'y'));
}

TEST(LineBlocks, GoesOnFromAnyPosition) {
  std::string text;
  std::vector<std::string> all;
  std::vector<model::Position> positions = {{}};
  for (int i = 0; i < 200; ++i) {
    all.push_back(std::to_string(i * i));
    text += all.back() + "\n";
    positions.push_back({text.size(), positions.size()});
  }
  text += "end";
  all.emplace_back("end");
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::vector<std::string> rest(all.begin() + static_cast<std::ptrdiff_t>(i), all.end());
    LineBlocks fresh = blocks_of(text, 64, 100);
    ASSERT_TRUE(fresh.go_to(positions[i]).ok());
    EXPECT_EQ(lines_of(fresh), rest);
    EXPECT_EQ(fresh.position(), (model::Position{text.size(), 201}));
    // After some lines of the first block were taken.
    LineBlocks begun = blocks_of(text, 64, 100);
    LineBlock block;
    ASSERT_TRUE(begun.next(block).ok());
    begun.give_back(block, 2, 1);
    EXPECT_EQ(begun.position(), (model::Position{2, 1}));
    if (i == 0) continue;
    ASSERT_TRUE(begun.go_to(positions[i]).ok());
    EXPECT_EQ(lines_of(begun), rest);
  }
  LineBlocks blocks = blocks_of(text);
  EXPECT_EQ(blocks.go_to({text.size() + 1, 5}).code(), absl::StatusCode::kOutOfRange);
  LineBlocks whole = blocks_of("a\nb");
  LineBlock block;
  ASSERT_TRUE(whole.next(block).ok());
  whole.give_back(block, 2, 1);
  EXPECT_EQ(lines_of(whole), std::vector<std::string>{"b"});
  EXPECT_EQ(whole.position(), (model::Position{3, 2}));
  EXPECT_EQ(whole.go_to({1, 1}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(LineBlocks, CountsLines) {
  base::SeededRandom random(3);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += random.below(4) == 0 ? '\n' : static_cast<char>(random.below(256));
  for (std::size_t begin = 0; begin < 70; ++begin) {
    for (std::size_t size = 0; begin + size <= text.size(); size += 1 + size / 7) {
      const std::string_view part = std::string_view(text).substr(begin, size);
      EXPECT_EQ(count_lines(part), static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n')));
    }
  }
}

}  // namespace
}  // namespace orla::ingest
