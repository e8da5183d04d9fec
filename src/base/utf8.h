// Text that is UTF-8 for certain.
#pragma once

#include <string>
#include <string_view>

namespace orla::base {

// As in the Unicode standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

// Each byte that belongs to no valid character becomes U+FFFD.
std::string to_utf8(std::string_view bytes);

}  // namespace orla::base
