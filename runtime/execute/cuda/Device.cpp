#include "runtime/execute/cuda/Device.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

Result<std::shared_ptr<Device>>
Device::open(std::shared_ptr<const Driver> driver, int number) {
  std::shared_ptr<Device> device(new Device(std::move(driver)));
  INGOT_RETURN_IF_ERROR(device->start(number));
  return device;
}

Status Device::start(int number) {
  if (number < 0 || number >= driver_->numDevices())
    return Status::notFound(
        "CUDA device " + std::to_string(number) + ": the driver finds " +
        std::to_string(driver_->numDevices()) + ", numbered from 0");
  DeviceNumber device = 0;
  INGOT_RETURN_IF_ERROR(driver_->deviceGet(&device, number));
  char name[256] = {};
  INGOT_RETURN_IF_ERROR(driver_->deviceGetName(name, sizeof name - 1, device));
  properties_.number = number;
  properties_.name = name;
  for (auto [attribute, value] :
       {std::pair<int, int *>{kComputeCapabilityMajor, &properties_.major},
        {kComputeCapabilityMinor, &properties_.minor},
        {kMultiprocessorCount, &properties_.multiprocessors},
        {kMaxSharedBytesOptIn, &properties_.maxSharedBytes}})
    INGOT_RETURN_IF_ERROR(
        driver_->deviceGetAttribute(value, attribute, device));
  INGOT_RETURN_IF_ERROR(driver_->primaryCtxRetain(&context_, device));
  handle_ = device;
  INGOT_RETURN_IF_ERROR(driver_->ctxSetCurrent(context_));
  return driver_->streamCreate(&stream_, kStreamNonBlocking);
}

Device::~Device() {
  if (handle_ < 0)
    return;
  // What fails here has failed before, and been told then.
  (void)driver_->ctxSetCurrent(context_);
  if (stream_)
    (void)driver_->streamDestroy(stream_);
  (void)driver_->primaryCtxRelease(handle_);
}

Result<Device::MemoryInfo> Device::memoryInfo() const {
  std::size_t free = 0, total = 0;
  INGOT_RETURN_IF_ERROR(driver_->memGetInfo(&free, &total));
  return MemoryInfo{free, total};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result<DeviceMemory> DeviceMemory::allocate(const Device &device,
                                            std::uint64_t sizeBytes,
                                            const std::string &what) {
  DeviceMemory memory;
  memory.device_ = &device;
  // The driver refuses a size of 0; nothing is there, at an address of its own.
  memory.sizeBytes_ = std::max<std::uint64_t>(sizeBytes, 1);
  if (Status status =
          device.driver().memAlloc(&memory.address_, memory.sizeBytes_);
      !status) {
    memory.address_ = 0;
    return status.withContext(what + " (" + std::to_string(sizeBytes) +
                              " bytes on the device)");
  }
  return memory;
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(sizeBytes_, other.sizeBytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ && device_->makeCurrent())
    (void)device_->driver().memFree(address_);
}

Result<PinnedMemory> PinnedMemory::allocate(const Device &device,
                                            std::uint64_t sizeBytes,
                                            const std::string &what) {
  PinnedMemory memory;
  memory.device_ = &device;
  memory.sizeBytes_ = std::max<std::uint64_t>(sizeBytes, 1);
  void *data = nullptr;
  if (Status status = device.driver().memHostAlloc(&data, memory.sizeBytes_,
                                                   kHostAllocPortable);
      !status)
    return status.withContext(what + " (" + std::to_string(sizeBytes) +
                              " bytes of page-locked memory)");
  memory.data_ = static_cast<std::uint8_t *>(data);
  std::memset(memory.data_, 0, memory.sizeBytes_);
  return memory;
}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(sizeBytes_, other.sizeBytes_);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (data_ && device_->makeCurrent())
    (void)device_->driver().memFreeHost(data_);
}

//===----------------------------------------------------------------------===//
// Event, Uploader
//===----------------------------------------------------------------------===//

Result<Event> Event::create(const Device &device) {
  Event event;
  event.device_ = &device;
  INGOT_RETURN_IF_ERROR(
      device.driver().eventCreate(&event.handle_, kEventDefault));
  return event;
}

Event &Event::operator=(Event &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ && device_->makeCurrent())
    (void)device_->driver().eventDestroy(handle_);
}

Result<double> measureCopyBandwidth(const Device &device) {
  constexpr std::uint64_t kBytes = std::uint64_t(256) << 20;
  constexpr int kCopies = 8;
  INGOT_RETURN_IF_ERROR(device.makeCurrent());
  INGOT_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::allocate(device, 2 * kBytes,
                             "buffers to measure the memory with"));
  INGOT_ASSIGN_OR_RETURN(Event begin, Event::create(device));
  INGOT_ASSIGN_OR_RETURN(Event end, Event::create(device));
  double best = 0;
  for (int i = 0; i < kCopies; ++i) {
    INGOT_RETURN_IF_ERROR(begin.record());
    INGOT_RETURN_IF_ERROR(device.driver().copyOnDevice(
        memory.address() + kBytes, memory.address(), kBytes, device.stream()));
    INGOT_RETURN_IF_ERROR(end.record());
    INGOT_RETURN_IF_ERROR(end.wait());
    float milliseconds = 0;
    INGOT_RETURN_IF_ERROR(device.driver().eventElapsedTime(
        &milliseconds, begin.handle(), end.handle()));
    if (milliseconds > 0)
      best = std::max(best, 2.0 * double(kBytes) / (milliseconds / 1e3));
  }
  if (best == 0)
    return Status::internal("a copy of " + std::to_string(kBytes) +
                            " bytes took no time by the device's events");
  return best;
}

Result<Uploader> Uploader::create(const Device &device) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t(16) << 20;
  Uploader uploader;
  uploader.device_ = &device;
  for (Piece &piece : uploader.pieces_) {
    INGOT_ASSIGN_OR_RETURN(
        piece.memory, PinnedMemory::allocate(device, kPieceBytes, "staging"));
    INGOT_ASSIGN_OR_RETURN(piece.read, Event::create(device));
  }
  return uploader;
}

Status Uploader::add(DevicePointer to, std::span<const std::uint8_t> bytes) {
  for (std::uint64_t done = 0; done < bytes.size();) {
    Piece &piece = pieces_[turn_];
    if (piece.isUsed)
      INGOT_RETURN_IF_ERROR(piece.read.wait());
    std::uint64_t size =
        std::min(piece.memory.sizeBytes(), bytes.size() - done);
    std::memcpy(piece.memory.data(), bytes.data() + done, size);
    INGOT_RETURN_IF_ERROR(device_->driver().copyToDevice(
        to + done, piece.memory.data(), size, device_->stream()));
    INGOT_RETURN_IF_ERROR(piece.read.record());
    piece.isUsed = true;
    turn_ ^= 1;
    done += size;
  }
  return Status::ok();
}

} // namespace ingot::cuda
