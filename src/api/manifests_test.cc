// Every manifest below tests/data/manifests is read: the good ones without errors, the bad ones
// with exactly the errors of the .err file beside them. TRAINYARD_WRITE_GOLDEN=1 writes those anew.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "api/decode.h"
#include "api/manifest.h"
#include "base/yaml.h"

namespace api {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> ManifestsIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".yaml" || extension == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

const fs::path kFolder = fs::path(TESTDATA) / "manifests";

TEST(Manifests, AreReadWithoutErrors) {
  ASSERT_FALSE(ManifestsIn(kFolder).empty());
  for (const fs::path& file : ManifestsIn(kFolder)) {
    const Decoded decoded = DecodeJob(ReadFile(file));
    EXPECT_EQ(Describe(decoded.errors, file.filename()), "");
  }
}

TEST(Manifests, ReadBackAsTheSameJobOnceWritten) {
  for (const fs::path& file : ManifestsIn(kFolder)) {
    const Job job = DecodeJob(ReadFile(file)).job;
    const std::string written = base::WriteYaml(EncodeJob(job));
    const Decoded again = DecodeJob(written);
    EXPECT_EQ(Describe(again.errors, file.filename()), "") << written;
    EXPECT_EQ(again.job, job) << file << "\n" << written;
    EXPECT_EQ(again.spelling, "v1");
    EXPECT_EQ(DecodeJobObject(EncodeJob(job)).job, job) << file;
  }
}

TEST(Manifests, ThatAreBadAreRefusedWithAllTheirErrors) {
  ASSERT_FALSE(ManifestsIn(kFolder / "bad").empty());
  for (const fs::path& file : ManifestsIn(kFolder / "bad")) {
    const Manifest manifest = ReadManifest(ReadFile(file), {}, [](size_t) { return size_t{0}; });
    const std::string errors = Describe(manifest.errors, file.filename());
    EXPECT_NE(errors, "") << file;
    const fs::path golden = fs::path(file).replace_extension(".err");
    if (std::getenv("TRAINYARD_WRITE_GOLDEN")) std::ofstream(golden) << errors;
    EXPECT_EQ(errors, ReadFile(golden)) << file;
  }
}

}  // namespace
}  // namespace api
