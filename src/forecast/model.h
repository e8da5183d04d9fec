// Forecasts of the mean load of the slice after next.
//
// A model is pure and stateless: what it knows comes in as arguments. Adding one is one file and one row in model.cc's
// table; model_test.cc runs its conformance checks over every row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orla::forecast {

// A forecast made when slice i is published is about slice i + kStepsAhead.
inline constexpr int kStepsAhead = 2;

// Exactly one of the two is there: a value, or the reason why there is none.
struct Prediction {
  std::optional<double> value;
  std::string reason;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

// Thread-safe: no state.
class LoadModel {
 public:
  virtual ~LoadModel() = default;
  // The load of slice i+2. `current` is avgL(s_i), nothing when slice i has no samples. `history` holds avgL(s_j) of
  // the slices s_j a whole number of days (n * 24 h, n >= 1) before slice i+2 that have samples, in any order. All
  // finite.
  virtual Prediction predict(std::optional<double> current, std::span<const double> history) const = 0;
};

struct ModelRow {
  std::string_view name;  // as a fleet file names it
  std::string_view text;  // one line for people
  const LoadModel* model;
};

// Every model there is.
std::span<const ModelRow> models();
// The one of that name, or null.
const LoadModel* find_model(std::string_view name);

// What a model has to beat: "as it is now", and "as it is at this time of day".
std::optional<double> persistence(std::optional<double> current);
std::optional<double> day_median(std::span<const double> history);

}  // namespace orla::forecast
