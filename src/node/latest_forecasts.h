// The newest forecasts whose time has come, a few of each rollup and step length: forecast beside what happened.
#pragma once

#include <string>
#include <vector>

#include "node/status.h"

namespace orla::node {

// Empty when the cloud's file cannot be read now.
std::vector<ForecastLine> latest_forecasts(const std::string& cloud_file, std::size_t per_step);

}  // namespace orla::node
