// What the inputs of a simulated fleet say: rows made up once from the seed, which the pump hands to the edges (again
// from any position) and the oracle reads at the end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/series.h"
#include "model/time.h"
#include "node/input_pump.h"
#include "sim/fake_disk.h"
#include "sim/fake_loop.h"
#include "verify/rows.h"

namespace orla::sim {

struct Script {
  struct Row {
    bool readable = true;
    bool future = false;  // pushed, and further ahead than its input allows: rejected, and not readable for the oracle
    std::uint32_t series = 0;
    model::Time time{};
    double value = 0;
  };
  std::string key;                    // of the input
  std::vector<model::Series> series;  // of the metrics load and work, in DEBS 2014's labels
  std::vector<Row> rows;              // row k of the input is rows[k-1]
};

// Mostly ahead in small steps; some equal, late, far ahead, unreadable, or of a metric that nobody declared.
Script make_script(base::Random& random, const std::string& key, int number, std::size_t rows);

// The script as the oracle reads it.
std::unique_ptr<verify::RowSource> oracle_rows(const Script& script);

// Hands the scripts of one edge over, in batches of a few rows.
class FakeInputPump final : public node::InputPump {
 public:
  // All outlive the pump.
  FakeInputPump(FakeLoop& loop, base::Random& random, const std::map<std::string, Script>& scripts, Bug bug)
      : loop_(loop), random_(random), scripts_(scripts), bug_(bug) {}
  ~FakeInputPump() override;

  void set_events(Events events) override { events_ = std::move(events); }
  void start(std::size_t input, const model::InputSpec& spec, model::Position from) override;
  void consumed(std::size_t input) override;
  model::Time paced_now(std::size_t) const override { return model::kMinTime; }
  double progress(std::size_t) const override { return -1; }
  void stop() override;

 private:
  struct Reader {
    const Script* script = nullptr;
    std::uint64_t row = 0;
    std::size_t outstanding = 0;
    bool scheduled = false;
    bool ended = false;
    std::map<std::uint32_t, model::SeriesId> ids;  // of this reading
    bool skipped = false;
  };
  void schedule(std::size_t input);
  void deliver(std::size_t input);

  FakeLoop& loop_;
  base::Random& random_;
  const std::map<std::string, Script>& scripts_;
  const Bug bug_;
  Events events_;
  std::map<std::size_t, Reader> readers_;
  std::shared_ptr<std::uint64_t> reading_ = std::make_shared<std::uint64_t>(0);  // with posted tasks: which are stale
};

}  // namespace orla::sim
