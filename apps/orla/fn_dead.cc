// orla fn dead list|replay|remove
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/url.h"
#include "fn.h"

namespace orla::apps {

namespace {

struct Options {
  GatewayOptions gateway;
  std::string function;
  std::vector<std::string> calls;
};

std::string text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

int list(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "dead list");
  if (!gateway) return kUsage;
  const auto reply = gateway->ask({.method = "GET",
                                   .target = "/system/dead-letters" + gateway->query({{"name", o.function}}),
                                   .headers = {},
                                   .body = "",
                                   .piece = {}});
  const std::optional<nlohmann::json> calls = reply ? gateway->parsed(*reply) : std::nullopt;
  if (!calls) return kFailed;
  if (gateway->json()) {
    fmt::print("{}\n", calls->dump(2));
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"CALL", "FUNCTION", "ATTEMPTS", "STATUS", "LAST", "BYTES", "ERROR"}};
  for (const nlohmann::json& call : *calls) {
    rows.push_back({text(call, "callId"), text(call, "function"), text(call, "attempts"), text(call, "lastStatus"),
                    text(call, "lastAt"), text(call, "bytes"), text(call, "lastError")});
  }
  fmt::print("{}", text_table(rows));
  return kOk;
}

int each(const Options& o, std::string_view method, std::string_view end, std::string_view command,
         std::string_view done) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, command);
  if (!gateway) return kUsage;
  int code = kOk;
  for (const std::string& call : o.calls) {
    const auto reply =
        gateway->ask({.method = std::string(method),
                      .target = fmt::format("/system/dead-letters/{}{}", base::percent_encode(call), end),
                      .headers = {},
                      .body = "",
                      .piece = {}});
    if (!reply) {
      code = kFailed;
    } else if (gateway->json()) {
      fmt::print("{}\n", nlohmann::json{{"callId", call}, {"status", reply->status}}.dump());
    } else {
      fmt::print("{} {}\n", done, call);
    }
  }
  return code;
}

}  // namespace

void add_fn_dead(CLI::App& fn, Chosen& chosen) {
  CLI::App* dead = fn.add_subcommand("dead", "Asynchronous calls that were given up");
  dead->require_subcommand(1);
  auto listed = std::make_shared<Options>();  // with the callbacks
  CLI::App* all = dead->add_subcommand("list", "Which they are, and why");
  all->add_option("--function", listed->function, "Only of this function");
  add_gateway_options(*all, listed->gateway);
  all->footer("Example:\n  orla fn dead list --function mailer");
  all->callback([listed, &chosen] { chosen.run = [listed] { return list(*listed); }; });

  auto replayed = std::make_shared<Options>();
  CLI::App* replay = dead->add_subcommand("replay", "Queue them again");
  replay->add_option("CALL", replayed->calls, "Ids of the calls")->required();
  add_gateway_options(*replay, replayed->gateway);
  replay->footer("Example:\n  orla fn dead replay 5f0c1d34-...");
  replay->callback([replayed, &chosen] {
    chosen.run = [replayed] { return each(*replayed, "POST", "/replay", "dead replay", "Queued again:"); };
  });

  auto removed = std::make_shared<Options>();
  CLI::App* removal = dead->add_subcommand("remove", "Forget them");
  removal->add_option("CALL", removed->calls, "Ids of the calls")->required();
  add_gateway_options(*removal, removed->gateway);
  removal->footer("Example:\n  orla fn dead remove 5f0c1d34-...");
  removal->callback([removed, &chosen] {
    chosen.run = [removed] { return each(*removed, "DELETE", "", "dead remove", "Removed"); };
  });
}

}  // namespace orla::apps
