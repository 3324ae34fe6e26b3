#include "io/http_message.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

namespace io {
namespace {

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "";  // may be empty
  }
}

bool IsOneLine(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

bool IsSafe(const ServerResponse& response) {
  return IsOneLine(response.content_type) &&
         std::ranges::all_of(response.headers, [](const auto& header) {
           return IsOneLine(header.first) && IsOneLine(header.second);
         });
}

// "Sun, 15 Nov 2026 21:49:57 GMT", whatever the locale.
std::string HttpDate(base::Time time) {
  constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[std::chrono::weekday(day).c_encoding()], unsigned{date.day()},
                     kMonths[unsigned{date.month()} - 1], int{date.year()}, clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

}  // namespace

std::string_view ServerRequest::Header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::string ToWire(const ServerResponse& response, WireOptions options, base::Time now) {
  if (!IsSafe(response)) {
    return ToWire({.status = 500, .body = "the answer had a header that is none\n"}, options, now);
  }
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", response.status,
      ReasonOf(response.status), HttpDate(now), response.content_type, response.body.size());
  for (const auto& [name, value] : response.headers) {
    out += fmt::format("{}: {}\r\n", name, value);
  }
  if (options.last) out += "Connection: close\r\n";
  out += "\r\n";
  if (!options.head_only) out += response.body;
  return out;
}

}  // namespace io
