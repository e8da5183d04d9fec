// Up to 256 integers of 64 bits as few bytes, whatever they are: a block of int_block.h where it can hold them. The
// format is at the head of number_block.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/int_block.h"

namespace orla::codec {

// What write_number_block() may touch behind `out`.
inline constexpr std::size_t kNumbersRoom = 2 * kBlockRoom + 16;

// 1 <= n <= kBlockValues. Returns the place behind what was written.
std::uint8_t* write_number_block(const std::int64_t* v, std::size_t n, std::uint8_t* out);

// Writes n values, and anything to kValueSlack places behind them. What is wrong with the bytes, or null; `bytes.next`
// moves behind what was read, and nothing behind `bytes.end` is touched.
const char* read_number_block(BlockBytes& bytes, std::size_t n, std::int64_t* out);

}  // namespace orla::codec
