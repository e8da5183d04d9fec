#include "bench_ladder_edge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "codec/packed.h"
#include "ingest/input.h"
#include "load.h"
#include "node/node_process.h"

namespace orla::apps {

namespace {

struct Options {
  std::string fleet;
  std::string node;
  std::string state;
  std::string go;
  std::uint32_t edge = 0;
  LadderLoad load;
};

// Frames as a network delivers them, decoded; several small ones make one batch of the engine's.
class FramesInput final : public ingest::Input {
 public:
  FramesInput(LadderFrames frames, std::vector<model::Series> series, std::string go)
      : frames_(std::move(frames)), series_(std::move(series)), go_(std::move(go)) {}

  absl::StatusOr<bool> next(model::InputBatch& out) override {
    out.new_series.clear();
    if (!started_) {
      started_ = true;
      if (absl::Status status = wait_for_go(); !status.ok()) return status;
      out.new_series = std::exchange(series_, {});
    }
    model::Batch& samples = out.samples;
    samples.clear();
    while (samples.size() < kBatch && at_ + 1 < frames_.begins.size()) {
      const std::string_view frame(frames_.bytes.data() + frames_.begins[at_],
                                   frames_.begins[at_ + 1] - frames_.begins[at_]);
      model::Batch& to = samples.size() == 0 ? samples : frame_;
      if (absl::Status status = decoder_.decode(frame, to); !status.ok()) return status;
      if (&to == &frame_ && !append(frame_, samples)) break;  // decoded again, for the next batch
      ++at_;
    }
    out.received = samples.size();
    row_ += out.received;
    out.position = {frames_.begins[at_], row_};
    out.end_of_input = at_ + 1 == frames_.begins.size();
    return true;
  }

  double progress() const override {
    return static_cast<double>(frames_.begins[at_]) / static_cast<double>(frames_.begins.back());
  }

 private:
  static constexpr std::size_t kBatch = 16 * 1024;

  absl::Status wait_for_go() const {
    const base::FileDescriptor pipe(open(go_.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    if (pipe.get() < 0 || read(pipe.get(), &byte, 1) != 1) return base::errno_status(errno, "waiting at " + go_);
    return absl::OkStatus();
  }

  // False when the two do not have the same form.
  static bool append(const model::Batch& from, model::Batch& to) {
    if (from.paces.empty() != to.paces.empty() || from.scaled.empty() != to.scaled.empty() ||
        from.decimals != to.decimals)
      return false;
    const auto offset = static_cast<std::uint32_t>(to.size());
    const std::size_t before = to.runs.size();
    to.runs.resize(before + from.runs.size());
    std::transform(from.runs.begin(), from.runs.end(), to.runs.begin() + static_cast<std::ptrdiff_t>(before),
                   [offset](const model::Batch::Run& run) {
                     return model::Batch::Run{run.series, run.begin + offset, run.end + offset};
                   });
    to.times.insert(to.times.end(), from.times.begin(), from.times.end());
    to.paces.insert(to.paces.end(), from.paces.begin(), from.paces.end());
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
    to.scaled.insert(to.scaled.end(), from.scaled.begin(), from.scaled.end());
    return true;
  }

  const LadderFrames frames_;
  std::vector<model::Series> series_;
  const std::string go_;
  bool started_ = false;
  std::size_t at_ = 0;  // the next frame
  std::uint64_t row_ = 0;
  codec::PackedDecoder decoder_;
  model::Batch frame_;
};

absl::StatusOr<std::unique_ptr<ingest::Input>> make_frames_input(const Options& o) {
  absl::StatusOr<LadderFrames> frames = ladder_frames(o.load, o.edge, UINT64_MAX);
  if (!frames.ok()) return frames.status();
  std::vector<model::Series> series;
  for (const std::uint32_t plug : edge_plugs(o.load, o.edge))
    series.push_back({"load", {{"plug", fmt::format("{}", plug)}}});
  return std::make_unique<FramesInput>(*std::move(frames), std::move(series), o.go);
}

int run(const Options& o) {
  std::optional<model::Fleet> fleet = load_fleet_or_complain(o.fleet);
  if (!fleet) return kUsage;
  if (fleet->node(o.node) == nullptr) {
    fmt::print(stderr, "orla bench ladder-edge: the fleet has no node \"{}\"\n", o.node);
    return kUsage;
  }
  node::NodeOptions options;
  options.fleet = *std::move(fleet);
  options.node = o.node;
  options.state = o.state;
  options.log_level = base::LogLevel::kWarn;
  options.make_input = [&o](const model::InputSpec&, const model::Position&) { return make_frames_input(o); };
  return node::run_node(std::move(options)) == node::NodeEnd::kClean ? kOk : kFailed;
}

}  // namespace

absl::StatusOr<LadderFrames> ladder_frames(const LadderLoad& load, std::uint32_t edge, std::uint64_t max_measurements) {
  LadderFrames frames;
  frames.begins.push_back(0);
  codec::PackedEncoder encoder;
  std::string frame;
  absl::Status status;
  ladder_batches(load, edge, [&](const model::Batch& batch) {
    status = encoder.encode(batch, frame);
    if (!status.ok()) return false;
    frames.bytes += frame;
    frames.begins.push_back(frames.bytes.size());
    frames.measurements += batch.size();
    return frames.measurements < max_measurements;
  });
  if (!status.ok()) return status;
  return frames;
}

void add_load_options(CLI::App& command, LadderLoad& load) {
  command.add_option("--batch", load.batch, "Measurements in a frame of the sensors'")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--plugs", load.plugs, "Plugs, each measuring once a second")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option(
          "--order", load.order,
          "sorted: runs of at least 100 consecutive measurements of a plug, in batches of 100 and more; random: "
          "the plugs of each second in any order")
      ->transform(CLI::Transformer(
          std::map<std::string, LadderOrder>{{"sorted", LadderOrder::kSorted}, {"random", LadderOrder::kRandom}}))
      ->default_str("sorted");
  command.add_option("--seed", load.seed, "Of the measurements")->capture_default_str();
}

std::vector<std::string> to_arguments(const LadderLoad& load) {
  return {"--seed",   fmt::format("{}", load.seed),
          "--plugs",  fmt::format("{}", load.plugs),
          "--edges",  fmt::format("{}", load.edges),
          "--batch",  fmt::format("{}", load.batch),
          "--order",  load.order == LadderOrder::kSorted ? "sorted" : "random",
          "--length", fmt::format("{}", load.seconds)};
}

void add_ladder_edge(CLI::App& group, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = group.add_subcommand("ladder-edge", "An edge of `orla bench ladder`");
  command->group("");
  command->add_option("FLEET", options->fleet)->required();
  command->add_option("NAME", options->node)->required();
  command->add_option("--state", options->state)->required();
  command->add_option("--go", options->go)->required();
  command->add_option("--edge", options->edge)->required();
  command->add_option("--edges", options->load.edges)->required();
  command->add_option("--length", options->load.seconds)->required();
  add_load_options(*command, options->load);
  command->callback([options, &chosen] { chosen.run = [options] { return run(*options); }; });
}

}  // namespace orla::apps
