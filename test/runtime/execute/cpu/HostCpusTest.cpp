// Threads come from the affinity mask and the control group's quota.
#include "runtime/execute/cpu/HostCpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ingot;
namespace fs = std::filesystem;

namespace {

class FakeRoot {
public:
  FakeRoot() {
    std::string pattern =
        (fs::temp_directory_path() / "ingot-root-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FakeRoot() { fs::remove_all(root_); }
  void write(const std::string &path, const std::string &text) {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  const std::string &path() const { return root_; }

private:
  std::string root_;
};

} // namespace

TEST(HostCpusTest, quotaOfVersion2) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/a/b\n");
  root.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroupCpuQuota(root.path()));
  root.write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(*cgroupCpuQuota(root.path()), 2.5);
  root.write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(*cgroupCpuQuota(root.path()), 1.5);
}

TEST(HostCpusTest, quotaOfVersion1) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "7:memory:/x\n4:cpu,cpuacct:/x\n");
  root.write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  root.write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cgroupCpuQuota(root.path()));
  root.write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "300000\n");
  EXPECT_DOUBLE_EQ(*cgroupCpuQuota(root.path()), 3);
}

TEST(HostCpusTest, damagedFilesGiveNoQuota) {
  FakeRoot root;
  EXPECT_FALSE(cgroupCpuQuota(root.path()));
  root.write("/proc/self/cgroup", "nonsense\n0:\n0::relative\n");
  root.write("/sys/fs/cgroup/cpu.max", "x y\n");
  EXPECT_FALSE(cgroupCpuQuota(root.path()));
}

TEST(HostCpusTest, threadsAndPinning) {
  HostCpus cpus;
  cpus.allowed = {2, 3, 5, 7};
  EXPECT_EQ(cpus.threads(), 4);
  EXPECT_TRUE(cpus.shouldPin(4));
  EXPECT_FALSE(cpus.shouldPin(3));
  cpus.quota = 2.5;
  EXPECT_EQ(cpus.threads(), 2);
  EXPECT_FALSE(cpus.shouldPin(4));
  cpus.quota = 0.3;
  EXPECT_EQ(cpus.threads(), 1);
  EXPECT_GE(detectHostCpus().threads(), 1);
}
