#include "base/tar.h"

#include <algorithm>
#include <optional>

namespace base {
namespace {

constexpr int64_t kLongestName = 4096;

// A field of a header, up to its first zero byte.
std::string Text(std::string_view block, size_t at, size_t length) {
  const std::string_view field = block.substr(at, length);
  return std::string(field.substr(0, field.find('\0')));
}

// Octal digits, or, for what does not fit them, GNU's base 256.
std::optional<int64_t> Number(std::string_view block, size_t at, size_t length) {
  const std::string_view field = block.substr(at, length);
  int64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (size_t i = 1; i < length; ++i) {
      if (value > (INT64_MAX >> 8)) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  for (char c : field) {
    if (c == ' ' || c == '\0') continue;
    if (c < '0' || c > '7' || value > (INT64_MAX >> 3)) return std::nullopt;
    value = value << 3 | (c - '0');
  }
  return value;
}

bool SumIsRight(std::string_view block) {
  int64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool of_the_sum = i >= 148 && i < 156;
    sum += of_the_sum ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return Number(block, 148, 8) == sum;
}

}  // namespace

Result<> TarReader::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (complete()) return {};  // what follows is padding of the whole archive
    if (state_ == State::kHeader) {
      const size_t take = std::min(bytes.size(), kBlock - block_.size());
      block_ += bytes.substr(0, take);
      bytes.remove_prefix(take);
      if (block_.size() < kBlock) return {};
      TRY(ReadHeader());
      block_.clear();
      continue;
    }
    int64_t& left = state_ == State::kPadding ? padding_ : left_;
    const auto take =
        static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(bytes.size())));
    if (state_ == State::kData) TRY(sink_.Data(bytes.substr(0, take)));
    if (state_ == State::kName) long_name_ += bytes.substr(0, take);
    bytes.remove_prefix(take);
    left -= static_cast<int64_t>(take);
    if (left > 0) return {};
    if (state_ == State::kPadding) {
      state_ = State::kHeader;
    } else {
      TRY(FinishData());
    }
  }
  return {};
}

Result<> TarReader::FinishData() {
  if (state_ == State::kData) TRY(sink_.End());
  if (state_ == State::kName) long_name_ = long_name_.substr(0, long_name_.find('\0'));
  state_ = padding_ > 0 ? State::kPadding : State::kHeader;
  return {};
}

Result<> TarReader::ReadHeader() {
  if (block_.find_first_not_of('\0') == std::string::npos) {
    ++zero_blocks_;
    return {};
  }
  zero_blocks_ = 0;
  if (!SumIsRight(block_)) return Invalid("tar: a header with a wrong sum");
  const auto size = Number(block_, 124, 12), mode = Number(block_, 100, 8);
  if (!size || !mode || *size < 0) return Invalid("tar: a header with a wrong number");
  const char type = block_[156];
  left_ = *size;
  padding_ = (static_cast<int64_t>(kBlock) - *size % static_cast<int64_t>(kBlock)) %
             static_cast<int64_t>(kBlock);
  if (type == 'L') {
    if (*size > kLongestName) return Invalid("tar: a name that is too long");
    long_name_.clear();
    state_ = State::kName;
    return left_ == 0 ? FinishData() : Result<>();
  }
  TarEntry entry{.mode = static_cast<int>(*mode & 0777), .size = *size};
  entry.kind = type == '5'                   ? TarEntry::Kind::kDirectory
               : type == '0' || type == '\0' ? TarEntry::Kind::kFile
                                             : TarEntry::Kind::kOther;
  const std::string prefix = Text(block_, 345, 155);
  const bool ustar = Text(block_, 257, 6) == "ustar";
  entry.path = (ustar && !prefix.empty() ? prefix + "/" : "") + Text(block_, 0, 100);
  if (!long_name_.empty()) entry.path = std::exchange(long_name_, "");
  TRY(sink_.Begin(entry));
  state_ = State::kData;
  return left_ == 0 ? FinishData() : Result<>();
}

}  // namespace base
