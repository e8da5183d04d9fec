// What long-lived child processes print, as lines of a function's log.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "base/file_descriptor.h"
#include "function/log_lines.h"

namespace orla::function {

// Reads pipes of long-lived children on one thread. Thread-safe.
class LogReader {
 public:
  LogReader();
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Reads `fd` (not blocking) into `log` until its end or remove(). Returns its number.
  std::uint64_t add(base::FileDescriptor fd, LogLines log);
  // Takes what is there, then lets go of it.
  void remove(std::uint64_t number);

 private:
  struct Source {
    base::FileDescriptor fd;
    LogLines log;
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
