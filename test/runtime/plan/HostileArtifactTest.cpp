// A file from anywhere gives an error, never a crash. Each mutation of the plan
// is one kind of lie, found by meaning; random damage is tried thousands of
// times, with the checksums put right so that it gets past them.
#include "runtime/plan/CudaAbi.h"
#include "test/runtime/plan/PlanLies.h"
#include "test/runtime/plan/TinyCudaArtifact.h"
#include "test/runtime/plan/TinyExpertsArtifact.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

// The tiny model in two segments, with an exit between them whose head is the
// second.
TinyArtifact withExit() {
  TinyArtifact tiny = TinyArtifact::make();
  fbs::TargetT &target = *tiny.plan.targets[0];
  tiny.plan.model->layers.push_back(
      std::make_unique<fbs::LayerInfoT>(*tiny.plan.model->layers[0]));
  auto late = std::make_unique<fbs::ProgramSegmentT>();
  auto &launches = target.segments[0]->launches;
  auto gather = std::find_if(launches.begin(), launches.end(),
                             [](auto &l) { return l->name == "gather"; });
  late->name = "late";
  late->input = target.segments[0]->output = 0;
  late->launches.assign(std::make_move_iterator(gather),
                        std::make_move_iterator(launches.end()));
  launches.erase(gather, launches.end());
  auto exit = std::make_unique<fbs::ExitT>();
  exit->name = "exit";
  exit->layers = exit->after = 1;
  exit->confidence = {0.25f, 0.75f};
  exit->head = std::make_unique<fbs::ProgramSegmentT>(*late);
  exit->fill = std::make_unique<fbs::ProgramSegmentT>();
  exit->fill->name = "fill";
  for (const auto &launch : launches)
    if (launch->name == "layer.0.rope_cache_write")
      exit->fill->launches.push_back(std::make_unique<fbs::LaunchT>(*launch));
  target.segments.push_back(std::move(late));
  target.exits.push_back(std::move(exit));
  return tiny;
}

} // namespace

// Every lie about the container has its own sentence.
TEST(HostileArtifactTest, container) {
  TempFolder folder;
  const auto whole = TinyArtifact::make().bytes();
  auto expect = [&](const char *message, auto change) {
    auto bytes = whole;
    change(bytes);
    Status status = openBytes(folder, bytes);
    EXPECT_FALSE(status.isOk()) << message;
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  auto entry = [](std::vector<std::uint8_t> &bytes, int index) {
    return reinterpret_cast<container::SegmentEntry *>(bytes.data() + 64) +
           index;
  };
  expect("shorter than an artifact's header", [](auto &b) { b.resize(10); });
  expect("shorter than an artifact's header", [](auto &b) { b.clear(); });
  expect("not an ingot", [](auto &b) { b[0] = 'X'; });
  expect("container version", [](auto &b) { b[8] = 9; });
  expect("truncated", [](auto &b) { b.resize(b.size() - 1); });
  expect("truncated", [](auto &b) { b.push_back(0); });
  expect("segments, expected", [](auto &b) { b[12] = 200; });
  expect("segments, expected", [](auto &b) { b[12] = 0; });
  expect("reserved bytes", [](auto &b) { b[40] = 1; });
  expect("segment table: checksum", [](auto &b) { b[70] ^= 1; });
  expect("leave the file", [&](auto &b) {
    entry(b, 1)->offset = ~std::uint64_t(0) - 4095;
    fixChecksums(b);
  });
  expect("leave the file", [&](auto &b) {
    entry(b, 1)->bytes = ~std::uint64_t(0);
    fixChecksums(b);
  });
  expect("not aligned", [&](auto &b) {
    entry(b, 2)->offset += 64;
    entry(b, 2)->bytes -= 64;
    fixChecksums(b);
  });
  expect("overlaps", [&](auto &b) {
    entry(b, 2)->offset = entry(b, 1)->offset;
    fixChecksums(b);
  });
  expect("second segment of this kind", [&](auto &b) {
    entry(b, 2)->kind = container::SegmentKind::Code;
    fixChecksums(b);
  });
  expect("is unknown to this runtime", [&](auto &b) {
    entry(b, 2)->kind = container::SegmentKind(77);
    fixChecksums(b);
  });
  expect("has no weights segment", [&](auto &b) {
    entry(b, 2)->kind = container::SegmentKind::Ledger;
    fixChecksums(b);
  });
  expect("not a well-formed FlatBuffer", [&](auto &b) {
    std::memset(b.data() + entry(b, 0)->offset, 0xff, 64);
    fixChecksums(b);
  });
}

// Every lie of a well-formed plan is found by what it means.
TEST(HostileArtifactTest, meaning) {
  auto target = [](TinyArtifact &t) -> fbs::TargetT & {
    return *t.plan.targets[0];
  };
  const Lie lies[] = {
      {"model: vocab is 0", [](auto &t) { t.plan.model->vocab = 0; }},
      {"model: eos 40", [](auto &t) { t.plan.model->eos = {40}; }},
      {"model: eos -1", [](auto &t) { t.plan.model->eos = {-1}; }},
      {"model: bos 4000", [](auto &t) { t.plan.model->bos = 4000; }},
      {"weights_bytes", [](auto &t) { t.plan.weights_bytes = 1u << 30; }},
      {"rows is 0", [](auto &t) { t.plan.weights[0]->rows = 0; }},
      {"its codes alone take",
       [](auto &t) { t.plan.weights[0]->rows = 1u << 27; }},
      {"leave the weights",
       [](auto &t) { t.plan.weights[0]->offset = ~std::uint64_t(63); }},
      {"leave the weights",
       [](auto &t) { t.plan.weights[0]->size = ~std::uint64_t(0); }},
      {"not aligned", [](auto &t) { t.plan.weights[1]->offset += 4; }},
      {"layout \"r17\"", [](auto &t) { t.plan.weights[0]->layout = "r17"; }},
      {"encoding group",
       [](auto &t) { t.plan.weights[0]->encoding->group = 7; }},
      {"scales_offset given",
       [](auto &t) { t.plan.weights[0]->scales_offset = 64; }},
      {"scales_offset at 0",
       [](auto &t) {
         t.plan.weights[0]->encoding->code = fbs::WeightCode::i8;
         t.plan.weights[0]->encoding->group = 32;
       }},
      {"block_tokens 16", [](auto &t) { t.plan.states[0]->block_tokens = 16; }},
      {"value_offset", [](auto &t) { t.plan.states[0]->value_offset = 64; }},
      {"layer_block_bytes",
       [](auto &t) { t.plan.states[0]->layer_block_bytes -= 64; }},
      {"dtype, expected f32, f16 or i8",
       [](auto &t) { t.plan.states[0]->dtype = fbs::DType::i16; }},
      {"do not hold keys and values", // codes without room for their scales
       [](auto &t) {
         fbs::StateGroupT &state = *t.plan.states[0];
         state.dtype = fbs::DType::i8;
         state.value_offset =
             state.kv_heads * state.head_dim * ingot::abi::kBlockTokens;
         state.layer_block_bytes = 2 * state.value_offset;
       }},
      {"do not hold keys and values", // nor the last head's
       [](auto &t) {
         fbs::StateGroupT &state = *t.plan.states[0];
         state.dtype = fbs::DType::i8;
         state.value_offset =
             state.kv_heads * ingot::abi::kvHeadBytes(state.head_dim, 1);
         state.layer_block_bytes = 2 * state.value_offset - 64;
       }},
      {"head_dim is 0", [](auto &t) { t.plan.states[0]->head_dim = 0; }},
      {"map_offset",
       [&](auto &t) { target(t).levels[0]->map_size = 1u << 20; }},
      {"code_offset", [&](auto &t) { target(t).levels[0]->code_offset = 64; }},
      {"eh_frame",
       [&](auto &t) {
         target(t).levels[0]->eh_frame_offset = 4090;
         target(t).levels[0]->eh_frame_size = 100;
       }},
      {"outside the code of level",
       [&](auto &t) { target(t).kernels[3]->symbols[0]->offset = 1u << 30; }},
      {"name, op or symbols is missing",
       [&](auto &t) { target(t).kernels[3]->symbols.clear(); }},
      {"symbol of level 5",
       [&](auto &t) { target(t).kernels[3]->symbols[0]->level = 5; }},
      {"scratch_bytes",
       [&](auto &t) { target(t).kernels[0]->scratch_bytes = ~0u; }},
      {"leave the arena",
       [&](auto &t) { target(t).buffers[0]->offset = ~std::uint64_t(3); }},
      {"leave the arena", [&](auto &t) { target(t).token_arena_bytes = 64; }},
      {"do not hold", [&](auto &t) { target(t).buffers[0]->row_bytes = 64; }},
      {"does not hold",
       [&](auto &t) { target(t).buffers[8]->sums_offset = 8; }},
      {"logits: buffer 99", [&](auto &t) { target(t).logits = 99; }},
      {"logits: buffer \"hidden\"", [&](auto &t) { target(t).logits = 0; }},
      {"table: weight 99",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->table = 99; }},
      {"output: buffer -1",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->output = -1; }},
      {"the vocabulary has",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->table = 4; }},
      {"rotary_dim is odd",
       [](auto &t) {
         launch(t, "rope_table").params.AsRopeTable()->rotary_dim = 15;
       }},
      {"rows of another domain",
       [](auto &t) {
         launch(t, "norm").params.AsRmsNorm()->domain = fbs::Domain::token;
       }},
      {"neither output nor quantized",
       [](auto &t) { launch(t, "norm").params.AsRmsNorm()->output = -1; }},
      {"expected [48, 32]",
       [](auto &t) { launch(t, "head").params.AsLinear()->n = 48; }},
      {"in groups of 32 with 16 bits",
       [](auto &t) {
         // Codes of 8 bits for an int8 weight.
         fbs::WeightT &weight = *t.plan.weights[3];
         weight.encoding->code = fbs::WeightCode::i8;
         weight.encoding->group = 32;
         weight.scales_offset = weight.size / 4;
         launch(t, "layer.0.qkv").params.AsLinear()->input = 8;
       }},
      {"does not hold",
       [&](auto &t) { target(t).buffers[8]->dtype = fbs::DType::i16; }},
      {"dtype, expected",
       [&](auto &t) { target(t).buffers[8]->dtype = fbs::DType::u4; }},
      {"columns, expected float32 with at least",
       [](auto &t) { launch(t, "head").params.AsLinear()->output_column = 1; }},
      {"columns, expected float32 with at least",
       [](auto &t) {
         launch(t, "head").params.AsLinear()->output_column = ~0u;
       }},
      {"float32 [96]",
       [](auto &t) { launch(t, "layer.0.gate").params.AsGated()->input = 0; }},
      {"state: group 1",
       [](auto &t) {
         launch(t, "layer.0.attention").params.AsAttention()->state = 1;
       }},
      {"state_layer 1 of 1",
       [](auto &t) {
         launch(t, "layer.0.attention").params.AsAttention()->state_layer = 1;
       }},
      {"not a multiple",
       [](auto &t) {
         launch(t, "layer.0.attention").params.AsAttention()->heads = 3;
       }},
      {"3 slopes of",
       [](auto &t) {
         launch(t, "layer.0.attention").params.AsAttention()->slopes = {1, 1,
                                                                        1};
       }},
      {"a slope is not finite",
       [](auto &t) {
         auto &attention = *launch(t, "layer.0.attention").params.AsAttention();
         attention.slopes.assign(attention.heads, NAN);
       }},
      {"rounded slopes, and none given",
       [](auto &t) {
         launch(t, "layer.0.attention").params.AsAttention()->rounded_slopes =
             true;
       }},
      {"kernel is for \"attention\", the launch is \"alibi_attention\"",
       [](auto &t) {
         auto &attention = *launch(t, "layer.0.attention").params.AsAttention();
         attention.slopes.assign(attention.heads, 0.5f);
       }},
      {"straddle heads",
       [](auto &t) {
         auto &s = *t.plan.targets[0]->buffers[8];
         s.columns = 64;
         s.scales_offset = 64;
         s.sums_offset = 72;
         s.row_bytes = 128;
         t.plan.targets[0]->token_arena_bytes += 64;
         launch(t, "layer.0.quantize").params.AsQuantize()->input = 4;
         launch(t, "layer.0.quantize").params.AsQuantize()->width = 64;
         launch(t, "layer.0.attention").params.AsAttention()->quantized = 8;
       }},
      {"has no variant", [](auto &t) { launch(t, "head").variants.clear(); }},
      {"expected to begin at 1",
       [](auto &t) { launch(t, "head").variants[0]->first = 2; }},
      {"expected to begin at 3",
       [](auto &t) { launch(t, "head").variants[1]->first = 5; }},
      {"expected to begin at 3",
       [](auto &t) { launch(t, "head").variants[1]->first = 1; }},
      {"the last must have no bound",
       [](auto &t) { launch(t, "head").variants[1]->last = 9; }},
      {"kernel 99",
       [](auto &t) { launch(t, "head").variants[0]->kernel = 99; }},
      {"the launch is \"linear\"",
       [](auto &t) { launch(t, "head").variants[0]->kernel = kEmbed; }},
      {"operation 0", [](auto &t) { launch(t, "head").params.Reset(); }},
      {"cut at buffer 99", [&](auto &t) { target(t).segments[0]->input = 99; }},
      {"levels, kernels, buffers", [&](auto &t) { target(t).levels.clear(); }},
  };
  TempFolder folder;
  expectRefused([] { return TinyArtifact::make(); }, lies);
}

// And every lie about an exit.
TEST(HostileArtifactTest, exits) {
  auto exit = [](TinyArtifact &t) -> fbs::ExitT & {
    return *t.plan.targets[0]->exits[0];
  };
  auto target = [](TinyArtifact &t) -> fbs::TargetT & {
    return *t.plan.targets[0];
  };
  const Lie lies[] = {
      {"name or head is missing", [&](auto &t) { exit(t).head.reset(); }},
      {"after segment 0 of 2", [&](auto &t) { exit(t).after = 0; }},
      {"after segment 2 of 2", [&](auto &t) { exit(t).after = 2; }},
      {"after segment 4294967295", [&](auto &t) { exit(t).after = ~0u; }},
      {"after 0 layers of 2", [&](auto &t) { exit(t).layers = 0; }},
      {"after 2 layers of 2", [&](auto &t) { exit(t).layers = 2; }},
      {"each later than the one before",
       [&](auto &t) {
         target(t).exits.push_back(std::make_unique<fbs::ExitT>(exit(t)));
       }},
      {"do not meet", [&](auto &t) { target(t).segments[1]->input = 1; }},
      {"do not meet", [&](auto &t) { target(t).segments[0]->output = -1; }},
      {"no float32 row of a token",
       [&](auto &t) {
         target(t).segments[0]->output = target(t).segments[1]->input = 8;
       }},
      {"no float32 row of a token",
       [&](auto &t) {
         target(t).segments[0]->output = target(t).segments[1]->input =
             target(t).logits;
       }},
      {"1 confidences", [&](auto &t) { exit(t).confidence = {0.5f}; }},
      {"not ascending", [&](auto &t) { exit(t).confidence = {0.5f, 0.2f}; }},
      {"not ascending", [&](auto &t) { exit(t).confidence = {0.5f, 1.5f}; }},
      {"not ascending",
       [&](auto &t) { exit(t).confidence = {0.5f, std::nanf("")}; }},
      {"does not write the logits",
       [&](auto &t) { exit(t).head->launches.pop_back(); }},
      {"launch \"head\"",
       [&](auto &t) {
         exit(t).head->launches.back()->params.AsLinear()->weight = 99;
       }},
      {"cut at buffer 99", [&](auto &t) { exit(t).fill->input = 99; }},
  };
  TempFolder folder;
  TinyArtifact good = withExit();
  Status status = openBytes(folder, good.bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  expectRefused(withExit, lies);
}

// And about CUDA devices.
TEST(HostileArtifactTest, cuda) {
  auto target = [](TinyArtifact &t) -> fbs::TargetT & {
    return *t.plan.targets[0];
  };
  auto find = [&](TinyArtifact &t, fbs::Params type) -> fbs::LaunchT & {
    for (auto &launch : target(t).segments[0]->launches)
      if (launch->params.type == type)
        return *launch;
    return *target(t).segments[0]->launches[0];
  };
  auto attention = [&](TinyArtifact &t) {
    return find(t, fbs::Params::Attention).params.AsAttention();
  };
  auto halves = [&](TinyArtifact &t) -> fbs::BufferT & {
    return *target(t).buffers.back();
  };
  // Leaves the steps of `first` rows and more of a linear to a library.
  auto library = [&](TinyArtifact &t, fbs::LaunchT &launch,
                     std::uint32_t first) {
    auto kernel = std::make_unique<fbs::KernelT>(*target(t).kernels[0]);
    kernel->name = kernel->op = "library_linear";
    target(t).kernels.push_back(std::move(kernel));
    launch.variants[0]->last = first - 1;
    launch.variants[1]->first = first;
    launch.variants[1]->kernel = std::uint32_t(target(t).kernels.size()) - 1;
  };
  auto finish = [&](TinyArtifact &t) {
    auto kernel = std::make_unique<fbs::KernelT>(*target(t).kernels[0]);
    kernel->name = kernel->op = "library_finish";
    target(t).kernels.push_back(std::move(kernel));
  };
  const Lie lies[] = {
      {"is neither sm_N nor compute_N",
       [&](auto &t) { target(t).levels[0]->name = "x86-64-v3"; }},
      {"code_offset", [&](auto &t) { target(t).levels[0]->code_size = ~0ull; }},
      {"outside the code of level",
       [&](auto &t) { target(t).kernels[1]->symbols[0]->offset = 4096; }},
      {"outside the code of level",
       [&](auto &t) { target(t).kernels[1]->symbols[0]->size = ~0ull; }},
      {"outside the code of level",
       [&](auto &t) { target(t).kernels[1]->symbols[0]->size = 0; }},
      {"is not aligned to 64",
       [&](auto &t) { target(t).kernels[1]->symbols[0]->offset = 8; }},
      {"whole warps up to 1024",
       [&](auto &t) { target(t).kernels[1]->block_threads = 0; }},
      {"whole warps up to 1024",
       [&](auto &t) { target(t).kernels[1]->block_threads = 2048; }},
      {"at most 227 KiB",
       [&](auto &t) { target(t).kernels[1]->shared_bytes = ~0u; }},
      {"a tile of 0 x 16",
       [&](auto &t) { target(t).kernels[1]->tile_rows = 0; }},
      {"a tile of 16 x 4096",
       [&](auto &t) { target(t).kernels[1]->tile_tokens = 4096; }},
      {"source hash \"\"",
       [&](auto &t) { target(t).kernels[1]->source_hash.clear(); }},
      {"16 hexadecimal digits",
       [&](auto &t) {
         target(t).kernels[1]->source_hash = "0123456789abcdeg";
       }},
      {"16 hexadecimal digits",
       [&](auto &t) { target(t).kernels[1]->source_hash += "0"; }},
      {"two symbols of level 0",
       [&](auto &t) { target(t).kernels[1]->symbols[1]->level = 0; }},
      {"symbols for 1 of 2 levels",
       [&](auto &t) { target(t).kernels[1]->symbols.pop_back(); }},
      {"symbol of level 7",
       [&](auto &t) { target(t).kernels[1]->symbols[1]->level = 7; }},
      {"no kernel is for \"library_finish\"",
       [&](auto &t) { library(t, find(t, fbs::Params::Linear), 65); }},
      {"variant from 64 rows on is left to a library",
       [&](auto &t) {
         finish(t);
         library(t, find(t, fbs::Params::Linear), 64);
       }},
      {"rows of tokens with f16 or bf16 weights only",
       [&](auto &t) {
         finish(t);
         for (auto &launch : target(t).segments[0]->launches)
           if (launch->name == "head")
             library(t, *launch, 65);
       }},
      {"kernel is for \"library_linear\", the launch is \"gated\"",
       [&](auto &t) {
         finish(t);
         library(t, find(t, fbs::Params::Linear), 65);
         find(t, fbs::Params::Gated).variants[0]->kernel =
             std::uint32_t(target(t).kernels.size()) - 1;
       }},
      {"holds no f32",
       [](auto &t) {
         t.plan.weights[0]->encoding->code = fbs::WeightCode::f32;
       }},
      {"expected \"mma16\"",
       [](auto &t) { t.plan.weights[0]->layout = "r16"; }},
      {"dtype, expected f32 or f16",
       [&](auto &t) { halves(t).dtype = fbs::DType::i8; }},
      {"half rows of", [&](auto &t) { halves(t).row_bytes -= 64; }},
      {"half rows of", [&](auto &t) { halves(t).scales_offset = 0; }},
      {"half rows of", [&](auto &t) { halves(t).columns = 1u << 27; }},
      {"half rows of", [&](auto &t) { halves(t).sums_offset = 64; }},
      {"reads half rows of two parts, input: buffer \"halves",
       [&](auto &t) {
         for (auto &kernel : target(t).kernels)
           if (kernel->op == "linear")
             kernel->name = "linear_f16x2_t8";
       }},
      {"leave the arena", [&](auto &t) { halves(t).offset += 64; }},
      {"is not half rows of",
       [&](auto &t) {
         find(t, fbs::Params::Linear).params.AsLinear()->input = 0;
       }},
      {"split_kernel: kernel -1",
       [&](auto &t) { attention(t)->split_kernel = -1; }},
      {"merge_kernel: kernel 99",
       [&](auto &t) { attention(t)->merge_kernel = 99; }},
      {"split_kernel: kernel is for \"attention_merge\"",
       [&](auto &t) {
         std::swap(attention(t)->split_kernel, attention(t)->merge_kernel);
       }},
      {"an output in float32",
       [&](auto &t) {
         for (auto &buffer : target(t).buffers)
           if (buffer->dtype == fbs::DType::f16 && buffer->columns == 64)
             attention(t)->quantized = int(&buffer - &target(t).buffers[0]);
         attention(t)->output = -1;
       }},
      {"name or head is missing",
       [&](auto &t) {
         target(t).exits.push_back(std::make_unique<fbs::ExitT>());
       }},
      {"has no kernels for CUDA",
       [&](auto &t) { find(t, fbs::Params::Embed).params.Set(fbs::PoolT()); }},
  };
  TempFolder folder;
  TinyArtifact good = tinyCudaArtifact();
  Status status = openBytes(folder, good.bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  finish(good);
  library(good, find(good, fbs::Params::Linear), 65);
  status = openBytes(folder, good.bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  expectRefused(tinyCudaArtifact, lies);
}

// The tiny model as an encoder: it looks both ways and pools where it gathered.
TinyArtifact asEncoder() {
  TinyArtifact tiny = TinyArtifact::make();
  fbs::TargetT &target = *tiny.plan.targets[0];
  tiny.plan.model->embedding = std::make_unique<fbs::EmbeddingInfoT>();
  tiny.plan.model->embedding->normalized = true;
  launch(tiny, "layer.0.attention").params.AsAttention()->bidirectional = true;
  auto &launches = target.segments[0]->launches;
  while (launches.back()->name != "gather")
    launches.pop_back();
  fbs::PoolT pool;
  pool.input = launches.back()->params.AsGatherRows()->input;
  pool.output = launches.back()->params.AsGatherRows()->output;
  pool.width = launches.back()->params.AsGatherRows()->width;
  pool.normalize = true;
  launches.back()->name = "pool";
  target.logits = pool.output;
  target.kernels[launches.back()->variants[0]->kernel]->op = "pool";
  launches.back()->params.Set(std::move(pool));
  return tiny;
}

// And about encoders, or as if there were one.
TEST(HostileArtifactTest, encoders) {
  auto target = [](TinyArtifact &t) -> fbs::TargetT & {
    return *t.plan.targets[0];
  };
  auto pool = [](TinyArtifact &t) -> fbs::PoolT & {
    return *launch(t, "pool").params.AsPool();
  };
  auto attention = [](TinyArtifact &t) -> fbs::AttentionT & {
    return *launch(t, "layer.0.attention").params.AsAttention();
  };
  const Lie lies[] = {
      {"looks back alone in an encoder",
       [&](auto &t) { attention(t).bidirectional = false; }},
      {"looks both ways in a model that generates",
       [](auto &t) {
         t = TinyArtifact::make();
         launch(t, "layer.0.attention").params.AsAttention()->bidirectional =
             true;
       }},
      {"looks both ways, and has a window",
       [&](auto &t) { attention(t).window = 8; }},
      {"looks both ways, and has a window",
       [&](auto &t) { attention(t).window = t.plan.states[0]->window = 8; }},
      {"pooling is unknown",
       [](auto &t) { t.plan.model->embedding->pooling = fbs::PoolKind(3); }},
      {"pools otherwise than the model says",
       [&](auto &t) { pool(t).kind = fbs::PoolKind::cls; }},
      {"pools otherwise than the model says",
       [&](auto &t) { pool(t).kind = fbs::PoolKind(200); }},
      {"pools otherwise than the model says",
       [&](auto &t) { pool(t).normalize = false; }},
      {"pools in a model that generates",
       [&](auto &t) {
         t.plan.model->embedding.reset();
         attention(t).bidirectional = false;
         t.plan.model->vocab = t.plan.model->hidden;
         t.plan.weights[0]->rows = t.plan.model->vocab;
       }},
      {"ends with one launch that pools into its vectors; found 0",
       [&](auto &t) { target(t).segments[0]->launches.pop_back(); }},
      {"ends with one launch that pools into its vectors; found 2",
       [&](auto &t) {
         target(t).segments[0]->launches.push_back(
             std::make_unique<fbs::LaunchT>(launch(t, "pool")));
       }},
      {"ends with one launch that pools into its vectors; found 1",
       [&](auto &t) {
         auto &launches = target(t).segments[0]->launches;
         std::swap(launches.back(), launches[launches.size() - 2]);
       }},
      {"ends with one launch that pools into its vectors; found 1",
       [&](auto &t) { ++target(t).logits; }},
      {"is not a float32 vector of 32",
       [&](auto &t) { target(t).logits += 2; }},
      {"is not a float32 vector of 32", [&](auto &t) { target(t).logits = 0; }},
      {"is not a float32 vector of 16",
       [](auto &t) { t.plan.model->hidden = 16; }},
      {"one segment and no exits",
       [&](auto &t) {
         target(t).segments.push_back(
             std::make_unique<fbs::ProgramSegmentT>(*target(t).segments[0]));
       }},
      {"one segment and no exits",
       [&](auto &t) {
         target(t).exits.push_back(std::make_unique<fbs::ExitT>());
       }},
      {"width is 0", [&](auto &t) { pool(t).width = 0; }},
      {"expected float32 [64]", [&](auto &t) { pool(t).width = 64; }},
      {"rows of another domain",
       [&](auto &t) { pool(t).input = target(t).logits; }},
      {"bias: weight 99",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->bias = 99; }},
      {"bias: weight \"layer.0.qkv\" has layout \"r16\"",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->bias = 3; }},
      {"bias: weight \"inv_freq\" has 8 elements, expected 32",
       [](auto &t) { launch(t, "embed").params.AsEmbed()->bias = 1; }},
  };
  TempFolder folder;
  Status status = openBytes(folder, asEncoder().bytes());
  EXPECT_TRUE(status.isOk()) << status.message();
  expectRefused(asEncoder, lies);
}

// Thousands of random changes to header, table and plan, past the checksums.
TEST(HostileArtifactTest, randomDamageNeverCrashes) {
  TempFolder folder;
  const auto whole = withExperts().bytes();
  const auto planBytes = withExperts().planBytes();
  std::uint64_t planOffset = 0;
  std::memcpy(&planOffset, whole.data() + 64 + 8, 8);
  std::mt19937 random(11);
  int refused = 0;
  constexpr int kRounds = 4000;
  const std::uint8_t extremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (int round = 0; round < kRounds; ++round) {
    auto bytes = whole;
    int changes = 1 + int(random() % 4);
    for (int c = 0; c < changes; ++c) {
      std::size_t at = random() % 8 == 0
                           ? random() % 256
                           : planOffset + random() % planBytes.size();
      bytes[at] = random() % 2 ? std::uint8_t(random())
                               : extremes[random() % std::size(extremes)];
    }
    fixChecksums(bytes);
    refused += !openBytes(folder, bytes).isOk();
  }
  // Some bytes are padding or mean nothing; most do.
  EXPECT_GT(refused, kRounds / 4);
  // Cut anywhere.
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    auto bytes = whole;
    bytes.resize(size);
    EXPECT_FALSE(openBytes(folder, bytes).isOk());
  }
}
