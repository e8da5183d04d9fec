#include "sim/pusher.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kTimeout{1500};    // how long a sender waits for an answer
constexpr std::uint64_t kLosesOneIn = 6;  // answers

node::Push make(const Pusher::Plan& plan, std::size_t which, ingest::SeriesTable& table) {
  node::Push push;
  model::InputBatch& batch = push.batch;
  for (const Pusher::Sample& sample : plan.pushes[which]) {
    const std::optional<model::SeriesId> id = table.number(plan.series[sample.series]);
    const auto at = static_cast<std::uint32_t>(batch.samples.times.size());
    batch.samples.runs.push_back({*id, at, at + 1});
    batch.samples.times.push_back(sample.time);
    batch.samples.values.push_back(sample.value);
  }
  batch.received = batch.samples.times.size();
  batch.position = {batch.received * 40, batch.received};
  push.bytes = batch.received * 40;
  if (plan.resends == Resends::kNumbered) {
    batch.producer = plan.name;
    batch.producer_sequence = which + 1;
  }
  return push;
}

}  // namespace

Pusher::Pusher(EventQueue& queue, base::Random& random, Plan plan, Deliver deliver)
    : queue_(queue), random_(random), plan_(std::move(plan)), deliver_(std::move(deliver)) {}

void Pusher::start() { again(milliseconds(1 + random_.below(800))); }

void Pusher::again(milliseconds pause) {
  queue_.after(pause, [this, attempt = attempt_] {
    if (attempt == attempt_) send();
  });
}

void Pusher::send() {
  if (done()) return;
  const std::uint64_t attempt = ++attempt_;
  const std::size_t which = next_;
  ++tries_;
  sent_samples_ += plan_.pushes[which].size();
  const bool there = deliver_([this, which](ingest::SeriesTable& table) { return make(plan_, which, table); },
                              [this, attempt](const node::PushOutcome& outcome) {
                                if (!healed_ && random_.below(kLosesOneIn) == 0) return;
                                queue_.after(milliseconds(1 + random_.below(20)),
                                             [this, attempt, outcome] { answered(attempt, outcome); });
                              });
  if (!there) return again(milliseconds(100 + random_.below(400)));
  queue_.after(kTimeout, [this, attempt] {
    if (attempt == attempt_) send();
  });
}

void Pusher::answered(std::uint64_t attempt, const node::PushOutcome& outcome) {
  if (attempt != attempt_) return;  // to a try that was given up
  using Kind = node::PushOutcome::Kind;
  if (outcome.kind == Kind::kDuplicate && (tries_ == 1 || plan_.resends == Resends::kAnyhow)) {
    problem_ = fmt::format("{} is told that push {} was sent before; it was not", plan_.name, next_ + 1);
  }
  if (outcome.kind != Kind::kKept && outcome.kind != Kind::kDuplicate) {
    ++attempt_;
    return again(milliseconds(50 + random_.below(400)));
  }
  acknowledged_samples_ += plan_.pushes[next_].size();
  ++next_;
  ++attempt_;
  tries_ = 0;
  if (acknowledged) acknowledged(acknowledged_samples_);
  again(milliseconds(1 + random_.below(250)));
}

std::vector<Pusher::Plan> make_pushes(base::Random& random, const std::string& input, int number) {
  std::vector<Pusher::Plan> plans;
  const std::uint64_t numbered = 1 + random.below(2);
  for (std::uint64_t p = 0; p <= numbered; ++p) {
    Pusher::Plan& plan = plans.emplace_back();
    plan.input = input;
    plan.name = fmt::format("{} sender {}", input, p);
    plan.resends = p < numbered ? Resends::kNumbered : Resends::kAnyhow;
    const std::string metric = plan.resends == Resends::kNumbered ? "load" : "work";
    const std::uint64_t series = 1 + random.below(3);
    for (std::uint64_t s = 0; s < series; ++s) {
      plan.series.push_back({metric,
                             {{"house", std::to_string(random.below(3))},
                              {"household", fmt::format("pushed-{}-{}", number, p)},
                              {"plug", std::to_string(s)}}});
    }
    model::Time now = model::from_ns(1'382'835'000'000'000'000) + seconds(random.below(600));
    const std::uint64_t pushes = 3 + random.below(20);
    for (std::uint64_t i = 0; i < pushes; ++i) {
      std::vector<Pusher::Sample>& samples = plan.pushes.emplace_back();
      const std::uint64_t n = 1 + random.below(6);
      for (std::uint64_t k = 0; k < n; ++k) {
        now += seconds(random.below(30));
        Pusher::Sample sample;
        sample.series = static_cast<std::uint32_t>(random.below(series));
        sample.time = now;
        sample.value = static_cast<double>(random.below(700'000)) / 1000;
        const std::uint64_t fate = random.below(20);
        if (fate == 0) sample.time -= seconds(random.below(5000));
        if (fate == 1 && plan.resends == Resends::kNumbered) {
          sample.future = true;
          sample.time = model::from_ns(7'000'000'000'000'000'000) + seconds(random.below(5000));
        }
        samples.push_back(sample);
      }
    }
  }
  return plans;
}

}  // namespace orla::sim
