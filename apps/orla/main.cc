#include <cstdio>
#include <exception>

#include "commands.h"

namespace {

constexpr char kAbout[] =
    "Orla aggregates sensor streams where they are produced, exactly once, from edge to cloud.\n\n"
    "First steps:\n"
    "  orla up examples/smart-grid/fleet.toml --for 60s --verify   run a whole fleet here\n"
    "  orla check fleet.toml                                       find every mistake in a fleet file\n"
    "  orla settings                                               all settings of a fleet file\n"
    "  orla fn --help                                              deploy and call functions\n";

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 --verify found a difference, an outbox is damaged, a benchmark's result is wrong, or a\n"
    "called function answered with a status of 400 or more;\n"
    "2 wrong usage or fleet file; 3 draining ran out of time; 4 something failed;\n"
    "5 a memory-only edge stopped with samples the cloud has not acknowledged.";

}  // namespace

int main(int argc, char** argv) {
  using namespace orla::apps;
  CLI::App app(kAbout, "orla");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Chosen chosen;
  add_up(app, chosen);
  add_node(app, chosen);
  add_check(app, chosen);
  add_settings(app, chosen);
  add_status(app, chosen);
  add_query(app, chosen);
  add_generate(app, chosen);
  add_forecast(app, chosen);
  add_outbox(app, chosen);
  add_fn(app, chosen);
  add_bench(app, chosen);
  add_version(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kOk : kUsage;
  }
  try {
    return chosen.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "orla: %s\n", error.what());
    return kFailed;
  }
}
