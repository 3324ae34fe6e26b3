#include "io/files.h"

#include <gtest/gtest.h>

namespace io {
namespace {

TEST(AbsolutePath, HasNoSlashAtItsEnd) {
  for (const char* path : {"/a/b", "/a/b/", "/a/b//", "/a/b/.", "/a/b/./", "/a/b/c/.."})
    EXPECT_EQ(AbsolutePath(path), "/a/b") << path;
  EXPECT_EQ(AbsolutePath("/"), "/");
  EXPECT_EQ(BaseName(AbsolutePath("x/")), "x");
}

}  // namespace
}  // namespace io
