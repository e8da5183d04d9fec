// Carriers inside one process: nodes of a test, each on its own loop or all on one.
#pragma once

#include <cstdint>
#include <memory>

#include "base/loop.h"
#include "link/carrier.h"

namespace orla::link {

// Who listens at which address. Thread-safe; shared by its carriers.
class MemoryNetwork;
std::shared_ptr<MemoryNetwork> make_memory_network();

// Whether messages pass through the bytes of link.proto on their way.
enum class Marshalling : std::uint8_t { kNone, kProto };

// The loop outlives the carrier. Addresses are those of the fleet file; port 0 becomes one that is free in `network`.
std::unique_ptr<UplinkCarrier> make_memory_uplink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop,
                                                  Marshalling marshalling = Marshalling::kNone);
std::unique_ptr<DownlinkCarrier> make_memory_downlink(std::shared_ptr<MemoryNetwork> network, base::Loop& loop,
                                                      Marshalling marshalling = Marshalling::kNone);

}  // namespace orla::link
