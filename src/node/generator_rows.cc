#include "node/generator_rows.h"

#include <array>
#include <utility>

#include "ingest/generator.h"

namespace orla::node {

namespace {

class GeneratorRows final : public verify::RowSource {
 public:
  explicit GeneratorRows(ingest::Generator generator)
      : generator_(std::move(generator)), second_(generator_.first_second()) {
    ids_.resize(generator_.plugs().size(), {kNone, kNone});
  }

  absl::StatusOr<bool> next(verify::Row& row) override {
    while (at_ == waiting_.size()) {
      if (second_ == generator_.end_second()) return false;
      waiting_.clear();
      at_ = 0;
      generator_.go_to(second_);
      const model::Time time = model::Time(std::chrono::seconds(second_));
      for (std::size_t plug = 0; plug < generator_.plugs().size(); ++plug) {
        generator_.rows(plug, [&](unsigned property, std::int64_t thousandths) {
          // The quotient of two exact doubles is the double nearest to the decimal.
          waiting_.push_back({series_of(plug, property), time, static_cast<double>(thousandths) / 1000.0});
        });
      }
      ++second_;
    }
    row.number = ++rows_;
    row.rejected = nullptr;
    row.samples.assign(1, waiting_[at_++]);
    return true;
  }

  const std::vector<model::Series>& series() const override { return series_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t series_of(std::size_t plug, unsigned property) {
    std::uint32_t& id = ids_[plug][property];
    if (id == kNone) {
      const ingest::GeneratedPlug& p = generator_.plugs()[plug];
      id = static_cast<std::uint32_t>(series_.size());
      series_.push_back({property == 0 ? "work" : "load",
                         {{"house", std::to_string(p.house)},
                          {"household", std::to_string(p.household)},
                          {"plug", std::to_string(p.plug)}}});
    }
    return id;
  }

  ingest::Generator generator_;
  std::int64_t second_;
  std::vector<std::array<std::uint32_t, 2>> ids_;  // by plug and property
  std::vector<model::Series> series_;
  std::vector<verify::Row::Sample> waiting_;  // of the second before second_
  std::size_t at_ = 0;
  std::uint64_t rows_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<verify::RowSource>> open_generator_rows(const model::InputSpec& spec) {
  absl::StatusOr<ingest::Generator> generator = ingest::Generator::make(spec.generator, ingest::Selection(spec.select));
  if (!generator.ok()) return generator.status();
  return std::make_unique<GeneratorRows>(*std::move(generator));
}

}  // namespace orla::node
