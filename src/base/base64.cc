#include "base/base64.h"

#include <cstdint>

namespace base {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t group = 0;
  size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      // At most two, and only at the end of a group that has bytes in it.
      if (digits % 4 < 2 && padding == 0) return std::nullopt;
      if ((digits + ++padding) % 4 == 1) return std::nullopt;
      continue;
    }
    const size_t value = kDigits.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 == 0) {
      out +=
          {static_cast<char>(group >> 16), static_cast<char>(group >> 8), static_cast<char>(group)};
    }
  }
  if ((digits + padding) % 4 != 0) return std::nullopt;
  if (digits % 4 == 2) out += static_cast<char>(group >> 4);
  if (digits % 4 == 3) out += {static_cast<char>(group >> 10), static_cast<char>(group >> 2)};
  return out;
}

}  // namespace base
