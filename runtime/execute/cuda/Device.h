// One CUDA device and what is taken of it: its context, a stream, memory. Every
// object releases what it holds; all belong to the device, which outlives them.
#pragma once

#include "runtime/execute/cuda/Driver.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ingot::cuda {

struct DeviceProperties {
  int number = 0;
  std::string name; // "NVIDIA H200"
  int major = 0;    // of its compute capability
  int minor = 0;
  int multiprocessors = 0;
  int maxSharedBytes = 0; // of a block, when asked for
  // "sm_90"
  std::string sm() const {
    return "sm_" + std::to_string(major) + std::to_string(minor);
  }
};

class Device {
public:
  // Makes the device's primary context current for the calling thread. NotFound
  // names the devices that there are.
  static Result<std::shared_ptr<Device>>
  open(std::shared_ptr<const Driver> driver, int number);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device();

  const Driver &driver() const { return *driver_; }
  const DeviceProperties &properties() const { return properties_; }
  // The one stream on which everything of this device is ordered.
  StreamHandle stream() const { return stream_; }
  // Contexts are current for one thread: called before work by any other.
  Status makeCurrent() const { return driver_->ctxSetCurrent(context_); }

  struct MemoryInfo {
    std::uint64_t freeBytes = 0;
    std::uint64_t totalBytes = 0;
  };
  Result<MemoryInfo> memoryInfo() const;
  // Until all work on the stream is done.
  Status synchronize() const { return driver_->streamSynchronize(stream_); }

private:
  explicit Device(std::shared_ptr<const Driver> driver)
      : driver_(std::move(driver)) {}
  Status start(int number);

  std::shared_ptr<const Driver> driver_;
  DeviceProperties properties_;
  DeviceNumber handle_ = -1; // -1: no context is retained
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
};

// Memory of the device, in one piece.
class DeviceMemory {
public:
  // `what` names the use in the error.
  static Result<DeviceMemory> allocate(const Device &device,
                                       std::uint64_t sizeBytes,
                                       const std::string &what);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  DevicePointer address() const { return address_; }
  std::uint64_t sizeBytes() const { return sizeBytes_; }

private:
  const Device *device_ = nullptr;
  DevicePointer address_ = 0;
  std::uint64_t sizeBytes_ = 0;
};

// Page-locked memory of the host, which the device copies from and to while the
// host goes on.
class PinnedMemory {
public:
  static Result<PinnedMemory> allocate(const Device &device,
                                       std::uint64_t sizeBytes,
                                       const std::string &what);
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory &&other) noexcept { *this = std::move(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  std::uint8_t *data() const { return data_; }
  std::uint64_t sizeBytes() const { return sizeBytes_; }

private:
  const Device *device_ = nullptr;
  std::uint8_t *data_ = nullptr;
  std::uint64_t sizeBytes_ = 0;
};

// A moment of the device's stream.
class Event {
public:
  static Result<Event> create(const Device &device);
  Event() = default;
  Event(Event &&other) noexcept { *this = std::move(other); }
  Event &operator=(Event &&other) noexcept;
  ~Event();

  Status record() const {
    return device_->driver().eventRecord(handle_, device_->stream());
  }
  Status wait() const { return device_->driver().eventSynchronize(handle_); }
  EventHandle handle() const { return handle_; }

private:
  const Device *device_ = nullptr;
  EventHandle handle_ = nullptr;
};

// Bytes a second that the device reads and writes when it copies, measured now (some
// hundredths of a second) over buffers larger than its caches.
Result<double> measureCopyBandwidth(const Device &device);

// Copies host memory to the device through page-locked pieces: the host fills one
// while the device reads the other.
class Uploader {
public:
  static Result<Uploader> create(const Device &device);
  Status add(DevicePointer to, std::span<const std::uint8_t> bytes);
  // Until all that was added is there.
  Status finish() const { return device_->synchronize(); }

private:
  struct Piece {
    PinnedMemory memory;
    Event read;
    bool isUsed = false;
  };
  const Device *device_ = nullptr;
  Piece pieces_[2];
  int turn_ = 0;
};

} // namespace ingot::cuda
