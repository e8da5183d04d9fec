// orla fn COMMAND
#include "fn.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/absl_view.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/url.h"

namespace orla::apps {

namespace {

constexpr char kUsualGateway[] = "http://127.0.0.1:8080";
constexpr std::size_t kMaxPasswordBytes = 4096;

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

}  // namespace

void add_gateway_options(CLI::App& command, GatewayOptions& options) {
  command.add_option("-g,--gateway", options.url,
                     "The gateway; else $ORLA_GATEWAY, $OPENFAAS_URL, or http://127.0.0.1:8080");
  command.add_option("--user", options.user, "Name for basic authentication (admin when only a password is given)");
  command.add_option("--password-file", options.password_file, "File with the password");
  command.add_option("-n,--namespace", options.space, "Namespace of the function");
  command.add_flag("--json", options.json, "As JSON");
}

std::optional<Gateway> Gateway::open(const GatewayOptions& options, std::string_view command) {
  const base::SystemEnvironment environment;
  std::string url = options.url;
  for (const char* variable : {"ORLA_GATEWAY", "OPENFAAS_URL"}) {
    if (url.empty()) url = environment.get(variable).value_or("");
  }
  if (url.empty()) url = kUsualGateway;
  std::optional<node::GatewayLogin> login;
  if (!options.password_file.empty()) {
    const absl::StatusOr<std::string> password = base::read_file(options.password_file, kMaxPasswordBytes);
    if (!password.ok()) {
      fmt::print(stderr, "orla fn {}: --password-file: {}\n", command, base::message(password.status()));
      return std::nullopt;
    }
    login = node::GatewayLogin{options.user.empty() ? "admin" : options.user, trimmed(*password)};
  } else if (!options.user.empty()) {
    fmt::print(stderr, "orla fn {}: --user needs --password-file\n", command);
    return std::nullopt;
  }
  absl::StatusOr<node::GatewayClient> client = node::GatewayClient::create(url, std::move(login));
  if (!client.ok()) {
    fmt::print(stderr, "orla fn {}: {}\n", command, base::message(client.status()));
    return std::nullopt;
  }
  return Gateway(options, command, *std::move(client));
}

void Gateway::complain(std::string_view what) const { fmt::print(stderr, "orla fn {}: {}\n", command_, what); }

void Gateway::complain(const node::GatewayReply& reply) const {
  const std::string said = trimmed(reply.body);
  complain(fmt::format("{} answered {} {}{}{}{}", url(), reply.status, reply.reason, said.empty() ? "" : ": ", said,
                       reply.status == 401 ? " (--user NAME --password-file FILE)" : ""));
}

std::optional<node::GatewayReply> Gateway::ask(const node::GatewayAsk& ask) const {
  absl::StatusOr<node::GatewayReply> reply = client_.send(ask);
  if (!reply.ok()) {
    complain(base::message(reply.status()));
    return std::nullopt;
  }
  if (reply->status >= 400) {
    complain(*reply);
    return std::nullopt;
  }
  return *std::move(reply);
}

std::optional<node::GatewayReply> Gateway::ask_json(std::string_view method, std::string target,
                                                    const nlohmann::json& body) const {
  return ask({.method = std::string(method),
              .target = std::move(target),
              .headers = {{"Content-Type", "application/json"}},
              .body = body.dump(),
              .patience = std::chrono::minutes(5),
              .piece = {}});
}

std::optional<nlohmann::json> Gateway::parsed(const node::GatewayReply& reply) const {
  nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!json.is_discarded()) return json;
  complain(fmt::format("{} answered with what is no JSON; is it a gateway?", url()));
  return std::nullopt;
}

std::string Gateway::query(std::vector<std::pair<std::string, std::string>> pairs) const {
  pairs.emplace_back("namespace", options_.space);
  std::string out;
  for (const auto& [key, value] : pairs) {
    if (!value.empty()) out += fmt::format("{}{}={}", out.empty() ? '?' : '&', key, base::percent_encode(value));
  }
  return out;
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string read_standard_input() {
  std::string all;
  char buffer[64 * 1024];
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(got));
  }
}

std::optional<std::map<std::string, std::string>> read_pairs(std::string_view command, std::string_view option,
                                                             const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      fmt::print(stderr, "orla fn {}: {} {}: expected KEY=VALUE\n", command, option, pair);
      return std::nullopt;
    }
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return out;
}

void add_fn(CLI::App& app, Chosen& chosen) {
  CLI::App* fn = app.add_subcommand("fn", "Functions: deploy, call, watch and write them");
  fn->require_subcommand(1);
  fn->footer("Example:\n  orla fn deploy echo.wasm --name echo\n  orla fn invoke echo --data hello");
  add_fn_deploy(*fn, chosen);
  add_fn_look(*fn, chosen);
  add_fn_invoke(*fn, chosen);
  add_fn_logs(*fn, chosen);
  add_fn_change(*fn, chosen);
  add_fn_secret(*fn, chosen);
  add_fn_dead(*fn, chosen);
  add_fn_new(*fn, chosen);
  add_fn_build(*fn, chosen);
}

}  // namespace orla::apps
