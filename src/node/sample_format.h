// How raw samples lie in the cloud's file: `packed`.
#pragma once

#include "store/sample_format.h"

namespace orla::node {

// Holds scratch memory, which copies share: for one thread.
store::SampleFormat sample_format();

}  // namespace orla::node
