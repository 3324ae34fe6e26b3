#include "serve/gzip.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <zlib.h>

namespace serve {
namespace {

constexpr size_t kStep = size_t{64} << 10;
constexpr int kOnlyGzip = 16 + MAX_WBITS;

}  // namespace

Answer<std::string> Gunzip(std::string_view packed, size_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, kOnlyGzip) != Z_OK) return Refused(Code::kInternal, "no memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  while (true) {
    const size_t before = out.size();
    out.resize(std::min(before + kStep, most + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    const int now = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() > most)
      return Refused(Code::kResourceExhausted,
                     fmt::format("the body unpacks to more than {} bytes", most));
    if (now == Z_STREAM_END && stream.avail_in == 0) return out;
    if (now != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0))
      return BadRequest("the body is not gzip, or not all of it");
  }
}

}  // namespace serve
