// The host: the table of functions, and what people do with them. Calls go on in HostedFunction.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "function/host.h"
#include "function/host_context.h"
#include "function/host_function.h"
#include "function/spec_files.h"

namespace orla::function {

// Replicas that died without a call are found within this.
inline constexpr std::chrono::seconds kSweepInterval{2};

class HostImpl final : public Host {
 public:
  HostImpl(HostSettings settings, const std::vector<std::unique_ptr<Runtime>>& runtimes, const base::Clock& clock,
           HostParts parts)
      : context_(std::move(settings), runtimes, clock, std::move(parts)) {}
  ~HostImpl() override;
  absl::Status take_up();

  absl::Status deploy(const FunctionSpec& spec, Deploy how) override;
  absl::Status remove(const FunctionKey& key) override;
  std::vector<FunctionStatus> list(std::string_view space) const override;
  std::optional<FunctionStatus> find(const FunctionKey& key, bool with_usage) const override;
  bool exists(const FunctionKey& key) const override { return look_up(key) != nullptr; }
  absl::StatusOr<std::uint32_t> scale(const FunctionKey& key, std::uint32_t replicas) override;
  absl::Status alert(const FunctionKey& key, bool firing) override;
  void set_queue_length(const FunctionKey& key, std::uint64_t waiting) override;
  void invoke(const FunctionKey& key, std::shared_ptr<Invocation> invocation, InvokeDone done) override;
  void count(const FunctionKey& key, int status, double seconds) override;
  std::vector<std::pair<FunctionKey, FunctionCounts>> counts() const override;
  std::vector<FunctionKey> secrets(std::string_view space) const override { return context_.secrets->list(space); }
  absl::Status add_secret(const FunctionKey& key, std::string_view value) override;
  absl::Status change_secret(const FunctionKey& key, std::string_view value) override;
  absl::Status remove_secret(const FunctionKey& key) override;
  absl::StatusOr<std::vector<LogLine>> logs(const FunctionKey& key, const LogQuery& query) const override;
  absl::StatusOr<std::shared_ptr<void>> follow(const FunctionKey& key, std::function<void(const LogLine&)> line,
                                               std::function<void()> end) override;
  void drain(std::chrono::nanoseconds timeout) override;

 private:
  using FunctionPtr = std::shared_ptr<HostedFunction>;
  struct KeyHash {
    std::size_t operator()(const FunctionKey& key) const;
  };
  class Sweep;

  FunctionPtr look_up(const FunctionKey& key) const;
  std::vector<FunctionPtr> in_any_order() const;
  std::vector<FunctionPtr> all() const;  // by key
  std::mutex& changes_of(const FunctionKey& key);
  absl::Status check_not_draining() const;
  // Without loading it.
  absl::StatusOr<std::shared_ptr<Generation>> generation_of(const FunctionSpec& spec, LogSink* log);
  void take_up_one(const Deployed& deployed);
  absl::Status save(HostedFunction& function, std::uint32_t replicas);
  void save_scales();

  HostContext context_;
  std::optional<SpecFiles> specs_;
  std::shared_ptr<Sweep> sweep_;
  std::array<std::mutex, 64> changes_;  // deployments of one function are one after the other
  mutable std::shared_mutex mutex_;     // guards functions_ and saved_
  std::unordered_map<FunctionKey, FunctionPtr, KeyHash> functions_;
  std::unordered_map<FunctionKey, std::uint32_t, KeyHash> saved_;  // replicas, as in the file
  bool drained_ = false;
  std::mutex drain_mutex_;
};

}  // namespace orla::function
