// Small text functions that several folders need.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace base {

std::string Lower(std::string_view text);
std::string_view Trim(std::string_view text);  // spaces, tabs, CR, LF at both ends
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);

// For messages: on one line, control characters escaped, and cut between characters once it is
// longer than `most` bytes.
std::string OneLine(std::string_view text, size_t most = 80);

// Each byte that is not part of a UTF-8 character becomes U+FFFD.
std::string CleanUtf8(std::string_view text);

// A whole decimal number and nothing else; nothing when it does not fit.
std::optional<int64_t> ParseInt(std::string_view text);

// The candidate that a mistyped word most likely meant (edit distance at most a third of its
// length), or nothing.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace base
