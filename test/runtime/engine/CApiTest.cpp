// Runs the C program on an artifact whose kernels only return.
#include "test/runtime/plan/TinyArtifact.h"

#include <gtest/gtest.h>

extern "C" const char *ingotCApiTest(const char *path, const char *missing);

TEST(CApiTest, programInC) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the test's code is x86-64";
#endif
  ingot::test::TempFolder folder;
  std::string path =
      folder.write("a.ingot", ingot::test::TinyArtifact::make().bytes());
  const char *failed =
      ingotCApiTest(path.c_str(), folder.path("missing.ingot").c_str());
  EXPECT_EQ(failed, nullptr) << failed;
}
