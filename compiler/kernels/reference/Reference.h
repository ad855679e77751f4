// The operations of KernelAbi.h in plain scalar C++, written from
// docs/numerics.md line by line: what every compiled kernel must equal bit for
// bit. An oracle for tests and tools, never a fallback.
#pragma once

#include "compiler/kernels/reference/Scalar.h"
#include "runtime/plan/KernelAbi.h"

#include <cstdint>

namespace ingot::reference {

enum class Code { F32, F16, BF16, I8, I4 };
struct Encoding {
  Code code = Code::F32;
  std::int32_t group = 0; // of integer codes
  bool minimum = false;
};
// Bits of the activation codes that an integer encoding is multiplied with.
std::int32_t activationBits(Code code);
enum class Activation { Silu, GeluTanh, Gelu, Relu };
// I8: codes with a float32 scale for each token and head.
enum class CacheType { F32, F16, I8 };

// Group 0 of a quantisation writes float32 only.
void embed(const abi::EmbedParams &params, const abi::Slice &slice,
           const Encoding &encoding);
void ropeTable(const abi::RopeTableParams &params, const abi::Slice &slice);
void rmsNorm(const abi::RmsNormParams &params, const abi::Slice &slice,
             Quantization quantization);
void quantize(const abi::QuantizeParams &params, const abi::Slice &slice,
              Quantization quantization);
void linear(const abi::LinearParams &params, const abi::Slice &slice,
            const Encoding &encoding);
void gated(const abi::GatedParams &params, const abi::Slice &slice,
           Activation activation, Quantization quantization);
void ropeCacheWrite(const abi::RopeCacheWriteParams &params,
                    const abi::Slice &slice, CacheType type);
void attention(const abi::AttentionParams &params, const abi::Slice &slice,
               CacheType type, Quantization quantization);
void alibiAttention(const abi::AlibiAttentionParams &params,
                    const abi::Slice &slice, CacheType type,
                    Quantization quantization);
void gatherRows(const abi::GatherRowsParams &params, const abi::Slice &slice);
void pool(const abi::PoolParams &params, const abi::Slice &slice);
void layerNorm(const abi::LayerNormParams &params, const abi::Slice &slice,
               Quantization quantization);
void activate(const abi::ActivateParams &params, const abi::Slice &slice,
              Activation activation, Quantization quantization);
void add(const abi::AddParams &params, const abi::Slice &slice);
void cap(const abi::CapParams &params, const abi::Slice &slice);
void route(const abi::RouteParams &params, const abi::Slice &slice);
void orderSlots(const abi::OrderSlotsParams &params, const abi::Slice &slice);
void dispatch(const abi::DispatchParams &params, const abi::Slice &slice);
void expertLinear(const abi::ExpertLinearParams &params,
                  const abi::Slice &slice, const Encoding &encoding);
void combine(const abi::CombineParams &params, const abi::Slice &slice);

// The experts of a row of logits in the order of `route`, and their
// probabilities.
void chooseExperts(const float *logits, std::int32_t experts, std::int32_t topK,
                   bool normalized, float *numbers, float *probabilities);

// One weight of a packed tensor, as the float32 value that it stands for.
float weightAt(const abi::PackedWeights &weights, std::int64_t row,
               std::int64_t column, std::int64_t columns,
               const Encoding &encoding);

} // namespace ingot::reference
