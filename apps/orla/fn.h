// What the commands of `orla fn` share: where the gateway is, how its answers are shown.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "commands.h"
#include "node/gateway_client.h"

namespace orla::apps {

// Options of every command that talks to a gateway.
struct GatewayOptions {
  std::string url;  // empty: $ORLA_GATEWAY, $OPENFAAS_URL, or http://127.0.0.1:8080
  std::string user;
  std::string password_file;
  std::string space;  // namespace; empty: the gateway's own
  bool json = false;
};
void add_gateway_options(CLI::App& command, GatewayOptions& options);

// A command in the making: it has these options, and `run` gets a client. Errors are printed as "orla fn NAME: ...".
class Gateway {
 public:
  // Nothing, and a message: the options are wrong.
  static std::optional<Gateway> open(const GatewayOptions& options, std::string_view command);

  // The reply when its status is below 400; else prints what the gateway said.
  std::optional<node::GatewayReply> ask(const node::GatewayAsk& ask) const;
  // Without a message for statuses of 400 and more.
  absl::StatusOr<node::GatewayReply> send(const node::GatewayAsk& ask) const { return client_.send(ask); }
  // POST, PUT, DELETE with a JSON body.
  std::optional<node::GatewayReply> ask_json(std::string_view method, std::string target,
                                             const nlohmann::json& body) const;
  // A reply's body as JSON; prints what is wrong with it.
  std::optional<nlohmann::json> parsed(const node::GatewayReply& reply) const;

  void complain(std::string_view what) const;
  void complain(const node::GatewayReply& reply) const;
  // "?namespace=x" and the like: pairs with an empty value are left out. The namespace of the options is added.
  std::string query(std::vector<std::pair<std::string, std::string>> pairs) const;
  const std::string& space() const { return options_.space; }
  const std::string& url() const { return client_.url(); }
  bool json() const { return options_.json; }

 private:
  Gateway(GatewayOptions options, std::string_view command, node::GatewayClient client)
      : options_(std::move(options)), command_(command), client_(std::move(client)) {}

  GatewayOptions options_;
  std::string command_;
  node::GatewayClient client_;
};

// Columns as wide as their longest cell.
std::string text_table(const std::vector<std::vector<std::string>>& rows);
// The whole of standard input.
std::string read_standard_input();
// "KEY=VALUE" each; nothing, and a message, when one has no "=".
std::optional<std::map<std::string, std::string>> read_pairs(std::string_view command, std::string_view option,
                                                             const std::vector<std::string>& pairs);

void add_fn_deploy(CLI::App& fn, Chosen& chosen);
void add_fn_look(CLI::App& fn, Chosen& chosen);  // list, describe
void add_fn_invoke(CLI::App& fn, Chosen& chosen);
void add_fn_logs(CLI::App& fn, Chosen& chosen);
void add_fn_change(CLI::App& fn, Chosen& chosen);  // scale, remove
void add_fn_secret(CLI::App& fn, Chosen& chosen);
void add_fn_dead(CLI::App& fn, Chosen& chosen);
void add_fn_new(CLI::App& fn, Chosen& chosen);
void add_fn_build(CLI::App& fn, Chosen& chosen);

}  // namespace orla::apps
