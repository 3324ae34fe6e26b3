// One crc32 instruction takes 8 bytes and is ready after 3 cycles, but a new one may start every
// cycle. So a long input is read as three lanes at once, each lane with a checksum of its own. The
// three are joined by arithmetic on polynomials over GF(2): appending n bytes to a message
// multiplies its checksum by x^(8n) mod P, which is one carry-less multiplication by a constant and
// one more crc32 that reduces the product.

#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace base {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reflected: x^31 is bit 0

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// kTables[k][b] is the checksum of byte b followed by k zero bytes.
constexpr Tables kTables = [] {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

uint64_t Load64(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;  // little-endian hosts only, as TensorFlow itself
}

#if defined(__x86_64__)

// x^n mod P, reflected.
constexpr uint32_t PowerOfX(int n) {
  uint32_t power = 0x80000000;
  for (int i = 0; i < n; ++i) power = (power >> 1) ^ (power & 1 ? kPolynomial : 0);
  return power;
}

// Three lanes of kLane bytes while the input lasts. Lanes of 1 KiB reach the full speed of the
// instruction; lanes of 128 bytes already pay for a graph or an image of half a kilobyte.
template <int kLane>
__attribute__((target("sse4.2,pclmul"))) uint64_t ThreeLanes(uint64_t crc, const char*& at,
                                                             const char* end) {
  // 33 = 32 that the reducing crc32 multiplies by, and 1 that a reflected product is short of.
  constexpr uint32_t kOneLane = PowerOfX(8 * kLane - 33);
  constexpr uint32_t kTwoLanes = PowerOfX(16 * kLane - 33);
  const __m128i factors = _mm_set_epi64x(kOneLane, kTwoLanes);
  while (end - at >= 3 * kLane) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (const char* lane_end = at + kLane; at < lane_end; at += 8) {
      crc = _mm_crc32_u64(crc, Load64(at));
      second = _mm_crc32_u64(second, Load64(at + kLane));
      third = _mm_crc32_u64(third, Load64(at + 2 * kLane));
    }
    at += 2 * kLane;
    const __m128i sums = _mm_set_epi64x(static_cast<int64_t>(second), static_cast<int64_t>(crc));
    const __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(sums, factors, 0x00),
                                        _mm_clmulepi64_si128(sums, factors, 0x11));
    crc = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(moved))) ^ third;
  }
  return crc;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                                      std::string_view data) {
  const char* at = data.data();
  const char* end = at + data.size();
  uint64_t sum = ~crc;
  if (data.size() >= 3 * 128) {
    sum = ThreeLanes<1024>(sum, at, end);
    sum = ThreeLanes<128>(sum, at, end);
  }
  for (; end - at >= 8; at += 8) sum = _mm_crc32_u64(sum, Load64(at));
  auto low = static_cast<uint32_t>(sum);
  if (end - at >= 4) {
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    low = _mm_crc32_u32(low, word);
    at += 4;
  }
  for (; at < end; ++at) low = _mm_crc32_u8(low, static_cast<unsigned char>(*at));
  return ~low;
}

#endif

}  // namespace

uint32_t ExtendCrc32cByTable(uint32_t crc, std::string_view data) {
  const char* at = data.data();
  const char* end = at + data.size();
  crc = ~crc;
  for (; end - at >= 8; at += 8) {
    const uint64_t word = Load64(at) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; at < end; ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  }
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    return ExtendByInstruction(crc, data);
  }
#endif
  return ExtendCrc32cByTable(crc, data);
}

}  // namespace base
