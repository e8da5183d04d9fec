// orla fn logs NAME
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/absl_view.h"
#include "base/clock.h"
#include "fn.h"
#include "model/time.h"
#include "model/window.h"
#include "node/time_text.h"

namespace orla::apps {

namespace {

struct Options {
  GatewayOptions gateway;
  std::string name;
  std::string instance;
  std::string since;
  std::int64_t tail = -1;
  bool follow = false;
};

// "10m" is ten minutes ago.
absl::StatusOr<model::Time> begin_of(const std::string& since) {
  if (const absl::StatusOr<model::Duration> ago = model::parse_duration(since); ago.ok()) {
    return model::Time(base::SystemClock().wall_now()) - *ago;
  }
  return node::parse_time(since);
}

void show(std::string_view line, const GatewayOptions& options) {
  if (line.empty()) return;
  const nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
  if (options.json || !message.is_object()) {
    fmt::print("{}\n", line);
  } else {
    fmt::print("{} {} {}\n", message.value("timestamp", ""), message.value("instance", ""), message.value("text", ""));
  }
}

int logs(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "logs");
  if (!gateway) return kUsage;
  std::string since;
  if (!o.since.empty()) {
    const absl::StatusOr<model::Time> begin = begin_of(o.since);
    if (!begin.ok()) {
      gateway->complain("--since: " + std::string(base::message(begin.status())));
      return kUsage;
    }
    since = node::rfc3339(*begin);
  }
  node::GatewayAsk ask;
  ask.target = "/system/logs" + gateway->query({{"name", o.name},
                                                {"instance", o.instance},
                                                {"tail", o.tail < 0 ? "" : std::to_string(o.tail)},
                                                {"since", since},
                                                {"follow", o.follow ? "1" : ""}});
  if (o.follow) ask.patience = std::nullopt;
  std::string rest;
  ask.piece = [&](const node::GatewayReply&, std::string_view piece) {
    rest += piece;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      show(std::string_view(rest).substr(begin, end - begin), o.gateway);
    }
    rest.erase(0, begin);
    return std::fflush(stdout) == 0 ? absl::OkStatus() : absl::UnavailableError("standard output is closed");
  };
  if (!gateway->ask(ask)) return kFailed;
  show(rest, o.gateway);
  return kOk;
}

}  // namespace

void add_fn_logs(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  Options& o = *options;
  CLI::App* command = fn.add_subcommand("logs", "What a function wrote to its standard error");
  command->add_option("NAME", o.name, "The function")->required();
  command->add_flag("-f,--follow", o.follow, "Go on with new lines until Ctrl-C");
  command->add_option("--tail", o.tail, "Only the last so many lines")->check(CLI::NonNegativeNumber);
  command->add_option("--since", o.since, "Only what is newer: 10m, or a time (RFC 3339)");
  command->add_option("--instance", o.instance, "Only of this replica");
  add_gateway_options(*command, o.gateway);
  command->footer("Example:\n  orla fn logs echo -f --since 10m");
  command->callback([options, &chosen] { chosen.run = [options] { return logs(*options); }; });
}

}  // namespace orla::apps
