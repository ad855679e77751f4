// rope_cache_write and attention against the reference, bit for bit: many
// geometries of heads, ragged sequences across block borders, windows, shuffled
// block tables, a cache that is NaN wherever nothing was written; and the law
// against softmax in float64.
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"
#include "test/compiler/kernels/KernelFixtures.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

struct Geometry {
  int heads, kvHeads, headDim;
};
struct Rows {
  int numRows, firstPosition;
};

// A step over several sequences and a poisoned cache for them.
struct Step {
  Geometry geometry;
  bool half;
  std::vector<abi::SequenceSpan> sequences;
  std::vector<std::int32_t> tokenSequence, blockTable;
  int numTokens = 0, numBlocks = 0;
  std::int64_t planeBytes, blockBytes;

  Step(const Geometry &shape, bool halfCache, const std::vector<Rows> &rows,
       Random &random)
      : geometry(shape), half(halfCache) {
    for (const Rows &part : rows) {
      sequences.push_back(
          {numTokens, part.numRows, part.firstPosition, numBlocks});
      for (int i = 0; i < part.numRows; ++i)
        tokenSequence.push_back(static_cast<std::int32_t>(sequences.size()) -
                                1);
      numTokens += part.numRows;
      numBlocks += (part.firstPosition + part.numRows + 31) / 32;
    }
    for (int b = 0; b < numBlocks; ++b)
      blockTable.push_back(b);
    std::shuffle(blockTable.begin(), blockTable.end(), random);
    planeBytes = static_cast<std::int64_t>(geometry.kvHeads) *
                 geometry.headDim * 32 * (half ? 2 : 4);
    planeBytes = (planeBytes + 63) / 64 * 64;
    blockBytes = 2 * planeBytes;
  }
  std::size_t cacheBytes() const {
    return static_cast<std::size_t>(blockBytes) * numBlocks;
  }
  abi::KvLayer layer(PoisonedBuffer &cache) const {
    return {cache.data(), blockBytes, planeBytes};
  }
  reference::CacheType type() const {
    return half ? reference::CacheType::F16 : reference::CacheType::F32;
  }

  // Writes one element of the key or value at a position.
  void put(PoisonedBuffer &cache, bool value, int sequence, int position,
           int head, int d, float x) const {
    const std::int32_t block =
        blockTable[sequences[sequence].blockTableOffset + position / 32];
    std::uint8_t *plane =
        cache.data() + block * blockBytes + (value ? planeBytes : 0);
    const std::int64_t index =
        value ? (head * 32 + position % 32) * geometry.headDim + d
              : (head * geometry.headDim + d) * 32 + position % 32;
    if (half)
      reinterpret_cast<std::uint16_t *>(plane)[index] = reference::toHalf(x);
    else
      reinterpret_cast<float *>(plane)[index] = x;
  }
  // Fills every position that the step may see.
  void fill(PoisonedBuffer &cache, Random &random) const {
    for (std::size_t s = 0; s < sequences.size(); ++s)
      for (int p = 0; p < sequences[s].firstPosition + sequences[s].numRows;
           ++p)
        for (int h = 0; h < geometry.kvHeads; ++h)
          for (int d = 0; d < geometry.headDim; ++d) {
            put(cache, false, static_cast<int>(s), p, h, d,
                uniform(random, -2, 2));
            put(cache, true, static_cast<int>(s), p, h, d,
                uniform(random, -2, 2));
          }
  }

  codegen::KernelConfig config() const {
    return {{"head_dim", geometry.headDim},
            {"kv", std::string(half ? "f16" : "f32")}};
  }
  abi::AttentionParams attention(PoisonedBuffer &cache,
                                 const float *query) const {
    abi::AttentionParams params = {};
    params.query = query;
    params.cache = layer(cache);
    params.blockTable = blockTable.data();
    params.sequences = sequences.data();
    params.tokenSequence = tokenSequence.data();
    params.numSequences = static_cast<std::int32_t>(sequences.size());
    params.numTokens = numTokens;
    params.heads = geometry.heads;
    params.kvHeads = geometry.kvHeads;
    params.headDim = geometry.headDim;
    params.scale = 1.0f / std::sqrt(static_cast<float>(geometry.headDim));
    return params;
  }
};

const std::vector<Geometry> kGeometries = {{9, 3, 64}, {4, 4, 8},   {8, 1, 32},
                                           {4, 2, 80}, {2, 1, 128}, {5, 5, 24}};
const std::vector<std::vector<Rows>> kSteps = {
    {{1, 0}},
    {{1, 31}},
    {{1, 32}},
    {{33, 0}},
    {{7, 29}},
    {{1, 100}, {1, 3}, {1, 64}, {2, 31}},
    {{5, 0}, {1, 63}, {40, 20}}};

class AttentionKernelTest : public LevelTest {};

TEST_P(AttentionKernelTest, EqualsTheReference) {
  Random random(1);
  for (const Geometry &geometry : kGeometries)
    for (const std::vector<Rows> &rows : kSteps) {
      // Either type of cache meets every kind of step.
      const bool half = below(random, 2) != 0;
      const Step step(geometry, half, rows, random);
      PoisonedBuffer cache(step.cacheBytes());
      step.fill(cache, random);
      const int width = geometry.heads * geometry.headDim;
      const int items = step.numTokens * geometry.heads;
      std::vector<float> query(static_cast<std::size_t>(step.numTokens) *
                               width);
      for (float &x : query)
        x = uniform(random, -2, 2);
      // Every window meets every step over the geometries.
      constexpr int windows[] = {0, 1, 31, 32, 33, 50};
      const int firstWindow = below(random, 6);
      for (const int window :
           {windows[firstWindow], windows[(firstWindow + 3) % 6]}) {
        abi::AttentionParams params = step.attention(cache, query.data());
        params.window = window;
        params.softCap = window == 31 ? 5.0f : 0.0f;
        const int group = geometry.headDim % 32 == 0 && window != 32 ? 32 : 0;
        codegen::KernelConfig config = step.config();
        const int bits = group == 0 ? 0 : geometry.headDim == 64 ? 8 : 16;
        config["group"] = group;
        config["bits"] = bits;
        const int groups = group ? width / group : 0;
        const int codesEnd = width * bits / 8;
        const int rowBytes = (codesEnd + 8 * groups + 63) / 64 * 64;
        PoisonedBuffer got(query.size() * 4), want(query.size() * 4);
        PoisonedBuffer gotRows(static_cast<std::size_t>(step.numTokens) *
                               rowBytes);
        PoisonedBuffer wantRows(gotRows.size());
        params.output = want.as<float>();
        params.quantized = {group ? wantRows.data() : nullptr, rowBytes,
                            codesEnd, codesEnd + 4 * groups};
        reference::attention(params, wholeSlice(items), step.type(),
                             {group, bits});
        params.output = got.as<float>();
        params.quantized.data = group ? gotRows.data() : nullptr;
        runSliced(kernelsFor(*level, "attention", config).at(0), &params, items,
                  0, random);
        const std::string what = "heads " + std::to_string(geometry.heads) +
                                 " of " + std::to_string(geometry.headDim) +
                                 ", window " + std::to_string(window) +
                                 ", rows " + std::to_string(step.numTokens);
        EXPECT_TRUE(sameBytes(got, want)) << what;
        EXPECT_TRUE(sameBytes(gotRows, wantRows)) << what;
      }
    }
}

// What a later token wrote, even infinity or NaN, changes no earlier token.
TEST_P(AttentionKernelTest, LaterPositionsDoNotShow) {
  Random random(2);
  const Step step({3, 1, 64}, true, {{8, 28}}, random);
  PoisonedBuffer cache(step.cacheBytes()), clean(step.cacheBytes());
  step.fill(cache, random);
  std::memcpy(clean.data(), cache.data(), cache.size());
  for (int position = 33; position < 36; ++position)
    for (int d = 0; d < 64; ++d) {
      step.put(cache, false, 0, position, 0, d, std::nanf(""));
      step.put(cache, true, 0, position, 0, d,
               std::numeric_limits<float>::infinity());
    }
  std::vector<float> query(8 * 3 * 64);
  for (float &x : query)
    x = uniform(random, -2, 2);
  const abi::KernelFn kernel =
      kernelsFor(*level, "attention", step.config()).at(0);
  PoisonedBuffer got(query.size() * 4), want(query.size() * 4);
  abi::AttentionParams params = step.attention(cache, query.data());
  params.output = got.as<float>();
  runSliced(kernel, &params, 24, 0, random);
  params.cache = step.layer(clean);
  params.output = want.as<float>();
  runSliced(kernel, &params, 24, 0, random);
  // Rows 0 to 4 are positions 28 to 32.
  EXPECT_TRUE(sameFloats(got.as<float>(), want.as<float>(), 5 * 3 * 64));
  EXPECT_TRUE(std::isnan(got.as<float>()[7 * 3 * 64]));
}

// A token's bits do not depend on how its prompt was cut.
TEST_P(AttentionKernelTest, ChunksDoNotShow) {
  Random random(3);
  const Geometry geometry = {6, 2, 32};
  const Step whole(geometry, false, {{50, 0}}, random);
  PoisonedBuffer cache(whole.cacheBytes());
  whole.fill(cache, random);
  const int width = geometry.heads * geometry.headDim;
  std::vector<float> query(50u * width);
  for (float &x : query)
    x = uniform(random, -2, 2);
  const abi::KernelFn kernel =
      kernelsFor(*level, "attention", whole.config()).at(0);
  PoisonedBuffer want(query.size() * 4), got(query.size() * 4);
  abi::AttentionParams params = whole.attention(cache, query.data());
  params.output = want.as<float>();
  runSliced(kernel, &params, 50 * geometry.heads, 0, random);
  for (int begin = 0; begin < 50;) {
    const int count = std::min(1 + below(random, 9), 50 - begin);
    const abi::SequenceSpan span = {0, count, begin, 0};
    params.sequences = &span;
    params.numTokens = count;
    params.query = query.data() + static_cast<std::ptrdiff_t>(begin) * width;
    params.output =
        got.as<float>() + static_cast<std::ptrdiff_t>(begin) * width;
    runSliced(kernel, &params, count * geometry.heads, 0, random);
    begin += count;
  }
  EXPECT_TRUE(sameBytes(got, want));
}

// How q and k become heads: every norm with every rotation that families use.
struct HeadForm {
  const char *name;
  bool hasNorms = false;
  bool ownNorms = false; // of each head
  bool normRows = false;
  abi::HeadNorm kind = abi::HeadNorm::Rms;
  float normOffset = 0;
  bool rotates = true;
  bool interleaved = false;
};
const HeadForm kHeadForms[] = {
    {.name = "plain"},
    {.name = "norms", .hasNorms = true},
    {.name = "offset", .hasNorms = true, .normOffset = 1},
    {.name = "interleaved", .interleaved = true},
    {.name = "layer norms",
     .hasNorms = true,
     .ownNorms = true,
     .kind = abi::HeadNorm::Layer,
     .interleaved = true},
    {.name = "norms of rows",
     .hasNorms = true,
     .ownNorms = true,
     .normRows = true},
    {.name = "no rotation", .rotates = false},
    {.name = "norms, no rotation", .hasNorms = true, .rotates = false}};

TEST_P(AttentionKernelTest, RopeCacheWriteEqualsTheReference) {
  Random random(4);
  for (const Geometry &geometry : kGeometries)
    for (const bool half : {false, true})
      for (const std::vector<Rows> &rows : kSteps)
        for (const HeadForm &form : kHeadForms) {
          const bool norms = form.hasNorms;
          const Step step(geometry, half, rows, random);
          const int width =
              (geometry.heads + 2 * geometry.kvHeads) * geometry.headDim;
          const int rotaryDim = !form.rotates ? 0
                                : norms       ? geometry.headDim
                                              : geometry.headDim / 4 * 2;
          std::vector<float> qkv(static_cast<std::size_t>(step.numTokens) *
                                 width);
          std::vector<float> table(static_cast<std::size_t>(step.numTokens) *
                                   rotaryDim);
          std::vector<float> qNorm(geometry.heads * geometry.headDim);
          std::vector<float> kNorm(geometry.kvHeads * geometry.headDim);
          for (float &x : qkv)
            x = oddActivation(random, true);
          for (float &x : table)
            x = uniform(random, -1, 1);
          for (float &x : qNorm)
            x = uniform(random, -2, 2);
          for (float &x : kNorm)
            x = uniform(random, -2, 2);
          PoisonedBuffer got(step.cacheBytes()), want(step.cacheBytes());
          const std::size_t queryBytes =
              4u * step.numTokens * geometry.heads * geometry.headDim;
          PoisonedBuffer gotQuery(queryBytes), wantQuery(queryBytes);
          abi::RopeCacheWriteParams params = {};
          params.qkv = qkv.data();
          params.table = form.rotates ? table.data() : nullptr;
          params.interleaved = form.interleaved;
          params.normKind = form.kind;
          params.normStride = form.ownNorms ? geometry.headDim : 0;
          params.normRows = form.normRows;
          params.normOffset = form.normOffset;
          params.qNorm = norms ? qNorm.data() : nullptr;
          params.kNorm = norms ? kNorm.data() : nullptr;
          params.query = wantQuery.as<float>();
          params.cache = step.layer(want);
          params.blockTable = step.blockTable.data();
          params.sequences = step.sequences.data();
          params.tokenSequence = step.tokenSequence.data();
          params.numSequences =
              static_cast<std::int32_t>(step.sequences.size());
          params.numTokens = step.numTokens;
          params.heads = geometry.heads;
          params.kvHeads = geometry.kvHeads;
          params.headDim = geometry.headDim;
          params.rotaryDim = rotaryDim;
          params.normEps = 1e-6f;
          reference::ropeCacheWrite(params, wholeSlice(step.numTokens),
                                    step.type());
          params.query = gotQuery.as<float>();
          params.cache = step.layer(got);
          runSliced(kernelsFor(*level, "rope_cache_write", step.config()).at(0),
                    &params, step.numTokens, 0, random);
          EXPECT_TRUE(sameBytes(gotQuery, wantQuery))
              << form.name << ", head of " << geometry.headDim;
          if (!half)
            EXPECT_TRUE(sameBytes(got, want)) << "head of " << geometry.headDim;
          else
            for (std::size_t i = 0; i < got.size() / 2; ++i) {
              const std::uint16_t a = got.as<std::uint16_t>()[i],
                                  b = want.as<std::uint16_t>()[i];
              ASSERT_TRUE(a == b ||
                          ((a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00))
                  << "element " << i;
            }
        }
}

// The block law is softmax attention, to float32 accuracy.
TEST(AttentionReferenceTest, IsCloseToSoftmaxInFloat64) {
  Random random(5);
  const Geometry geometry = {4, 2, 64};
  const Step step(geometry, false, {{3, 97}, {2, 10}}, random);
  PoisonedBuffer cache(step.cacheBytes());
  std::vector<std::vector<float>> keys(2), values(2); // [position, kvHead, d]
  for (int s = 0; s < 2; ++s)
    for (int p = 0;
         p < step.sequences[s].firstPosition + step.sequences[s].numRows; ++p)
      for (int h = 0; h < 2; ++h)
        for (int d = 0; d < 64; ++d) {
          keys[s].push_back(uniform(random, -2, 2));
          values[s].push_back(uniform(random, -2, 2));
          step.put(cache, false, s, p, h, d, keys[s].back());
          step.put(cache, true, s, p, h, d, values[s].back());
        }
  std::vector<float> query(5 * 4 * 64), output(query.size());
  for (float &x : query)
    x = uniform(random, -2, 2);
  for (const int window : {0, 40}) {
    abi::AttentionParams params = step.attention(cache, query.data());
    params.window = window;
    params.output = output.data();
    reference::attention(params, wholeSlice(20), reference::CacheType::F32, {});
    for (int t = 0; t < 5; ++t)
      for (int head = 0; head < 4; ++head) {
        const int s = step.tokenSequence[t];
        const int position =
            step.sequences[s].firstPosition + t - step.sequences[s].firstRow;
        const int first = window ? std::max(0, position - window + 1) : 0;
        std::vector<double> sum(64);
        double total = 0;
        for (int p = first; p <= position; ++p) {
          double score = 0;
          for (int d = 0; d < 64; ++d)
            score += static_cast<double>(query[(t * 4 + head) * 64 + d]) *
                     keys[s][(p * 2 + head / 2) * 64 + d];
          const double weight = std::exp(score / 8);
          total += weight;
          for (int d = 0; d < 64; ++d)
            sum[d] += weight * values[s][(p * 2 + head / 2) * 64 + d];
        }
        for (int d = 0; d < 64; ++d)
          EXPECT_NEAR(output[(t * 4 + head) * 64 + d], sum[d] / total, 1e-5);
      }
  }
}

INGOT_FOR_EACH_LEVEL(AttentionKernelTest);

} // namespace
} // namespace ingot::test
