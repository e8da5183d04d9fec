// One connection over gRPC: what the child's and the parent's end of a stream have in common. Bytes of messages wait
// here to be written, large ones in pieces, as fast as the link carries them, and are read as fast as the loop takes
// them. While the loop is busy, heartbeats go on from here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "link/carrier.h"
#include "link/grpc_thread.h"
#include "link/pieces.h"
#include "link/send_queue.h"
#include "link/send_window.h"

namespace orla::link {

// Messages read and not yet handled by the loop: reading pauses beyond, and the peer's writes with it.
inline constexpr std::size_t kMaxUndeliveredBytes = 8 << 20;
inline constexpr std::size_t kMaxUndeliveredMessages = 1'024;

// Keeps itself alive from begun() until its end. Public methods on any thread.
class GrpcCall : public GrpcThread::Ticking, public std::enable_shared_from_this<GrpcCall> {
 public:
  // Called on the carrier's thread, or inside a method of the call; hands everything on to the loop. Outlives the
  // calls.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void opened(const std::shared_ptr<GrpcCall>& call) = 0;
    // Not OK: the bytes are no message; the call fails with it. Otherwise delivered(bytes.size()) follows.
    virtual absl::Status received(const std::shared_ptr<GrpcCall>& call, std::string_view bytes) = 0;
    // The peer lives: part of a message has come, or a confirmation.
    virtual void heard(const std::shared_ptr<GrpcCall>& call) = 0;
    virtual void ended(const std::shared_ptr<GrpcCall>& call, const absl::Status& why) = 0;
    // The bytes of a heartbeat, as long as the loop may be spoken for. Asked again and again, needed or not.
    virtual std::optional<std::string> heartbeat(base::SteadyTime now) = 0;
    // How often a peer has to hear one.
    virtual std::chrono::nanoseconds heartbeat_interval() const = 0;
  };

  GrpcCall(GrpcThread& thread, Owner& owner, ConnectionId id);
  ~GrpcCall() override = default;
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  ConnectionId id() const { return id_; }
  // False: more than kMaxQueuedBytes would wait. Nothing happens when the call is about to end.
  [[nodiscard]] bool send(std::string bytes, Precedence precedence);
  // Sends what waits, then ends with OK.
  void close();
  // Ends with `why`; what waits is not sent. An end that was chosen before keeps its reason.
  void fail(const absl::Status& why);
  // fail(), unless the peer has answered.
  void fail_unless_open(const absl::Status& why);
  // Ends whatever the peer does.
  void cut();
  void delivered(std::size_t bytes);
  std::size_t queued_bytes() const;
  // Sends a heartbeat if the peer has been told nothing for long.
  void tick(base::SteadyTime now) override;

 protected:
  // The two ends. All are called with the lock held; what is begun completes on the carrier's thread, later, by the
  // matching *_done().
  virtual void begin_read() = 0;
  struct Outgoing {
    std::string bytes;
    bool marked = false;        // kMark comes before them
    bool more_follows = false;  // for certain
  };
  virtual void begin_write(Outgoing outgoing) = 0;
  // Everything has been sent and this end wants to go. True: finish() comes next; false: the peer has been told.
  virtual bool begin_close() = 0;
  virtual void begin_finish(const absl::Status& why) = 0;
  virtual void try_cancel() = 0;
  // The child's end: it may finish while a write is under way, and has to cancel what the parent has not ended.
  virtual bool is_caller() const = 0;
  // Gives back everything of gRPC. Nothing is called after it.
  virtual void release() = 0;

  // From the moment the first operation is begun.
  void begun();
  // The peer has answered, or not.
  void start_done(bool ok);
  // `bytes` are of the message, when ok.
  void read_done(bool ok, std::string_view bytes);
  void write_done(bool ok);
  // Of begin_close(), when it returned false.
  void close_done();
  void finish_done(const absl::Status& how);
  // The call is known to fail before anything was begun but begun().
  void refuse(const absl::Status& why);

  GrpcThread& thread_;

 private:
  enum class Phase : std::uint8_t { kStarting, kOpen, kFinishing, kFinished, kOver };
  using Lock = std::unique_lock<std::mutex>;
  // What one read of gRPC has brought.
  absl::Status take(std::string_view bytes);
  absl::Status deliver(std::string_view message);
  void peer_lives();
  // With the lock held, as advance().
  bool data_waits() const { return !cutting_.empty() || !queue_.empty(); }
  bool may_write() const;
  void write_next();
  std::string next_data();
  void drop_queue();
  // Begins whatever can be begun. Returns the last reference once the call is over.
  [[nodiscard]] std::shared_ptr<GrpcCall> advance();
  // Unlocks, then lets go of the call if it is over.
  void settle(Lock lock);

  Owner& owner_;
  const ConnectionId id_;
  mutable std::mutex mutex_;
  std::shared_ptr<GrpcCall> self_;  // guarded by mutex_, as all below
  Phase phase_ = Phase::kStarting;
  int operations_ = 0;  // begun and not done, `start` and `finish` apart
  bool reading_ = false;
  bool read_ended_ = false;  // nothing more comes from the peer
  bool writing_ = false;
  bool write_failed_ = false;
  bool closing_ = false;
  bool close_begun_ = false;
  bool failed_ = false;
  bool cancelled_ = false;
  bool greeted_ = false;  // a greeting has been written: heartbeats may follow
  std::size_t writing_bytes_ = 0;
  std::size_t undelivered_bytes_ = 0;
  std::size_t undelivered_messages_ = 0;
  SendQueue<std::string> queue_;
  std::string cutting_;  // a message of which the first cut_bytes_ have been written
  std::size_t cut_bytes_ = 0;
  SendWindow window_;
  std::uint64_t read_bytes_ = 0;
  std::optional<std::uint64_t> confirm_;  // what is to be told to the peer
  base::SteadyTime written_{};            // the last time
  std::optional<absl::Status> reason_;    // chosen on this side
  absl::Status finish_;
  const base::SystemClock clock_;
  // Of the carrier's thread, while a read is handled.
  PieceJoiner joiner_;
  base::SteadyTime told_alive_{};
};

}  // namespace orla::link
