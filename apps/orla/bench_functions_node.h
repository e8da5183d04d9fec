// The node of `orla bench functions`: a process of this program with a gateway, in a folder of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/spawner.h"
#include "node/gateway_client.h"

namespace orla::apps {

struct FunctionImage {
  std::string image;  // as it is deployed
  std::string mode;   // of a process; empty: none
};

// Copies of a WebAssembly module that are other modules: a custom section holds `number`.
std::string other_module(std::string_view module, std::uint64_t number);

// One owner thread, but for deploy(). Ends the node with its life.
class FunctionsNode {
 public:
  // A node that runs; its images are to be put into images().
  static absl::StatusOr<std::unique_ptr<FunctionsNode>> start();
  // It ends well by itself.
  absl::Status stop();

  std::filesystem::path images() const { return directory_.path() / "images"; }
  const std::string& gateway() const { return gateway_; }  // HOST:PORT

  // Puts a file among the images, executable.
  absl::Status add_image(const std::string& name, std::string_view bytes) const;
  // Thread-safe.
  absl::Status deploy(const std::string& name, const FunctionImage& image) const;
  absl::Status remove(const std::string& name) const;
  // Returns when so many are ready.
  absl::Status scale(const std::string& name, std::uint32_t replicas);
  absl::Status wait_for(const std::string& name, std::uint32_t replicas);
  // All functions have a replica that is ready, and there are so many.
  absl::Status wait_for_all(std::size_t functions);

  // That it lives so much longer.
  absl::Status pause(std::chrono::nanoseconds time);

  // User and system time, of it and of the processes that it has waited for.
  absl::StatusOr<double> cpu_seconds() const;
  absl::StatusOr<std::uint64_t> resident_bytes() const;
  // Whether one of the files it has mapped has `part` in its path.
  absl::StatusOr<bool> has_mapped(std::string_view part) const;

 private:
  explicit FunctionsNode(base::TemporaryDirectory directory) : directory_(std::move(directory)) {}
  absl::Status spawn();
  absl::Status check() const;
  absl::StatusOr<std::string> ask(const std::string& method, const std::string& target, std::string body,
                                  int expected) const;

  const base::TemporaryDirectory directory_;
  const base::SystemClock clock_;
  base::SystemSpawner spawner_;
  std::unique_ptr<base::ChildProcess> child_;
  std::string gateway_;
  std::optional<node::GatewayClient> client_;
};

}  // namespace orla::apps
