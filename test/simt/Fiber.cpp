// The switch itself, and stacks to switch to.
#include "test/simt/Fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#if !defined(__x86_64__)
#error "the emulator's context switch is written for x86-64"
#endif

asm(R"(
.text
.globl ingotSimtSwitch
.type ingotSimtSwitch,@function
ingotSimtSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size ingotSimtSwitch, .-ingotSimtSwitch
)");

namespace ingot::simt {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kStride = kGuardBytes + kStackBytes;

} // namespace

FiberStacks::FiberStacks(int count) : bytes_(kStride * count) {
  void *memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    std::abort();
  base_ = static_cast<char *>(memory);
  for (int i = 0; i < count; ++i)
    mprotect(base_ + i * kStride, kGuardBytes, PROT_NONE);
}

FiberStacks::~FiberStacks() { munmap(base_, bytes_); }

void *FiberStacks::prepare(int fiber, void (*entry)()) {
  // Stacks start at different lines of the cache: 4 KiB apart they would all
  // fall into the same sets.
  char *top = base_ + (fiber + 1) * kStride - (fiber * 5 % 31 + 1) * 64;
  auto **slot = reinterpret_cast<void **>(top);
  *--slot = nullptr; // the return address of `entry`: it has none
  *--slot = reinterpret_cast<void *>(entry);
  slot -= 6; // the six registers that the switch restores
  std::memset(static_cast<void *>(slot), 0, 6 * sizeof(void *));
  return slot;
}

} // namespace ingot::simt
