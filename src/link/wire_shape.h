// A first look at the bytes of a message, before memory is spent on decoding them.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Descriptor;
}

namespace orla::link {

// InvalidArgument when the bytes are no protobuf encoding; ResourceExhausted when the repeated fields that `type` and
// the messages inside it know, and messages inside, have more than `max_elements` elements together, or nest too
// deeply.
absl::Status check_shape(std::string_view bytes, const google::protobuf::Descriptor& type, std::size_t max_elements);

}  // namespace orla::link
