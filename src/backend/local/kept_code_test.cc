#include "backend/local/kept_code.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "io/testing/temp_dir.h"

namespace backend::local {
namespace {

using Names = std::vector<std::string>;

class KeptCodeTest : public testing::Test {
 protected:
  bool Keep() {
    return KeepCode(script_, "import helper\n", copy_, user_.path() + "/state").value();
  }
  Names Changed() const { return ChangedCode(script_, copy_); }
  std::string Copied(const std::string& name) const {
    return io::ReadFile(copy_ + "/" + name).value_or("(none)");
  }

  io::testing::TempDir user_, job_;
  const std::string script_ = user_.Write("train.py", "import helper\n");
  const std::string copy_ = job_.path() + "/code";
};

TEST_F(KeptCodeTest, IsTheScriptWithTheModulesBesideIt) {
  user_.Write("helper.py", "1");
  user_.Write("models/deep/net.py", "2");
  user_.Write("data.csv", "3");
  for (const char* name : {".git/x.py", "venv/y.py", "state/z.py", "__pycache__/w.py"})
    user_.Write(name, "no");
  user_.Write("venv/pyvenv.cfg", "");
  EXPECT_TRUE(Keep());
  EXPECT_EQ(Copied("train.py"), "import helper\n");
  EXPECT_EQ(Copied("helper.py"), "1");
  EXPECT_EQ(Copied("models/deep/net.py"), "2");
  for (const char* name : {"data.csv", ".git", "venv", "state", "__pycache__"})
    EXPECT_FALSE(io::Exists(copy_ + "/" + name)) << name;
}

TEST_F(KeptCodeTest, IsRunInPlaceUntilAFileOfItChanges) {
  user_.Write("helper.py", "1");
  user_.Write("models/net.py", "2");
  Keep();
  EXPECT_EQ(Changed(), Names());
  EXPECT_EQ(ScriptToRun(script_, copy_), script_);
  user_.Write("models/net.py", "3");
  std::filesystem::remove(user_.path() + "/helper.py");
  EXPECT_EQ(Changed(), (Names{"helper.py", "models/net.py"}));
  EXPECT_EQ(ScriptToRun(script_, copy_), copy_ + "/train.py");
  EXPECT_EQ(Copied("models/net.py"), "2");
}

TEST_F(KeptCodeTest, FindsItsDataFromTheCopy) {
  user_.Write("models/net.py", "2");
  user_.Write("models/weights.bin", "w");
  user_.Write("data/train.csv", "d");
  Keep();
  user_.Write("train.py", "changed");
  user_.Write("new.py", "came later");
  ASSERT_TRUE(ScriptToRun(script_, copy_));
  EXPECT_EQ(Copied("data/train.csv"), "d");
  EXPECT_EQ(Copied("models/weights.bin"), "w");
  EXPECT_FALSE(io::Exists(copy_ + "/new.py"));
  ASSERT_TRUE(ScriptToRun(script_, copy_));  // the links are there already
  EXPECT_EQ(Changed(), Names{"train.py"});
  Keep();  // --code
  EXPECT_EQ(Copied("new.py"), "came later");
  EXPECT_FALSE(io::Exists(copy_ + "/data"));
}

TEST_F(KeptCodeTest, OfTooLargeAFolderIsWhatLiesBesideTheScript) {
  user_.Write("helper.py", "1");
  for (int i = 0; i <= 1000; ++i) user_.Write("many/" + std::to_string(i) + ".py", "");
  EXPECT_FALSE(Keep());
  EXPECT_EQ(Copied("helper.py"), "1");
  EXPECT_FALSE(io::Exists(copy_ + "/many"));
}

}  // namespace
}  // namespace backend::local
