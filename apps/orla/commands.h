// The commands of `orla`. Each adds itself to the command line and says what to run; main picks the one that was asked.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace orla::apps {

// Exit codes, the same for every command (docs/cli.md).
enum ExitCode : int {
  kOk = 0,
  kDifferent = 1,     // --verify found a difference or compared nothing; an outbox is damaged; a wrong benchmark; a
                      // called function answered 400 or more
  kUsage = 2,         // the command line or the fleet file is wrong
  kDrainTimeout = 3,  // what was read did not reach the cloud in time
  kFailed = 4,        // something broke: the message says what
  kLeftBehind = 5,    // a memory-only edge stopped with samples the cloud has not acknowledged
};

struct Chosen {
  std::function<int()> run;
};

// How a command logs; options shared by those that run nodes.
struct LogOptions {
  std::string level = "info";
  bool json = false;
};
void add_log_options(CLI::App& command, LogOptions& options);

void add_up(CLI::App& app, Chosen& chosen);
void add_node(CLI::App& app, Chosen& chosen);
void add_check(CLI::App& app, Chosen& chosen);
void add_settings(CLI::App& app, Chosen& chosen);
void add_status(CLI::App& app, Chosen& chosen);
void add_query(CLI::App& app, Chosen& chosen);
void add_generate(CLI::App& app, Chosen& chosen);
void add_forecast(CLI::App& app, Chosen& chosen);
void add_outbox(CLI::App& app, Chosen& chosen);
void add_fn(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_version(CLI::App& app, Chosen& chosen);

}  // namespace orla::apps
