// orla forecast backtest FILE
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/absl_view.h"
#include "commands.h"
#include "node/backtest.h"

namespace orla::apps {

void add_forecast(CLI::App& app, Chosen& chosen) {
  CLI::App* forecast = app.add_subcommand("forecast", "Load forecasts");
  forecast->require_subcommand(1);
  struct Options {
    node::BacktestRequest request;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = forecast->add_subcommand(
      "backtest", "How well the published formula would have done on recorded loads, per step length");
  command->add_option("FILE", options->request.file, "Rows in the DEBS 2014 schema; plain, .gz or .zst")->required();
  command->add_option("--zone", options->request.zone, "Steps are numbered from local midnight here")
      ->capture_default_str();
  command->add_flag("--json", options->json, "As JSON");
  command->footer("Example:\n  orla forecast backtest examples/smart-grid/data/plugs.csv.gz --json");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> int {
      if (options->json) options->request.format = node::BacktestRequest::Format::kJson;
      const absl::Status status = node::run_backtest(options->request, std::cout, std::cerr);
      std::cout.flush();
      if (status.ok()) return kOk;
      fmt::print(stderr, "orla forecast backtest: {}\n", base::message(status));
      return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailed;
    };
  });
}

}  // namespace orla::apps
