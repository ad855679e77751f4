// Prints, for each kernel and shape, the time, the multiply-adds a second, the
// bytes of weights (or cache) a second and the share of the machine's measured
// limit, on one and on two threads.
//
//   ingot-bench-kernels [filter]     lines whose name contains `filter`
//
// Shapes are SmolLM2-135M's. Weights rotate over copies larger than the caches,
// as the layers of a model do. Numbers are those of x86-64-v3 unless the machine
// has avx512-vnni.
#include "test/bench/kernels/MachineLimits.h"
#include "test/compiler/kernels/MappedKernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>

#include <sys/mman.h>

using namespace ingot;

namespace {

struct Limits {
  double int8, int4, floats, bandwidth1, bandwidth2;
};

constexpr std::size_t kHugePage = 2u << 20;

class Buffer {
public:
  explicit Buffer(std::size_t size) : size_(size) {
    bytes_ = static_cast<std::uint8_t *>(std::aligned_alloc(
        kHugePage, (size + kHugePage - 1) / kHugePage * kHugePage));
    if (size > kHugePage) // as the runtime's memory
      (void)::madvise(bytes_, size, MADV_HUGEPAGE);
    std::memset(bytes_, 0, size);
  }
  ~Buffer() { std::free(bytes_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  std::uint8_t *data() { return bytes_; }
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes_); }
  std::size_t size() const { return size_; }

private:
  std::uint8_t *bytes_;
  std::size_t size_;
};

// Processor time of the calling thread: on a shared machine the wall clock
// measures the neighbours.
double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs slices of `items` on `threads` threads, `rounds` times, and gives the
// seconds that the slowest thread worked for a round; the best of a few
// attempts. run(thread, round, begin, end).
double timeRounds(unsigned threads, int rounds, int items,
                  const std::function<void(unsigned, int, int, int)> &run) {
  double best = 1e9;
  for (int attempt = 0; attempt < 40; ++attempt) {
    std::vector<double> worked(threads);
    auto work = [&](unsigned thread) {
      const int begin =
          static_cast<int>(static_cast<long>(items) * thread / threads);
      const int end =
          static_cast<int>(static_cast<long>(items) * (thread + 1) / threads);
      const double start = threadSeconds();
      for (int round = 0; round < rounds; ++round)
        run(thread, round, begin, end);
      worked[thread] = threadSeconds() - start;
    };
    std::vector<std::thread> helpers;
    for (unsigned t = 1; t < threads; ++t)
      helpers.emplace_back(work, t);
    work(0);
    for (std::thread &helper : helpers)
      helper.join();
    best = std::min(best,
                    *std::max_element(worked.begin(), worked.end()) / rounds);
  }
  return best;
}

double bandwidth(unsigned threads) {
  Buffer buffer(256u << 20);
  std::memset(buffer.data(), 1, buffer.size());
  const int pieces = 64;
  const std::size_t piece = buffer.size() / pieces;
  volatile unsigned long long sink = 0;
  const double seconds =
      timeRounds(threads, 1, pieces, [&](unsigned, int, int begin, int end) {
        for (int i = begin; i < end; ++i)
          sink = bench::readBuffer(buffer.data() + i * piece, piece);
      });
  return static_cast<double>(buffer.size()) / seconds;
}

void print(const std::string &name, unsigned threads, double seconds,
           double macs, double bytes, double macLimit, double byteLimit) {
  std::printf(
      "%-44s %u thr %9.1f us  %6.1f GMAC/s (%3.0f%%)  %6.2f GB/s (%3.0f%%)\n",
      name.c_str(), threads, seconds * 1e6, macs / seconds * 1e-9,
      100 * macs / seconds / (macLimit * threads), bytes / seconds * 1e-9,
      100 * bytes / seconds / byteLimit);
  std::fflush(stdout);
}

struct Shape {
  int k, n;
};

void benchLinear(const codegen::CpuLevel &level, const std::string &encoding,
                 int group, const Limits &limits, const char *filter) {
  codegen::KernelConfig config = {{"encoding", encoding}};
  if (group)
    config["group"] = group;
  auto variants = codegen::variantsFor("linear", config);
  std::vector<codegen::KernelRequest> requests;
  for (const codegen::KernelVariant &variant : *variants)
    requests.push_back({variant.name, variant.op, variant.constants});
  auto kernels = test::MappedKernels::compile(level, requests);
  if (!kernels) {
    std::printf("%s\n", kernels.status().message().c_str());
    std::exit(1);
  }
  const bool integer = group != 0;
  const double bits = encoding == "i4"    ? 4
                      : encoding == "i8"  ? 8
                      : encoding == "f32" ? 32
                                          : 16;
  for (const Shape shape : {Shape{576, 960}, Shape{576, 576}, Shape{576, 3072},
                            Shape{1536, 576}, Shape{576, 49152}})
    for (const int tokens : {1, 4, 16, 128, 512}) {
      if (shape.n == 49152 && tokens > 16)
        continue;
      std::size_t pick = 0;
      for (std::size_t i = 0; i < variants->size(); ++i)
        if (tokens >= static_cast<int>((*variants)[i].first))
          pick = i;
      const std::string name =
          (*variants)[pick].name + " " + std::to_string(shape.k) + "x" +
          std::to_string(shape.n) + " T=" + std::to_string(tokens);
      if (filter && name.find(filter) == std::string::npos)
        continue;
      const int paddedK = (shape.k + 31) / 32 * 32;
      const int tiles = (shape.n + 15) / 16;
      const int groups = integer ? (shape.k + group - 1) / group : 0;
      const auto codeBytes =
          static_cast<std::size_t>(tiles * 16.0 * paddedK * bits / 8);
      const std::size_t scaleBytes =
          static_cast<std::size_t>(tiles) * groups * 32;
      const int copies = std::max<int>(
          1, static_cast<int>((64u << 20) / (codeBytes + scaleBytes)));
      Buffer codes(codeBytes * copies), scales(scaleBytes * copies + 64);
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes.data()[i] =
            static_cast<std::uint8_t>(integer ? (i * 2654435761u) >> 11 : 0);
      for (std::size_t i = 0; i < scales.size() / 2; ++i)
        scales.as<std::uint16_t>()[i] = 0x1c00;
      const int codesEnd = paddedK * (encoding == "i8" ? 2 : 1);
      const int rowBytes = (codesEnd + 8 * std::max(groups, 1) + 63) / 64 * 64;
      Buffer rows(static_cast<std::size_t>(rowBytes) * tokens);
      Buffer input(4u * static_cast<std::size_t>(shape.k) * tokens);
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows.data()[i] = static_cast<std::uint8_t>(i * 40503u >> 7) & 0x3f;
      Buffer output(4u * static_cast<std::size_t>(shape.n) * tokens);
      const std::size_t scratchBytes = (*variants)[pick].scratchBytes + 64;
      Buffer scratch0(scratchBytes), scratch1(scratchBytes);
      abi::LinearParams params = {};
      params.input = input.as<float>();
      params.quantized = {rows.data(), rowBytes, codesEnd,
                          codesEnd + 4 * groups};
      params.output = output.as<float>();
      params.outputStride = shape.n;
      params.numTokens = tokens;
      params.k = shape.k;
      params.n = shape.n;
      const double macs = static_cast<double>(shape.k) * shape.n * tokens;
      const int rounds =
          std::clamp(static_cast<int>(2e7 / macs), 1, 3 * copies);
      for (const unsigned threads : {1u, 2u}) {
        const double seconds = timeRounds(
            threads, rounds, tiles,
            [&](unsigned thread, int round, int begin, int end) {
              abi::LinearParams mine = params;
              mine.weights.codes = codes.data() + codeBytes * (round % copies);
              mine.weights.scales = scales.as<std::uint16_t>() +
                                    scaleBytes / 2 * (round % copies);
              // A few slices, as an executor would cut.
              const int step = std::max(1, (end - begin + 3) / 4);
              for (int at = begin; at < end; at += step) {
                abi::Slice slice = {at, std::min(at + step, end),
                                    static_cast<int>(thread), 0,
                                    thread ? scratch1.data() : scratch0.data()};
                kernels->at(pick)(&mine, &slice);
              }
            });
        print(name, threads, seconds, macs,
              static_cast<double>(codeBytes + scaleBytes),
              encoding == "i4"   ? limits.int4
              : encoding == "i8" ? limits.int8
                                 : limits.floats,
              threads == 1 ? limits.bandwidth1 : limits.bandwidth2);
      }
    }
}

void benchAttention(const codegen::CpuLevel &level, const std::string &type,
                    int heads, int kvHeads, const Limits &limits,
                    const char *filter) {
  auto variants = codegen::variantsFor(
      "attention",
      {{"head_dim", 64}, {"kv", type}, {"group", 32}, {"bits", 16}});
  const codegen::KernelVariant &variant = variants->front();
  auto kernels = test::MappedKernels::compile(
      level, {{variant.name, variant.op, variant.constants}});
  for (const auto &[tokens, context] : {std::pair{1, 512},
                                        {1, 4096},
                                        {4, 4096},
                                        {16, 512},
                                        {512, 512},
                                        {512, 4096}}) {
    const std::string name = variant.name + " " + std::to_string(heads) + "/" +
                             std::to_string(kvHeads) +
                             " T=" + std::to_string(tokens) +
                             " context=" + std::to_string(context);
    if (filter && name.find(filter) == std::string::npos)
      continue;
    // One sequence a token for 16, else one sequence that ends at `context`.
    const int sequences = tokens == 16 ? 16 : 1;
    const int blocks = (context + 31) / 32;
    const int elementBytes = type == "f32" ? 4 : type == "f16" ? 2 : 1;
    const std::int64_t plane = kvHeads * abi::kvHeadBytes(64, elementBytes);
    // As in a model, where one layer's cache follows another's: of a long context
    // none is in the processor's cache when its turn comes.
    const std::size_t layerBytes =
        static_cast<std::size_t>(2 * plane) * blocks * sequences;
    const int layers = context > 512 ? 30 : 1;
    Buffer cache(layerBytes * layers);
    std::memset(cache.data(), 0, cache.size());
    std::vector<std::int32_t> table(blocks * sequences), of(tokens);
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<std::int32_t>(i);
    std::vector<abi::SequenceSpan> spans(sequences);
    for (int s = 0; s < sequences; ++s)
      spans[s] = sequences > 1
                     ? abi::SequenceSpan{s, 1, context - 1, s * blocks}
                     : abi::SequenceSpan{0, tokens, context - tokens, 0};
    for (int t = 0; t < tokens; ++t)
      of[t] = sequences > 1 ? t : 0;
    Buffer query(4u * tokens * heads * 64),
        rows(static_cast<std::size_t>(tokens) * 2048);
    for (std::size_t i = 0; i < query.size() / 4; ++i)
      query.as<float>()[i] = 0.01f * static_cast<float>(i % 97);
    abi::AttentionParams params = {};
    params.query = query.as<float>();
    params.cache = {cache.data(), 2 * plane, plane};
    params.quantized = {rows.data(), 2048, heads * 128, heads * 136};
    params.blockTable = table.data();
    params.sequences = spans.data();
    params.tokenSequence = of.data();
    params.numSequences = sequences;
    params.numTokens = tokens;
    params.heads = heads;
    params.kvHeads = kvHeads;
    params.headDim = 64;
    params.scale = 0.125f;
    double positions = 0;
    for (int t = 0; t < tokens; ++t)
      positions += sequences > 1 ? context : context - tokens + t + 1;
    const double macs = positions * heads * 64 * 2;
    const int rounds = std::clamp(static_cast<int>(3e8 / macs), 2, 2000);
    for (const unsigned threads : {1u, 2u}) {
      const double seconds =
          timeRounds(threads, rounds, tokens * heads,
                     [&](unsigned thread, int round, int begin, int end) {
                       abi::Slice slice = {begin, end, static_cast<int>(thread),
                                           0, nullptr};
                       abi::AttentionParams layer = params;
                       layer.cache.base += layerBytes * (round % layers);
                       kernels->at(0)(&layer, &slice);
                     });
      print(name, threads, seconds, macs, static_cast<double>(layerBytes),
            limits.floats,
            threads == 1 ? limits.bandwidth1 : limits.bandwidth2);
    }
  }
}

void benchRows(const codegen::CpuLevel &level, const Limits &limits,
               const char *filter) {
  auto request = [](const std::string &op,
                    const codegen::KernelConfig &config) {
    auto variants = codegen::variantsFor(op, config);
    const codegen::KernelVariant &variant = variants->front();
    return codegen::KernelRequest{variant.name, variant.op, variant.constants};
  };
  auto kernels = test::MappedKernels::compile(
      level, {request("rms_norm", {{"group", 32}, {"bits", 16}}),
              request("gated",
                      {{"activation", "silu"}, {"group", 32}, {"bits", 16}})});
  const int tokens = 512;
  Buffer input(4u * tokens * 3072), weight(4u * 3072), rows(4096u * tokens);
  for (std::size_t i = 0; i < input.size() / 4; ++i)
    input.as<float>()[i] =
        0.01f * static_cast<float>(static_cast<int>(i % 197) - 98);
  for (const bool norm : {true, false}) {
    const std::string name =
        norm ? "rms_norm_q16g32 576 T=512" : "gated_silu_q16g32 1536 T=512";
    if (filter && name.find(filter) == std::string::npos)
      continue;
    abi::RmsNormParams rms = {};
    rms.input = input.as<float>();
    rms.weight = weight.as<float>();
    rms.quantized = {rows.data(), 4096, 3072, 3584};
    rms.numTokens = tokens;
    rms.width = 576;
    rms.eps = 1e-5f;
    abi::GatedParams gate = {};
    gate.gateUp = input.as<float>();
    gate.quantized = rms.quantized;
    gate.numTokens = tokens;
    gate.width = 1536;
    for (const unsigned threads : {1u, 2u}) {
      const double seconds = timeRounds(
          threads, 50, tokens, [&](unsigned thread, int, int begin, int end) {
            abi::Slice slice = {begin, end, static_cast<int>(thread), 0,
                                nullptr};
            kernels->at(norm ? 0 : 1)(norm ? static_cast<void *>(&rms) : &gate,
                                      &slice);
          });
      const double elements = static_cast<double>(tokens) * (norm ? 576 : 1536);
      print(name, threads, seconds, elements, elements * 4 * (norm ? 1 : 2),
            limits.floats,
            threads == 1 ? limits.bandwidth1 : limits.bandwidth2);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  const char *filter = argc > 1 ? argv[1] : nullptr;
  const codegen::CpuLevel *level = test::levelNamed("avx512-vnni");
  if (!test::machineRuns(*level))
    level = test::levelNamed("x86-64-v3");
  const Limits limits = {bench::peakInt8(), bench::peakInt4(),
                         bench::peakFloat(), bandwidth(1), bandwidth(2)};
  std::printf("level %s; one core: int8 %.0f, int4 %.0f, float %.0f GMAC/s; "
              "memory %.1f GB/s, two "
              "threads %.1f GB/s\n",
              level->name.c_str(), limits.int8 * 1e-9, limits.int4 * 1e-9,
              limits.floats * 1e-9, limits.bandwidth1 * 1e-9,
              limits.bandwidth2 * 1e-9);
  benchLinear(*level, "i8", 32, limits, filter);
  benchLinear(*level, "i8", 64, limits, filter);
  benchLinear(*level, "i4", 32, limits, filter);
  benchLinear(*level, "i4", 128, limits, filter);
  benchLinear(*level, "f16", 0, limits, filter);
  for (const char *type : {"f16", "i8"})
    benchAttention(*level, type, 9, 3, limits, filter);
  benchRows(*level, limits, filter);
  return 0;
}
