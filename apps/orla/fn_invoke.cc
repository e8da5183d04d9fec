// orla fn invoke NAME
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "base/absl_view.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/url.h"
#include "base/utf8.h"
#include "fn.h"

namespace orla::apps {

namespace {

constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 30;

struct Options {
  GatewayOptions gateway;
  std::string name;
  std::string method = "POST";
  std::string path;
  std::vector<std::string> queries;
  std::vector<std::string> headers;
  std::string data;
  std::string file;
  std::string content_type;
  std::string callback;
  bool later = false;
  bool quiet = false;
  CLI::Option* has_data = nullptr;
};

std::optional<node::GatewayAsk> make_ask(const Gateway& gateway, const Options& o) {
  node::GatewayAsk ask;
  ask.method = o.method;
  ask.patience = std::nullopt;
  ask.target = fmt::format("/{}/{}{}{}", o.later ? "async-function" : "function", base::percent_encode(o.name),
                           gateway.space().empty() ? "" : ".", gateway.space());
  if (!o.path.empty()) ask.target += (o.path.front() == '/' ? "" : "/") + o.path;
  if (ask.target.find_first_of(" \t\r\n") != std::string::npos) {
    gateway.complain("--path holds a blank: write %20");
    return std::nullopt;
  }
  char separator = ask.target.find('?') == std::string::npos ? '?' : '&';
  for (const std::string& query : o.queries) {
    const std::size_t equals = std::min(query.find('='), query.size());
    ask.target += separator + base::percent_encode(query.substr(0, equals));
    if (equals < query.size()) ask.target += "=" + base::percent_encode(query.substr(equals + 1));
    separator = '&';
  }
  for (const std::string& header : o.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0 || header.find_first_of("\r\n") != std::string::npos) {
      gateway.complain(fmt::format("-H {}: expected NAME: VALUE", header));
      return std::nullopt;
    }
    const std::size_t value = std::min(header.find_first_not_of(' ', colon + 1), header.size());
    ask.headers.emplace_back(header.substr(0, colon), header.substr(value));
  }
  if (!o.content_type.empty()) ask.headers.emplace_back("Content-Type", o.content_type);
  if (!o.callback.empty()) ask.headers.emplace_back("X-Callback-Url", o.callback);
  if (o.has_data->count() > 0) {
    ask.body = o.data;
  } else if (!o.file.empty()) {
    absl::StatusOr<std::string> body = base::read_file(o.file, kMaxBodyBytes);
    if (!body.ok()) {
      gateway.complain(base::message(body.status()));
      return std::nullopt;
    }
    ask.body = *std::move(body);
  } else if (o.method != "GET" && o.method != "HEAD" && ::isatty(STDIN_FILENO) == 0) {
    ask.body = read_standard_input();
  }
  return ask;
}

void print_json(const node::GatewayReply& reply, double seconds) {
  nlohmann::json out = {{"status", reply.status}, {"seconds", seconds}, {"headers", nlohmann::json::object()}};
  for (const auto& [name, value] : reply.headers) out["headers"][name] = value;
  if (base::is_utf8(reply.body)) {
    out["body"] = reply.body;
  } else {
    out["body_base64"] = absl::Base64Escape(reply.body);
  }
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int invoke(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "invoke");
  if (!gateway) return kUsage;
  if (!o.callback.empty() && !o.later) {
    gateway->complain("--callback needs --async");
    return kUsage;
  }
  std::optional<node::GatewayAsk> ask = make_ask(*gateway, o);
  if (!ask) return kUsage;
  if (!gateway->json() && !o.later) {
    ask->piece = [](const node::GatewayReply&, std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      return std::fflush(stdout) == 0 ? absl::OkStatus() : absl::UnavailableError("standard output is closed");
    };
  }
  const base::SystemClock clock;
  const base::SteadyTime start = clock.steady_now();
  const absl::StatusOr<node::GatewayReply> reply = gateway->send(*ask);
  const double seconds = std::chrono::duration<double>(clock.steady_now() - start).count();
  if (!reply.ok()) {
    gateway->complain(base::message(reply.status()));
    return kFailed;
  }
  if (gateway->json()) {
    print_json(*reply, seconds);
  } else if (o.later && reply->status < 400) {
    fmt::print("{}\n", reply->header("X-Call-Id").value_or(""));
  } else {
    std::fwrite(reply->body.data(), 1, reply->body.size(), stdout);
    std::fflush(stdout);
  }
  if (!o.quiet && !gateway->json()) {
    fmt::print(stderr, "{} {}, {:.6f} s{}\n", reply->status, reply->reason, seconds,
               reply->status == 404 && !reply->header("X-Call-Id") ? " (orla fn list shows what there is)" : "");
  }
  return reply->status >= 400 ? kDifferent : kOk;
}

}  // namespace

void add_fn_invoke(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  Options& o = *options;
  CLI::App* command = fn.add_subcommand("invoke", "Call a function");
  command->add_option("NAME", o.name, "The function")->required();
  o.has_data = command->add_option("-d,--data", o.data, "The request's body; else standard input, unless a terminal");
  command->add_option("--file", o.file, "The request's body is this file")->excludes(o.has_data);
  command->add_option("-X,--method", o.method, "HTTP method")->capture_default_str();
  command->add_option("--path", o.path, "Path below the function, encoded");
  command->add_option("--query", o.queries, "KEY=VALUE of the query string")->allow_extra_args(false);
  command->add_option("-H,--header", o.headers, "\"NAME: VALUE\"")->allow_extra_args(false);
  command->add_option("--content-type", o.content_type, "Content-Type of the body");
  command->add_flag("--async", o.later, "Accept it now, run it later; prints the call's id");
  command->add_option("--callback", o.callback, "With --async: where the result is posted to");
  command->add_flag("--quiet", o.quiet, "No status on standard error");
  add_gateway_options(*command, o.gateway);
  command->footer(
      "Examples:\n  echo hello | orla fn invoke echo\n"
      "  orla fn invoke slow --query ms=100 -X GET\n"
      "  orla fn invoke echo --data hello --async --callback http://10.0.0.7:9000/done\n\n"
      "The response goes to standard output as it comes, its status to standard error.\n"
      "Exit code 0: answered with a status below 400; 1: with another one; 4: no answer.");
  command->callback([options, &chosen] { chosen.run = [options] { return invoke(*options); }; });
}

}  // namespace orla::apps
