#include "base/tar.h"

#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace base {
namespace {

// A header as tar writes it, its sum right.
std::string Header(const std::string& name, size_t size, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000644");
  block.replace(124, 11, fmt::format("{:011o}", size));
  block[156] = type;
  block.replace(148, 8, "        ");
  int sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

std::string Padded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512, '\0');
  return data;
}

std::string File(const std::string& name, const std::string& data) {
  return Header(name, data.size()) + Padded(data);
}

const std::string kEnd(1024, '\0');

// Writes down what it is told.
class Told : public TarReader::Sink {
 public:
  Result<> Begin(const TarEntry& entry) override {
    text += fmt::format("[{} {} {:o} {}:", static_cast<int>(entry.kind), entry.path, entry.mode,
                        entry.size);
    return {};
  }
  Result<> Data(std::string_view bytes) override {
    text += bytes;
    return {};
  }
  Result<> End() override {
    text += "]";
    return {};
  }
  std::string text;
};

std::string Read(const std::string& archive, size_t piece, bool complete = true) {
  Told told;
  TarReader reader(told);
  for (size_t at = 0; at < archive.size(); at += piece) {
    auto fed = reader.Feed(std::string_view(archive).substr(at, piece));
    if (!fed) return fed.error().text();
  }
  EXPECT_EQ(reader.complete(), complete);
  return told.text;
}

TEST(Tar, FilesAndDirectoriesInAnyPieces) {
  const std::string archive = Header("d", 0, '5') + File("d/a.txt", "hello") + File("empty", "") +
                              File("big", std::string(512, 'x')) + Header("link", 0, '2') + kEnd;
  const std::string expected =
      "[1 d 644 0:][0 d/a.txt 644 5:hello][0 empty 644 0:][0 big 644 512:" + std::string(512, 'x') +
      "][2 link 644 0:]";
  for (size_t piece : {1, 7, 511, 512, 513, 100'000}) EXPECT_EQ(Read(archive, piece), expected);
}

TEST(Tar, LongNames) {
  const std::string name = std::string(200, 'n') + "/x";
  const std::string archive = Header("././@LongLink", name.size() + 1, 'L') + Padded(name + '\0') +
                              File(name.substr(0, 99), "1") + File("next", "2") + kEnd;
  EXPECT_EQ(Read(archive, 100), "[0 " + name + " 644 1:1][0 next 644 1:2]");
}

TEST(Tar, AnArchiveThatIsCutIsNotComplete) {
  const std::string archive = File("a", "hello");
  EXPECT_EQ(Read(archive, 512, false), "[0 a 644 5:hello]");
  EXPECT_EQ(Read(archive.substr(0, 514), 512, false), "[0 a 644 5:he");
}

TEST(Tar, WhatIsOutOfPlaceEndsIt) {
  std::string wrong_sum = File("a", "hello");
  wrong_sum[0] = 'b';
  EXPECT_EQ(Read(wrong_sum, 512), "tar: a header with a wrong sum");
  EXPECT_EQ(Read(std::string(600, 'x'), 512), "tar: a header with a wrong sum");
  EXPECT_EQ(Read(Header("x", 5000, 'L'), 512), "tar: a name that is too long");
}

}  // namespace
}  // namespace base
