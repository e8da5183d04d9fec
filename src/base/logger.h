// The seam to the log: lines for the people who run a node. Passed by reference through constructors.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace orla::base {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

// "error", "warn", "info", "debug"
std::string_view to_string(LogLevel level);
std::optional<LogLevel> parse_log_level(std::string_view text);

// Thread-safe. Outlives every part it is given to.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual bool enabled(LogLevel level) const = 0;
  // One entry, whatever the message holds. Called only for enabled levels.
  virtual void write(LogLevel level, std::string_view message) = 0;

  // logger.warn("parent {} at {} is gone: {}", name, address, reason)
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kError, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kWarn, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(level)) write(level, fmt::vformat(format, fmt::make_format_args(args...)));
  }
};

enum class LogFormat : std::uint8_t { kText, kJson };

// Lines to a file descriptor, each in one write. Text: "2013-09-01T00:00:00.123Z warn  edge-1  the message"; a control
// character in a message is written as an escape, so an entry is one line. JSON: one object a line with the strings
// "time", "level", "node", "message".
class StreamLogger final : public Logger {
 public:
  // `node` is who speaks. `fd` (2 is stderr) is borrowed.
  StreamLogger(const Clock& clock, std::string node, LogLevel level, LogFormat format, int fd = 2);
  bool enabled(LogLevel level) const override { return level <= level_; }
  void write(LogLevel level, std::string_view message) override;

 private:
  const Clock& clock_;
  const std::string node_;
  const LogLevel level_;
  const LogFormat format_;
  const int fd_;
  std::mutex mutex_;  // keeps lines whole where one write is not enough
};

// Says nothing.
class SilentLogger final : public Logger {
 public:
  bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, std::string_view) override {}
};

}  // namespace orla::base
