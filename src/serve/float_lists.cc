#include "serve/float_lists.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "serve/json_number.h"
#include "serve/short_float.h"

namespace serve {
namespace {

// Floats on their way to the end of a string.
class Floats {
 public:
  Floats(std::string& out, std::string_view text)
      : out_(out), before_(out.size()), text_(text.size()) {}

  // `left` bytes of the text are to come.
  void Put(float value, ptrdiff_t left) {
    some_[have_] = value;
    if (++have_ == kAtOnce) Flush(left);
  }

  // The string grows at once to what will be needed if the text goes on as it began.
  void Flush(ptrdiff_t left) {
    const size_t size = have_ * sizeof(float);
    const size_t wanted = out_.size() + size;
    if (wanted > out_.capacity()) {
      const size_t read = text_ - static_cast<size_t>(left);
      const double more = static_cast<double>(wanted - before_) / static_cast<double>(read);
      const auto all = static_cast<size_t>(std::min(more, kMost) * static_cast<double>(text_));
      out_.reserve(std::max(wanted, before_ + all));
    }
    out_.append(reinterpret_cast<const char*>(some_), size);
    have_ = 0;
  }

  void Undo() { out_.resize(before_); }

 private:
  static constexpr double kMost = sizeof(float) / 2.0;  // for a byte: "0,"
  static constexpr size_t kAtOnce = 128;

  std::string& out_;
  const size_t before_, text_;
  float some_[kAtOnce];
  size_t have_ = 0;
};

// The next character that is no space; 0 at the end.
char Next(const char*& at, const char* end) {
  for (; at < end; ++at) {
    const char c = *at;
    if (c > ' ') [[likely]]
      return c;
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') break;
  }
  return 0;
}

bool ReadFloat(const char*& at, const char* end, float& value) {
  if (const char* const behind = ReadShortFloat(at, end, value)) {
    at = behind;
    return true;
  }
  JsonCursor json(std::string_view(at, end));
  const auto text = json.Number();
  at = json.rest().data();
  return text && ReadReal(*text, value);
}

// What stands between the last number of a list and the first of the next, such as "], [": when it
// has been read once, it is known by its bytes.
class Between {
 public:
  void Learn(const char* from, const char* to, const char* end, int64_t size) {
    if (length_ > 0 || to - from > kWord || end - from < kWord) return;
    length_ = to - from;
    size_ = size;
    text_ = WordAt(from);
  }
  // Steps over it, behind the last number of a list.
  bool Eat(const char*& at, const char* end, int64_t count) const {
    if (count != size_ || end - at < kWord || WordAt(at) != text_) return false;
    at += length_;
    return true;
  }

 private:
  static constexpr ptrdiff_t kWord = sizeof(uint64_t);

  uint64_t WordAt(const char* from) const {
    uint64_t out;
    memcpy(&out, from, sizeof out);
    return out << (8 * (kWord - length_));
  }

  int64_t size_ = -1;  // of such a list
  ptrdiff_t length_ = 0;
  uint64_t text_ = 0;
};

// Where the list at `at` ends, or nullptr: not for us. `depth` lists are around it; `sizes` has a
// place for each depth, and a `rank` of 0 is not known.
const char* ReadLists(const char* at, const char* end, size_t depth, int64_t (&sizes)[kDeepestList],
                      size_t& rank, Floats& floats) {
  int64_t counts[kDeepestList];  // of lists in each open list
  size_t open = depth;
  Between between;
  char c = Next(at, end);
  while (true) {
    for (; c == '['; c = Next(++at, end)) {
      if (open == (rank > 0 ? rank : kDeepestList)) return nullptr;
      counts[open++] = 0;
    }
    if (rank == 0) rank = open;
    if (open != rank || open == depth) return nullptr;
    int64_t count = 0;
    const char* behind = at;  // the last number
    while (true) {
      float value = 0;
      if (!ReadFloat(at, end, value)) return nullptr;
      floats.Put(value, end - at);
      ++count;
      if (between.Eat(at, end, count)) {
        ++counts[open - 2];
        count = 0;
        continue;
      }
      behind = at;
      c = Next(at, end);
      if (c != ',') break;
      Next(++at, end);
    }
    for (; c == ']'; c = Next(at, end)) {
      ++at;
      int64_t& size = sizes[--open];
      if (size != count) {
        if (size != -1) return nullptr;
        size = count;
      }
      if (open == depth) return at;
      count = ++counts[open - 1];
    }
    if (c != ',') return nullptr;
    c = Next(++at, end);
    if (c != '[') return nullptr;
    if (open + 1 == rank) {
      counts[open++] = 0;
      c = Next(++at, end);
      between.Learn(behind, at, end, sizes[rank - 1]);
    }
  }
}

}  // namespace

bool ReadFloatLists(JsonCursor& json, size_t depth, ListShape& shape, std::string& out) {
  if (json.Peek() != '[') return false;
  const std::string_view text = json.rest();
  int64_t sizes[kDeepestList];
  std::ranges::fill(std::ranges::copy(shape.sizes, sizes).out, std::end(sizes), -1);
  size_t rank = shape.rank.value_or(0);
  Floats floats(out, text);
  const char* const end = text.data() + text.size();
  const char* const at = ReadLists(text.data(), end, depth, sizes, rank, floats);
  if (!at || rank < shape.sizes.size()) {
    floats.Undo();
    return false;
  }
  floats.Flush(end - at);
  shape.rank = rank;
  shape.sizes.assign(sizes, sizes + rank);
  json.StepTo(at);
  return true;
}

}  // namespace serve
