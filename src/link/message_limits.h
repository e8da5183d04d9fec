// The bounds of link.proto on messages as values, the same for those that are about to be sent and those received.
#pragma once

#include "absl/status/status.h"
#include "link/messages.h"

namespace orla::link {

// InvalidArgument names the field, what was found and what was expected.
absl::Status check_limits(const UpMessage& message);
absl::Status check_limits(const DownMessage& message);

}  // namespace orla::link
