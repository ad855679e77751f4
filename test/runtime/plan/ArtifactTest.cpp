// Opening, choosing a level and mapping code.
#include "runtime/plan/CodeMapping.h"
#include "runtime/plan/CpuFeatures.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

// A complete artifact opens, and says what it holds.
TEST(ArtifactTest, opensWhatIsWhole) {
  TempFolder folder;
  auto artifact =
      Artifact::open(folder.write("a.ingot", TinyArtifact::make().bytes()),
                     {/*verifyChecksums=*/true});
  ASSERT_TRUE(artifact.isOk()) << artifact.status().message();
  EXPECT_EQ(artifact->plan().model()->vocab(), 40u);
  EXPECT_EQ(artifact->segments().size(), 3u);
  EXPECT_TRUE(artifact->segment(container::SegmentKind::Ledger).empty());
  EXPECT_NE(artifact->target("cpu"), nullptr);
  EXPECT_EQ(artifact->target("cuda"), nullptr);
}

// A missing file is named.
TEST(ArtifactTest, missingFile) {
  auto artifact = Artifact::open("/nowhere/x.ingot");
  ASSERT_FALSE(artifact.isOk());
  EXPECT_EQ(artifact.status().code(), StatusCode::NotFound);
  EXPECT_THAT(artifact.status().message(), HasSubstr("/nowhere/x.ingot"));
}

// The weights' checksum is read only when asked for; code's always.
TEST(ArtifactTest, damageIsFoundBySegment) {
  TempFolder folder;
  auto bytes = TinyArtifact::make().bytes();
  bytes.back() ^= 1; // in the weights
  std::string path = folder.write("a.ingot", bytes);
  EXPECT_TRUE(Artifact::open(path).isOk());
  auto checked = Artifact::open(path, {true});
  ASSERT_FALSE(checked.isOk());
  EXPECT_THAT(checked.status().message(), HasSubstr("(weights): checksum"));
  bytes[4096] ^= 1;
  auto damaged = Artifact::open(folder.write("b.ingot", bytes));
  EXPECT_FALSE(damaged.isOk());
}

// Another kernel ABI is refused with what to do about it.
TEST(ArtifactTest, otherAbiSaysWhatToRebuild) {
  TempFolder folder;
  TinyArtifact tiny = TinyArtifact::make();
  tiny.plan.abi_version = 999;
  auto artifact = Artifact::open(folder.write("a.ingot", tiny.bytes()));
  ASSERT_FALSE(artifact.isOk());
  EXPECT_EQ(artifact.status().code(), StatusCode::Unsupported);
  EXPECT_THAT(artifact.status().message(),
              AllOf(HasSubstr("999"), HasSubstr("rebuild")));
}

// The first level whose features are all present wins; a name overrides.
TEST(CodeMappingTest, choosesTheBestLevelThatRuns) {
  TempFolder folder;
  TinyArtifact tiny = TinyArtifact::make();
  auto &target = *tiny.plan.targets[0];
  auto best = std::make_unique<fbs::LevelT>(*target.levels[0]);
  best->name = "best";
  best->features = {"avx2", "no-such-feature"};
  target.levels.insert(target.levels.begin(), std::move(best));
  for (auto &kernel : target.kernels) {
    auto second = std::make_unique<fbs::KernelSymbolT>(*kernel->symbols[0]);
    second->level = 1;
    kernel->symbols.push_back(std::move(second));
  }
  auto artifact = Artifact::open(folder.write("a.ingot", tiny.bytes()));
  ASSERT_TRUE(artifact.isOk()) << artifact.status().message();
  const fbs::Target &cpu = *artifact->target("cpu");
  EXPECT_EQ(*chooseLevel(cpu, "", {"avx2"}), 1u);
  EXPECT_EQ(*chooseLevel(cpu, "", {"avx2", "no-such-feature"}), 0u);
  EXPECT_EQ(*chooseLevel(cpu, "any", {"avx2", "no-such-feature"}), 1u);
  auto refused = chooseLevel(cpu, "best", {"avx2"});
  ASSERT_FALSE(refused.isOk());
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("needs avx2, no-such-feature"),
                    HasSubstr("missing here: no-such-feature")));
  auto unknown = chooseLevel(cpu, "bset", {"avx2"});
  ASSERT_FALSE(unknown.isOk());
  EXPECT_THAT(unknown.status().message(), HasSubstr("it has best, any"));
}

// Mapped code runs straight from the file.
TEST(CodeMappingTest, mapsAndRuns) {
  TempFolder folder;
  auto artifact =
      Artifact::open(folder.write("a.ingot", TinyArtifact::make().bytes()));
  ASSERT_TRUE(artifact.isOk());
  auto code = CodeMapping::map(*artifact, *artifact->target("cpu"), 0);
  ASSERT_TRUE(code.isOk()) << code.status().message();
  ASSERT_EQ(code->functions().size(), std::size_t(kNumTinyKernels));
#if defined(__x86_64__)
  for (ingot::abi::KernelFn function : code->functions())
    function(nullptr, nullptr); // a single `ret`
#endif
}

TEST(CpuFeaturesTest, listsWhatIsMissingInOrder) {
  EXPECT_EQ(missingFeatures({"b", "a", "c"}, {"a"}),
            (std::vector<std::string>{"b", "c"}));
#if defined(__x86_64__)
  EXPECT_TRUE(hostCpuFeatures().count("sse2"));
#endif
}
