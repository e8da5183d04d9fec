#include "forecast/model.h"

#include "forecast/debs2014.h"
#include "forecast/median.h"

namespace orla::forecast {
namespace {

const Debs2014 kDebs2014;

const ModelRow kModels[] = {
    {"debs2014", "mean of the load now and the median of the earlier days' loads at that time", &kDebs2014},
};

}  // namespace

std::span<const ModelRow> models() { return kModels; }

const LoadModel* find_model(std::string_view name) {
  for (const ModelRow& row : kModels) {
    if (row.name == name) return row.model;
  }
  return nullptr;
}

std::optional<double> persistence(std::optional<double> current) { return current; }

std::optional<double> day_median(std::span<const double> history) { return median(history); }

}  // namespace orla::forecast
