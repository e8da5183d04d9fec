// SHA-256 (FIPS 180-4): names bytes so that nobody can make others of the same name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace orla::base {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
// 64 hexadecimal digits, lower case.
std::string hex(const Sha256& hash);

}  // namespace orla::base
