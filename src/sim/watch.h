// Looks at a simulated fleet while it runs, from outside: what nodes say to each other, how full they are, whether they
// notice what goes on. What must never be seen is a problem.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/plan.h"
#include "node/status.h"
#include "sim/event_queue.h"
#include "sim/fake_cloud_store.h"
#include "sim/fake_network.h"

namespace orla::sim {

class Watch {
 public:
  // All outlive it. `durable` is what the cloud's disk holds.
  Watch(const model::Plan& plan, const EventQueue& queue, const CloudDisk& durable);

  // What a node says, when it says it.
  void sent_up(const Wire& wire, const link::UpMessage& message);
  void sent_down(const Wire& wire, const link::DownMessage& message);
  // What arrives at a node, before it is looked at there.
  void arrives_up(const Wire& wire);
  void arrives_down(const Wire& wire, const link::DownMessage& message);

  // How a running node is, every now and then. `free_since`: neither frozen nor busy since then.
  void looked(const model::NodeSpec& node, const node::NodeStatus& status, base::SteadyTime started,
              std::uint64_t connects);
  struct End {
    bool alive = false;
    base::SteadyTime free_since{};
  };
  void looked(const Wire& wire, const End& child, const End& parent);

  // The node has lost its journal: what it publishes, and its accounts, begin anew.
  void begins_anew(const model::NodeName& node) { new_stories_.insert(node); }

  // The first problem; empty when there is none.
  const std::string& problem() const { return problem_; }

  // Chunks that an edge sent as tombstones, and the samples that they say are lost, by input.
  using ChunkName = std::tuple<model::NodeName, model::Epoch, model::Sequence>;
  using Samples = std::vector<std::pair<std::string, std::uint64_t>>;
  struct Lost {
    Samples samples;
    std::uint64_t raw_samples = 0;
  };
  const std::map<ChunkName, Lost>& tombstones() const { return tombstones_; }

  struct Peaks {
    std::uint64_t outbox_bytes = 0;
    std::uint64_t unresolved_bytes = 0;  // of one connection
    std::uint64_t parked_rows = 0;
    double connects_per_s = 0;  // of one process, after its first second
  };
  const Peaks& peaks() const { return peaks_; }

 private:
  struct Flight {
    std::uint64_t id = 0;
    std::size_t bytes = 0;
    std::vector<model::Range> ranges;  // without notes
  };
  struct Session {
    std::uint64_t last_frame = 0;
    std::vector<Flight> flights;
    std::uint64_t unresolved = 0;
    base::SteadyTime up_arrived{};
    base::SteadyTime down_arrived{};
  };
  void problem(std::string text);
  bool durable(const model::Cursor& cursor) const;
  void tells(const Wire& wire, const model::Cursor& cursor);
  void from_edge(const model::NodeSpec& node, const model::Range& range);
  static void resolve(Session& session, const std::vector<model::Cursor>& cursors);

  const model::Plan& plan_;
  const EventQueue& queue_;
  const CloudDisk& durable_;
  std::chrono::nanoseconds heartbeat_{};
  std::chrono::nanoseconds parent_timeout_{};
  std::int64_t credit_ = 0;
  std::map<link::ConnectionId, Session> sessions_;
  struct Sealed {
    base::Digest chain_before;
    base::Digest chain_after;
  };
  std::map<ChunkName, Sealed> sealed_;
  std::map<ChunkName, Lost> tombstones_;
  struct Said {
    model::Sequence sequence = 0;
    std::map<std::string, model::Time> publications;
    std::map<std::string, std::uint64_t> received;
  };
  std::map<std::pair<model::NodeName, model::Epoch>, Said> said_;
  std::set<model::NodeName> new_stories_;
  bool doubled_ = false;  // some frame arrived twice
  Peaks peaks_;
  std::string problem_;
};

}  // namespace orla::sim
