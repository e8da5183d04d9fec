#include "link/send_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace orla::link {
namespace {

std::string drained(SendQueue<char>& queue) {
  std::string all;
  while (!queue.empty()) all += queue.pop();
  return all;
}

TEST(SendQueue, KeepsTheOrderAndCountsBytes) {
  SendQueue<char> queue;
  EXPECT_TRUE(queue.push('h', 1, Precedence::kGreeting));
  EXPECT_TRUE(queue.push('a', 10, Precedence::kData));
  EXPECT_TRUE(queue.push('b', 100, Precedence::kData));
  EXPECT_EQ(queue.bytes(), 111u);
  EXPECT_EQ(queue.pop(), 'h');
  EXPECT_EQ(queue.bytes(), 110u);
  EXPECT_EQ(drained(queue), "ab");
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST(SendQueue, AHeartbeatOvertakesDataButNoGreetingAndIsNotDoubled) {
  SendQueue<char> queue;
  queue.push('h', 1, Precedence::kGreeting);
  queue.push('a', 1, Precedence::kData);
  EXPECT_TRUE(queue.push('.', 1, Precedence::kHeartbeat));
  EXPECT_FALSE(queue.push('.', 1, Precedence::kHeartbeat));
  queue.push('b', 1, Precedence::kData);
  EXPECT_EQ(queue.bytes(), 4u);
  EXPECT_EQ(drained(queue), "h.ab");
  EXPECT_TRUE(queue.push('.', 1, Precedence::kHeartbeat));
  EXPECT_EQ(drained(queue), ".");
}

}  // namespace
}  // namespace orla::link
