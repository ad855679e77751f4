// The least of what the system and every control group leave.
#include "runtime/memory/AvailableMemory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ingot;
namespace fs = std::filesystem;

namespace {

struct FakeRoot {
  std::string path;
  FakeRoot() {
    std::string pattern =
        (fs::temp_directory_path() / "ingot-root-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~FakeRoot() { fs::remove_all(path); }
  void write(const std::string &name, const std::string &text) {
    fs::create_directories((path + name).substr(0, (path + name).rfind('/')));
    std::ofstream(path + name) << text;
  }
};

} // namespace

TEST(AvailableMemoryTest, leastOfSystemAndGroups) {
  FakeRoot root;
  EXPECT_FALSE(availableMemoryBytes(root.path));
  root.write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   50 kB\n");
  EXPECT_EQ(*availableMemoryBytes(root.path), 51200u);
  root.write("/proc/self/cgroup", "0::/a/b\n");
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("/sys/fs/cgroup/a/b/memory.current", "10\n");
  EXPECT_EQ(*availableMemoryBytes(root.path), 51200u);
  // 1000 of the 3000 held bytes are page cache.
  root.write("/sys/fs/cgroup/a/memory.max", "10000\n");
  root.write("/sys/fs/cgroup/a/memory.current", "3000\n");
  root.write("/sys/fs/cgroup/a/memory.stat",
             "anon 2000\ninactive_file 600\nactive_file 400\n");
  EXPECT_EQ(*availableMemoryBytes(root.path), 8000u);
}

TEST(AvailableMemoryTest, version1) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "3:cpu:/x\n4:memory:/x\n");
  root.write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5000\n");
  root.write("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(*availableMemoryBytes(root.path), 0u);
}
