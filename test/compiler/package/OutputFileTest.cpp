// A file is there complete or not at all.
#include "compiler/package/OutputFile.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

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
    EXPECT_EQ(entries(folder.path()), 2u);
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

TEST(OutputFileTest, ChecksumFailsPastTheEnd) {
  testing::TempFolder folder;
  Result<OutputFile> file = OutputFile::create(folder.file("out"), 4);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->checksum(0, 5));
}

TEST(OutputFileTest, HashesAreXxh3) {
  EXPECT_EQ(xxh3Text({}), "2d06800538d394c2");
}

} // namespace
} // namespace ingot::package
