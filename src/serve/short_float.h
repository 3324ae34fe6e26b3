// The numbers of which a request may have thousands, such as 0, 0.5019608 and 1e-05, at little
// cost. Pure; in a header, so that it becomes part of the loop that reads them.
//
// Digits are taken by eights: in a word of eight characters the first that is no digit is found,
// the word is shifted until only those before it are left and zeros stand in front of them, and
// three multiplications add them up. So no branch depends on how many digits there are, which a
// processor cannot foresee.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace serve {

struct EightDigits {
  int64_t value;  // of the digits, if there are any
  size_t count;
};

// Reads eight characters.
[[gnu::always_inline]] inline EightDigits DigitsAt(const char* from) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kZeros = 0x3030303030303030;
  constexpr uint64_t kAboveNine = 0x4646464646464646;  // lifts what is behind '9' to the top bit
  constexpr uint64_t kTop = 0x8080808080808080;
  uint64_t text;
  memcpy(&text, from, sizeof text);
  // A byte that is no digit may change those behind it, which do not count any more.
  const uint64_t others = ((text + kAboveNine) | (text - kZeros)) & kTop;
  const int bits = std::countr_zero(others) & ~7;
  uint64_t digits = (text - kZeros) << ((64 - bits) & 63);
  digits = digits * 10 + (digits >> 8);  // two digits in every other byte
  constexpr uint64_t kTwo = 0x000000ff000000ff;
  constexpr uint64_t kFirst = 100 + (uint64_t{1'000'000} << 32);
  constexpr uint64_t kSecond = 1 + (uint64_t{10'000} << 32);
  digits = ((digits & kTwo) * kFirst + ((digits >> 16) & kTwo) * kSecond) >> 32;
  return {static_cast<int64_t>(digits), static_cast<size_t>(bits / 8)};
}

// Reads the number at `from`, as JSON has it, to the nearest float: where it ends. nullptr if it is
// none, has many digits or is very large or small, if that float is hard to tell, or if the text
// ends soon; a slower reader may take it then.
[[gnu::always_inline]] inline const char* ReadShortFloat(const char* from, const char* end,
                                                         float& value) {
  constexpr size_t kMostDigits = 18;
  constexpr int kMostDecimals = 22, kMostZeros = 19;
  static constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // all exact
  static constexpr int64_t kWholeTens[kMostDigits + 1] = {1,
                                                          10,
                                                          100,
                                                          1'000,
                                                          10'000,
                                                          100'000,
                                                          1'000'000,
                                                          10'000'000,
                                                          100'000'000,
                                                          1'000'000'000,
                                                          10'000'000'000,
                                                          100'000'000'000,
                                                          1'000'000'000'000,
                                                          10'000'000'000'000,
                                                          100'000'000'000'000,
                                                          1'000'000'000'000'000,
                                                          10'000'000'000'000'000,
                                                          100'000'000'000'000'000,
                                                          1'000'000'000'000'000'000};
  // A sign, 7 digits, the point, 24 decimals, an exponent with its sign, and what is behind it.
  constexpr ptrdiff_t kLooksAt = 1 + 7 + 1 + 24 + 4 + 1;
  const auto is_digit = [](char c) { return static_cast<unsigned char>(c - '0') < 10; };

  if (end - from < kLooksAt) return nullptr;
  const bool negative = *from == '-';
  if (negative) [[unlikely]]
    ++from;
  if (!is_digit(*from)) return nullptr;
  int64_t digits = *from++ - '0';
  if (is_digit(*from)) {
    const EightDigits more = DigitsAt(from);
    if (digits == 0 || more.count > 6) return nullptr;
    digits = digits * kWholeTens[more.count] + more.value;
    from += more.count;
  }
  int decimals = 0;
  if (*from == '.') {
    const char* const point = ++from;
    EightDigits more = DigitsAt(from);
    if (more.count == 0) return nullptr;
    digits = digits * kWholeTens[more.count] + more.value;
    from += more.count;
    while (more.count == 8 && is_digit(*from)) {
      more = DigitsAt(from);
      from += more.count;
      if (from - point > kMostDecimals) return nullptr;
      if (digits >= kWholeTens[kMostDigits - more.count]) return nullptr;
      digits = digits * kWholeTens[more.count] + more.value;
    }
    decimals = static_cast<int>(from - point);
  }
  if ((*from | 0x20) == 'e') {
    ++from;
    const bool small = *from == '-';
    if (small || *from == '+') ++from;
    if (!is_digit(*from)) return nullptr;
    int power = *from++ - '0';
    if (is_digit(*from)) power = power * 10 + (*from++ - '0');
    if (is_digit(*from)) return nullptr;
    decimals += small ? power : -power;
    if (decimals > kMostDecimals || decimals < -kMostZeros) return nullptr;
  }
  // The digits are within half a unit of a double, the power is exact, and so the double is within
  // two units of what the text means. The float is right unless a middle between two floats is as
  // near. It is one of the usual kind: 0, or from 1e-22 to 1e37.
  const auto whole = static_cast<double>(digits);
  const double size = decimals >= 0 ? whole / kTens[decimals] : whole * kTens[-decimals];
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;
  constexpr uint64_t kMiddle = uint64_t{1} << 28;
  const uint64_t below = std::bit_cast<uint64_t>(size) & kBelowFloat;
  if (below - (kMiddle - 4) <= 8) return nullptr;
  value = static_cast<float>(negative ? -size : size);
  return from;
}

}  // namespace serve
