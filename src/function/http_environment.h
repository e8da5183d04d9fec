// A call's head as the environment variables of a forking watchdog.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "function/call.h"

namespace orla::function {

// Http_Method, Http_Path, Http_Query (when there is one), Http_Host, Http_ContentLength and Http_Content_Length (-1:
// not known), Http_Transfer_Encoding (when it is not known), and each header as Http_<Name>, first value, with the name
// as Go writes it ("content-type" is Http_Content_Type). Values hold no NUL.
std::vector<std::pair<std::string, std::string>> http_environment(const CallHead& head);

}  // namespace orla::function
