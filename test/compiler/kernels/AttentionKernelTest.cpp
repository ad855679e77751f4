// rope_cache_write and attention against the reference, bit for bit: many
// geometries of heads, ragged sequences across block borders, windows, shuffled
// block tables, a cache that is NaN wherever nothing was written; and the law
// against softmax in float64.
#include "compiler/kernels/Alibi.h"
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"
#include "test/compiler/kernels/KernelFixtures.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

using reference::CacheType;

constexpr CacheType kCacheTypes[] = {CacheType::F32, CacheType::F16,
                                     CacheType::I8};
std::string nameOf(CacheType type) {
  return type == CacheType::F32 ? "f32" : type == CacheType::F16 ? "f16" : "i8";
}

struct Geometry {
  int heads, kvHeads, headDim;
};
struct Rows {
  int numRows, firstPosition;
};

// A step over several sequences and a poisoned cache for them.
struct Step {
  Geometry geometry;
  reference::CacheType type;
  std::vector<abi::SequenceSpan> sequences;
  std::vector<std::int32_t> tokenSequence, blockTable;
  int numTokens = 0, numBlocks = 0;
  std::int64_t planeBytes, blockBytes;

  Step(const Geometry &shape, CacheType elements, const std::vector<Rows> &rows,
       Random &random)
      : geometry(shape), type(elements) {
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
    planeBytes = (geometry.kvHeads * headBytes() + 63) / 64 * 64;
    blockBytes = 2 * planeBytes;
  }
  std::size_t cacheBytes() const {
    return static_cast<std::size_t>(blockBytes) * numBlocks;
  }
  abi::KvLayer layer(PoisonedBuffer &cache) const {
    return {cache.data(), blockBytes, planeBytes};
  }
  std::int64_t headBytes() const {
    return abi::kvHeadBytes(geometry.headDim, type == CacheType::F32   ? 4
                                              : type == CacheType::F16 ? 2
                                                                       : 1);
  }

  // One head of the key or value at a position.
  std::uint8_t *headAt(PoisonedBuffer &cache, bool value, int sequence,
                       int position, int head) const {
    const std::int64_t block =
        blockTable[sequences[sequence].blockTableOffset + position / 32];
    return cache.data() + block * blockBytes + (value ? planeBytes : 0) +
           head * headBytes();
  }
  float *scaleAt(PoisonedBuffer &cache, bool value, int sequence, int position,
                 int head) const {
    return reinterpret_cast<float *>(
               headAt(cache, value, sequence, position, head) +
               geometry.headDim * 32) +
           position % 32;
  }
  // Writes one element; of int8 x is a code.
  void put(PoisonedBuffer &cache, bool value, int sequence, int position,
           int head, int d, float x) const {
    std::uint8_t *to = headAt(cache, value, sequence, position, head);
    const int index =
        value ? position % 32 * geometry.headDim + d : d * 32 + position % 32;
    if (type == CacheType::F16)
      reinterpret_cast<std::uint16_t *>(to)[index] = reference::toHalf(x);
    else if (type == CacheType::F32)
      reinterpret_cast<float *>(to)[index] = x;
    else
      reinterpret_cast<std::int8_t *>(to)[index] = static_cast<std::int8_t>(x);
  }
  // Fills every position that the step may see.
  void fill(PoisonedBuffer &cache, Random &random) const {
    for (std::size_t s = 0; s < sequences.size(); ++s)
      for (int p = 0; p < sequences[s].firstPosition + sequences[s].numRows;
           ++p)
        for (int h = 0; h < geometry.kvHeads; ++h)
          for (const bool value : {false, true}) {
            const float most = type == CacheType::I8 ? 127.4f : 2.0f;
            for (int d = 0; d < geometry.headDim; ++d)
              put(cache, value, static_cast<int>(s), p, h, d,
                  uniform(random, -most, most));
            if (type == CacheType::I8)
              *scaleAt(cache, value, static_cast<int>(s), p, h) =
                  uniform(random, 0.001f, 0.016f);
          }
  }

  // An int8 cache in two buffers: the same codes, and scales up to the NaN.
  ::testing::AssertionResult sameCodes(PoisonedBuffer &got,
                                       PoisonedBuffer &want) const {
    if (!got.guardIntact())
      return ::testing::AssertionFailure() << "wrote outside the buffer";
    const std::size_t codes = static_cast<std::size_t>(geometry.headDim) * 32;
    for (std::size_t head = 0; head + headBytes() <= got.size();
         head += headBytes()) {
      if (std::memcmp(got.data() + head, want.data() + head, codes) != 0)
        return ::testing::AssertionFailure() << "codes of the head at " << head;
      auto same = sameFloats(
          reinterpret_cast<const float *>(got.data() + head + codes),
          reinterpret_cast<const float *>(want.data() + head + codes), 32);
      if (!same)
        return same << ", scales of the head at " << head;
    }
    return ::testing::AssertionSuccess();
  }

  codegen::KernelConfig config() const {
    return {{"head_dim", geometry.headDim}, {"kv", nameOf(type)}};
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
    {{1, 299}, {3, 30}},
    {{5, 0}, {1, 63}, {40, 20}}};

class AttentionKernelTest : public LevelTest {};

TEST_P(AttentionKernelTest, EqualsTheReference) {
  Random random(1);
  for (const Geometry &geometry : kGeometries)
    for (const std::vector<Rows> &rows : kSteps) {
      // Each type of cache meets every kind of step.
      const Step step(geometry, kCacheTypes[below(random, 3)], rows, random);
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
        // What looks both ways has no window; 1 is that of the token itself.
        params.bidirectional = window == 0 || window == 1;
        if (params.bidirectional)
          params.window = 0;
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
        reference::attention(params, wholeSlice(items), step.type,
                             {group, bits});
        params.output = got.as<float>();
        params.quantized.data = group ? gotRows.data() : nullptr;
        runSliced(kernelsFor(*level, "attention", config).at(0), &params, items,
                  0, random);
        const std::string what = "heads " + std::to_string(geometry.heads) +
                                 " of " + std::to_string(geometry.headDim) +
                                 ", window " + std::to_string(window) +
                                 ", rows " + std::to_string(step.numTokens) +
                                 (params.bidirectional ? ", both ways" : "");
        EXPECT_TRUE(sameBytes(got, want)) << what;
        EXPECT_TRUE(sameBytes(gotRows, wantRows)) << what;
      }
    }
}

// ALiBi by both laws, bit for bit the reference; a slope of 0 gives the bits of
// plain attention.
TEST_P(AttentionKernelTest, SlopesEqualTheReference) {
  Random random(21);
  int made = 0;
  for (const Geometry &geometry : kGeometries) {
    // Kernels are made once a geometry; each type of cache meets two of them.
    const CacheType type = kCacheTypes[made++ % 3];
    const codegen::KernelConfig config = {{"head_dim", geometry.headDim},
                                          {"kv", nameOf(type)}};
    const abi::KernelFn kernel =
        kernelsFor(*level, "alibi_attention", config).at(0);
    const abi::KernelFn plain = kernelsFor(*level, "attention", config).at(0);
    for (const std::vector<Rows> &rows : kSteps) {
      const Step step(geometry, type, rows, random);
      PoisonedBuffer cache(step.cacheBytes());
      step.fill(cache, random);
      const int width = geometry.heads * geometry.headDim;
      const int items = step.numTokens * geometry.heads;
      std::vector<float> query(static_cast<std::size_t>(step.numTokens) *
                               width);
      for (float &x : query)
        x = uniform(random, -2, 2);
      std::vector<float> slopes(static_cast<std::size_t>(geometry.heads));
      for (float &slope : slopes)
        slope = kernels::roundToBrain(uniform(random, 0.001f, 0.9f));
      PoisonedBuffer got(query.size() * 4), want(query.size() * 4);
      for (const int rounded : {0, 1}) {
        abi::AlibiAttentionParams params = {};
        params.attention = step.attention(cache, query.data());
        params.attention.softCap = rows.size() == 2 ? 5.0f : 0.0f;
        params.slopes = slopes.data();
        params.rounded = rounded;
        params.attention.output = want.as<float>();
        reference::alibiAttention(params, wholeSlice(items), step.type, {0, 0});
        params.attention.output = got.as<float>();
        runSliced(kernel, &params, items, 0, random);
        EXPECT_TRUE(sameBytes(got, want))
            << "heads " << geometry.heads << " of " << geometry.headDim
            << ", rows " << step.numTokens << ", rounded " << rounded;
      }
      const std::vector<float> none(slopes.size(), 0.0f);
      abi::AlibiAttentionParams params = {};
      params.attention = step.attention(cache, query.data());
      params.slopes = none.data();
      params.attention.output = got.as<float>();
      runSliced(kernel, &params, items, 0, random);
      params.attention.output = want.as<float>();
      runSliced(plain, &params.attention, items, 0, random);
      EXPECT_TRUE(sameBytes(got, want)) << "slopes of 0";
    }
  }
}

// A token that looks both ways sees what the last token sees looking back: with
// its query in the last place, the causal kernel gives the same bits.
TEST_P(AttentionKernelTest, BothWaysIsTheViewOfTheLast) {
  Random random(11);
  for (const int rows : {1, 31, 32, 33, 70}) {
    const Step step({4, 2, 32}, CacheType::F16, {{rows, 0}}, random);
    PoisonedBuffer cache(step.cacheBytes());
    step.fill(cache, random);
    const int width = 4 * 32, items = rows * 4;
    std::vector<float> query(static_cast<std::size_t>(rows) * width);
    for (float &x : query)
      x = uniform(random, -2, 2);
    PoisonedBuffer both(query.size() * 4), back(query.size() * 4);
    abi::AttentionParams params = step.attention(cache, query.data());
    params.bidirectional = 1;
    params.output = both.as<float>();
    const abi::KernelFn kernel =
        kernelsFor(*level, "attention", step.config()).at(0);
    runSliced(kernel, &params, items, 0, random);
    for (int t = 0; t < rows; ++t) {
      std::vector<float> moved = query;
      std::copy_n(query.begin() + t * width, width,
                  moved.begin() + (rows - 1) * width);
      params = step.attention(cache, moved.data());
      params.output = back.as<float>();
      runSliced(kernel, &params, items, 0, random);
      EXPECT_TRUE(sameFloats(both.as<float>() + t * width,
                             back.as<float>() + (rows - 1) * width, width))
          << "token " << t << " of " << rows;
    }
  }
}

// What a later token wrote, even infinity or NaN, changes no earlier token.
TEST_P(AttentionKernelTest, LaterPositionsDoNotShow) {
  Random random(2);
  const Step step({3, 1, 64}, CacheType::F16, {{8, 28}}, random);
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
  for (const CacheType type : kCacheTypes) {
    const Geometry geometry = {6, 2, 32};
    const Step whole(geometry, type, {{50, 0}}, random);
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
    for (const CacheType type : kCacheTypes)
      for (const std::vector<Rows> &rows : kSteps)
        for (const HeadForm &form : kHeadForms) {
          const bool norms = form.hasNorms;
          const Step step(geometry, type, rows, random);
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
            // One element that is no number takes its whole head in int8.
            x = oddActivation(random,
                              type != CacheType::I8 || below(random, 100) == 0);
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
                                    step.type);
          params.query = gotQuery.as<float>();
          params.cache = step.layer(got);
          runSliced(kernelsFor(*level, "rope_cache_write", step.config()).at(0),
                    &params, step.numTokens, 0, random);
          EXPECT_TRUE(sameBytes(gotQuery, wantQuery))
              << form.name << ", head of " << geometry.headDim;
          if (type == CacheType::I8)
            EXPECT_TRUE(step.sameCodes(got, want)) << form.name;
          else if (type == CacheType::F32)
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
  const Step step(geometry, CacheType::F32, {{3, 97}, {2, 10}}, random);
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

// Rows of every kind through an int8 cache: what the codes and scales are, and
// what a query then reads.
class Int8Cache {
public:
  static constexpr int kDim = 64;
  // `rows[t]` is the key and the value of position t, of one head.
  Int8Cache(const codegen::CpuLevel &level,
            const std::vector<std::vector<float>> &rows, Random &random)
      : step({1, 1, kDim}, CacheType::I8, {{int(rows.size()), 0}}, random),
        cache(step.cacheBytes()) {
    std::vector<float> qkv, query(rows.size() * kDim);
    for (const std::vector<float> &row : rows) {
      qkv.insert(qkv.end(), kDim, 1.0f);
      qkv.insert(qkv.end(), row.begin(), row.end());
      qkv.insert(qkv.end(), row.begin(), row.end());
    }
    abi::RopeCacheWriteParams params = {};
    params.qkv = qkv.data();
    params.query = query.data();
    params.cache = step.layer(cache);
    params.blockTable = step.blockTable.data();
    params.sequences = step.sequences.data();
    params.tokenSequence = step.tokenSequence.data();
    params.numSequences = 1;
    params.numTokens = step.numTokens;
    params.heads = params.kvHeads = 1;
    params.headDim = kDim;
    runSliced(kernelsFor(level, "rope_cache_write", step.config()).at(0),
              &params, step.numTokens, 0, random);
  }
  float scale(bool value, int position) {
    return *step.scaleAt(cache, value, 0, position, 0);
  }
  int code(bool value, int position, int d) {
    auto *head = reinterpret_cast<std::int8_t *>(
        step.headAt(cache, value, 0, position, 0));
    return value ? head[position % 32 * kDim + d]
                 : head[d * 32 + position % 32];
  }
  // What the last `count` positions read, with `query` as all their queries.
  std::vector<float> attend(const codegen::CpuLevel &level, int count,
                            float query, Random &random) {
    std::vector<float> queries(static_cast<std::size_t>(count) * kDim, query);
    std::vector<float> output(queries.size());
    const abi::SequenceSpan span = {0, count, step.numTokens - count, 0};
    abi::AttentionParams params = step.attention(cache, queries.data());
    params.sequences = &span;
    params.numTokens = count;
    params.output = output.data();
    runSliced(kernelsFor(level, "attention", step.config()).at(0), &params,
              count, 0, random);
    return output;
  }

  Step step;
  PoisonedBuffer cache;
};

TEST_P(AttentionKernelTest, Int8CodesAreTheNearest) {
  Random random(6);
  std::vector<std::vector<float>> rows;
  for (const float size : {1.0f, 1e-3f, 3e38f, 1e-30f, 4e-37f, 1e4f}) {
    std::vector<float> row;
    for (int d = 0; d < Int8Cache::kDim; ++d)
      row.push_back(size * uniform(random, -1, 1));
    row[7] = -size;
    rows.push_back(row);
  }
  Int8Cache cache(*level, rows, random);
  for (int t = 0; t < int(rows.size()); ++t)
    for (const bool value : {false, true}) {
      const float scale = cache.scale(value, t);
      EXPECT_EQ(scale, -rows[t][7] / 127.0f) << t;
      EXPECT_EQ(cache.code(value, t, 7), -127) << t;
      for (int d = 0; d < Int8Cache::kDim; ++d)
        // Half a code and the rounding of x times the inverse; scales below
        // 1e-38 are coarse themselves.
        EXPECT_LE(
            std::abs(double(rows[t][d]) / scale - cache.code(value, t, d)),
            scale < 1e-37f ? 0.51 : 0.50001)
            << t << " " << d;
    }
}

TEST_P(AttentionKernelTest, Int8ZeroRowsReadZero) {
  Random random(7);
  // Zeros of either sign, and rows too small for the inverse of a scale.
  for (const float tiny : {0.0f, -0.0f, 1e-45f, 3e-37f}) {
    Int8Cache cache(*level,
                    std::vector<std::vector<float>>(
                        40, std::vector<float>(Int8Cache::kDim, tiny)),
                    random);
    for (int t = 0; t < 40; ++t)
      for (const bool value : {false, true}) {
        EXPECT_EQ(cache.scale(value, t), 1.0f);
        for (int d = 0; d < Int8Cache::kDim; ++d)
          ASSERT_EQ(cache.code(value, t, d), 0);
      }
    for (const float x : cache.attend(*level, 3, 100.0f, random))
      ASSERT_EQ(x, 0.0f);
  }
}

// A row that holds what is no number reads NaN; no other row changes.
TEST_P(AttentionKernelTest, Int8NonFiniteRowsReadNan) {
  Random random(8);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), infinity, -infinity}) {
    std::vector<std::vector<float>> rows(
        36, std::vector<float>(Int8Cache::kDim, 0.5f));
    rows[33][5] = bad;
    Int8Cache cache(*level, rows, random);
    for (const bool value : {false, true}) {
      EXPECT_TRUE(std::isnan(cache.scale(value, 33)));
      for (int d = 0; d < Int8Cache::kDim; ++d)
        ASSERT_EQ(cache.code(value, 33, d), 0);
      EXPECT_EQ(cache.scale(value, 32), 0.5f / 127.0f);
    }
    const std::vector<float> read = cache.attend(*level, 4, 1.0f, random);
    for (int d = 0; d < Int8Cache::kDim; ++d) {
      ASSERT_NEAR(read[d], 0.5f, 1e-6f);
      for (int row = 1; row < 4; ++row)
        ASSERT_TRUE(std::isnan(read[row * Int8Cache::kDim + d])) << row;
    }
  }
}

// Against the values themselves: each is read with half a code of its own head
// at most, whatever weights the keys give.
TEST_P(AttentionKernelTest, Int8ReadsWithinHalfACode) {
  Random random(9);
  std::vector<std::vector<float>> rows;
  float largest = 0;
  for (int t = 0; t < 100; ++t) {
    std::vector<float> row;
    const float shared = uniform(random, -1, 1);
    for (int d = 0; d < Int8Cache::kDim; ++d) {
      row.push_back(shared + (d == 0 ? 3.0f : 0.001f * float(d)));
      largest = std::max(largest, std::abs(row.back()));
    }
    rows.push_back(row);
  }
  Int8Cache cache(*level, rows, random);
  const std::vector<float> read = cache.attend(*level, 1, 0.01f, random);
  // Elements of a row differ by what the row adds to `shared`, which the
  // weights sum to 1 over.
  for (int d = 2; d < Int8Cache::kDim; ++d)
    EXPECT_NEAR(read[d] - read[1], 0.001f * float(d - 1), largest / 127.0f)
        << d;
}

INGOT_FOR_EACH_LEVEL(AttentionKernelTest);

} // namespace
} // namespace ingot::test
