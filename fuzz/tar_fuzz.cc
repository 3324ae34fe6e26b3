// Tar archives: however an archive is cut into pieces, the same is told of it, in bounded memory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/tar.h"

namespace {

// Checks the order of what it is told, and keeps the rest to compare.
class Told : public base::TarReader::Sink {
 public:
  base::Result<> Begin(const base::TarEntry& entry) override {
    CHECK(left_ == 0 && entry.size >= 0);
    left_ = entry.size;
    text += entry.path + '\n' + std::to_string(entry.size) + '\n';
    return {};
  }
  base::Result<> Data(std::string_view bytes) override {
    CHECK(static_cast<int64_t>(bytes.size()) <= left_);
    left_ -= static_cast<int64_t>(bytes.size());
    text += bytes;
    return {};
  }
  base::Result<> End() override {
    CHECK(left_ == 0);
    return {};
  }
  std::string text;

 private:
  int64_t left_ = 0;
};

std::string Read(std::string_view archive, size_t piece) {
  Told told;
  base::TarReader reader(told);
  for (size_t at = 0; at < archive.size(); at += piece) {
    if (auto fed = reader.Feed(archive.substr(at, piece)); !fed)
      return told.text + fed.error().text();
  }
  return told.text + (reader.complete() ? "complete" : "cut");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view archive(reinterpret_cast<const char*>(data), size);
  const std::string whole = Read(archive, archive.size() + 1);
  CHECK(Read(archive, 1) == whole);
  CHECK(Read(archive, 700) == whole);
  return 0;
}
