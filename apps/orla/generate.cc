// orla generate
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/absl_view.h"
#include "commands.h"
#include "ingest/generator.h"
#include "ingest/generator_input.h"
#include "model/window.h"
#include "node/time_text.h"

namespace orla::apps {

namespace {

// Midnight in Berlin of the challenge's first day.
constexpr char kStart[] = "2013-09-01T00:00:00+02:00";

absl::Status write_out(std::string_view piece) {
  while (!piece.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError(fmt::format("cannot write the rows: {}", std::strerror(errno)));
    piece.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

void add_generate(CLI::App& app, Chosen& chosen) {
  struct Options {
    int houses = 40;
    std::string length;
    std::uint64_t seed = 1;
    std::string start = kStart;
    std::string schema = "debs2014";
  };
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = app.add_subcommand("generate", "Write smart-plug rows like those of the DEBS 2014 challenge");
  command->add_option("--houses", options->houses, "Number of houses; 40 have 2,125 plugs")
      ->check(CLI::Range(1, ingest::kMaxHouses))
      ->capture_default_str();
  command->add_option("--for", options->length, "How much time the rows span, e.g. 3h")->required();
  command->add_option("--seed", options->seed, "The same seed gives the same rows")->capture_default_str();
  command->add_option("--start", options->start, "Time of the first row")->capture_default_str();
  command->add_option("--schema", options->schema, "Columns to write")
      ->check(CLI::IsMember({"debs2014"}))
      ->capture_default_str();
  command->footer("Example:\n  orla generate --houses 40 --for 3h --seed 1 --schema debs2014 > plugs.csv");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> int {
      const absl::StatusOr<model::Duration> length = model::parse_duration(options->length);
      const absl::StatusOr<model::Time> start = node::parse_time(options->start);
      for (const absl::Status& status : {length.status(), start.status()}) {
        if (status.ok()) continue;
        fmt::print(stderr, "orla generate: {}\n", base::message(status));
        return kUsage;
      }
      const model::GeneratorSpec spec{options->houses, options->seed, *start, *length};
      if (const absl::Status status = ingest::write_debs2014_csv(spec, write_out); !status.ok()) {
        fmt::print(stderr, "orla generate: {}\n", base::message(status));
        return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailed;
      }
      return kOk;
    };
  });
}

}  // namespace orla::apps
