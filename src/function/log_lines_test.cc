#include "function/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orla::function {
namespace {

using ::testing::ElementsAre;

struct Kept final : LogSink {
  void line(std::string_view instance, std::string_view text) override {
    lines.push_back(std::string(instance) + ":" + std::string(text));
  }
  std::vector<std::string> lines;
};

TEST(LogLines, JoinsPiecesAndSplitsAtLineEnds) {
  Kept kept;
  LogLines lines(&kept, "f-1", "", {});
  lines.write("a");
  lines.write("b\r\n\nc");
  EXPECT_THAT(kept.lines, ElementsAre("f-1:ab", "f-1:"));
  lines.end();
  lines.end();
  EXPECT_THAT(kept.lines, ElementsAre("f-1:ab", "f-1:", "f-1:c"));
}

TEST(LogLines, CutsALongLineAndKeepsTheNext) {
  Kept kept;
  FunctionOptions options;
  options.log_buffer_bytes = 4;
  LogLines lines(&kept, "f-1", "", options);
  for (int i = 0; i < 1000; ++i) lines.write("xyz");
  lines.write("\nnext\n");
  EXPECT_THAT(kept.lines, ElementsAre("f-1:xyzx ... (line cut)", "f-1:next"));
}

TEST(LogLines, UnlimitedIsStillBounded) {
  Kept kept;
  FunctionOptions options;
  options.log_buffer_bytes = -1;
  LogLines lines(&kept, "f", "", options);
  lines.write(std::string(3 << 20, 'x'));
  lines.end();
  ASSERT_EQ(kept.lines.size(), 1U);
  EXPECT_EQ(kept.lines[0].size(), 2 + kMaxLogLineBytes);
}

TEST(LogLines, SaysTheCallWhenAsked) {
  Kept kept;
  FunctionOptions options;
  options.log_call_id = true;
  LogLines lines(&kept, "f", "id-7", options);
  lines.write("hello\n");
  EXPECT_THAT(kept.lines, ElementsAre("f:[id-7] hello"));
}

}  // namespace
}  // namespace orla::function
