#include "commands.h"

namespace orla::apps {

void add_log_options(CLI::App& command, LogOptions& options) {
  command.add_option("--log-level", options.level, "error, warn, info or debug")
      ->check(CLI::IsMember({"error", "warn", "info", "debug"}))
      ->capture_default_str();
  command.add_flag("--log-json", options.json, "Log one JSON object a line");
}

}  // namespace orla::apps
