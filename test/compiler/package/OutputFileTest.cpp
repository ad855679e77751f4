// A file is there complete or not at all.
#include "compiler/package/OutputFile.h"
#include "compiler/package/OutputPath.h"
#include "runtime/plan/Container.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace ingot::package {
namespace {

namespace fs = std::filesystem;

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

size_t entries(const std::string &folder) {
  return std::distance(fs::directory_iterator(folder),
                       fs::directory_iterator());
}

TEST(OutputFileTest, AppearsWhenItIsCommitted) {
  testing::TempFolder folder;
  std::string path = folder.file("out");
  Result<OutputFile> file = OutputFile::create(path, 8);
  ASSERT_TRUE(file) << file.status().message();
  ASSERT_TRUE(file->write(4, bytesOf("abcd")));
  EXPECT_FALSE(fs::exists(path));
  Result<uint64_t> sum = file->checksum(0, 8);
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, xxh3(bytesOf(std::string_view("\0\0\0\0abcd", 8))));
  ASSERT_TRUE(file->commit());
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text.str(), std::string("\0\0\0\0abcd", 8));
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(OutputFileTest, LeavesNothingBehindWhenItIsDropped) {
  testing::TempFolder folder;
  folder.write("out", "old");
  {
    Result<OutputFile> file = OutputFile::create(folder.file("out"), 4);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(0, bytesOf("new!")));
  }
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_EQ(fs::file_size(folder.file("out")), 3u);
}

TEST(OutputFileTest, RefusesWhatIsNoFileOrHasNoFolder) {
  testing::TempFolder folder;
  EXPECT_FALSE(OutputFile::create(folder.path(), 0));
  Result<OutputFile> lost = OutputFile::create(folder.file("none/out"), 0);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.status().code(), StatusCode::IoError);
  EXPECT_THAT(lost.status().message(), ::testing::HasSubstr("none/out"));
}

// Killed while it writes, a process leaves nothing where the system has files
// without a name; the old file is whole in any case.
TEST(OutputFileTest, HasNoNameUntilItIsCommitted) {
  testing::TempFolder folder;
  folder.write("out", "old");
  int probe = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (probe < 0)
    GTEST_SKIP() << "the file system of " << folder.path()
                 << " has no files without a name";
  ::close(probe);
  Result<OutputFile> file = OutputFile::create(folder.file("out"), 4);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write(0, bytesOf("new!")));
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_EQ(fs::file_size(folder.file("out")), 3u);
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_EQ(fs::file_size(folder.file("out")), 4u);
}

TEST(OutputFileTest, TakesTheLongestNameAndNoLonger) {
  testing::TempFolder folder;
  std::string longest(255, 'a');
  Result<OutputFile> file = OutputFile::create(folder.file(longest), 0);
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_TRUE(file->commit());
  EXPECT_TRUE(fs::exists(folder.file(longest)));
  EXPECT_FALSE(OutputFile::create(folder.file(longest + "a"), 0));
}

TEST(OutputPathTest, ReplacesAnArtifactAndNothingElse) {
  testing::TempFolder folder;
  EXPECT_TRUE(checkArtifactPath(folder.file("new")));
  EXPECT_EQ(entries(folder.path()), 0u);
  folder.write("empty", "");
  EXPECT_TRUE(checkArtifactPath(folder.file("empty")));
  folder.write("artifact", std::string(container::kMagic, 8) + "...");
  EXPECT_TRUE(checkArtifactPath(folder.file("artifact")));
  folder.write("config.json", "{}");
  Status other = checkArtifactPath(folder.file("config.json"));
  EXPECT_EQ(other.code(), StatusCode::InvalidInput);
  EXPECT_THAT(other.message(), ::testing::HasSubstr("is no artifact"));
  fs::create_symlink("config.json", folder.file("link"));
  EXPECT_FALSE(checkArtifactPath(folder.file("link")));
  EXPECT_EQ(checkArtifactPath(folder.path()).code(), StatusCode::IoError);
  EXPECT_EQ(checkArtifactPath(folder.file("none/new")).code(),
            StatusCode::IoError);
}

TEST(OutputPathTest, TensorsReplaceTensorsAndNoModel) {
  testing::TempFolder folder;
  const std::string tensors("\2\0\0\0\0\0\0\0{}", 10);
  fs::create_directory(folder.file("model"));
  folder.write("model/model.safetensors", tensors);
  folder.write("dump.safetensors", tensors);
  folder.write("notes.txt", "a text that is longer than a header");
  folder.write("model.ingot", std::string(container::kMagic, 8) + "...");
  std::string model = folder.file("model");
  EXPECT_TRUE(checkTensorsPath(folder.file("new"), model));
  EXPECT_TRUE(checkTensorsPath(folder.file("dump.safetensors"), model));
  EXPECT_TRUE(checkTensorsPath("/dev/null", model));
  for (const char *name : {"model/model.safetensors", "notes.txt"})
    EXPECT_EQ(checkTensorsPath(folder.file(name), model).code(),
              StatusCode::InvalidInput)
        << name;
  EXPECT_THAT(
      checkTensorsPath(folder.file("model.ingot"), folder.file("model.ingot"))
          .message(),
      ::testing::HasSubstr("belongs to the model"));
  EXPECT_EQ(checkTensorsPath(folder.file("none/new"), model).code(),
            StatusCode::IoError);
}

TEST(OutputFileTest, ChecksumFailsPastTheEnd) {
  testing::TempFolder folder;
  Result<OutputFile> file = OutputFile::create(folder.file("out"), 4);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->checksum(0, 5));
}

TEST(OutputFileTest, HashesAreXxh3) {
  EXPECT_EQ(xxh3Text({}), "2d06800538d394c2");
}

// A whole text: in place of the old one, of what a link names, or not at all.
TEST(OutputFileTest, WritesWholeTexts) {
  testing::TempFolder folder;
  folder.write("real", "old");
  fs::create_symlink("real", folder.file("link"));
  ASSERT_TRUE(writeOutputFile(folder.file("link"), "new text"));
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(fs::file_size(folder.file("real")), 8u);
  ASSERT_TRUE(writeOutputFile(folder.file("empty"), ""));
  EXPECT_EQ(fs::file_size(folder.file("empty")), 0u);
  EXPECT_EQ(entries(folder.path()), 3u);
  EXPECT_EQ(writeOutputFile(folder.path(), "text").code(), StatusCode::IoError);
  EXPECT_EQ(writeOutputFile(folder.file("none/out"), "text").code(),
            StatusCode::IoError);
  Status full = writeOutputFile("/dev/full", "text");
  EXPECT_EQ(full.code(), StatusCode::IoError);
  EXPECT_THAT(full.message(), ::testing::HasSubstr("/dev/full: cannot write"));
  EXPECT_TRUE(writeOutputFile("/dev/null", "text"));
}

} // namespace
} // namespace ingot::package
