// 1. Matrices of ones. 2. The algorithm that cuBLASLt thinks best. 3. Rounds of
// products between events. 4. Every result is the length of the sums.
#include "tools/gpu/LibraryRate.h"

#include "runtime/plan/LibraryUse.h"

#include <algorithm>

namespace ingot::cuda {
namespace {

constexpr std::uint16_t kOne = 0x3c00; // float16
constexpr int kRounds = 4;
constexpr int kProducts = 4; // of a round

// What cuBLASLt has made for one product.
class Product {
public:
  explicit Product(const CublasLt &library) : library_(library) {}
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;
  ~Product() {
    for (LtLayout layout : {matrix_, sums_})
      if (layout)
        (void)library_.layoutDestroy(layout);
    if (preference_)
      (void)library_.preferenceDestroy(preference_);
    if (matmul_)
      (void)library_.matmulDestroy(matmul_);
    if (handle_)
      (void)library_.destroy(handle_);
  }

  // By columns, as cuBLASLt's matrices go: transposed weights times rows of x.
  Status prepare(int size) {
    auto extent = std::uint64_t(size);
    INGOT_RETURN_IF_ERROR(library_.create(&handle_));
    INGOT_RETURN_IF_ERROR(
        library_.matmulCreate(&matmul_, kLtComputeFloat32, kLtFloat32));
    INGOT_RETURN_IF_ERROR(library_.matmulSet(
        matmul_, kLtMatmulTransposeA, &kLtTransposed, sizeof kLtTransposed));
    INGOT_RETURN_IF_ERROR(
        library_.layoutCreate(&matrix_, kLtFloat16, extent, extent, size));
    INGOT_RETURN_IF_ERROR(
        library_.layoutCreate(&sums_, kLtFloat32, extent, extent, size));
    INGOT_RETURN_IF_ERROR(library_.preferenceCreate(&preference_));
    INGOT_RETURN_IF_ERROR(library_.preferenceSet(
        preference_, kLtPreferWorkspaceBytes, &kLibraryWorkspaceBytes,
        sizeof kLibraryWorkspaceBytes));
    int found = 0;
    INGOT_RETURN_IF_ERROR(library_.heuristic(handle_, matmul_, matrix_, matrix_,
                                             sums_, sums_, preference_, 1,
                                             &chosen_, &found));
    return found > 0 && chosen_.state == kLtSuccess
               ? Status::ok()
               : Status::unsupported("cuBLASLt has no algorithm for a product "
                                     "of " +
                                     std::to_string(size) + " x " +
                                     std::to_string(size) + " float16");
  }

  Status run(const DeviceMemory &weights, const DeviceMemory &rows,
             const DeviceMemory &sums, const DeviceMemory &workspace,
             StreamHandle stream) const {
    auto at = [](const DeviceMemory &memory) {
      return reinterpret_cast<void *>(memory.address());
    };
    const float one = 1, zero = 0;
    return library_.matmul(handle_, matmul_, &one, at(weights), matrix_,
                           at(rows), matrix_, &zero, at(sums), sums_, at(sums),
                           sums_, &chosen_.algorithm, at(workspace),
                           std::size_t(workspace.sizeBytes()), stream);
  }

private:
  const CublasLt &library_;
  LtHandle handle_ = nullptr;
  LtMatmul matmul_ = nullptr;
  LtLayout matrix_ = nullptr, sums_ = nullptr;
  LtPreference preference_ = nullptr;
  LtHeuristic chosen_ = {};
};

Status checkSums(const Device &device, const DeviceMemory &sums, int size) {
  INGOT_ASSIGN_OR_RETURN(
      PinnedMemory host,
      PinnedMemory::allocate(device, sums.sizeBytes(), "results"));
  INGOT_RETURN_IF_ERROR(device.driver().copyToHost(
      host.data(), sums.address(), sums.sizeBytes(), device.stream()));
  INGOT_RETURN_IF_ERROR(device.synchronize());
  const auto *results = reinterpret_cast<const float *>(host.data());
  for (std::size_t i = 0; i < sums.sizeBytes() / sizeof(float); ++i)
    if (!(results[i] == float(size)))
      return Status::internal("cuBLASLt: result " + std::to_string(i) + " is " +
                              std::to_string(results[i]) + ", expected " +
                              std::to_string(size));
  return Status::ok();
}

} // namespace

Result<double> measureLibraryProduct(const Device &device,
                                     const CublasLt &library, int size) {
  INGOT_RETURN_IF_ERROR(device.makeCurrent());
  const auto elements = std::uint64_t(size) * std::uint64_t(size);
  INGOT_ASSIGN_OR_RETURN(
      DeviceMemory weights,
      DeviceMemory::allocate(device, 2 * elements, "weights"));
  INGOT_ASSIGN_OR_RETURN(
      DeviceMemory rows,
      DeviceMemory::allocate(device, 2 * elements, "activations"));
  INGOT_ASSIGN_OR_RETURN(DeviceMemory sums,
                         DeviceMemory::allocate(device, 4 * elements, "sums"));
  INGOT_ASSIGN_OR_RETURN(DeviceMemory workspace,
                         DeviceMemory::allocate(device, kLibraryWorkspaceBytes,
                                                "workspace of a library"));
  for (const DeviceMemory *matrix : {&weights, &rows})
    INGOT_RETURN_IF_ERROR(device.driver().fillWords16(
        matrix->address(), kOne, std::size_t(elements), device.stream()));
  // The sums begin as something else than the result.
  INGOT_RETURN_IF_ERROR(device.driver().fillWords16(
      sums.address(), 0xffff, std::size_t(2 * elements), device.stream()));
  Product product(library);
  INGOT_RETURN_IF_ERROR(product.prepare(size));
  auto once = [&] {
    return product.run(weights, rows, sums, workspace, device.stream());
  };
  INGOT_RETURN_IF_ERROR(once()); // its kernel is loaded, clocks come up
  INGOT_ASSIGN_OR_RETURN(Event begin, Event::create(device));
  INGOT_ASSIGN_OR_RETURN(Event end, Event::create(device));
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    INGOT_RETURN_IF_ERROR(begin.record());
    for (int i = 0; i < kProducts; ++i)
      INGOT_RETURN_IF_ERROR(once());
    INGOT_RETURN_IF_ERROR(end.record());
    INGOT_RETURN_IF_ERROR(end.wait());
    float milliseconds = 0;
    INGOT_RETURN_IF_ERROR(device.driver().eventElapsedTime(
        &milliseconds, begin.handle(), end.handle()));
    const double seconds = double(milliseconds) / 1e3 / kProducts;
    best = best > 0 ? std::min(best, seconds) : seconds;
  }
  INGOT_RETURN_IF_ERROR(checkSums(device, sums, size));
  return best;
}

} // namespace ingot::cuda
