// What a function writes to its standard error, as lines for a LogSink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "function/runtime.h"

namespace orla::function {

// Ends a line of which the rest was left out.
inline constexpr std::string_view kLogLineCut = " ... (line cut)";

// Collects pieces until a line is whole. A longer line than the function's log_buffer_size is cut and marked. With
// prefix_logs a line begins with `stream` ("stderr: "), where one is given. Not thread-safe; what it refers to outlives
// it.
class LogLines {
 public:
  LogLines(LogSink* sink, std::string_view instance, std::string_view call_id, const FunctionOptions& options,
           std::string_view stream = {});
  void write(std::string_view piece);
  // What is left is a line too.
  void end();

 private:
  void emit();

  LogSink* sink_;  // null: nobody listens
  std::string_view instance_;
  std::string prefix_;
  std::size_t most_;
  std::string line_;
  bool any_ = false;  // of the line, also when it is empty so far
  bool cut_ = false;
};

}  // namespace orla::function
