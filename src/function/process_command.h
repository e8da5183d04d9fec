// What a process function runs, and in which environment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "function/call.h"
#include "function/runtime.h"

namespace orla::function {

struct Command {
  std::string program;            // a path
  std::vector<std::string> argv;  // at least one
  std::string directory;          // where it runs
};

// `image` is an executable file or a directory. `env_process` is split at single spaces, as the watchdog does. In a
// directory its first word is looked up in the directory, then in `path` (of PATH). With a file it is that file's own
// name or another program's, looked up in the same way; empty: the file alone. INVALID_ARGUMENT.
absl::StatusOr<Command> make_command(const std::filesystem::path& image, std::string_view env_process,
                                     std::string_view path);

// "NAME=value" of every call: PATH, LANG and TZ of `own`, HOME, then what the spec says.
std::vector<std::string> function_environment(const FunctionSpec& spec, const base::Environment& own);
// The value of `name` there; empty: none.
std::string_view value_in(const std::vector<std::string>& environment, std::string_view name);

}  // namespace orla::function
