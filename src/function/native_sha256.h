// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace orla::function {

using Sha256 = std::array<unsigned char, 32>;
Sha256 sha256(std::string_view bytes);
std::string to_hex(const Sha256& digest);

}  // namespace orla::function
