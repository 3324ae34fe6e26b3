// send_files.py, which `fetch` runs in a pod, together with what reads its output here.
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/tar.h"
#include "io/process.h"
#include "io/testing/temp_dir.h"
#include "io/unpack.h"
#include "pod_scripts.h"

namespace cli {
namespace {

using namespace std::chrono_literals;

class SendFilesTest : public testing::Test {
 protected:
  // Sends what is in from_ to to_; returns the exit status.
  int Send() {
    const std::string said = to_.path() + "/said";
    const io::Fd error(open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const auto ended = io::RunToItsEnd(
        {.argv = {"/usr/bin/env", "python3", "-c", std::string(pod_scripts::kSendFilesPy),
                  from_.path() + "/output"},
         .env = io::Environment(),
         .error = error.get()},
        60s, 1 << 20);
    CHECK(ended);
    said_ = io::ReadFile(said).value();
    if (ended->status != 0) return ended->status;
    CHECK(io::MakeDirs(to_.path() + "/output"));
    auto unpack = io::Unpack::Into(to_.path() + "/output");
    base::TarReader reader(*unpack);
    unpacked_ = reader.Feed(ended->output);
    EXPECT_TRUE(reader.complete());
    return 0;
  }
  std::string Content(const std::string& name) const {
    return io::ReadFile(to_.path() + "/output/" + name).value_or("(none)");
  }

  io::testing::TempDir from_, to_;
  std::string said_;
  base::Result<> unpacked_;
};

TEST_F(SendFilesTest, EveryNameOfAFileArrivesWithItsContent) {
  const std::string file = from_.Write("output/1/saved_model.pb", "model");
  std::filesystem::create_hard_link(file, from_.path() + "/output/best.pb");
  std::filesystem::create_symlink("1/saved_model.pb", from_.path() + "/output/latest.pb");
  ASSERT_EQ(Send(), 0) << said_;
  ASSERT_TRUE(unpacked_) << unpacked_.error().text();
  for (const char* name : {"1/saved_model.pb", "best.pb", "latest.pb"})
    EXPECT_EQ(Content(name), "model") << name;
  EXPECT_EQ(said_, "");
}

TEST_F(SendFilesTest, WhatIsNotSentIsNamed) {
  from_.Write("secret", "outside");
  from_.Write("output/kept", "kept");
  const std::string output = from_.path() + "/output/";
  std::filesystem::create_symlink("../secret", output + "a");
  std::filesystem::create_symlink("nowhere", output + "b");
  std::filesystem::create_directory_symlink("..", output + "c");
  ASSERT_EQ(mkfifo((output + "d").c_str(), 0600), 0);
  ASSERT_EQ(Send(), 0) << said_;
  EXPECT_EQ(said_, "c\na\nb\nd\n");
  EXPECT_EQ(Content("kept"), "kept");
  EXPECT_EQ(Content("a"), "(none)");
}

TEST_F(SendFilesTest, AMissingFolderIsAnError) {
  EXPECT_EQ(Send(), 1);
  EXPECT_EQ(said_, from_.path() + "/output: No such file or directory\n");
}

}  // namespace
}  // namespace cli
