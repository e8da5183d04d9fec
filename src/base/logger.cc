#include "base/logger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "base/utf8.h"

namespace orla::base {

namespace {

// "2013-09-01T00:00:00.123Z"
std::string timestamp(WallTime now) {
  using std::chrono::floor;
  const auto seconds = floor<std::chrono::seconds>(now);
  const auto milliseconds = floor<std::chrono::milliseconds>(now - seconds).count();
  const auto time = std::chrono::system_clock::to_time_t(seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(time), milliseconds);
}

// JSON's escapes (RFC 8259, section 7); quotes and backslashes only inside a JSON string.
void append_escaped(std::string& out, std::string_view text, LogFormat format) {
  for (const char c : to_utf8(text)) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\\':
        if (format == LogFormat::kJson) out += '\\';
        out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "?";
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (const LogLevel level : {LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug}) {
    if (text == to_string(level)) return level;
  }
  return std::nullopt;
}

StreamLogger::StreamLogger(const Clock& clock, std::string node, LogLevel level, LogFormat format, int fd)
    : clock_(clock), node_(std::move(node)), level_(level), format_(format), fd_(fd) {}

void StreamLogger::write(LogLevel level, std::string_view message) {
  const std::string time = timestamp(clock_.wall_now());
  std::string line;
  line.reserve(message.size() + node_.size() + 64);
  if (format_ == LogFormat::kJson) {
    line += fmt::format(R"({{"time":"{}","level":"{}","node":")", time, to_string(level));
    append_escaped(line, node_, format_);
    line += R"(","message":")";
    append_escaped(line, message, format_);
    line += "\"}\n";
  } else {
    line += fmt::format("{} {:<5} ", time, to_string(level));
    if (!node_.empty()) {
      append_escaped(line, node_, format_);
      line += "  ";
    }
    append_escaped(line, message, format_);
    line += '\n';
  }
  const std::lock_guard lock(mutex_);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // there is no one left to tell
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace orla::base
