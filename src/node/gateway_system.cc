#include "node/gateway_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/absl_view.h"
#include "base/url.h"
#include "node/gateway_json.h"
#include "node/gateway_logs.h"
#include "node/gateway_ui.h"

namespace orla::node {

namespace {

Answer text(int status, std::string body) {
  Answer answer{status, "text/plain; charset=utf-8", {}, std::move(body), false};
  if (!answer.body.empty()) answer.body += '\n';
  return answer;
}
Answer json(std::string body) { return {200, "application/json", {}, std::move(body) + "\n", false}; }

Answer failure(const absl::Status& status) {
  const std::string message = base::message(status);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return text(400, message);
    case absl::StatusCode::kNotFound:
      return text(404, message);
    case absl::StatusCode::kAlreadyExists:
      return text(409, message);
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return text(503, message);
    case absl::StatusCode::kUnimplemented:
      return text(501, message);
    default:
      return text(500, message);
  }
}

Answer wrong_method(std::string_view possible) {
  Answer answer = text(405, fmt::format("possible methods: {}", possible));
  answer.headers.emplace_back("Allow", possible);
  return answer;
}

class System {
 public:
  System(GatewayCore& core, Exchange& exchange)
      : core_(core), host_(core.host), method_(exchange.request.method), body_(exchange.body) {
    for (auto& [name, value] : base::parse_query(exchange.request.query)) query_.emplace(name, value);
  }

  Answer serve(std::string_view rest) {
    const std::size_t slash = rest.find('/');
    const std::string_view what = rest.substr(0, slash);
    const std::optional<std::string_view> name =
        slash == std::string_view::npos ? std::nullopt : std::optional(rest.substr(slash + 1));
    if (!name || name->empty()) {
      if (what == "functions") return functions();
      if (what == "secrets") return secrets();
      if (what == "namespaces") return reads() ? json(names_json(namespaces())) : wrong_method("GET");
      if (what == "namespace") return method_ == "POST" ? no_namespaces() : wrong_method("POST");
      if (what == "info") return reads() ? json(info_json()) : wrong_method("GET");
      if (what == "alert") return method_ == "POST" ? alert() : wrong_method("POST");
      if (what == "dead-letters") return reads() ? dead_letters() : wrong_method("GET");
    } else if (what == "dead-letters") {
      return dead_letter(*name);
    } else if (name->find('/') == std::string_view::npos) {
      if (what == "function") return reads() ? function(*name) : wrong_method("GET");
      if (what == "scale-function") return method_ == "POST" ? scale(*name) : wrong_method("POST");
      if (what == "namespace") return name_space(*name);
    }
    return text(404,
                "there is nothing here; the system API has functions, function/NAME, scale-function/NAME, "
                "secrets, logs, namespaces, namespace/NAME, info, alert, dead-letters and dead-letters/CALL-ID");
  }

 private:
  bool reads() const { return method_ == "GET" || method_ == "HEAD"; }

  std::string asked(const std::string& name) const {
    const auto found = query_.find(name);
    return found == query_.end() ? "" : found->second;
  }
  // Of the query.
  std::string space() const {
    const std::string space = asked("namespace");
    return space.empty() ? std::string(function::kDefaultNamespace) : space;
  }
  std::vector<std::string> namespaces() const {
    std::vector<std::string> all{std::string(function::kDefaultNamespace)};
    for (const std::string& space : core_.settings.namespaces) {
      if (std::find(all.begin(), all.end(), space) == all.end()) all.push_back(space);
    }
    return all;
  }
  absl::Status check_namespace(std::string_view space) const {
    if (core_.has_namespace(space)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("namespace: {:.63} is none of this node's; its `namespaces` in the fleet file names them", space));
  }

  Answer functions() {
    if (reads()) return json(functions_json(host_.list(space())));
    if (method_ == "POST" || method_ == "PUT") {
      const absl::StatusOr<function::FunctionSpec> spec = read_deployment(body_);
      if (!spec.ok()) return failure(spec.status());
      if (absl::Status status = check_namespace(spec->key.space); !status.ok()) return failure(status);
      const absl::Status done =
          host_.deploy(*spec, method_ == "POST" ? function::Deploy::kCreate : function::Deploy::kUpdate);
      if (!done.ok()) return failure(done);
      std::string notes;
      if (const auto now = host_.find(spec->key, false)) {
        for (const std::string& note : now->notes) notes += (notes.empty() ? "" : "\n") + note;
      }
      return text(202, notes);
    }
    if (method_ != "DELETE") return wrong_method("GET, POST, PUT, DELETE");
    const absl::StatusOr<function::FunctionKey> key = read_removal(body_);
    if (!key.ok()) return failure(key.status());
    const absl::Status done = host_.remove(*key);
    return done.ok() ? text(202, "") : failure(done);
  }

  function::FunctionKey key_of(std::string_view name) const {
    function::FunctionKey key = function::key_of(name);
    if (const std::string space = asked("namespace"); !space.empty()) key.space = space;
    return key;
  }

  Answer function(std::string_view name) {
    const function::FunctionKey key = key_of(name);
    const bool usage = asked("usage") == "1" || asked("usage") == "true";
    const auto status = host_.find(key, usage);
    if (!status) return text(404, fmt::format("no such function: {:.130}", key.text()));
    return json(status_of_function_json(*status, usage ? Usage::kYes : Usage::kNo));
  }

  Answer scale(std::string_view name) {
    const absl::StatusOr<ScaleOrder> order = read_scale(body_);
    if (!order.ok()) return failure(order.status());
    function::FunctionKey key = key_of(name);
    if (!order->space.empty()) key.space = order->space;
    if (!order->name.empty() && order->name != key.name && order->name != name) {
      return text(400, fmt::format("serviceName: expected {:.63}, as in the path", key.name));
    }
    const absl::StatusOr<std::uint32_t> done = host_.scale(key, order->replicas);
    return done.ok() ? text(202, "") : failure(done.status());
  }

  Answer secrets() {
    if (reads()) return json(secrets_json(host_.secrets(space())));
    if (method_ != "POST" && method_ != "PUT" && method_ != "DELETE") return wrong_method("GET, POST, PUT, DELETE");
    const absl::StatusOr<SecretOrder> order = read_secret(body_);
    if (!order.ok()) return failure(order.status());
    if (absl::Status status = check_namespace(order->key.space); !status.ok()) return failure(status);
    if (method_ == "DELETE") {
      const absl::Status done = host_.remove_secret(order->key);
      if (absl::IsFailedPrecondition(done)) return text(409, base::message(done));
      return done.ok() ? text(202, "") : failure(done);
    }
    if (!order->value) return text(400, "value: expected a text, or rawValue in base64");
    const absl::Status done = method_ == "POST" ? host_.add_secret(order->key, *order->value)
                                                : host_.change_secret(order->key, *order->value);
    if (!done.ok()) return failure(done);
    return text(method_ == "POST" ? 201 : 202, "");
  }

  Answer no_namespaces() {
    return text(501, "namespaces are those of the node's settings (`namespaces` in the fleet file)");
  }
  Answer name_space(std::string_view name) {
    if (!reads()) return method_ == "PUT" || method_ == "DELETE" ? no_namespaces() : wrong_method("GET");
    if (!core_.has_namespace(name)) return text(404, fmt::format("no such namespace: {:.63}", name));
    return json(namespace_json(name));
  }

  Answer alert() {
    const absl::StatusOr<std::vector<Alert>> alerts = read_alerts(body_);
    if (!alerts.ok()) return failure(alerts.status());
    std::string errors;
    for (std::size_t i = 0; i < alerts->size(); ++i) {
      const absl::Status done = host_.alert((*alerts)[i].key, (*alerts)[i].firing);
      if (!done.ok()) errors += fmt::format("{}[{}] {}", errors.empty() ? "" : "\n", i, base::message(done));
    }
    return errors.empty() ? text(200, "") : text(500, errors);
  }

  // Calls for later that failed for good. Not of the reference.
  static Answer no_queue() { return text(501, "this node has no queue for calls that are made later"); }
  Answer dead_letters() {
    if (core_.async == nullptr) return no_queue();
    const std::string name = asked("name");
    const function::FunctionKey key = key_of(name);
    const auto calls = core_.async->dead(name.empty() ? nullptr : &key);
    return calls.ok() ? json(dead_calls_json(*calls)) : failure(calls.status());
  }
  Answer dead_letter(std::string_view rest) {
    if (core_.async == nullptr) return no_queue();
    const std::size_t slash = rest.find('/');
    const std::string id = base::percent_decode(rest.substr(0, slash), base::Plus::kLiteral);
    absl::Status done;
    if (slash == std::string_view::npos) {
      if (method_ != "DELETE") return wrong_method("DELETE");
      done = core_.async->forget(id);
    } else if (rest.substr(slash) == "/replay") {
      if (method_ != "POST") return wrong_method("POST");
      done = core_.async->replay(id);
    } else {
      return text(404, "there is nothing here; a dead letter has /replay");
    }
    return done.ok() ? text(202, "") : failure(done);
  }

  GatewayCore& core_;
  function::Host& host_;
  const std::string& method_;
  const std::string& body_;
  std::map<std::string, std::string> query_;  // the first of each name
};

}  // namespace

void serve_system(const std::shared_ptr<GatewayCore>& core, const std::shared_ptr<Exchange>& exchange,
                  std::string_view rest) {
  if (rest == "logs") {
    if (exchange->request.method != "GET" && exchange->request.method != "HEAD") {
      return exchange->finish(wrong_method("GET"));
    }
    return serve_logs(core, exchange);
  }
  exchange->finish(System(*core, *exchange).serve(rest));
}

Answer ui_page() {
  return {200, "text/html; charset=utf-8", {{"Cache-Control", "no-cache"}}, std::string(kGatewayUi), false};
}

}  // namespace orla::node
