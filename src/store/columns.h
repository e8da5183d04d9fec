// How numbers that SQLite has no type for are kept in columns: 64 unsigned bits as the signed number of the same bits
// where they count something, as 16 hexadecimal digits where they are a name or a hash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "model/chunk.h"

namespace orla::store {

constexpr std::int64_t to_column(std::uint64_t v) { return static_cast<std::int64_t>(v); }
constexpr std::uint64_t from_column(std::int64_t v) { return static_cast<std::uint64_t>(v); }

std::string hex(std::uint64_t v);
std::string hex(model::Epoch epoch);
std::string hex(const base::Digest& digest);

// Any bytes, two digits each, and back; nothing when the text is no such.
std::string hex_of_bytes(std::string_view bytes);
std::optional<std::string> bytes_of_hex(std::string_view text);

// The inverse; text that hex() does not write reads as 0.
std::uint64_t from_hex(std::string_view text);
base::Digest digest_from_hex(std::string_view text);

}  // namespace orla::store
