// What happens to a mapped file is told: at the next look, or when it is read.
#include "runtime/support/MappedFiles.h"
#include "runtime/support/MappedFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MappedFilesTest : public ::testing::Test {
protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "mapped-" + std::to_string(::getpid());
    write(std::string(16384, 'a'));
    // Long ago, so that whatever comes has another time.
    fs::last_write_time(path_,
                        fs::last_write_time(path_) - std::chrono::hours(1));
    file_ = std::move(MappedFile::open(path_).value());
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  void write(const std::string &bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  Status check() const {
    return checkMappingUnchanged(file_.bytes().data() + 5000);
  }

  std::string path_;
  MappedFile file_;
};

TEST_F(MappedFilesTest, overwritingIsTold) {
  EXPECT_TRUE(check());
  write(std::string(16384, 'b'));
  Status changed = check();
  EXPECT_EQ(changed.code(), StatusCode::IoError);
  EXPECT_THAT(changed.message(), HasSubstr(path_ + ": was written to"));
  write(std::string(20000, 'b'));
  EXPECT_THAT(check().message(), HasSubstr("(16384 bytes then, 20000 now)"));
}

TEST_F(MappedFilesTest, aMappingOutlivesItsName) {
  std::string other = path_ + ".new";
  std::ofstream(other) << "another";
  fs::rename(other, path_);
  EXPECT_TRUE(check());
  fs::remove(path_);
  EXPECT_TRUE(check());
  EXPECT_EQ(file_.bytes()[16383], 'a');
}

TEST_F(MappedFilesTest, whatIsNotMappedAnyMoreIsForgotten) {
  const void *address = file_.bytes().data();
  write("b");
  EXPECT_FALSE(checkMappingUnchanged(address));
  file_ = MappedFile();
  EXPECT_TRUE(checkMappingUnchanged(address));
}

TEST_F(MappedFilesTest, aBusErrorNamesTheFile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        exitOnBusErrors("program", 4);
        fs::resize_file(path_, 0);
        volatile std::uint8_t last = file_.bytes()[16383];
        (void)last;
      },
      ::testing::ExitedWithCode(4), "program: .*mapped-.*: was cut short");
  EXPECT_EXIT(
      {
        exitOnBusErrors("program", 4);
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

} // namespace
} // namespace ingot
