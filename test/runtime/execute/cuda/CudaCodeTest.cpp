// Which level of code serves a device, and which images the driver gets to see.
#include "runtime/execute/cuda/CudaCode.h"
#include "runtime/plan/VerifyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <elf.h>

namespace ingot::cuda {
namespace {

using testing::HasSubstr;

// A target with nothing but levels, each for a driver of CUDA 12.4 or as given.
class Levels {
public:
  explicit Levels(std::vector<std::pair<std::string, int>> levels) {
    fbs::TargetT target;
    target.name = "cuda";
    for (const auto &[name, driver] : levels) {
      auto level = std::make_unique<fbs::LevelT>();
      level->name = name;
      level->driver_version = std::uint32_t(driver);
      target.levels.push_back(std::move(level));
    }
    builder_.Finish(fbs::Target::Pack(builder_, &target));
  }
  const fbs::Target &target() const {
    return *flatbuffers::GetRoot<fbs::Target>(builder_.GetBufferPointer());
  }
  // The chosen level's name, or the error.
  std::string choose(int major, int minor, const std::string &wanted = "",
                     int driver = 13000) const {
    DeviceProperties device;
    device.name = "Test";
    device.major = major;
    device.minor = minor;
    auto level = chooseLevel(target(), wanted, device, driver);
    return level ? target().levels()->Get(*level)->name()->str()
                 : level.status().message();
  }

private:
  flatbuffers::FlatBufferBuilder builder_;
};

TEST(CudaCodeTest, theFirstLevelThatRuns) {
  Levels levels({{"sm_90a", 12040},
                 {"sm_90", 12040},
                 {"sm_86", 12040},
                 {"sm_80", 12040},
                 {"compute_80", 12040}});
  EXPECT_EQ(levels.choose(9, 0), "sm_90a");
  EXPECT_EQ(levels.choose(8, 9), "sm_86");
  EXPECT_EQ(levels.choose(8, 0), "sm_80");
  EXPECT_EQ(levels.choose(10, 0), "compute_80");
  EXPECT_EQ(levels.choose(12, 1), "compute_80");
  EXPECT_EQ(levels.choose(9, 0, "sm_90"), "sm_90");
  EXPECT_EQ(levels.choose(9, 0, "compute_80"), "compute_80");
}

TEST(CudaCodeTest, whatIsMissingIsSaid) {
  Levels levels({{"sm_90a", 12040}, {"sm_80", 12040}});
  EXPECT_EQ(levels.choose(7, 5),
            "has code for sm_90a, sm_80, found Test of sm_75; compile it with "
            "sm_75 among its targets");
  EXPECT_THAT(levels.choose(9, 3), HasSubstr("found Test of sm_93"));
  EXPECT_EQ(levels.choose(9, 0, "sm_80"),
            "level \"sm_80\" does not run on the device, Test of sm_90");
  EXPECT_EQ(levels.choose(9, 0, "sm_70"),
            "level \"sm_70\": the artifact has sm_90a, sm_80");
}

TEST(CudaCodeTest, aLevelNeedsItsDriver) {
  Levels levels({{"sm_90", 13000}, {"compute_80", 12020}});
  EXPECT_EQ(leastDriverVersion(levels.target()), 12020);
  EXPECT_EQ(levels.choose(9, 0, "", 13000), "sm_90");
  // The text is older than the cubin: its driver will do.
  EXPECT_EQ(levels.choose(9, 0, "", 12080), "compute_80");
  Levels onlyNew({{"sm_90", 13000}});
  EXPECT_EQ(onlyNew.choose(9, 0, "", 12080),
            "its code for Test of sm_90 needs a CUDA driver for CUDA 13.0 or "
            "newer, found one for CUDA 12.8");
}

TEST(CudaCodeTest, namesOfLevels) {
  auto level = CudaLevel::parse("sm_90a");
  ASSERT_TRUE(level);
  EXPECT_EQ(level->major, 9);
  EXPECT_EQ(level->minor, 0);
  EXPECT_EQ(level->suffix, 'a');
  level = CudaLevel::parse("sm_121");
  ASSERT_TRUE(level);
  EXPECT_EQ(level->major, 12);
  EXPECT_EQ(level->minor, 1);
  ASSERT_TRUE(CudaLevel::parse("compute_80"));
  EXPECT_TRUE(CudaLevel::parse("compute_80")->isText);
  for (const char *name : {"", "sm_", "sm_9", "sm_9x", "sm_09", "sm_1234",
                           "compute_80a", "x86-64-v3", "sm_90b", "sm_-90"})
    EXPECT_FALSE(CudaLevel::parse(name)) << name;
}

std::vector<std::uint8_t> cubin() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_CUDA;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  header.e_shoff = sizeof header;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof header;
  section.sh_size = sizeof section;
  std::vector<std::uint8_t> bytes(sizeof header + sizeof section);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &section, sizeof section);
  return bytes;
}

TEST(CudaCodeTest, damagedImagesNeverReachTheDriver) {
  EXPECT_TRUE(checkImage(cubin(), false).isOk());
  auto damaged = [](auto change) {
    std::vector<std::uint8_t> bytes = cubin();
    Elf64_Ehdr header;
    Elf64_Shdr section;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::memcpy(&section, bytes.data() + sizeof header, sizeof section);
    change(header, section);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &section, sizeof section);
    return checkImage(bytes, false).message();
  };
  EXPECT_THAT(damaged([](auto &header, auto &) { header.e_ident[1] = 'X'; }),
              HasSubstr("is no cubin"));
  EXPECT_THAT(
      damaged([](auto &header, auto &) { header.e_machine = EM_X86_64; }),
      HasSubstr("is no cubin"));
  EXPECT_THAT(damaged([](auto &header, auto &) { header.e_shnum = 2; }),
              HasSubstr("tables of a cubin leave"));
  EXPECT_THAT(damaged([](auto &header, auto &) { header.e_shoff = ~0ull; }),
              HasSubstr("tables of a cubin leave"));
  EXPECT_THAT(damaged([](auto &header, auto &) { header.e_phnum = 1; }),
              HasSubstr("tables of a cubin leave"));
  EXPECT_THAT(damaged([](auto &, auto &section) { section.sh_size = 65; }),
              HasSubstr("section 0 of a cubin leaves"));
  EXPECT_THAT(damaged([](auto &, auto &section) { section.sh_offset = ~0ull; }),
              HasSubstr("section 0 of a cubin leaves"));
  std::vector<std::uint8_t> half = cubin();
  half.resize(20);
  EXPECT_THAT(checkImage(half, false).message(), HasSubstr("shorter than"));

  const std::uint8_t text[] = {'.', 'v', 0};
  EXPECT_TRUE(checkImage(text, true).isOk());
  EXPECT_THAT(checkImage(std::span(text).first(2), true).message(),
              HasSubstr("does not end with a zero"));
}

} // namespace
} // namespace ingot::cuda
