// orla fn list, orla fn describe NAME
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/url.h"
#include "fn.h"

namespace orla::apps {

namespace {

struct Options {
  GatewayOptions gateway;
  std::string name;
};

// What the gateway leaves out is zero or empty.
std::string field(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}
std::string number(const nlohmann::json& object, const char* key) {
  const std::string text = field(object, key);
  return text.empty() ? "0" : text;
}

int list(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "list");
  if (!gateway) return kUsage;
  const auto reply = gateway->ask(
      {.method = "GET", .target = "/system/functions" + gateway->query({}), .headers = {}, .body = "", .piece = {}});
  const std::optional<nlohmann::json> functions = reply ? gateway->parsed(*reply) : std::nullopt;
  if (!functions) return kFailed;
  if (gateway->json()) {
    fmt::print("{}\n", functions->dump(2));
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"FUNCTION", "IMAGE", "CALLS", "REPLICAS", "READY"}};
  for (const nlohmann::json& f : *functions) {
    rows.push_back({field(f, "name"), field(f, "image"), number(f, "invocationCount"), number(f, "replicas"),
                    number(f, "availableReplicas")});
  }
  fmt::print("{}", text_table(rows));
  return kOk;
}

int describe(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "describe");
  if (!gateway) return kUsage;
  const auto reply =
      gateway->ask({.method = "GET",
                    .target = "/system/function/" + base::percent_encode(o.name) + gateway->query({{"usage", "1"}}),
                    .headers = {},
                    .body = "",
                    .piece = {}});
  const std::optional<nlohmann::json> f = reply ? gateway->parsed(*reply) : std::nullopt;
  if (!f) return kFailed;
  if (gateway->json()) {
    fmt::print("{}\n", f->dump(2));
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {
      {"Name:", field(*f, "name")},
      {"Namespace:", field(*f, "namespace")},
      {"Image:", field(*f, "image")},
      {"Process:", field(*f, "envProcess")},
      {"Created:", field(*f, "createdAt")},
      {"Calls:", number(*f, "invocationCount")},
      {"Replicas:", number(*f, "replicas") + " (" + number(*f, "availableReplicas") + " ready)"},
      {"URL:", gateway->url() + "/function/" + o.name},
      {"Async URL:", gateway->url() + "/async-function/" + o.name},
  };
  if (const auto usage = f->find("usage"); usage != f->end() && usage->is_object()) {
    rows.push_back({"Memory:", fmt::format("{:.1f} MiB", usage->value("totalMemoryBytes", 0.0) / (1 << 20))});
  }
  for (const auto& [title, key] : {std::pair("Label:", "labels"), std::pair("Annotation:", "annotations"),
                                   std::pair("Environment:", "envVars"), std::pair("Limit:", "limits")}) {
    const auto found = f->find(key);
    if (found == f->end() || !found->is_object()) continue;
    for (const auto& [name, value] : found->items()) {
      rows.push_back({title, name + "=" + (value.is_string() ? value.get<std::string>() : value.dump())});
    }
  }
  if (const auto secrets = f->find("secrets"); secrets != f->end() && secrets->is_array()) {
    for (const nlohmann::json& secret : *secrets) rows.push_back({"Secret:", secret.get<std::string>()});
  }
  std::erase_if(rows, [](const auto& row) { return row[1].empty(); });
  fmt::print("{}", text_table(rows));
  return kOk;
}

}  // namespace

void add_fn_look(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callbacks
  CLI::App* all = fn.add_subcommand("list", "The functions of a gateway");
  add_gateway_options(*all, options->gateway);
  all->footer("Example:\n  orla fn list --gateway http://127.0.0.1:8080");
  all->callback([options, &chosen] { chosen.run = [options] { return list(*options); }; });
  auto one_options = std::make_shared<Options>();
  CLI::App* one = fn.add_subcommand("describe", "All about one function");
  one->add_option("NAME", one_options->name, "The function")->required();
  add_gateway_options(*one, one_options->gateway);
  one->footer("Example:\n  orla fn describe echo --json");
  one->callback([one_options, &chosen] { chosen.run = [one_options] { return describe(*one_options); }; });
}

}  // namespace orla::apps
