// orla fn deploy IMAGE
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/absl_view.h"
#include "base/files.h"
#include "fn.h"

namespace orla::apps {

namespace {

constexpr std::size_t kMaxModuleBytes = 256 << 20;

struct Options {
  GatewayOptions gateway;
  std::string image;
  std::string image_option;
  std::string name;
  std::string process;
  std::string copy_to;
  std::vector<std::string> environment;
  std::vector<std::string> labels;
  std::vector<std::string> annotations;
  std::vector<std::string> secrets;
  std::vector<std::string> constraints;
  std::string memory;
  std::string cpu;
  bool read_only = false;
  bool replace = false;
  bool only_new = false;
};

// A module that is not under the node's images directory yet is put there; its name is then the image.
std::optional<std::string> copied(const Gateway& gateway, const Options& o, const std::string& image) {
  const std::filesystem::path from = image;
  if (from.extension() != ".wasm") {
    gateway.complain(fmt::format("--copy-to copies one .wasm file; found {}", image));
    return std::nullopt;
  }
  const absl::StatusOr<std::string> bytes = base::read_file(from, kMaxModuleBytes);
  absl::Status done = bytes.status();
  if (done.ok()) done = base::make_directories(o.copy_to);
  if (done.ok()) done = base::write_file_atomically(std::filesystem::path(o.copy_to) / from.filename(), *bytes);
  if (!done.ok()) {
    gateway.complain(base::message(done));
    return std::nullopt;
  }
  return from.filename().string();
}

int deploy(const Options& o) {
  const std::optional<Gateway> gateway = Gateway::open(o.gateway, "deploy");
  if (!gateway) return kUsage;
  std::string image = o.image.empty() ? o.image_option : o.image;
  if (image.empty() || (!o.image.empty() && !o.image_option.empty())) {
    gateway->complain("give the image once: IMAGE or --image IMAGE");
    return kUsage;
  }
  const auto environment = read_pairs("deploy", "--env", o.environment);
  const auto labels = read_pairs("deploy", "--label", o.labels);
  const auto annotations = read_pairs("deploy", "--annotation", o.annotations);
  if (!environment || !labels || !annotations) return kUsage;
  if (o.replace && o.only_new) {
    gateway->complain("--replace and --only-new exclude each other");
    return kUsage;
  }
  // Of a registry's path without its tag, so that what is wrong is said of the image.
  const std::string stem = std::filesystem::path(image).stem().string();
  const std::string name = o.name.empty() ? stem.substr(0, stem.find_first_of(":@")) : o.name;
  if (!o.copy_to.empty()) {
    const std::optional<std::string> there = copied(*gateway, o, image);
    if (!there) return kFailed;
    image = *there;
  }

  nlohmann::json body = {{"service", name}, {"image", image}};
  if (!gateway->space().empty()) body["namespace"] = gateway->space();
  if (!o.process.empty()) body["envProcess"] = o.process;
  if (!environment->empty()) body["envVars"] = *environment;
  if (!labels->empty()) body["labels"] = *labels;
  if (!annotations->empty()) body["annotations"] = *annotations;
  if (!o.secrets.empty()) body["secrets"] = o.secrets;
  if (!o.constraints.empty()) body["constraints"] = o.constraints;
  if (!o.memory.empty()) body["limits"]["memory"] = o.memory;
  if (!o.cpu.empty()) body["limits"]["cpu"] = o.cpu;
  if (o.read_only) body["readOnlyRootFilesystem"] = true;

  const node::GatewayAsk update{.method = "PUT",
                                .target = "/system/functions",
                                .headers = {{"Content-Type", "application/json"}},
                                .body = body.dump(),
                                .patience = std::chrono::minutes(5),
                                .piece = {}};
  node::GatewayAsk create = update;
  create.method = "POST";
  if (o.replace) {
    nlohmann::json what = {{"functionName", name}};
    if (!gateway->space().empty()) what["namespace"] = gateway->space();
    node::GatewayAsk removal = update;
    removal.method = "DELETE";
    removal.body = what.dump();
    const absl::StatusOr<node::GatewayReply> removed = gateway->send(removal);
    if (!removed.ok()) {
      gateway->complain(base::message(removed.status()));
      return kFailed;
    }
    if (removed->status >= 400 && removed->status != 404) {
      gateway->complain(*removed);
      return kFailed;
    }
  }
  absl::StatusOr<node::GatewayReply> reply = gateway->send(o.replace || o.only_new ? create : update);
  if (reply.ok() && reply->status == 404 && !o.replace && !o.only_new) reply = gateway->send(create);
  if (!reply.ok()) {
    gateway->complain(base::message(reply.status()));
    return kFailed;
  }
  if (reply->status >= 400) {
    gateway->complain(*reply);
    return kFailed;
  }
  const std::string where =
      fmt::format("{}/function/{}{}{}", gateway->url(), name, gateway->space().empty() ? "" : ".", gateway->space());
  if (gateway->json()) {
    fmt::print("{}\n", nlohmann::json{{"name", name}, {"status", reply->status}, {"url", where}}.dump());
    return kOk;
  }
  fmt::print("Deployed {}: {}\n", name, where);
  if (!reply->body.empty()) fmt::print("{}{}", reply->body, reply->body.back() == '\n' ? "" : "\n");
  return kOk;
}

}  // namespace

void add_fn_deploy(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = fn.add_subcommand("deploy", "Deploy a function, or change one");
  Options& o = *options;
  command->add_option("IMAGE", o.image, "native/NAME, or a path under the images directory of the gateway's node");
  command->add_option("--image", o.image_option, "The same, as faas-cli has it");
  command->add_option("--name", o.name, "Name of the function; else that of the image");
  command->add_option("-e,--env", o.environment, "KEY=VALUE of its environment")->allow_extra_args(false);
  command->add_option("-l,--label", o.labels, "KEY=VALUE, e.g. com.openfaas.scale.max=4")->allow_extra_args(false);
  command->add_option("--annotation", o.annotations, "KEY=VALUE")->allow_extra_args(false);
  command->add_option("--secret", o.secrets, "Name of a secret it may read")->allow_extra_args(false);
  command->add_option("--constraint", o.constraints, "Where it may run")->allow_extra_args(false);
  command->add_option("--fprocess,--env-process", o.process, "Command line of a process function");
  command->add_option("--memory-limit", o.memory, "e.g. 64Mi");
  command->add_option("--cpu-limit", o.cpu, "e.g. 500m");
  command->add_flag("--readonly", o.read_only, "Its root file system is read only");
  command->add_flag("--replace", o.replace, "Remove it first, then deploy");
  command->add_flag("--only-new", o.only_new, "Fail when it exists (else it is updated without a failed call)");
  command->add_option("--copy-to", o.copy_to,
                      "IMAGE is a .wasm file of this machine: copy it into this directory first, the images directory");
  add_gateway_options(*command, o.gateway);
  command->footer(
      "Examples:\n  orla fn deploy native/matrix --name matrix\n"
      "  orla fn deploy hello/hello.wasm --copy-to orla-images --label com.openfaas.scale.zero=true\n\n"
      "The image lies under the images directory of the node that has the gateway; any other path is refused there.");
  command->callback([options, &chosen] { chosen.run = [options] { return deploy(*options); }; });
}

}  // namespace orla::apps
