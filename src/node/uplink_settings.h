// From the fleet file to the settings of links.
#pragma once

#include "link/downlink_core.h"
#include "link/uplink_core.h"
#include "model/fleet.h"

namespace orla::node {

link::UplinkSettings uplink_settings(const model::Fleet& fleet, const model::NodeSpec& node);
link::DownlinkSettings downlink_settings(const model::Fleet& fleet, const model::NodeSpec& node);

}  // namespace orla::node
