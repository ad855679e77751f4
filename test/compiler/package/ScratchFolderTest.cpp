// Scratch folders go with their owner, however it ends.
#include "compiler/package/ScratchFolder.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace ingot::package {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names(const std::string &folder) {
  std::vector<std::string> all;
  for (const auto &each : fs::directory_iterator(folder))
    all.push_back(each.path().filename().string());
  return all;
}

// A process with a scratch folder that holds a file, ended by `signal`.
void endedBy(int signal, const std::string &path, bool removesOnSignals) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(signal, SIG_DFL); // whoever runs the test may ignore it
    if (removesOnSignals)
      removeScratchOnSignals();
    ScratchFolder scratch(path);
    std::ofstream(scratch.file("half")) << "half of it";
    (void)!::write(ready[1], "x", 1);
    for (;;)
      ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(child, signal);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(ScratchFolderTest, GoesWithTheObject) {
  testing::TempFolder folder;
  {
    ScratchFolder scratch(folder.file("out"));
    std::ofstream(scratch.file("a")) << "a";
    EXPECT_TRUE(fs::exists(scratch.file("a")));
    EXPECT_EQ(names(folder.path()).size(), 1u);
  }
  EXPECT_TRUE(names(folder.path()).empty());
}

TEST(ScratchFolderTest, GoesWithAProcessThatIsTold) {
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    testing::TempFolder folder;
    endedBy(signal, folder.file("out"), true);
    EXPECT_TRUE(names(folder.path()).empty()) << signal;
  }
}

// What SIGKILL leaves, the next one removes, whatever it makes there; what is
// held, or looks otherwise, stays.
TEST(ScratchFolderTest, TheNextRemovesWhatWasLeft) {
  testing::TempFolder folder;
  endedBy(SIGKILL, folder.file("out"), true);
  ASSERT_EQ(names(folder.path()).size(), 1u);
  ScratchFolder held(folder.file("held"));
  std::ofstream(held.file("a")) << "a";
  for (const char *name :
       {"out.scratch-1", "out.scratch-1-2-3", "out.scratch-a-1", "scratch-1-1"})
    fs::create_directory(folder.file(name));
  std::ofstream(folder.file("file.scratch-1-1")) << "no folder";
  endedBy(SIGKILL, folder.file("other"), false);
  {
    ScratchFolder next(folder.file("third"));
    EXPECT_TRUE(fs::exists(held.file("a")));
    EXPECT_EQ(names(folder.path()).size(), 7u);
  }
  EXPECT_EQ(names(folder.path()).size(), 6u);
}

} // namespace
} // namespace ingot::package
