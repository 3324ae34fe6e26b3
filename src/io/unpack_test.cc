#include "io/unpack.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace io {
namespace {

using base::TarEntry;

class UnpackTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/unpack-test-XXXXXX";
    root_ = mkdtemp(name);
    std::filesystem::create_directory(root_ + "/in");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  base::Result<> Put(Unpack& to, const std::string& path, const std::string& data,
                     TarEntry::Kind kind = TarEntry::Kind::kFile) {
    TRY(to.Begin({.kind = kind, .path = path, .size = static_cast<int64_t>(data.size())}));
    TRY(to.Data(data));
    return to.End();
  }

  std::string root_;
};

TEST_F(UnpackTest, FilesWithTheirFolders) {
  auto to = Unpack::Into(root_ + "/in");
  ASSERT_TRUE(to);
  EXPECT_TRUE(Put(*to, "./output/1/saved_model.pb", "model"));
  EXPECT_TRUE(Put(*to, "output", "", TarEntry::Kind::kDirectory));
  EXPECT_TRUE(Put(*to, "output/empty", "", TarEntry::Kind::kDirectory));
  EXPECT_EQ(ReadFile(root_ + "/in/output/1/saved_model.pb").value(), "model");
  EXPECT_TRUE(IsDirectory(root_ + "/in/output/empty"));
  EXPECT_EQ(to->files(), 1);
  EXPECT_EQ(to->bytes(), 5);
}

TEST_F(UnpackTest, NothingLeavesTheDirectory) {
  auto to = Unpack::Into(root_ + "/in");
  ASSERT_TRUE(to);
  EXPECT_EQ(Put(*to, "/etc/x", "").error().text(), "tar: an absolute name: /etc/x");
  EXPECT_EQ(Put(*to, "a/../../x", "").error().text(), "tar: a name that leads upwards: a/../../x");
  // A link that somebody else put there is not followed.
  std::filesystem::create_directory_symlink(root_, root_ + "/in/out");
  EXPECT_FALSE(Put(*to, "out/x", ""));
  EXPECT_FALSE(Exists(root_ + "/x"));
  // What is there already is not written over.
  EXPECT_TRUE(Put(*to, "one", "1"));
  EXPECT_FALSE(Put(*to, "one", "2"));
  EXPECT_EQ(ReadFile(root_ + "/in/one").value(), "1");
}

TEST_F(UnpackTest, ALinkIsAnErrorRatherThanAMissingFile) {
  auto to = Unpack::Into(root_ + "/in");
  ASSERT_TRUE(to);
  const auto link = Put(*to, "link", "", TarEntry::Kind::kOther);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().text(), "tar: neither a file nor a directory: link");
  EXPECT_FALSE(Exists(root_ + "/in/link"));
  EXPECT_EQ(to->files(), 0);
}

}  // namespace
}  // namespace io
