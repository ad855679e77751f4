// A library in the place of cuBLASLt for the stand-in driver: the functions that the
// runtime calls (runtime/execute/cuda/CublasLtTypes.h), computed on the CPU in the
// order of the driver's stream. What cuBLASLt refuses is refused: types that it has no
// kernels for, sizes that do not meet, leading dimensions shorter than a column,
// addresses outside every allocation or less aligned than was promised, an algorithm of
// another product, too little workspace or one that is not aligned to 256 bytes.
//
// Sums are those of a matrix product of a library: float32, in an order that depends
// on the number of columns, and not on what is ours.
//
// INGOT_STANDIN_CUBLASLT is a list of name=number: version (130100), none (1: there is
// an algorithm for nothing).
#include "runtime/execute/cuda/CublasLtTypes.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace ingot::cuda;

namespace ingot::cuda {
struct LtContext {};
struct LtMatmulData {
  int compute = 0, scale = 0;
  std::int32_t transposeA = kLtNotTransposed, transposeB = kLtNotTransposed;
};
struct LtLayoutData {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
};
struct LtPreferenceData {
  std::uint64_t workspaceBytes = 0;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};
} // namespace ingot::cuda

namespace {

constexpr std::size_t kWorkspaceBytes = 4096; // that an algorithm needs
constexpr std::uint64_t kStamp = 0x696e676f74;

long setting(const char *name, long otherwise) {
  const char *all = std::getenv("INGOT_STANDIN_CUBLASLT");
  std::string text = all ? std::string(",") + all : "";
  std::string key = "," + std::string(name) + "=";
  std::size_t at = text.find(key);
  return at == std::string::npos ? otherwise
                                 : std::atol(text.c_str() + at + key.size());
}

// The driver that is there, by its own functions.
struct DriverCalls {
  int (*addressRange)(DevicePointer *, std::size_t *, DevicePointer) = nullptr;
  int (*hostFunction)(StreamHandle, void (*)(void *), void *) = nullptr;
  int (*written)(DevicePointer, std::size_t) = nullptr;
  DriverCalls() {
    const char *path = std::getenv("INGOT_CUDA_DRIVER");
    void *library = path ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library)
      return;
    auto find = [&](const char *name, auto &function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          ::dlsym(library, name));
    };
    find("cuMemGetAddressRange_v2", addressRange);
    find("cuLaunchHostFunc", hostFunction);
    find("ingotStandInWritten", written);
  }
  bool isThere() const { return addressRange && hostFunction && written; }
};
const DriverCalls &driver() {
  static const DriverCalls calls;
  return calls;
}

std::set<const void *> &alive() {
  static std::set<const void *> objects;
  return objects;
}
bool isAlive(const void *object) { return alive().count(object) > 0; }
template <typename T> LtStatus make(T **to, T value) {
  if (!to)
    return kLtInvalidValue;
  *to = new T(value);
  alive().insert(*to);
  return kLtSuccess;
}
template <typename T> LtStatus destroy(T *object) {
  if (!alive().erase(object))
    return kLtInvalidValue;
  delete object;
  return kLtSuccess;
}
template <typename T> LtStatus set(T &to, const void *from, std::size_t bytes) {
  if (!from || bytes != sizeof to)
    return kLtInvalidValue;
  std::memcpy(&to, from, sizeof to);
  return kLtSuccess;
}

// What an algorithm was found for; a product must be of the same.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}
std::uint64_t hashOf(const LtMatmulData &matmul,
                     std::initializer_list<const LtLayoutData *> layouts) {
  std::uint64_t hash = kStamp;
  for (int value : {matmul.compute, matmul.scale, int(matmul.transposeA),
                    int(matmul.transposeB)})
    hash = mixed(hash, std::uint64_t(value));
  for (const LtLayoutData *layout : layouts)
    for (std::uint64_t value :
         {std::uint64_t(layout->type), layout->rows, layout->columns,
          std::uint64_t(layout->leading)})
      hash = mixed(hash, value);
  return hash;
}

std::size_t elementBytes(int type) { return type == kLtFloat16 ? 2 : 4; }

LtStatus check(const LtMatmulData &matmul, const LtLayoutData &a,
               const LtLayoutData &b, const LtLayoutData &c,
               const LtLayoutData &d) {
  bool isTransposed = matmul.transposeA == kLtTransposed;
  std::uint64_t n = isTransposed ? a.columns : a.rows;
  std::uint64_t k = isTransposed ? a.rows : a.columns;
  bool isB = matmul.transposeB == kLtTransposed;
  if ((isB ? b.columns : b.rows) != k || d.rows != n ||
      d.columns != (isB ? b.rows : b.columns) || c.rows != d.rows ||
      c.columns != d.columns)
    return kLtInvalidValue;
  for (const LtLayoutData *layout : {&a, &b, &c, &d})
    if (layout->rows == 0 || layout->columns == 0 ||
        layout->leading < std::int64_t(layout->rows))
      return kLtInvalidValue;
  // The one combination of types that this library has kernels for.
  if (matmul.compute != kLtComputeFloat32 || matmul.scale != kLtFloat32 ||
      a.type != kLtFloat16 || b.type != kLtFloat16 || c.type != kLtFloat32 ||
      d.type != kLtFloat32 || !isTransposed || isB)
    return kLtNotSupported;
  return kLtSuccess;
}

float fromHalf(std::uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return float(half);
}

struct Product {
  LtLayoutData a, b, d;
  const std::uint16_t *weights;
  const std::uint16_t *rows;
  const float *added;
  float *sums;
  float alpha, beta;
  void *workspace;
};

void compute(void *given) {
  std::unique_ptr<Product> product(static_cast<Product *>(given));
  std::uint64_t n = product->d.rows, tokens = product->d.columns,
                k = product->a.rows;
  // As a library that splits K among more blocks where there are fewer columns.
  std::uint64_t parts = tokens < 96 ? 4 : tokens < 128 ? 3 : 2;
  std::vector<float> row(k);
  for (std::uint64_t t = 0; t < tokens; ++t) {
    for (std::uint64_t i = 0; i < k; ++i)
      row[i] =
          fromHalf(product->rows[t * std::uint64_t(product->b.leading) + i]);
    for (std::uint64_t j = 0; j < n; ++j) {
      const std::uint16_t *weights =
          product->weights + j * std::uint64_t(product->a.leading);
      float total = 0;
      for (std::uint64_t part = 0; part < parts; ++part) {
        float sum = 0;
        for (std::uint64_t i = part; i < k; i += parts)
          sum += fromHalf(weights[i]) * row[i];
        total += sum;
      }
      std::uint64_t at = t * std::uint64_t(product->d.leading) + j;
      float before =
          product->beta == 0 ? 0 : product->beta * product->added[at];
      product->sums[at] = product->alpha * total + before;
    }
  }
  for (std::uint64_t t = 0; t < tokens; ++t)
    driver().written(reinterpret_cast<DevicePointer>(
                         product->sums + t * std::uint64_t(product->d.leading)),
                     n * 4);
  // The workspace is the library's: what was there before is lost.
  std::memset(product->workspace, 0xa5, kWorkspaceBytes);
}

// Whether the device has all of a matrix, at an address of this alignment.
bool isMatrix(const void *address, const LtLayoutData &layout,
              std::uint32_t alignment) {
  auto at = reinterpret_cast<DevicePointer>(address);
  DevicePointer base = 0;
  std::size_t size = 0;
  std::uint64_t bytes =
      ((layout.columns - 1) * std::uint64_t(layout.leading) + layout.rows) *
      elementBytes(layout.type);
  return address && at % alignment == 0 &&
         driver().addressRange(&base, &size, at) == kSuccess &&
         at + bytes <= base + size;
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT std::size_t cublasLtGetVersion() {
  return std::size_t(setting("version", 130100));
}
EXPORT const char *cublasLtGetStatusName(LtStatus status) {
  return status == kLtSuccess           ? "CUBLAS_STATUS_SUCCESS"
         : status == kLtNotInitialized  ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == kLtInvalidValue    ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == kLtExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == kLtNotSupported    ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                        : "CUBLAS_STATUS_unknown";
}
EXPORT LtStatus cublasLtCreate(LtHandle *handle) {
  if (!driver().isThere()) {
    std::fprintf(stderr, "stand-in cuBLASLt: INGOT_CUDA_DRIVER names no "
                         "stand-in driver\n");
    return kLtNotInitialized;
  }
  return make(handle, LtContext{});
}
EXPORT LtStatus cublasLtDestroy(LtHandle handle) { return destroy(handle); }
EXPORT LtStatus cublasLtMatmulDescCreate(LtMatmul *matmul, int computeType,
                                         int scaleType) {
  return make(matmul, LtMatmulData{computeType, scaleType});
}
EXPORT LtStatus cublasLtMatmulDescDestroy(LtMatmul matmul) {
  return destroy(matmul);
}
EXPORT LtStatus cublasLtMatmulDescSetAttribute(LtMatmul matmul, int attribute,
                                               const void *value,
                                               std::size_t bytes) {
  if (!isAlive(matmul))
    return kLtInvalidValue;
  if (attribute == kLtMatmulTransposeA)
    return set(matmul->transposeA, value, bytes);
  if (attribute == kLtMatmulTransposeB)
    return set(matmul->transposeB, value, bytes);
  return kLtInvalidValue;
}
EXPORT LtStatus cublasLtMatrixLayoutCreate(LtLayout *layout, int type,
                                           std::uint64_t rows,
                                           std::uint64_t columns,
                                           std::int64_t leading) {
  return make(layout, LtLayoutData{type, rows, columns, leading});
}
EXPORT LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  return destroy(layout);
}
EXPORT LtStatus cublasLtMatmulPreferenceCreate(LtPreference *preference) {
  return make(preference, LtPreferenceData{});
}
EXPORT LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  return destroy(preference);
}
EXPORT LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference preference,
                                                     int attribute,
                                                     const void *value,
                                                     std::size_t bytes) {
  if (!isAlive(preference))
    return kLtInvalidValue;
  if (attribute == kLtPreferWorkspaceBytes)
    return set(preference->workspaceBytes, value, bytes);
  if (attribute >= kLtPreferAlignmentA && attribute <= kLtPreferAlignmentD)
    return set(preference->alignments[attribute - kLtPreferAlignmentA], value,
               bytes);
  return kLtInvalidValue;
}
EXPORT LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle handle, LtMatmul matmul,
                                               LtLayout a, LtLayout b,
                                               LtLayout c, LtLayout d,
                                               LtPreference preference,
                                               int wanted, LtHeuristic *results,
                                               int *found) {
  for (const void *object :
       {static_cast<const void *>(matmul), static_cast<const void *>(a),
        static_cast<const void *>(b), static_cast<const void *>(c),
        static_cast<const void *>(d), static_cast<const void *>(preference)})
    if (!isAlive(object))
      return kLtInvalidValue;
  if (!isAlive(handle))
    return kLtNotInitialized;
  if (wanted < 1 || !results || !found)
    return kLtInvalidValue;
  *found = 0;
  if (LtStatus status = check(*matmul, *a, *b, *c, *d); status != kLtSuccess)
    return status;
  if (setting("none", 0) || preference->workspaceBytes < kWorkspaceBytes)
    return kLtNotSupported;
  *results = {};
  results->algorithm.data[0] = hashOf(*matmul, {a, b, c, d});
  for (int i = 0; i < 4; ++i)
    results->algorithm.data[1 + i] = preference->alignments[i];
  results->workspaceBytes = kWorkspaceBytes;
  *found = 1;
  return kLtSuccess;
}
EXPORT LtStatus cublasLtMatmul(LtHandle handle, LtMatmul matmul,
                               const void *alpha, const void *aData, LtLayout a,
                               const void *bData, LtLayout b, const void *beta,
                               const void *cData, LtLayout c, void *dData,
                               LtLayout d, const LtAlgorithm *algorithm,
                               void *workspace, std::size_t workspaceBytes,
                               StreamHandle stream) {
  if (!isAlive(handle))
    return kLtNotInitialized;
  for (const void *object :
       {static_cast<const void *>(matmul), static_cast<const void *>(a),
        static_cast<const void *>(b), static_cast<const void *>(c),
        static_cast<const void *>(d)})
    if (!isAlive(object))
      return kLtInvalidValue;
  if (!alpha || !beta || !algorithm)
    return kLtInvalidValue;
  if (LtStatus status = check(*matmul, *a, *b, *c, *d); status != kLtSuccess)
    return status;
  if (algorithm->data[0] != hashOf(*matmul, {a, b, c, d}))
    return kLtInvalidValue;
  const LtLayoutData scratch = {kLtFloat32, kWorkspaceBytes / 4, 1,
                                kWorkspaceBytes / 4};
  auto aligned = [&](int i) { return std::uint32_t(algorithm->data[1 + i]); };
  // What is written in place is read in place.
  bool isInPlace =
      cData != dData || (c->leading == d->leading && c->type == d->type);
  if (!isMatrix(aData, *a, aligned(0)) || !isMatrix(bData, *b, aligned(1)) ||
      !isMatrix(cData, *c, aligned(2)) || !isMatrix(dData, *d, aligned(3)) ||
      !isInPlace || workspaceBytes < kWorkspaceBytes ||
      !isMatrix(workspace, scratch, 256))
    return kLtInvalidValue;
  auto product = std::make_unique<Product>();
  *product = {*a,
              *b,
              *d,
              static_cast<const std::uint16_t *>(aData),
              static_cast<const std::uint16_t *>(bData),
              static_cast<const float *>(cData),
              static_cast<float *>(dData),
              *static_cast<const float *>(alpha),
              *static_cast<const float *>(beta),
              workspace};
  if (driver().hostFunction(stream, compute, product.get()) != kSuccess)
    return kLtExecutionFailed;
  product.release(); // compute() has it
  return kLtSuccess;
}
