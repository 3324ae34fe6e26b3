// Any bytes are requests or are refused; how they are cut into pieces never changes which requests
// they are, and a request that was taken holds nothing that could end a line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/http_parse.h"

namespace {

constexpr io::HttpParser::Limits kLimits = {.head = 512, .headers = 8, .body = 256};

std::vector<io::ServerRequest> Read(std::string_view bytes, size_t step) {
  io::HttpParser parser(kLimits);
  std::vector<io::ServerRequest> requests;
  std::string pending;
  while (!bytes.empty()) {
    pending += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    while (true) {
      const size_t used = parser.Put(pending);
      CHECK(used <= pending.size());
      pending.erase(0, used);
      if (parser.state() == io::HttpParser::State::kRefused) {
        CHECK(parser.Refusal().status >= 400 && !parser.Refusal().body.empty());
        return requests;
      }
      if (parser.state() != io::HttpParser::State::kDone) break;
      requests.push_back(parser.Take());
    }
    CHECK(pending.size() <= kLimits.head);
  }
  return requests;
}

bool IsOneLine(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = Read(bytes, std::string_view::npos);
  for (const io::ServerRequest& request : whole) {
    CHECK(request.path.starts_with('/') && !request.method.empty());
    CHECK(IsOneLine(request.method) && IsOneLine(request.path) && IsOneLine(request.query));
    for (const auto& [name, value] : request.headers) CHECK(IsOneLine(name) && IsOneLine(value));
    CHECK(request.headers.size() <= kLimits.headers && request.body.size() <= kLimits.body);
    CHECK(!request.Header("host").empty());
  }
  for (size_t step : {size_t{1}, size_t{3}, size_t{64}}) CHECK(Read(bytes, step) == whole);
  return 0;
}
