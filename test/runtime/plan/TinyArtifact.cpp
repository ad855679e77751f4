#include "test/runtime/plan/TinyArtifact.h"

#include "runtime/plan/KernelAbi.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

namespace ingot::test {
namespace {

std::uint64_t roundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Maker {
public:
  explicit Maker(const TinyShape &shape) : s(shape), random_(7) {}

  TinyArtifact make() {
    auto &plan = out_.plan;
    plan.abi_version = abi::kKernelAbiVersion;
    plan.model = std::make_unique<fbs::ModelInfoT>();
    auto &model = *plan.model;
    model.family = "tiny";
    model.name = "tiny";
    model.architecture = "TinyForCausalLM";
    model.vocab = s.vocab;
    model.hidden = s.hidden;
    model.context = s.context;
    model.eos = {1};
    auto layer = std::make_unique<fbs::LayerInfoT>();
    layer->heads = s.heads;
    layer->kv_heads = s.kvHeads;
    layer->head_dim = s.headDim;
    layer->rotary_dim = s.rotaryDim;
    layer->rope_kind = "plain";
    layer->rope_theta = 10000;
    layer->ffn = s.ffn;
    layer->activation = "silu";
    layer->encodings = {"qkv=f32"};
    model.layers.push_back(std::move(layer));

    auto state = std::make_unique<fbs::StateGroupT>();
    state->name = "kv0";
    state->layers = 1;
    state->kv_heads = s.kvHeads;
    state->head_dim = s.headDim;
    state->dtype = fbs::DType::f32;
    state->block_tokens = abi::kBlockTokens;
    state->value_offset =
        std::uint64_t(s.kvHeads) * s.headDim * abi::kBlockTokens * 4;
    state->layer_block_bytes = state->value_offset * 2;
    plan.states.push_back(std::move(state));

    std::uint32_t qkv = (s.heads + 2 * s.kvHeads) * s.headDim;
    std::uint32_t query = s.heads * s.headDim;
    int embed = matrix("embed", s.vocab, s.hidden);
    int invFreq = vector("inv_freq", s.rotaryDim / 2, 0.1f, 0.5f);
    int norm1 = vector("layer.0.attn_norm", s.hidden, 0.5f, 1.5f);
    int qkvWeight = matrix("layer.0.qkv", qkv, s.hidden);
    int outWeight = matrix("layer.0.o", s.hidden, query);
    int norm2 = vector("layer.0.ffn_norm", s.hidden, 0.5f, 1.5f);
    int gateUp = matrix("layer.0.gate_up", 2 * s.ffn, s.hidden);
    int down = matrix("layer.0.down", s.hidden, s.ffn);
    int norm3 = vector("norm", s.hidden, 0.5f, 1.5f);

    auto target = std::make_unique<fbs::TargetT>();
    target_ = target.get();
    target->name = "cpu";
    target->weight_layout = "r16";
    addCode();
    int hidden = buffer("hidden", s.hidden);
    int rope = buffer("rope", s.rotaryDim);
    int normed = buffer("normed", s.hidden);
    int qkvOut = buffer("qkv", qkv);
    int queryOut = buffer("query", query);
    int attended = buffer("attended", query);
    int gateUpOut = buffer("gate_up", 2 * s.ffn);
    int gated = buffer("gated", s.ffn);
    int codes = quantizedBuffer("codes", s.hidden, 32);
    int rows = buffer("rows", s.hidden, fbs::Domain::logit_row);
    int rowsNormed = buffer("rows_normed", s.hidden, fbs::Domain::logit_row);
    int logits = buffer("logits", s.vocab, fbs::Domain::logit_row);
    target->logits = logits;

    segment_ = std::make_unique<fbs::ProgramSegmentT>();
    segment_->name = "main";
    {
      fbs::EmbedT op;
      op.table = embed;
      op.output = hidden;
      launch("embed", kEmbed, op);
    }
    {
      fbs::RopeTableT op;
      op.inv_freq = invFreq;
      op.output = rope;
      op.rotary_dim = s.rotaryDim;
      launch("rope_table", kRopeTable, op);
    }
    norm("layer.0.attn_norm", hidden, norm1, normed);
    {
      fbs::QuantizeT op;
      op.input = normed;
      op.output = codes;
      op.width = s.hidden;
      launch("layer.0.quantize", kQuantize, op);
    }
    linear("layer.0.qkv", normed, qkvWeight, -1, qkvOut, s.hidden, qkv);
    {
      fbs::RopeCacheWriteT op;
      op.input = qkvOut;
      op.table = rope;
      op.query = queryOut;
      op.state = 0;
      op.heads = s.heads;
      op.kv_heads = s.kvHeads;
      op.head_dim = s.headDim;
      op.rotary_dim = s.rotaryDim;
      launch("layer.0.rope_cache_write", kRopeCacheWrite, op);
    }
    {
      fbs::AttentionT op;
      op.query = queryOut;
      op.state = 0;
      op.output = attended;
      op.heads = s.heads;
      op.kv_heads = s.kvHeads;
      op.head_dim = s.headDim;
      op.scale = 1.0f / std::sqrt(float(s.headDim));
      launch("layer.0.attention", kAttention, op);
    }
    linear("layer.0.o", attended, outWeight, hidden, hidden, query, s.hidden);
    norm("layer.0.ffn_norm", hidden, norm2, normed);
    linear("layer.0.gate_up", normed, gateUp, -1, gateUpOut, s.hidden,
           2 * s.ffn);
    {
      fbs::GatedT op;
      op.input = gateUpOut;
      op.output = gated;
      op.width = s.ffn;
      op.activation = "silu";
      launch("layer.0.gate", kGated, op);
    }
    linear("layer.0.down", gated, down, hidden, hidden, s.ffn, s.hidden);
    {
      fbs::GatherRowsT op;
      op.input = hidden;
      op.output = rows;
      op.width = s.hidden;
      launch("gather", kGatherRows, op);
    }
    norm("norm", rows, norm3, rowsNormed, fbs::Domain::logit_row);
    linear("head", rowsNormed, embed, -1, logits, s.hidden, s.vocab,
           fbs::Domain::logit_row);
    target->segments.push_back(std::move(segment_));
    target->token_arena_bytes = arena_[0];
    target->logit_row_arena_bytes = arena_[1];
    plan.targets.push_back(std::move(target));
    plan.weights_bytes = out_.weights.size();
    return std::move(out_);
  }

private:
  int addWeight(const std::string &name, std::uint32_t rows,
                std::uint32_t columns, const char *layout,
                const std::vector<float> &values) {
    auto weight = std::make_unique<fbs::WeightT>();
    weight->name = name;
    weight->rows = rows;
    weight->columns = columns;
    weight->layout = layout;
    weight->encoding = std::make_unique<fbs::EncodingT>();
    weight->offset = out_.weights.size();
    weight->size = values.size() * 4;
    out_.weights.resize(roundUp(out_.weights.size() + weight->size, 64));
    std::memcpy(out_.weights.data() + weight->offset, values.data(),
                weight->size);
    out_.plan.weights.push_back(std::move(weight));
    return int(out_.plan.weights.size()) - 1;
  }

  int matrix(const std::string &name, std::uint32_t rows,
             std::uint32_t columns) {
    std::uint64_t tiles = (rows + 15) / 16, padded = roundUp(columns, 32);
    std::vector<float> values(tiles * 16 * padded, 0.0f);
    std::uniform_real_distribution<float> draw(-0.4f, 0.4f);
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t c = 0; c < columns; ++c)
        values[(r / 16) * padded * 16 + c * 16 + r % 16] = draw(random_);
    return addWeight(name, rows, columns, "r16", values);
  }

  int vector(const std::string &name, std::uint32_t size, float low,
             float high) {
    std::vector<float> values(size);
    std::uniform_real_distribution<float> draw(low, high);
    for (float &value : values)
      value = draw(random_);
    return addWeight(name, size, 1, "row", values);
  }

  int buffer(const std::string &name, std::uint32_t columns,
             fbs::Domain domain = fbs::Domain::token) {
    auto made = std::make_unique<fbs::BufferT>();
    made->name = name;
    made->domain = domain;
    made->dtype = fbs::DType::f32;
    made->columns = columns;
    made->row_bytes = std::uint64_t(columns) * 4;
    return place(std::move(made));
  }

  int quantizedBuffer(const std::string &name, std::uint32_t columns,
                      std::uint32_t group) {
    auto made = std::make_unique<fbs::BufferT>();
    made->name = name;
    made->dtype = fbs::DType::i8;
    made->columns = columns;
    made->group = group;
    std::uint64_t groups = (columns + group - 1) / group;
    made->scales_offset = std::uint32_t(roundUp(columns, 32));
    made->sums_offset = std::uint32_t(made->scales_offset + groups * 4);
    made->row_bytes = roundUp(made->sums_offset + groups * 4, 64);
    return place(std::move(made));
  }

  int place(std::unique_ptr<fbs::BufferT> made) {
    std::uint64_t &end = arena_[int(made->domain)];
    made->offset = end;
    end += made->row_bytes;
    target_->buffers.push_back(std::move(made));
    return int(target_->buffers.size()) - 1;
  }

  void addCode() {
    out_.code.assign(container::kPageBytes, 0xc3); // ret
    auto level = std::make_unique<fbs::LevelT>();
    level->name = "any";
    level->code_size = out_.code.size();
    level->map_size = out_.code.size();
    target_->levels.push_back(std::move(level));
    const char *ops[] = {
        "embed",  "rope_table", "rms_norm",         "quantize",  "linear",
        "linear", "gated",      "rope_cache_write", "attention", "gather_rows"};
    for (int k = 0; k < kNumTinyKernels; ++k) {
      auto kernel = std::make_unique<fbs::KernelT>();
      kernel->name = std::string(ops[k]) + "_" + std::to_string(k);
      kernel->op = ops[k];
      kernel->scratch_bytes = 100;
      auto symbol = std::make_unique<fbs::KernelSymbolT>();
      symbol->offset = std::uint64_t(k) * 16;
      symbol->size = 16;
      kernel->symbols.push_back(std::move(symbol));
      target_->kernels.push_back(std::move(kernel));
    }
  }

  template <typename OpT>
  void launch(const std::string &name, int kernel, OpT op) {
    auto made = std::make_unique<fbs::LaunchT>();
    made->name = name;
    made->params.Set(std::move(op));
    auto variant = [&](std::uint32_t first, std::uint32_t last, int index) {
      auto v = std::make_unique<fbs::VariantT>();
      v->first = first;
      v->last = last;
      v->kernel = std::uint32_t(index);
      made->variants.push_back(std::move(v));
    };
    if (kernel == kLinearOne) {
      variant(1, 2, kLinearOne);
      variant(3, 0, kLinearMany);
    } else {
      variant(1, 0, kernel);
    }
    segment_->launches.push_back(std::move(made));
  }

  void norm(const std::string &name, int input, int weight, int output,
            fbs::Domain domain = fbs::Domain::token) {
    fbs::RmsNormT op;
    op.input = input;
    op.weight = weight;
    op.output = output;
    op.width = s.hidden;
    op.eps = 1e-5f;
    op.domain = domain;
    launch(name, kRmsNorm, op);
  }

  void linear(const std::string &name, int input, int weight, int residual,
              int output, std::uint32_t k, std::uint32_t n,
              fbs::Domain domain = fbs::Domain::token) {
    fbs::LinearT op;
    op.input = input;
    op.weight = weight;
    op.residual = residual;
    op.output = output;
    op.k = k;
    op.n = n;
    op.domain = domain;
    launch(name, kLinearOne, op);
  }

  TinyShape s;
  std::mt19937 random_;
  TinyArtifact out_;
  fbs::TargetT *target_ = nullptr;
  std::unique_ptr<fbs::ProgramSegmentT> segment_;
  std::uint64_t arena_[2] = {0, 0};
};

} // namespace

TinyArtifact TinyArtifact::make(const TinyShape &shape) {
  return Maker(shape).make();
}

std::vector<std::uint8_t> TinyArtifact::planBytes() const {
  flatbuffers::FlatBufferBuilder builder;
  fbs::FinishPlanBuffer(builder, fbs::Plan::Pack(builder, &plan));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<std::uint8_t> TinyArtifact::bytes() const {
  return packContainer({{container::SegmentKind::Plan, planBytes()},
                        {container::SegmentKind::Code, code},
                        {container::SegmentKind::Weights, weights}});
}

std::vector<std::uint8_t>
packContainer(const std::vector<RawSegment> &segments) {
  std::vector<container::SegmentEntry> entries;
  std::uint64_t at = sizeof(container::ContainerHeader) +
                     segments.size() * sizeof(container::SegmentEntry);
  for (const RawSegment &segment : segments) {
    bool isPaged = segment.kind == container::SegmentKind::Code ||
                   segment.kind == container::SegmentKind::Weights;
    at = roundUp(at, isPaged ? 4096 : 64);
    container::SegmentEntry entry = {};
    entry.kind = segment.kind;
    entry.offset = at;
    entry.bytes = segment.bytes.size();
    at += segment.bytes.size();
    entries.push_back(entry);
  }
  std::vector<std::uint8_t> file(at, 0);
  container::ContainerHeader header = {};
  std::memcpy(header.magic, container::kMagic, sizeof header.magic);
  header.version = container::kVersion;
  header.numSegments = std::uint32_t(entries.size());
  header.fileBytes = at;
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, entries.data(),
              entries.size() * sizeof entries[0]);
  for (std::size_t i = 0; i < segments.size(); ++i)
    std::copy(segments[i].bytes.begin(), segments[i].bytes.end(),
              file.begin() + std::ptrdiff_t(entries[i].offset));
  fixChecksums(file);
  return file;
}

void fixChecksums(std::vector<std::uint8_t> &file) {
  container::ContainerHeader header;
  if (file.size() < sizeof header)
    return;
  std::memcpy(&header, file.data(), sizeof header);
  std::uint64_t tableBytes =
      std::uint64_t(header.numSegments) * sizeof(container::SegmentEntry);
  if (header.numSegments > container::kMaxSegments ||
      sizeof header + tableBytes > file.size())
    return;
  for (std::uint32_t i = 0; i < header.numSegments; ++i) {
    std::uint8_t *at =
        file.data() + sizeof header + i * sizeof(container::SegmentEntry);
    container::SegmentEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.offset <= file.size() &&
        entry.bytes <= file.size() - entry.offset)
      entry.checksum = XXH3_64bits(file.data() + entry.offset, entry.bytes);
    std::memcpy(at, &entry, sizeof entry);
  }
  header.tableChecksum = XXH3_64bits(file.data() + sizeof header, tableBytes);
  std::memcpy(file.data(), &header, sizeof header);
}

TempFolder::TempFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "ingot-test-XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string TempFolder::write(const std::string &name,
                              const std::vector<std::uint8_t> &bytes) const {
  std::string path = (root_ / name).string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             std::streamsize(bytes.size()));
  return path;
}

} // namespace ingot::test
