// The page at /ui/: the bytes of gateway_ui.html, put into the program by the build.
#pragma once

#include <string_view>

namespace orla::node {

extern const std::string_view kGatewayUi;

}  // namespace orla::node
