#include "function/time_limit.h"

#include <gtest/gtest.h>

namespace orla::function {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(TimeLimit, IsLoweredByTheHeaderAndNeverRaised) {
  struct Case {
    nanoseconds exec_timeout;
    const char* header;  // null: none
    nanoseconds limit;
  };
  const Case cases[] = {{seconds(10), nullptr, seconds(10)},
                        {seconds(10), "300ms", milliseconds(300)},
                        {seconds(10), "2", seconds(2)},
                        {seconds(10), "1m", seconds(10)},
                        {seconds(10), "0", seconds(10)},
                        {seconds(10), "-1s", seconds(10)},
                        {seconds(10), "soon", seconds(10)},
                        {seconds(10), "", seconds(10)},
                        {seconds(0), nullptr, seconds(0)},
                        {seconds(0), "5s", seconds(5)},
                        {seconds(10), "999999999999h", seconds(10)}};
  for (const Case& c : cases) {
    FunctionOptions options;
    options.exec_timeout = c.exec_timeout;
    CallHead head;
    if (c.header != nullptr) head.headers = {{"x-timeout", c.header}};
    EXPECT_EQ(time_limit(head, options), c.limit) << (c.header == nullptr ? "no header" : c.header);
  }
}

}  // namespace
}  // namespace orla::function
