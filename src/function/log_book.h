// What one function has said: its newest lines, and those who follow along.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "function/host.h"
#include "function/runtime.h"

namespace orla::function {

inline constexpr std::size_t kFollowerLines = 1'000;    // that wait for one follower; more are dropped, and it is told
inline constexpr std::size_t kFollowerBytes = 1 << 20;  // likewise

// Thread-safe. Holds next to nothing before the first line.
class LogBook final : public LogSink {
 public:
  struct Limits {
    std::size_t lines = 1'000;
    std::size_t bytes = 256 * 1024;
    std::size_t followers = 256;  // of all books that share `followers`
  };
  // `post` runs what it is given soon, on another thread, and like `clock` and `followers` (how many there are, of all
  // books) outlives the book and what was posted.
  using Post = std::function<void(std::function<void()>)>;
  LogBook(const base::Clock& clock, const Limits& limits, const Post& post, std::atomic<std::size_t>& followers)
      : clock_(clock), limits_(limits), post_(post), followers_(followers) {}

  // Never waits for a reader. A line longer than kMaxLogLineBytes is cut there, and says so.
  void line(std::string_view instance, std::string_view text) override;

  std::vector<LogLine> read(const LogQuery& query) const;
  // As Host::follow.
  absl::StatusOr<std::shared_ptr<void>> follow(std::function<void(const LogLine&)> line, std::function<void()> end);
  // The function is removed: followers are told, after what they have not read yet. Lines after that are kept nowhere.
  void close();

 private:
  class Follower;
  struct Kept {
    std::deque<LogLine> lines;
    std::size_t bytes = 0;
    std::uint64_t last = 0;  // number
    std::vector<std::weak_ptr<Follower>> followers;
  };
  Kept& kept();

  const base::Clock& clock_;
  const Limits& limits_;
  const Post& post_;
  std::atomic<std::size_t>& followers_;
  mutable std::mutex mutex_;
  std::unique_ptr<Kept> kept_;
  bool closed_ = false;
};

}  // namespace orla::function
