// orla fn secret list|create|update|remove
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "base/absl_view.h"
#include "base/files.h"
#include "fn.h"

namespace orla::apps {

namespace {

constexpr std::size_t kMaxSecretBytes = 1 << 20;

struct Options {
  GatewayOptions gateway;
  std::string name;
  std::string file;
};

int list(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "secret list");
  if (!gateway) return kUsage;
  const auto reply = gateway->ask(
      {.method = "GET", .target = "/system/secrets" + gateway->query({}), .headers = {}, .body = "", .piece = {}});
  const std::optional<nlohmann::json> secrets = reply ? gateway->parsed(*reply) : std::nullopt;
  if (!secrets) return kFailed;
  if (gateway->json()) {
    fmt::print("{}\n", secrets->dump(2));
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"SECRET", "NAMESPACE"}};
  for (const nlohmann::json& secret : *secrets) {
    rows.push_back({secret.value("name", ""), secret.value("namespace", "")});
  }
  fmt::print("{}", text_table(rows));
  return kOk;
}

int change(const Options& o, std::string_view method, std::string_view command, std::string_view done) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, command);
  if (!gateway) return kUsage;
  nlohmann::json body = {{"name", o.name}};
  if (!gateway->space().empty()) body["namespace"] = gateway->space();
  if (method != "DELETE") {
    std::string value;
    if (o.file.empty()) {
      value = read_standard_input();
      if (!value.empty() && value.back() == '\n') value.pop_back();
    } else if (absl::StatusOr<std::string> read = base::read_file(o.file, kMaxSecretBytes); read.ok()) {
      value = *std::move(read);
    } else {
      gateway->complain(base::message(read.status()));
      return kFailed;
    }
    body["rawValue"] = absl::Base64Escape(value);
  }
  const auto reply = gateway->ask_json(method, "/system/secrets", body);
  if (!reply) return kFailed;
  if (gateway->json()) {
    fmt::print("{}\n", nlohmann::json{{"name", o.name}, {"status", reply->status}}.dump());
  } else {
    fmt::print("{} secret {}\n", done, o.name);
  }
  return kOk;
}

}  // namespace

void add_fn_secret(CLI::App& fn, Chosen& chosen) {
  CLI::App* secret = fn.add_subcommand("secret", "What functions may read and nobody is shown");
  secret->require_subcommand(1);
  const auto add = [&](const char* name, const char* text, const char* footer) {
    auto options = std::make_shared<Options>();  // with the callback
    CLI::App* command = secret->add_subcommand(name, text);
    add_gateway_options(*command, options->gateway);
    command->footer(footer);
    return std::pair(command, options);
  };
  const auto [all, listed] = add("list", "Names of the secrets", "Example:\n  orla fn secret list");
  all->callback([options = listed, &chosen] { chosen.run = [options] { return list(*options); }; });

  const char* const value = "File with its value; else standard input, without its last line end";
  const auto [create, created] =
      add("create", "A new secret", "Example:\n  orla fn secret create db-password --from-file password.txt");
  create->add_option("NAME", created->name, "The secret")->required();
  create->add_option("--from-file", created->file, value);
  create->callback([options = created, &chosen] {
    chosen.run = [options] { return change(*options, "POST", "secret create", "Created"); };
  });

  const auto [update, updated] =
      add("update", "Another value for a secret", "Example:\n  orla fn secret update db-password < password.txt");
  update->add_option("NAME", updated->name, "The secret")->required();
  update->add_option("--from-file", updated->file, value);
  update->callback([options = updated, &chosen] {
    chosen.run = [options] { return change(*options, "PUT", "secret update", "Updated"); };
  });

  const auto [removal, removed] = add("remove", "Take a secret away",
                                      "Example:\n  orla fn secret remove db-password\n\nNot while a function has it.");
  removal->add_option("NAME", removed->name, "The secret")->required();
  removal->callback([options = removed, &chosen] {
    chosen.run = [options] { return change(*options, "DELETE", "secret remove", "Removed"); };
  });
}

}  // namespace orla::apps
