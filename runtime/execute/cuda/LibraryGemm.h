// Products of float16 matrices by cuBLASLt, for the variants of `linear` that a plan
// leaves to it (runtime/plan/LibraryUse.h). A product is three steps of the stream:
//
//   1. library_linear lays the weights out as plain rows of float16, in scratch;
//   2. cuBLASLt multiplies them with the halves of the step's rows, and with what the
//      halves leave where rows have two parts, into float32 sums, in scratch;
//   3. library_finish applies the tokens' scales, bias and residual.
//
// Scratch is taken once for the largest of them; the stream orders its uses. The sums
// of a row depend on how many rows there are: nothing of it is row-invariant.
#pragma once

#include "runtime/execute/cuda/BindCudaLaunch.h"
#include "runtime/execute/cuda/CublasLt.h"
#include "runtime/plan/LibraryUse.h"

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

namespace ingot::cuda {

class LibraryGemm {
public:
  // `use` is of the plan whose steps have at most `stepRows` rows; `finish` is its
  // finishKernel. The device's context is current.
  static Result<std::unique_ptr<LibraryGemm>>
  create(const Device &device, std::shared_ptr<const CublasLt> library,
         const LibraryUse &use, BoundKernel finish, std::int32_t stepRows);
  LibraryGemm(const LibraryGemm &) = delete;
  LibraryGemm &operator=(const LibraryGemm &) = delete;
  ~LibraryGemm();

  // Puts the three steps into the stream. `linear` has its row count; `unpack` is the
  // variant's kernel.
  Status run(const abi::LinearParams &linear, BoundKernel unpack);

private:
  LibraryGemm(const Device &device, std::shared_ptr<const CublasLt> library)
      : device_(device), library_(std::move(library)) {}

  // A product of one size: n x k weights times `rows` rows that lie `rowHalves` apart.
  using Size =
      std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>;
  struct Product {
    LtLayout weights = nullptr, rows = nullptr, sums = nullptr;
    LtHeuristic chosen = {};
  };
  Result<const Product *> productOf(const Size &size);
  Status choose(const Size &size, Product &product);
  void forget(Product &product);
  Status launch(const BoundKernel &kernel, abi::KernelGrid grid, void *params);

  const Device &device_;
  std::shared_ptr<const CublasLt> library_;
  LtHandle handle_ = nullptr;
  LtMatmul matmul_ = nullptr;
  LtPreference preference_ = nullptr;
  BoundKernel finish_;
  DeviceMemory unpacked_, sums_, workspace_;
  std::map<Size, Product> products_;
};

} // namespace ingot::cuda
