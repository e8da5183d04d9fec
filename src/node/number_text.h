// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace orla::node {

// 1234567 -> "1,234,567"
std::string grouped(std::uint64_t n);

}  // namespace orla::node
