// What child processes print, as lines of a function's log.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/file_descriptor.h"
#include "function/options.h"
#include "function/runtime.h"

namespace orla::function {

// Cuts a stream into lines. A line longer than log_buffer_bytes keeps its beginning and says how much was cut. With
// prefix_logs each begins with "stderr: " (or "stdout: "), with log_call_id "[ID] " comes after that.
class LineLog {
 public:
  // `sink` may be null: lines are dropped.
  LineLog(LogSink* sink, std::string instance, std::string_view stream, const FunctionOptions& options,
          std::string_view call_id);
  void feed(std::string_view bytes);
  // The stream ended: what is left is a line.
  void finish();

 private:
  void emit();

  LogSink* const sink_;
  const std::string instance_;
  std::string prefix_;
  std::size_t most_;
  std::string line_;
  std::uint64_t cut_ = 0;  // bytes of the line that did not fit
};

// Reads pipes of long-lived children on one thread. Thread-safe.
class LogReader {
 public:
  LogReader();
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Reads `fd` (not blocking) into `log` until its end or remove(). Returns its number.
  std::uint64_t add(base::FileDescriptor fd, LineLog log);
  // Takes what is there, then lets go of it.
  void remove(std::uint64_t number);

 private:
  struct Source {
    base::FileDescriptor fd;
    LineLog log;
  };
  void run();
  // False: it has ended.
  static bool read_some(Source& source);

  base::FileDescriptor epoll_;
  base::FileDescriptor wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, Source> sources_;  // guarded by mutex_, as is next_
  std::uint64_t next_ = 1;                   // 0 is the wake-up
  std::thread thread_;                       // last: it uses all above
};

}  // namespace orla::function
