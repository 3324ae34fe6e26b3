// CRC-32C (Castagnoli), the checksum of TFRecord files and of our own logs and frames.
//
// Uses the CPU's crc32 instruction where it has one, three lanes at a time on long inputs, and
// tables elsewhere. Both give the same numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace base {

// The checksum of all that went into `crc` so far (0 for nothing), followed by data.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);

inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data); }

// As TFRecord stores it: rotated and shifted, so that a checksum of bytes that hold checksums
// does not degenerate.
constexpr uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// The portable way, for machines without the instruction and for the test that compares both.
uint32_t ExtendCrc32cByTable(uint32_t crc, std::string_view data);

}  // namespace base
