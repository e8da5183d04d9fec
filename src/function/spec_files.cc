#include "function/spec_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/absl_view.h"
#include "base/hash.h"

namespace orla::function {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEnd = ".json";
constexpr int kFormat = 1;

std::string name_of(const FunctionKey& key) { return key.text() + std::string(kEnd); }

std::string digest_of(const std::string& text) {
  const base::Digest digest = base::digest(text);
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

void put(Json& to, const char* name, const std::string& value) {
  if (!value.empty()) to[name] = value;
}
template <typename Container>
void put_all(Json& to, const char* name, const Container& values) {
  if (!values.empty()) to[name] = values;
}
void put_resources(Json& to, const char* name, const Resources& resources) {
  if (resources == Resources{}) return;
  to[name] = Json::object();
  put(to[name], "memory", resources.memory);
  put(to[name], "cpu", resources.cpu);
}

Resources resources_of(const Json& spec, const char* name) {
  if (!spec.contains(name)) return {};
  return {.memory = spec[name].value("memory", std::string()), .cpu = spec[name].value("cpu", std::string())};
}

}  // namespace

std::string encode_deployed(const Deployed& deployed) {
  const FunctionSpec& spec = deployed.spec;
  Json fields = Json::object();
  put(fields, "service", spec.key.name);
  put(fields, "namespace", spec.key.space);
  put(fields, "image", spec.image);
  put(fields, "envProcess", spec.env_process);
  put_all(fields, "envVars", spec.environment);
  put_all(fields, "constraints", spec.constraints);
  put_all(fields, "secrets", spec.secrets);
  put_all(fields, "labels", spec.labels);
  put_all(fields, "annotations", spec.annotations);
  put_resources(fields, "limits", spec.limits);
  put_resources(fields, "requests", spec.requests);
  if (spec.read_only_root) fields["readOnlyRootFilesystem"] = true;
  const Json whole = {{"format", kFormat},
                      {"spec", fields},
                      {"replicas", deployed.replicas},
                      {"created", deployed.created.time_since_epoch().count()}};
  // Text that is not UTF-8 is refused where specs come in; here it must not end the program.
  const std::string text = whole.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{{\"digest\":\"{}\",\"deployed\":{}}}\n", digest_of(text), text);
}

absl::StatusOr<Deployed> decode_deployed(std::string_view text) {
  const Json file = Json::parse(text, nullptr, false);
  if (file.is_discarded() || !file.is_object() || !file.contains("digest") || !file.contains("deployed")) {
    return absl::DataLossError("it is not a JSON object with \"digest\" and \"deployed\"");
  }
  const Json& whole = file["deployed"];
  if (file["digest"] != digest_of(whole.dump(-1, ' ', false, Json::error_handler_t::replace))) {
    return absl::DataLossError("its digest is not that of its content");
  }
  try {
    if (whole.at("format") != kFormat) {
      return absl::DataLossError(
          fmt::format("its format is {}; this version knows {}", whole.at("format").dump(), kFormat));
    }
    Deployed deployed;
    deployed.replicas = whole.at("replicas").get<std::uint32_t>();
    deployed.created = base::WallTime(std::chrono::nanoseconds(whole.at("created").get<std::int64_t>()));
    const Json& fields = whole.at("spec");
    FunctionSpec& spec = deployed.spec;
    spec.key = {fields.at("service").get<std::string>(), fields.at("namespace").get<std::string>()};
    spec.image = fields.value("image", std::string());
    spec.env_process = fields.value("envProcess", std::string());
    spec.environment = fields.value("envVars", spec.environment);
    spec.constraints = fields.value("constraints", spec.constraints);
    spec.secrets = fields.value("secrets", spec.secrets);
    spec.labels = fields.value("labels", spec.labels);
    spec.annotations = fields.value("annotations", spec.annotations);
    spec.limits = resources_of(fields, "limits");
    spec.requests = resources_of(fields, "requests");
    spec.read_only_root = fields.value("readOnlyRootFilesystem", false);
    return deployed;
  } catch (const Json::exception& error) {
    return absl::DataLossError(fmt::format("a field is not as expected: {}", error.what()));
  }
}

absl::StatusOr<SpecFiles> SpecFiles::open(std::filesystem::path folder) {
  auto opened = base::FileFolder::open(std::move(folder));
  if (!opened.ok()) return opened.status();
  return SpecFiles(*std::move(opened));
}

absl::StatusOr<std::vector<Deployed>> SpecFiles::load(base::Logger& log) const {
  const auto names = folder_.list();
  if (!names.ok()) return names.status();
  std::vector<Deployed> all;
  for (const std::string& name : *names) {
    const auto text = folder_.read(name, kMaxSpecBytes);
    absl::StatusOr<Deployed> deployed = text.ok() ? decode_deployed(*text) : absl::StatusOr<Deployed>(text.status());
    if (deployed.ok() && name_of(deployed->spec.key) != name) {
      deployed = absl::DataLossError(fmt::format("it is of the function {}", deployed->spec.key.text()));
    }
    if (deployed.ok()) {
      all.push_back(*std::move(deployed));
      continue;
    }
    const absl::Status aside = folder_.set_aside(name);
    log.error("the deployed function in \"{}\" cannot be taken up: {}. {}; deploy it again",
              (folder_.path() / name).native(), base::message(deployed.status()),
              aside.ok() ? "The file is kept beside it as .damaged-" + name : base::message(aside));
  }
  return all;
}

absl::Status SpecFiles::save(const Deployed& deployed) const {
  const std::string text = encode_deployed(deployed);
  if (text.size() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(
        fmt::format("what is to be deployed has {} bytes; at most {} are kept", text.size(), kMaxSpecBytes));
  }
  return folder_.write(name_of(deployed.spec.key), text, base::FileMode::kOwner);
}

absl::Status SpecFiles::remove(const FunctionKey& key) const { return folder_.remove(name_of(key)); }

}  // namespace orla::function
