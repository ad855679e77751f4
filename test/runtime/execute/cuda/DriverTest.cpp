// What is said where there is no driver, an old one, none of its functions or no
// device, and what a failing call becomes: each with a library in the driver's place.
#include "runtime/execute/cuda/CudaExecutor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace ingot::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaDriverTest : public testing::Test {
protected:
  void use(const char *library, const char *settings = "") {
    ::setenv("INGOT_CUDA_DRIVER", library, 1);
    ::setenv("INGOT_FAKE_DRIVER", settings, 1);
  }
  void TearDown() override {
    ::unsetenv("INGOT_CUDA_DRIVER");
    ::unsetenv("INGOT_FAKE_DRIVER");
  }
  // The failure of opening the driver, of which there must be one.
  std::string refused(int leastVersion = kLeastDriverVersion,
                      StatusCode code = StatusCode::Unsupported) {
    auto driver = Driver::open(leastVersion);
    EXPECT_FALSE(driver.isOk());
    EXPECT_EQ(driver.status().code(), code);
    EXPECT_EQ(driver.status().message().find('\n'), std::string::npos);
    return driver.status().message();
  }
  std::shared_ptr<Device> device() {
    auto driver = Driver::open();
    EXPECT_TRUE(driver.isOk()) << driver.status().message();
    auto device = Device::open(*driver, 0);
    EXPECT_TRUE(device.isOk()) << device.status().message();
    return *device;
  }
};

TEST_F(CudaDriverTest, NoLibrary) {
  use("/nowhere/libcuda.so.1");
  EXPECT_THAT(refused(13000),
              AllOf(HasSubstr("needs a CUDA driver for CUDA 13.0 or newer, "
                              "found none"),
                    HasSubstr("/nowhere/libcuda.so.1")));
}

TEST_F(CudaDriverTest, PathMustBeAbsolute) {
  for (const char *path : {"libcuda.so.1", "", "./libcuda.so"}) {
    use(path);
    EXPECT_THAT(refused(12000, StatusCode::InvalidInput),
                AllOf(HasSubstr("INGOT_CUDA_DRIVER"),
                      HasSubstr("expected an absolute path")));
  }
}

TEST_F(CudaDriverTest, LibraryIsNoDriver) {
  use(INGOT_FAKE_DRIVER_NONE);
  EXPECT_THAT(refused(), HasSubstr("it has no cuDriverGetVersion"));
}

TEST_F(CudaDriverTest, DriverTooOld) {
  use(INGOT_FAKE_DRIVER, "version=11080");
  EXPECT_THAT(refused(),
              HasSubstr("needs a CUDA driver for CUDA 12.0 or newer, found one "
                        "for CUDA 11.8"));
  use(INGOT_FAKE_DRIVER, "version=12090");
  EXPECT_THAT(refused(13000), HasSubstr("CUDA 13.0 or newer, found one for "
                                        "CUDA 12.9"));
  EXPECT_TRUE(Driver::open(12090).isOk());
}

TEST_F(CudaDriverTest, DriverLacksAFunction) {
  use(INGOT_FAKE_DRIVER_INCOMPLETE);
  EXPECT_THAT(refused(), AllOf(HasSubstr("(CUDA 13.0)"),
                               HasSubstr("has no cuEventElapsedTime")));
}

TEST_F(CudaDriverTest, NoDevice) {
  for (const char *how : {"init=100", "devices=0"}) {
    use(INGOT_FAKE_DRIVER, how);
    EXPECT_THAT(refused(),
                AllOf(HasSubstr("needs a CUDA device"), HasSubstr("CUDA 13.0"),
                      HasSubstr("finds none")));
  }
}

TEST_F(CudaDriverTest, DriverDoesNotStart) {
  use(INGOT_FAKE_DRIVER, "init=803");
  EXPECT_THAT(refused(), HasSubstr("does not start: cuInit: "
                                   "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"));
}

// The system's driver has threads and handlers for the process's end, so its text
// stays; one in its place goes, and comes back as new.
TEST_F(CudaDriverTest, TheSystemsDriverStaysLoaded) {
  auto isLoaded = [](const char *path) {
    void *library = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return library && ::dlclose(library) == 0;
  };
  use(INGOT_FAKE_DRIVER);
  ASSERT_TRUE(Driver::open().isOk());
  EXPECT_FALSE(isLoaded(INGOT_FAKE_DRIVER));
  ::unsetenv("INGOT_CUDA_DRIVER");
  void *system = ::dlopen(INGOT_FAKE_DRIVER_SYSTEM, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(system) << ::dlerror();
  {
    auto driver = Driver::open();
    ASSERT_TRUE(driver.isOk()) << driver.status().message();
    EXPECT_EQ((*driver)->path(), "libcuda.so.1");
  }
  ::dlclose(system);
  EXPECT_TRUE(isLoaded(INGOT_FAKE_DRIVER_SYSTEM));
}

TEST_F(CudaDriverTest, DeviceOfAnotherNumber) {
  use(INGOT_FAKE_DRIVER, "devices=2");
  auto driver = Driver::open();
  ASSERT_TRUE(driver.isOk()) << driver.status().message();
  EXPECT_TRUE(Device::open(*driver, 1).isOk());
  auto missing = Device::open(*driver, 2);
  ASSERT_FALSE(missing.isOk());
  EXPECT_EQ(missing.status().message(),
            "CUDA device 2: the driver finds 2, numbered from 0");
}

TEST_F(CudaDriverTest, WhatADeviceSaysOfItself) {
  use(INGOT_FAKE_DRIVER, "major=8,minor=6,free=12345,total=23456");
  auto opened = device();
  EXPECT_EQ(opened->properties().name, "Fake device");
  EXPECT_EQ(opened->properties().sm(), "sm_86");
  auto memory = opened->memoryInfo();
  ASSERT_TRUE(memory.isOk());
  EXPECT_EQ(memory->freeBytes, 12345u);
  EXPECT_EQ(memory->totalBytes, 23456u);
}

TEST_F(CudaDriverTest, AFailureNamesTheCallAndTheError) {
  use(INGOT_FAKE_DRIVER, "fail=2");
  auto opened = device();
  auto first = DeviceMemory::allocate(*opened, 64, "weights");
  ASSERT_TRUE(first.isOk());
  auto second = DeviceMemory::allocate(*opened, 64, "arena");
  ASSERT_FALSE(second.isOk());
  EXPECT_EQ(second.status().code(), StatusCode::OutOfMemory);
  EXPECT_EQ(second.status().message(),
            "arena (64 bytes on the device): cuMemAlloc_v2: "
            "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  // An error that this driver has no name for.
  Status unnamed = opened->driver().launchKernel(
      nullptr, 1, 1, 1, 1, 1, 1, 0, opened->stream(), nullptr, nullptr);
  EXPECT_EQ(unnamed.code(), StatusCode::IoError);
  EXPECT_EQ(unnamed.message(), "cuLaunchKernel: error (719)");
}

// Whether copies happen at once, or not before somebody waits.
TEST_F(CudaDriverTest, UploadMovesEveryByte) {
  for (const char *how : {"", "lazy=1"}) {
    use(INGOT_FAKE_DRIVER, how);
    auto opened = device();
    // More than two pieces of staging, and an end that fills none.
    std::vector<std::uint8_t> bytes((std::size_t(16) << 20) * 3 + 12345);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = std::uint8_t(i % 251);
    auto memory = DeviceMemory::allocate(*opened, bytes.size(), "weights");
    ASSERT_TRUE(memory.isOk());
    auto uploader = Uploader::create(*opened);
    ASSERT_TRUE(uploader.isOk());
    ASSERT_TRUE(uploader->add(memory->address(), bytes).isOk());
    ASSERT_TRUE(uploader->finish().isOk());
    EXPECT_EQ(std::memcmp(reinterpret_cast<void *>(memory->address()),
                          bytes.data(), bytes.size()),
              0)
        << how;
  }
}

// What another program left in the device's memory is in no cache.
TEST_F(CudaDriverTest, StateBeginsAsZeros) {
  use(INGOT_FAKE_DRIVER);
  auto opened = device();
  auto state = makeDeviceState(*opened, 4096, "cache");
  ASSERT_TRUE(state.isOk()) << state.status().message();
  ASSERT_TRUE(opened->synchronize().isOk());
  const std::uint8_t *bytes = (*state)->data();
  EXPECT_EQ(std::count(bytes, bytes + 4096, 0), 4096);
  (*state)->fill(64, 32, 0x1234);
  (*state)->copy(256, 64, 32);
  ASSERT_TRUE(opened->synchronize().isOk());
  EXPECT_EQ(bytes[256], 0x34);
  EXPECT_EQ(bytes[287], 0x12);
  EXPECT_EQ(bytes[288], 0);
}

} // namespace
} // namespace ingot::cuda
