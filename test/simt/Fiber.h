// Fibres: stacks of their own, switched by hand in a few nanoseconds. A CUDA
// thread is a fibre, so that a thousand of them can stand at a barrier while one
// runs. Own code, because the switch is a dozen instructions: Boost.Context would
// add a library for them, and ucontext makes two system calls a switch.
#pragma once

#include <cstddef>

// Saves the callee-saved registers and the stack pointer to *from, and continues
// where `to` was saved. x86-64, System V.
extern "C" void ingotSimtSwitch(void **from, void *to);

namespace ingot::simt {

// Stacks of `count` fibres in one mapping, each below a guard page.
class FiberStacks {
public:
  explicit FiberStacks(int count);
  ~FiberStacks();
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;

  // A saved stack pointer from which switching begins `entry`, which never
  // returns.
  void *prepare(int fiber, void (*entry)());

private:
  char *base_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace ingot::simt
