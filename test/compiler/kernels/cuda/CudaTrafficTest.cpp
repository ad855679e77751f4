// The closed forms of runtime/execute/cuda/cost against what the emulator traces: for
// each kernel the different bytes, the sectors that its requests ask for, the fewest
// for as many bytes, and the passes of shared memory.
#include "runtime/execute/cuda/cost/KernelTraffic.h"
#include "test/compiler/kernels/cuda/AttentionCase.h"
#include "test/compiler/kernels/cuda/LinearCase.h"
#include "test/compiler/kernels/cuda/TrafficChecks.h"

#include <cmath>

namespace ingot::test {
namespace {

using namespace cuda;

TEST(CudaTraffic, LinearIsAsTraced) {
  Random random(61);
  struct Kind {
    const char *encoding;
    Shape shape;
    bool hasEpilogue;
  };
  for (const Kind &kind : {Kind{"f16", {1, 512, 96}, false},
                           {"f16", {13, 264, 70}, true},
                           {"bf16", {64, 256, 40}, false},
                           {"i8g32", {8, 320, 33}, true},
                           {"i8g128", {30, 640, 64}, false},
                           {"i8c", {5, 200, 80}, true},
                           {"i4g32m", {16, 256, 48}, false},
                           {"i4g32m", {70, 128, 130}, true},
                           {"i4g128", {3, 1024, 64}, true},
                           {"f16", {130, 192, 260}, true},
                           {"f16x2", {2, 256, 64}, false},
                           {"f16x2", {40, 128, 50}, true}}) {
    const LinearCase problem(random, kind.encoding, kind.shape,
                             kind.hasEpilogue);
    const std::string tile = tileFor(kind.shape.tokens);
    simt::LaunchReport report;
    (void)problem.run(tile, 0, kind.shape.tokens, traced(), &report);
    std::string encoding = kind.encoding;
    if (problem.parts == 2)
      encoding.resize(encoding.size() - 2);
    const codegen::CudaEncoding of = *codegen::cudaEncoding(encoding);
    LinearWork work;
    work.code = of.code;
    work.group = of.group;
    work.minimum = of.minimum;
    work.parts = problem.parts;
    work.geometry =
        codegen::cudaKernel("linear_" + std::string(kind.encoding) + "_" + tile)
            ->geometry;
    work.n = kind.shape.n;
    work.k = kind.shape.k;
    work.tokens = kind.shape.tokens;
    work.hasBias = work.hasResidual = kind.hasEpilogue;
    work.outputStride = work.residualStride = problem.stride();
    const LaunchTraffic made = linearTraffic(work);
    const std::string what = std::string(kind.encoding) + " " + tile;
    expectTraced(made, report.trace, what);
    EXPECT_EQ(linearTileOf(work.geometry),
              abi::linearTileFor(kind.shape.tokens));
    // Weights by themselves, to the sector.
    std::uint64_t sectors = 0, different = 0;
    for (const void *plane :
         {problem.weights.deviceCodes(), problem.weights.deviceScales(),
          problem.weights.deviceMins()})
      if (plane) {
        sectors += report.trace.of(plane).sectorsRead;
        different += report.trace.of(plane).uniqueRead;
      }
    if (!kind.hasEpilogue) {
      EXPECT_EQ(made.weights.sectorsRead, double(sectors)) << what;
      EXPECT_EQ(made.weights.bytesRead, 32.0 * double(different)) << what;
    }
  }
}

// What a tile has too many of is multiplied, too: counted by hand.
TEST(CudaTraffic, LinearMultipliesWholeTiles) {
  LinearWork work;
  work.geometry =
      abi::linearGeometry(abi::CudaCode::F16, 0, false, abi::LinearTile::T8);
  work.n = 33, work.k = 65, work.tokens = 1;
  work.outputStride = 33;
  // Two blocks of 32 rows, 8 tokens, two units that become a round of four.
  EXPECT_EQ(linearTraffic(work).flops, 2.0 * 2 * 32 * 8 * 256);
  EXPECT_EQ(linearTraffic(work).neededFlops, 2.0 * 33 * 65);
  EXPECT_EQ(linearTraffic(work).blocks, 2);
}

struct Cuts {
  std::vector<abi::AttentionTile> tiles;
  std::vector<abi::TokenSlots> rows;
  int maxSplits = 1;
};
// As AttentionCase cuts them, with a padding tile and row at the end.
Cuts cutsOf(const AttentionCase &problem, Cut cut) {
  Cuts made;
  const Geometry &geometry = problem.geometry;
  const int queries = cut == Cut::Split
                          ? abi::splitQueries(geometry.heads, geometry.kvHeads)
                          : abi::wideQueries(geometry.heads, geometry.kvHeads,
                                             geometry.headDim);
  int slots = 0;
  for (std::size_t s = 0; s < problem.parts.size(); ++s)
    for (int q = 0; q < problem.parts[s].rows; q += queries) {
      abi::AttentionTile tile = {};
      tile.firstSlot = slots;
      tile.numQueries = std::min(queries, problem.parts[s].rows - q);
      tile.firstPosition = problem.parts[s].first + q;
      tile.blockTableOffset = problem.cache.offset(int(s));
      tile.firstSplit = abi::firstSplitOf(tile.firstPosition, problem.window);
      tile.numSplits =
          abi::numSplitsOf(tile.firstPosition, tile.numQueries, problem.window);
      made.maxSplits = std::max(made.maxSplits, tile.numSplits);
      for (int i = 0; i < tile.numQueries; ++i, slots += tile.numSplits)
        made.rows.push_back({slots, tile.numSplits});
      made.tiles.push_back(tile);
    }
  made.tiles.push_back({});
  made.rows.push_back({0, -1});
  return made;
}

TEST(CudaTraffic, AttentionIsAsTraced) {
  Random random(62);
  struct Kind {
    Geometry geometry;
    std::vector<Part> parts;
    int window;
    Cut cut;
  };
  const std::vector<Part> decoding = {{639, 1}, {300, 1}, {17, 1}};
  for (const Kind &kind :
       {Kind{{64, "f16", 6, 2}, decoding, 0, Cut::Split},
        {{64, "i8", 4, 1}, decoding, 0, Cut::Split},
        {{128, "f16", 2, 1}, decoding, 200, Cut::Split},
        {{16, "f16", 19, 1}, {{300, 2}}, 0, Cut::Split},
        {{80, "f16", 2, 1}, {{290, 1}}, 0, Cut::Split},
        {{64, "bf16", 2, 2}, {{70, 9}, {263, 1}}, 0, Cut::Split},
        {{64, "f16", 4, 2}, {{100, 40}, {0, 70}}, 0, Cut::Wide},
        {{256, "f16", 1, 1}, {{250, 9}}, 0, Cut::Wide},
        {{64, "i8", 4, 1}, {{250, 33}}, 90, Cut::Wide}}) {
    const AttentionCase problem(random, kind.geometry, kind.parts, kind.window,
                                0);
    simt::LaunchReport report;
    (void)problem.run(kind.cut, 1000, traced(), &report);
    const Cuts cuts = cutsOf(problem, kind.cut);
    const bool isSplit = kind.cut == Cut::Split;
    const AttentionWork work{kind.geometry.headDim,
                             kind.geometry.heads,
                             kind.geometry.kvHeads,
                             kind.window,
                             kind.geometry.kv == "f16"  ? KvKind::F16
                             : kind.geometry.kv == "i8" ? KvKind::I8
                                                        : KvKind::BF16,
                             cuts.tiles,
                             cuts.maxSplits};
    const LaunchTraffic made = attentionTraffic(work, isSplit);
    const std::string what =
        kind.geometry.name(isSplit ? "attention_split" : "attention");
    expectTraced(made, report.trace, what);
    const simt::AllocationTrace &cache = report.trace.of(problem.cache.data());
    EXPECT_NEAR(made.cache.sectorsRead, double(cache.sectorsRead),
                0.01 * double(cache.sectorsRead))
        << what;
    EXPECT_NEAR(made.cache.bytesRead, 32.0 * double(cache.uniqueRead),
                0.01 * made.cache.bytesRead + 32)
        << what;
  }
}

TEST(CudaTraffic, MergingIsAsTraced) {
  for (auto [heads, headDim] : {std::pair{6, 64}, {19, 16}, {3, 80}}) {
    const std::vector<abi::TokenSlots> rows = {
        {0, 3}, {3, 1}, {0, 0}, {4, 2}, {0, -1}};
    const int width = heads * headDim, numRows = int(rows.size());
    DeviceArray<float> output(
        std::vector<float>(std::size_t(numRows * width), 1.0f),
        Access::ReadWrite);
    DeviceArray<float> values(std::vector<float>(std::size_t(6 * width), 1.0f));
    DeviceArray<float> stats(std::vector<float>(std::size_t(12 * heads), 1.0f),
                             Access::ReadWrite);
    DeviceArray<abi::TokenSlots> slots(rows);
    HalfRows halves(numRows, width);
    const abi::CudaAttentionMergeParams params{
        output.data(), halves.rows(), values.data(),
        stats.data(),  slots.data(),  numRows,
        heads,         headDim,       0};
    const abi::KernelGeometry shape = abi::mergeGeometry(heads);
    const simt::LaunchReport report = launchKernel(
        "attention_merge", abi::rowGrid(numRows), params, traced(), &shape);
    expectTraced(mergeTraffic({heads, headDim, rows, true, 1}), report.trace,
                 "attention_merge");
  }
}

TEST(CudaTraffic, CacheWritesAreAsTraced) {
  Random random(63);
  struct Kind {
    Geometry geometry;
    RopeWriteWork with;
  };
  for (Kind kind :
       {Kind{{64, "f16", 6, 2}, {.rotaryDim = 64}},
        Kind{{64, "i8", 4, 1}, {.rotaryDim = 64}},
        Kind{{128, "f16", 2, 1}, {.rotaryDim = 64, .hasNorm = true}},
        Kind{{64, "bf16", 2, 2},
             {.rotaryDim = 32,
              .hasNorm = true,
              .isLayerNorm = true,
              .hasOwnNorms = true}},
        Kind{{80, "f16", 2, 1}, {.rotaryDim = 80, .interleaved = true}},
        Kind{{64, "f16", 4, 2},
             {.rotaryDim = 64,
              .hasNorm = true,
              .isNormOfRow = true,
              .hasOwnNorms = true}}}) {
    constexpr int kRows = 20;
    const Geometry &geometry = kind.geometry;
    const std::vector<Part> parts = {{30, kRows}};
    TestCache cache(random, geometry, parts);
    const int heads = geometry.heads, kvHeads = geometry.kvHeads;
    const int dim = geometry.headDim;
    DeviceArray<float> qkv(uniforms(
        random, std::size_t(kRows * (heads + 2 * kvHeads) * dim), -3, 3));
    DeviceArray<float> table(
        uniforms(random, std::size_t(kRows * kind.with.rotaryDim), -1, 1));
    DeviceArray<float> qNorm(uniforms(random, std::size_t(heads * dim), 1, 2));
    DeviceArray<float> kNorm(
        uniforms(random, std::size_t(kvHeads * dim), 1, 2));
    DeviceArray<float> query(std::size_t(kRows * heads * dim));
    DeviceArray<abi::SequenceSpan> spans(
        std::vector<abi::SequenceSpan>{{0, kRows, 30, cache.offset(0)}});
    DeviceArray<std::int32_t> sequence(std::vector<std::int32_t>(kRows, 0));
    abi::RopeCacheWriteParams params = {};
    params.qkv = qkv.data();
    params.table = table.data();
    params.qNorm = kind.with.hasNorm ? qNorm.data() : nullptr;
    params.kNorm = kind.with.hasNorm ? kNorm.data() : nullptr;
    params.query = query.data();
    params.cache = cache.layer();
    params.blockTable = cache.table();
    params.sequences = spans.data();
    params.tokenSequence = sequence.data();
    params.numSequences = 1;
    params.numTokens = kRows;
    params.heads = heads;
    params.kvHeads = kvHeads;
    params.headDim = dim;
    params.rotaryDim = kind.with.rotaryDim;
    params.normEps = 1e-5f;
    params.normKind =
        kind.with.isLayerNorm ? abi::HeadNorm::Layer : abi::HeadNorm::Rms;
    params.normStride = kind.with.hasOwnNorms ? dim : 0;
    params.normRows = kind.with.isNormOfRow;
    params.interleaved = kind.with.interleaved;
    const simt::LaunchReport report =
        launchKernel(geometry.name("rope_cache_write"), abi::rowGrid(kRows),
                     params, traced());
    kind.with.headDim = dim;
    kind.with.heads = heads;
    kind.with.kvHeads = kvHeads;
    kind.with.rows = kRows;
    kind.with.kv = geometry.kv == "f16"  ? KvKind::F16
                   : geometry.kv == "i8" ? KvKind::I8
                                         : KvKind::BF16;
    expectTraced(ropeWriteTraffic(kind.with), report.trace,
                 geometry.name("rope_cache_write"));
  }
}

TEST(CudaTraffic, RowsAreAsTraced) {
  Random random(64);
  for (int width : {576, 300}) {
    constexpr int kRows = 3;
    const std::size_t size = std::size_t(kRows * width);
    DeviceArray<float> input(uniforms(random, 2 * size, -2, 2));
    DeviceArray<float> other(uniforms(random, size, -2, 2));
    DeviceArray<float> weight(uniforms(random, std::size_t(width), 1, 2));
    DeviceArray<float> bias(uniforms(random, std::size_t(width), 1, 2));
    const simt::LaunchOptions options = traced();
    auto run = [&](const std::string &name, const auto &params) {
      return launchKernel(name, abi::rowGrid(kRows), params, options).trace;
    };
    for (bool hasOutput : {true, false})
      for (bool hasHalves : {true, false}) {
        if (!hasOutput && !hasHalves)
          continue;
        DeviceArray<float> output(size);
        HalfRows halves(kRows, width);
        float *to = hasOutput ? output.data() : nullptr;
        const abi::QuantizedRows rows =
            hasHalves ? halves.rows() : abi::QuantizedRows{};
        const std::string which = std::to_string(width) +
                                  (hasOutput ? " floats" : "") +
                                  (hasHalves ? " halves" : "");
        auto work = [&](RowOperation operation, bool hasBias = false) {
          return rowTraffic(
              {operation, kRows, width, hasOutput, hasHalves, hasBias, 1});
        };
        expectTraced(
            work(RowOperation::RmsNorm),
            run("rms_norm", abi::RmsNormParams{input.data(), weight.data(), to,
                                               rows, kRows, width, 1e-5f, 0}),
            "rms_norm " + which);
        for (bool hasBias : {false, true})
          expectTraced(
              work(RowOperation::LayerNorm, hasBias),
              run("layer_norm",
                  abi::LayerNormParams{input.data(), weight.data(),
                                       hasBias ? bias.data() : nullptr, to,
                                       rows, kRows, width, 1e-5f, 0}),
              "layer_norm " + which);
        expectTraced(work(RowOperation::Gated),
                     run("gated_silu", abi::GatedParams{input.data(), to, rows,
                                                        kRows, width}),
                     "gated_silu " + which);
        expectTraced(
            work(RowOperation::Activate),
            run("activate_gelu",
                abi::ActivateParams{input.data(), to, rows, kRows, width}),
            "activate_gelu " + which);
      }
    DeviceArray<float> output(size);
    HalfRows halves(kRows, width, 2);
    expectTraced(
        rowTraffic(
            {RowOperation::Quantize, kRows, width, false, true, false, 2}),
        run("quantize",
            abi::QuantizeParams{input.data(), halves.rows(), kRows, width}),
        "quantize x2");
    auto floats = [&](RowOperation operation) {
      return rowTraffic({operation, kRows, width, true, false, false, 1});
    };
    expectTraced(
        floats(RowOperation::Add),
        run("add", abi::AddParams{input.data(), other.data(), output.data(),
                                  kRows, width, 1.0f, 0}),
        "add");
    expectTraced(floats(RowOperation::Cap),
                 run("cap", abi::CapParams{input.data(), output.data(), kRows,
                                           width, 2.0f, 30.0f}),
                 "cap");
    DeviceArray<std::int32_t> chosen(std::vector<std::int32_t>{2, 0, 1});
    expectTraced(
        floats(RowOperation::GatherRows),
        run("gather_rows", abi::GatherRowsParams{input.data(), chosen.data(),
                                                 output.data(), kRows, width}),
        "gather_rows");
    abi::RopeTableParams table = {};
    table.positions = chosen.data();
    table.rotaryLengths = chosen.data();
    table.invFreq = weight.data();
    table.output = output.data();
    table.numTokens = kRows;
    table.rotaryDim = 64;
    table.attentionFactor = 1;
    expectTraced(
        rowTraffic({RowOperation::RopeTable, kRows, 64, true, false, false, 1}),
        run("rope_table", table), "rope_table");
  }
}

TEST(CudaTraffic, ChoosingIsAsTraced) {
  Random random(66);
  constexpr int kRows = 3, kVocab = 10000;
  DeviceArray<float> logits(
      uniforms(random, std::size_t(kRows * kVocab), -9, 9));
  for (bool hasNoise : {false, true}) {
    const double factor = hasNoise ? 1 : 0;
    DeviceArray<abi::SampleRow> rows(
        std::vector<abi::SampleRow>(kRows, {7, 3, factor}));
    DeviceArray<std::int32_t> tokens(kRows);
    const abi::CudaSampleParams params{logits.data(), rows.data(),
                                       tokens.data(), kRows, kVocab};
    const simt::LaunchReport report =
        launchKernel("sample", abi::rowGrid(kRows), params, traced());
    expectTraced(sampleTraffic({kRows, kVocab, hasNoise}), report.trace,
                 hasNoise ? "sample" : "sample, greedy");
  }
}

TEST(CudaTraffic, EmbeddingIsAsTraced) {
  Random random(65);
  for (const char *encoding : {"f16", "bf16", "i8g32", "i4g32m", "i4c"}) {
    constexpr int kRows = 4, kWidth = 320;
    const TestWeights weights(random, encoding, 80, kWidth);
    const codegen::CudaEncoding of = *codegen::cudaEncoding(encoding);
    // Each of another tile, so that no two share a sector of scales.
    DeviceArray<std::int32_t> tokens(std::vector<std::int32_t>{3, 24, 41, 70});
    DeviceArray<float> output(std::size_t(kRows * kWidth));
    const abi::EmbedParams params{
        tokens.data(), weights.mma16(), output.data(), kRows, kWidth, 80, 1,
        nullptr};
    const simt::LaunchReport report =
        launchKernel(std::string("embed_") + encoding, abi::rowGrid(kRows),
                     params, traced());
    expectTraced(embedTraffic({of.code, of.group, of.minimum, kRows, kWidth}),
                 report.trace, encoding, 0.1);
  }
}

} // namespace
} // namespace ingot::test
