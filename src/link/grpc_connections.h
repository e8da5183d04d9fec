// The connections of a gRPC carrier as the loop sees them; the same for both sides.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/logger.h"
#include "base/loop.h"
#include "link/carrier.h"
#include "link/grpc_call.h"
#include "link/grpc_options.h"
#include "link/proto_codec.h"

namespace orla::link {

// In and Out: the messages that come and that go. Calls report on their thread; everything else is on the loop.
// Outlives the calls.
template <typename In, typename Out>
class GrpcConnections final : public GrpcCall::Owner {
 public:
  struct Events {
    std::function<void(ConnectionId)> opened;
    std::function<void(ConnectionId, In)> message;
    std::function<void(ConnectionId, absl::Status)> closed;
  };
  using Decode = absl::StatusOr<std::optional<In>> (*)(std::string_view bytes);

  GrpcConnections(base::Loop& loop, base::Logger& logger, GrpcOptions options, Decode decode)
      : loop_(loop),
        logger_(logger),
        options_(options),
        decode_(decode),
        heartbeat_(encode(Out(Heartbeat{})).value().front()),
        state_(std::make_shared<State>()),
        watch_(std::make_shared<LoopWatch>()) {
    watch_->ran = clock_.steady_now();
  }

  void set_events(Events events) { state_->events = std::move(events); }
  // On any thread.
  ConnectionId new_id() { return ConnectionId{next_id_++}; }
  // A call that may report.
  void add(const std::shared_ptr<GrpcCall>& call) { state_->calls.emplace(call->id(), Entry{call}); }

  void send(ConnectionId id, Out message) {
    GrpcCall* const call = find(id);
    if (call == nullptr) return;
    const Precedence first = precedence(message);
    absl::StatusOr<std::vector<std::string>> encoded = encode(std::move(message));
    if (!encoded.ok()) {
      logger_.error("connection {} is ended, a message cannot be sent: {}", static_cast<std::uint64_t>(id),
                    std::string(encoded.status().message()));
      return fail(*call, encoded.status());
    }
    for (std::string& bytes : *encoded) {
      if (call->send(std::move(bytes), first)) continue;
      return fail(*call, absl::ResourceExhaustedError("the peer does not take what is sent: the queue is full"));
    }
  }

  void close(ConnectionId id) {
    GrpcCall* const call = find(id);
    if (call == nullptr) return;
    state_->calls.at(id).closing = true;
    call->close();
    cut_later(*call);
  }

  // Ends every connection.
  void fail_all(const absl::Status& why) {
    for (auto& [id, entry] : state_->calls) {
      entry.closing = true;
      entry.call->fail(why);
    }
  }

  std::size_t queued_bytes(ConnectionId id) const {
    const auto found = state_->calls.find(id);
    return found == state_->calls.end() ? 0 : found->second.call->queued_bytes();
  }

  void fail(GrpcCall& call, const absl::Status& why) {
    call.fail(why);
    cut_later(call);
  }

  // Says `why` of a connection that never had a call.
  void post_closed(ConnectionId id, absl::Status why) {
    loop_.post([weak = std::weak_ptr<State>(state_), id, why = std::move(why)] {
      const std::shared_ptr<State> state = weak.lock();
      if (state && state->events.closed) state->events.closed(id, why);
    });
  }

  // ---- GrpcCall::Owner ----

  void opened(const std::shared_ptr<GrpcCall>& call) override {
    loop_.post([weak = std::weak_ptr<State>(state_), call] {
      const std::shared_ptr<State> state = weak.lock();
      if (!state) return;
      const auto at = state->calls.try_emplace(call->id(), Entry{call}).first;
      if (!at->second.closing && state->events.opened) state->events.opened(call->id());
    });
  }

  absl::Status received(const std::shared_ptr<GrpcCall>& call, std::string_view bytes) override {
    absl::StatusOr<std::optional<In>> message = decode_(bytes);
    if (!message.ok()) return message.status();
    loop_.post(
        [weak = std::weak_ptr<State>(state_), call, size = bytes.size(), message = *std::move(message)]() mutable {
          const std::shared_ptr<State> state = weak.lock();
          if (!state) return;
          const auto found = state->calls.find(call->id());
          if (message.has_value() && found != state->calls.end() && !found->second.closing && state->events.message) {
            state->events.message(call->id(), *std::move(message));
          }
          call->delivered(size);
        });
    return absl::OkStatus();
  }

  void heard(const std::shared_ptr<GrpcCall>& call) override {
    loop_.post([weak = std::weak_ptr<State>(state_), id = call->id()] {
      const std::shared_ptr<State> state = weak.lock();
      if (!state) return;
      const auto found = state->calls.find(id);
      if (found != state->calls.end() && !found->second.closing && state->events.message) {
        state->events.message(id, In(Heartbeat{}));
      }
    });
  }

  std::optional<std::string> heartbeat(base::SteadyTime now) override {
    if (!watch_->asked.exchange(true)) {
      loop_.post([watch = watch_] {
        watch->ran = base::SystemClock().steady_now();
        watch->asked = false;
      });
    }
    if (now - watch_->ran.load() > options_.stall_limit) return std::nullopt;
    return heartbeat_;
  }

  std::chrono::nanoseconds heartbeat_interval() const override { return options_.heartbeat; }

  void ended(const std::shared_ptr<GrpcCall>& call, const absl::Status& why) override {
    loop_.post([weak = std::weak_ptr<State>(state_), id = call->id(), why] {
      const std::shared_ptr<State> state = weak.lock();
      if (state && state->calls.erase(id) > 0 && state->events.closed) state->events.closed(id, why);
    });
  }

 private:
  struct Entry {
    std::shared_ptr<GrpcCall> call;  // also held by itself until its end
    bool closing = false;            // this side has ended it
  };
  struct State {  // the loop's tasks find out through a weak pointer that the carrier is gone
    Events events;
    std::map<ConnectionId, Entry> calls;
  };

  // When the loop ran something last, as far as it has been asked.
  struct LoopWatch {
    std::atomic<base::SteadyTime> ran;
    std::atomic<bool> asked = false;
  };

  GrpcCall* find(ConnectionId id) {
    const auto found = state_->calls.find(id);
    return found == state_->calls.end() || found->second.closing ? nullptr : found->second.call.get();
  }
  void cut_later(GrpcCall& call) {
    loop_.post_after(options_.close_grace, [weak = call.weak_from_this()] {
      if (const std::shared_ptr<GrpcCall> still = weak.lock()) still->cut();
    });
  }

  base::Loop& loop_;
  base::Logger& logger_;
  const GrpcOptions options_;
  const Decode decode_;
  const std::string heartbeat_;
  const base::SystemClock clock_;
  std::atomic<std::uint64_t> next_id_ = 1;
  const std::shared_ptr<State> state_;
  const std::shared_ptr<LoopWatch> watch_;
};

}  // namespace orla::link
