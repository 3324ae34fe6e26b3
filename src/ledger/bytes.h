// Numbers and texts as bytes: what entries, frames and snapshots of the ledger are made of.
//
// A number is a varint (seven bits a byte, lowest first), a signed one folded so that small
// negatives are short; a text is its length and its bytes. The reader never reads beyond its
// bytes: after the first thing that is not there, everything it gives is zero or empty and ok() is
// false. There is one way to write a number, and no other is read: bytes that decode are the bytes
// that encoding would give.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ledger {

inline void PutNumber(std::string& out, uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

inline void PutSigned(std::string& out, int64_t number) {
  PutNumber(out, (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63));
}

inline void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size());
  out += text;
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  uint64_t Number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift != 0) break;  // could have been shorter
      return number;
    }
    Fail();
    return 0;
  }

  int64_t Signed() {
    const uint64_t folded = Number();
    return static_cast<int64_t>(folded >> 1) ^ -static_cast<int64_t>(folded & 1);
  }

  // A number that must lie in [least, most].
  int64_t Between(int64_t least, int64_t most) {
    const uint64_t number = Number();
    if (ok_ && number <= static_cast<uint64_t>(INT64_MAX) &&
        static_cast<int64_t>(number) >= least && static_cast<int64_t>(number) <= most) {
      return static_cast<int64_t>(number);
    }
    Fail();
    return least;
  }

  bool Flag() { return Between(0, 1) == 1; }

  // How many elements follow, each of at least one byte: a count that cannot be true is refused
  // before anything is allocated for it.
  size_t Count() {
    const uint64_t count = Number();
    if (count <= rest_.size()) return count;
    Fail();
    return 0;
  }

  std::string_view Text() {
    const size_t size = Count();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace ledger
