// orla fn scale NAME REPLICAS, orla fn remove NAME...
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/url.h"
#include "fn.h"

namespace orla::apps {

namespace {

struct Options {
  GatewayOptions gateway;
  std::vector<std::string> names;
  std::uint32_t replicas = 0;
};

int scale(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "scale");
  if (!gateway) return kUsage;
  const std::string& name = o.names.front();
  nlohmann::json body = {{"serviceName", name}, {"replicas", o.replicas}};
  if (!gateway->space().empty()) body["namespace"] = gateway->space();
  const std::string target = "/system/scale-function/" + base::percent_encode(name) + gateway->query({});
  if (!gateway->ask_json("POST", target, body)) return kFailed;
  const auto now = gateway->ask({.method = "GET",
                                 .target = "/system/function/" + base::percent_encode(name) + gateway->query({}),
                                 .headers = {},
                                 .body = "",
                                 .piece = {}});
  const std::optional<nlohmann::json> status = now ? gateway->parsed(*now) : std::nullopt;
  if (!status) return kFailed;
  // The gateway keeps within the function's bounds, so what it wants may be another number.
  const auto wanted = status->value("replicas", std::uint64_t{0});
  if (gateway->json()) {
    fmt::print("{}\n", nlohmann::json{{"name", name}, {"replicas", wanted}}.dump());
  } else {
    fmt::print("{}: {} replicas wanted{}\n", name, wanted,
               wanted == o.replicas ? "" : fmt::format(" (asked for {}; its labels set the bounds)", o.replicas));
  }
  return kOk;
}

int remove(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "remove");
  if (!gateway) return kUsage;
  int code = kOk;
  for (const std::string& name : o.names) {
    nlohmann::json body = {{"functionName", name}};
    if (!gateway->space().empty()) body["namespace"] = gateway->space();
    const auto reply = gateway->ask_json("DELETE", "/system/functions" + gateway->query({}), body);
    if (!reply) {
      code = kFailed;
    } else if (gateway->json()) {
      fmt::print("{}\n", nlohmann::json{{"name", name}, {"status", reply->status}}.dump());
    } else {
      fmt::print("Removed {}\n", name);
    }
  }
  return code;
}

}  // namespace

void add_fn_change(CLI::App& fn, Chosen& chosen) {
  auto scaled = std::make_shared<Options>();  // with the callback
  scaled->names.resize(1);
  CLI::App* scaling = fn.add_subcommand("scale", "How many replicas a function is to have now");
  scaling->add_option("NAME", scaled->names.front(), "The function")->required();
  scaling->add_option("REPLICAS", scaled->replicas, "0 stops it until the next call")->required();
  add_gateway_options(*scaling, scaled->gateway);
  scaling->footer("Example:\n  orla fn scale echo 3");
  scaling->callback([scaled, &chosen] { chosen.run = [scaled] { return scale(*scaled); }; });

  auto removed = std::make_shared<Options>();
  CLI::App* removal = fn.add_subcommand("remove", "Take functions away; calls in progress finish");
  removal->add_option("NAME", removed->names, "The functions")->required();
  add_gateway_options(*removal, removed->gateway);
  removal->footer("Example:\n  orla fn remove echo");
  removal->callback([removed, &chosen] { chosen.run = [removed] { return remove(*removed); }; });
}

}  // namespace orla::apps
