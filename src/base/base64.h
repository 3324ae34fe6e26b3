// Base64 as RFC 4648 writes it, with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace base {

std::string EncodeBase64(std::string_view bytes);

// Line breaks are skipped, as in files that were wrapped; anything else out of place is refused.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace base
