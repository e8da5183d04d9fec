#include "node/gateway_json.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "base/version.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

using nlohmann::json;

absl::StatusOr<json> read_object(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return absl::InvalidArgumentError("the request has no body; expected a JSON object");
  }
  json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) return absl::InvalidArgumentError("the request's body is not JSON");
  if (!object.is_object()) return absl::InvalidArgumentError("the request's body is not a JSON object");
  return object;
}

absl::Status wrong(std::string_view field, std::string_view expected) {
  return absl::InvalidArgumentError(fmt::format("{}: expected {}", field, expected));
}

// Reads fields of one object; the first that is wrong stays as status().
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}
  const absl::Status& status() const { return status_; }

  std::string text(const char* field) {
    const json* value = find(field);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    fail(field, "a text");
    return "";
  }
  // A text that must be there.
  std::string needed(const char* field) {
    std::string value = text(field);
    if (status_.ok() && value.empty()) status_ = absl::InvalidArgumentError(fmt::format("{} is missing", field));
    return value;
  }
  std::map<std::string, std::string> texts_by_name(const char* field) {
    std::map<std::string, std::string> all;
    const json* value = find(field);
    if (value == nullptr) return all;
    if (!value->is_object()) {
      fail(field, "an object of texts");
      return all;
    }
    for (const auto& [name, item] : value->items()) {
      if (!item.is_string()) {
        fail(fmt::format("{}.{}", field, name), "a text");
        return all;
      }
      all.emplace(name, item.get<std::string>());
    }
    return all;
  }
  std::vector<std::string> texts(const char* field) {
    std::vector<std::string> all;
    const json* value = find(field);
    if (value == nullptr) return all;
    if (!value->is_array()) {
      fail(field, "a list of texts");
      return all;
    }
    for (const json& item : *value) {
      if (!item.is_string()) {
        fail(field, "a list of texts");
        return all;
      }
      all.push_back(item.get<std::string>());
    }
    return all;
  }
  bool boolean(const char* field) {
    const json* value = find(field);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    fail(field, "true or false");
    return false;
  }
  function::Resources resources(const char* field) {
    function::Resources all;
    const json* value = find(field);
    if (value == nullptr) return all;
    if (!value->is_object()) {
      fail(field, "an object with memory and cpu");
      return all;
    }
    Fields inner(*value);
    all.memory = inner.text("memory");
    all.cpu = inner.text("cpu");
    if (!inner.status().ok()) fail(fmt::format("{}.memory or {}.cpu", field, field), "a text");
    return all;
  }
  // Null counts as not there.
  const json* find(const char* field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string space() {
    std::string value = text("namespace");
    return value.empty() ? std::string(function::kDefaultNamespace) : value;
  }

 private:
  void fail(std::string_view field, std::string_view expected) {
    if (status_.ok()) status_ = wrong(field, expected);
  }
  const json& object_;
  absl::Status status_;
};

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

void put(json& out, const char* field, const std::string& value) {
  if (!value.empty()) out[field] = value;
}

json resources_json(const function::Resources& resources) {
  json out = json::object();
  put(out, "memory", resources.memory);
  put(out, "cpu", resources.cpu);
  return out;
}

json function_json(const function::FunctionStatus& status, Usage usage) {
  const function::FunctionSpec& spec = status.spec;
  json out = {{"name", spec.key.name},
              {"namespace", spec.key.space},
              {"image", spec.image},
              {"labels", spec.labels},
              {"annotations", spec.annotations},
              {"invocationCount", status.invocations},
              {"replicas", status.replicas},
              {"availableReplicas", status.available},
              {"createdAt", rfc3339(model::Time(status.created.time_since_epoch()))},
              {"runtime", status.runtime}};
  put(out, "envProcess", spec.env_process);
  if (!spec.environment.empty()) out["envVars"] = spec.environment;
  if (!spec.constraints.empty()) out["constraints"] = spec.constraints;
  if (!spec.secrets.empty()) out["secrets"] = spec.secrets;
  if (spec.limits != function::Resources{}) out["limits"] = resources_json(spec.limits);
  if (spec.requests != function::Resources{}) out["requests"] = resources_json(spec.requests);
  if (spec.read_only_root) out["readOnlyRootFilesystem"] = true;
  if (!status.notes.empty()) out["notes"] = status.notes;
  if (usage == Usage::kYes) {
    // CPU in thousandths of a core-second used since its replicas started.
    out["usage"] = {{"cpu", status.usage.cpu_seconds * 1000}, {"totalMemoryBytes", status.usage.memory_bytes}};
  }
  return out;
}

}  // namespace

absl::StatusOr<function::FunctionSpec> read_deployment(std::string_view text) {
  const absl::StatusOr<json> object = read_object(text);
  if (!object.ok()) return object.status();
  Fields fields(*object);
  function::FunctionSpec spec;
  spec.key.name = fields.needed("service");
  spec.key.space = fields.space();
  spec.image = fields.needed("image");
  spec.env_process = fields.text("envProcess");
  spec.environment = fields.texts_by_name("envVars");
  spec.constraints = fields.texts("constraints");
  spec.secrets = fields.texts("secrets");
  spec.labels = fields.texts_by_name("labels");
  spec.annotations = fields.texts_by_name("annotations");
  spec.limits = fields.resources("limits");
  spec.requests = fields.resources("requests");
  spec.read_only_root = fields.boolean("readOnlyRootFilesystem");
  if (!fields.status().ok()) return fields.status();
  if (absl::Status status = function::check_label("service", spec.key.name); !status.ok()) return status;
  if (absl::Status status = function::check_label("namespace", spec.key.space); !status.ok()) return status;
  return spec;
}

absl::StatusOr<function::FunctionKey> read_removal(std::string_view text) {
  const absl::StatusOr<json> object = read_object(text);
  if (!object.ok()) return object.status();
  Fields fields(*object);
  function::FunctionKey key{fields.needed("functionName"), fields.space()};
  if (!fields.status().ok()) return fields.status();
  return key;
}

absl::StatusOr<ScaleOrder> read_scale(std::string_view text) {
  const absl::StatusOr<json> object = read_object(text);
  if (!object.ok()) return object.status();
  Fields fields(*object);
  ScaleOrder order{fields.text("serviceName"), fields.text("namespace"), 0};
  if (!fields.status().ok()) return fields.status();
  const json* replicas = fields.find("replicas");
  if (replicas == nullptr || !replicas->is_number_unsigned() || replicas->get<std::uint64_t>() > UINT32_MAX) {
    return wrong("replicas", "a whole number, 0 or more");
  }
  order.replicas = replicas->get<std::uint32_t>();
  return order;
}

absl::StatusOr<SecretOrder> read_secret(std::string_view text) {
  const absl::StatusOr<json> object = read_object(text);
  if (!object.ok()) return object.status();
  Fields fields(*object);
  SecretOrder order;
  order.key = {fields.needed("name"), fields.space()};
  const std::string value = fields.text("value");
  const std::string raw = fields.text("rawValue");
  if (!fields.status().ok()) return fields.status();
  if (order.key.name.find('/') != std::string::npos || order.key.name.find("..") != std::string::npos) {
    return wrong("name", "a name without '/' and '..'");
  }
  if (fields.find("rawValue") != nullptr && !raw.empty()) {
    std::string bytes;
    if (!absl::Base64Unescape(raw, &bytes)) return wrong("rawValue", "base64");
    order.value = std::move(bytes);
  } else if (fields.find("value") != nullptr) {
    order.value = value;
  }
  return order;
}

absl::StatusOr<std::vector<Alert>> read_alerts(std::string_view text) {
  const absl::StatusOr<json> object = read_object(text);
  if (!object.ok()) return object.status();
  const auto alerts = object->find("alerts");
  if (alerts == object->end() || !alerts->is_array()) return wrong("alerts", "a list");
  std::vector<Alert> all;
  for (const json& item : *alerts) {
    if (!item.is_object()) return wrong("alerts", "a list of objects");
    Fields fields(item);
    const std::string status = fields.text("status");
    const auto labels = fields.texts_by_name("labels");
    if (!fields.status().ok()) return fields.status();
    const auto name = labels.find("function_name");
    if (name == labels.end() || name->second.empty()) return wrong("alerts.labels.function_name", "a function's name");
    all.push_back({function::key_of(name->second), status == "firing"});
  }
  return all;
}

std::string status_of_function_json(const function::FunctionStatus& status, Usage usage) {
  return dump(function_json(status, usage));
}

std::string functions_json(const std::vector<function::FunctionStatus>& all) {
  json out = json::array();
  for (const function::FunctionStatus& status : all) out.push_back(function_json(status, Usage::kNo));
  return dump(out);
}

std::string secrets_json(const std::vector<function::FunctionKey>& all) {
  json out = json::array();
  for (const function::FunctionKey& key : all) out.push_back({{"name", key.name}, {"namespace", key.space}});
  return dump(out);
}

std::string names_json(const std::vector<std::string>& names) { return dump(json(names)); }

std::string namespace_json(std::string_view name) {
  return dump({{"name", name}, {"labels", {{"openfaas", "1"}}}, {"annotations", json::object()}});
}

std::string info_json() {
  utsname machine{};
  const bool known = uname(&machine) == 0;
  const json version = {{"release", base::Version()}, {"sha", base::Commit()}};
  json full = version;
  full["commit_message"] = "";
  return dump({{"provider", {{"provider", "orla"}, {"orchestration", "orla"}, {"version", version}}},
               {"version", full},
               {"arch", known ? machine.machine : "unknown"}});
}

std::string dead_calls_json(const std::vector<store::DeadCall>& calls) {
  json all = json::array();
  for (const store::DeadCall& call : calls) {
    const function::FunctionKey key = function::key_of(call.function);
    all.push_back({{"callId", call.id},
                   {"function", key.name},
                   {"namespace", key.space},
                   {"attempts", call.attempts},
                   {"lastStatus", call.status},
                   {"lastError", call.error},
                   {"firstAt", rfc3339(model::Time(call.accepted.time_since_epoch()))},
                   {"lastAt", rfc3339(model::Time(call.died.time_since_epoch()))},
                   {"bytes", call.body_bytes}});
  }
  return dump(all);
}

std::string log_line_json(const function::FunctionKey& key, const function::LogLine& line) {
  return dump({{"name", key.name},
               {"namespace", key.space},
               {"instance", line.instance},
               {"timestamp", rfc3339(model::Time(line.time.time_since_epoch()))},
               {"text", line.text}}) +
         "\n";
}

}  // namespace orla::node
