#include "serve/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace serve {
namespace {

std::string Packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gzip, ABodyComesOutAsItWentIn) {
  const std::string text(300'000, 'a');
  EXPECT_EQ(Gunzip(Packed(text), text.size()), text);
  EXPECT_EQ(Gunzip(Packed(""), 0), "");
}

TEST(Gzip, MoreThanTheLimitIsRefusedWithoutUnpackingIt) {
  EXPECT_EQ(Gunzip(Packed(std::string(300'000, 'a')), 299'999).error().code,
            Code::kResourceExhausted);
}

TEST(Gzip, WhatIsNotGzipOrNotAllOfItIsRefused) {
  const std::string packed = Packed("some text");
  EXPECT_FALSE(Gunzip("{}", 100));
  EXPECT_FALSE(Gunzip("", 100));
  EXPECT_FALSE(Gunzip(packed.substr(0, packed.size() - 1), 100));
  EXPECT_FALSE(Gunzip(packed + "more", 100));
}

}  // namespace
}  // namespace serve
