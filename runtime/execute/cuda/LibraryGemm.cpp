#include "runtime/execute/cuda/LibraryGemm.h"

#include "runtime/plan/CudaLibraryAbi.h"

namespace ingot::cuda {
namespace {

// Sizes whose algorithms are kept: prompts have many lengths.
constexpr std::size_t kMostProducts = 1024;
// Of the addresses of a product, in bytes: what memory of the device begins at, and
// what the rows of a step do (a buffer's offset times 64 rows).
constexpr std::uint32_t kScratchAlignment = 256;
constexpr std::uint32_t kRowsAlignment = 64;

} // namespace

Result<std::unique_ptr<LibraryGemm>> LibraryGemm::create(
    const Device &device, std::shared_ptr<const CublasLt> library,
    const LibraryUse &use, BoundKernel finish, std::int32_t stepRows) {
  std::unique_ptr<LibraryGemm> self(
      new LibraryGemm(device, std::move(library)));
  self->finish_ = finish;
  INGOT_ASSIGN_OR_RETURN(self->unpacked_,
                         DeviceMemory::allocate(device, use.unpackedBytes,
                                                "weights for a library"));
  INGOT_ASSIGN_OR_RETURN(
      self->sums_, DeviceMemory::allocate(
                       device, use.sumsBytesPerRow * std::uint64_t(stepRows),
                       "sums of a library"));
  INGOT_ASSIGN_OR_RETURN(self->workspace_,
                         DeviceMemory::allocate(device, kLibraryWorkspaceBytes,
                                                "workspace of a library"));
  const CublasLt &lt = *self->library_;
  INGOT_RETURN_IF_ERROR(lt.create(&self->handle_));
  INGOT_RETURN_IF_ERROR(
      lt.matmulCreate(&self->matmul_, kLtComputeFloat32, kLtFloat32));
  INGOT_RETURN_IF_ERROR(lt.matmulSet(self->matmul_, kLtMatmulTransposeA,
                                     &kLtTransposed, sizeof kLtTransposed));
  INGOT_RETURN_IF_ERROR(lt.matmulSet(self->matmul_, kLtMatmulTransposeB,
                                     &kLtNotTransposed,
                                     sizeof kLtNotTransposed));
  INGOT_RETURN_IF_ERROR(lt.preferenceCreate(&self->preference_));
  INGOT_RETURN_IF_ERROR(
      lt.preferenceSet(self->preference_, kLtPreferWorkspaceBytes,
                       &kLibraryWorkspaceBytes, sizeof kLibraryWorkspaceBytes));
  for (auto [attribute, alignment] :
       {std::pair(kLtPreferAlignmentA, kScratchAlignment),
        std::pair(kLtPreferAlignmentB, kRowsAlignment),
        std::pair(kLtPreferAlignmentC, kScratchAlignment),
        std::pair(kLtPreferAlignmentD, kScratchAlignment)})
    INGOT_RETURN_IF_ERROR(lt.preferenceSet(self->preference_, attribute,
                                           &alignment, sizeof alignment));
  return self;
}

LibraryGemm::~LibraryGemm() {
  for (auto &[size, product] : products_)
    forget(product);
  if (preference_)
    (void)library_->preferenceDestroy(preference_);
  if (matmul_)
    (void)library_->matmulDestroy(matmul_);
  if (handle_ && device_.makeCurrent())
    (void)library_->destroy(handle_);
}

void LibraryGemm::forget(Product &product) {
  for (LtLayout layout : {product.weights, product.rows, product.sums})
    if (layout)
      (void)library_->layoutDestroy(layout);
  product = {};
}

// cuBLASLt's matrices go by columns: what lies in rows of k elements is a matrix of k
// rows. sums [n x rows] = transposed weights [k x n] * rows [k x rows].
Status LibraryGemm::choose(const Size &size, Product &product) {
  auto [n, k, rows, rowHalves] = size;
  const CublasLt &lt = *library_;
  auto paddedK = std::uint64_t(abi::cudaPaddedK(k));
  INGOT_RETURN_IF_ERROR(lt.layoutCreate(&product.weights, kLtFloat16, paddedK,
                                        std::uint64_t(n),
                                        std::int64_t(paddedK)));
  INGOT_RETURN_IF_ERROR(lt.layoutCreate(&product.rows, kLtFloat16, paddedK,
                                        std::uint64_t(rows), rowHalves));
  INGOT_RETURN_IF_ERROR(lt.layoutCreate(&product.sums, kLtFloat32,
                                        std::uint64_t(n), std::uint64_t(rows),
                                        abi::librarySumsStride(n)));
  int found = 0;
  INGOT_RETURN_IF_ERROR(lt.heuristic(handle_, matmul_, product.weights,
                                     product.rows, product.sums, product.sums,
                                     preference_, 1, &product.chosen, &found));
  if (found == 0 || product.chosen.state != kLtSuccess)
    return Status::unsupported("cuBLASLt has no algorithm for it");
  return Status::ok();
}

Result<const LibraryGemm::Product *> LibraryGemm::productOf(const Size &size) {
  if (auto known = products_.find(size); known != products_.end())
    return &known->second;
  if (products_.size() >= kMostProducts) {
    for (auto &[other, product] : products_)
      forget(product);
    products_.clear();
  }
  Product product;
  if (Status status = choose(size, product); !status) {
    forget(product);
    auto [n, k, rows, rowHalves] = size;
    return status.withContext("a product of " + std::to_string(n) + " x " +
                              std::to_string(k) + " weights and " +
                              std::to_string(rows) + " rows");
  }
  return &products_.emplace(size, product).first->second;
}

Status LibraryGemm::launch(const BoundKernel &kernel, abi::KernelGrid grid,
                           void *params) {
  void *arguments[] = {params};
  return device_.driver().launchKernel(kernel.function, grid.x, grid.y, grid.z,
                                       unsigned(kernel.geometry.blockThreads),
                                       1, 1,
                                       unsigned(kernel.geometry.sharedBytes),
                                       device_.stream(), arguments, nullptr);
}

Status LibraryGemm::run(const abi::LinearParams &linear, BoundKernel unpack) {
  INGOT_ASSIGN_OR_RETURN(const Product *product,
                         productOf({linear.n, linear.k, linear.numTokens,
                                    linear.quantized.rowBytes /
                                        std::int64_t(sizeof(std::uint16_t))}));
  abi::CudaUnpackParams unpackParams = {
      linear.weights.codes,
      reinterpret_cast<std::uint16_t *>(unpacked_.address()), linear.k,
      linear.n};
  INGOT_RETURN_IF_ERROR(
      launch(unpack, abi::unpackGrid(linear.n, linear.k), &unpackParams));
  auto *sums = reinterpret_cast<float *>(sums_.address());
  const std::uint8_t *parts[] = {linear.quantized.data,
                                 linear.quantized.sumsOffset
                                     ? linear.quantized.data +
                                           linear.quantized.sumsOffset
                                     : nullptr};
  const float one = 1, zero = 0;
  for (const std::uint8_t *part : parts)
    if (part)
      INGOT_RETURN_IF_ERROR(library_->matmul(
          handle_, matmul_, &one,
          reinterpret_cast<const void *>(unpacked_.address()), product->weights,
          part, product->rows, part == parts[0] ? &zero : &one, sums,
          product->sums, sums, product->sums, &product->chosen.algorithm,
          reinterpret_cast<void *>(workspace_.address()),
          std::size_t(kLibraryWorkspaceBytes), device_.stream()));
  abi::CudaFinishParams finishParams = {sums, abi::librarySumsStride(linear.n),
                                        linear};
  return launch(finish_, abi::rowGrid(linear.numTokens), &finishParams);
}

} // namespace ingot::cuda
