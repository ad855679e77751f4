// Writes what a ModelSpec says of the whole model into the module attribute.
#include "compiler/frontend/lm/LmModelInfo.h"

#include "mlir/IR/Builders.h"

#include <filesystem>

using namespace mlir;

namespace ingot {
namespace {

class InfoBuilder {
public:
  InfoBuilder(MLIRContext &context, const ModelSpec &spec,
              const LmBuildOptions &options)
      : builder_(&context), spec_(spec), options_(options) {}

  DictionaryAttr build() {
    NamedAttrList info;
    text(info, "family", spec_.family);
    text(info, "name", modelName());
    text(info, "architecture", spec_.architecture);
    integer(info, "vocab", spec_.vocabSize);
    integer(info, "hidden", spec_.hiddenSize);
    integer(info, "context",
            options_.context ? options_.context : spec_.contextLength);
    flag(info, "tied_head", spec_.tiedHead);
    integer(info, "parameters", numParameters());
    if (spec_.bosId)
      integer(info, "bos", *spec_.bosId);
    info.set("eos", builder_.getDenseI64ArrayAttr(spec_.eosIds));
    integer(info, "source_bytes", sourceBytes());
    info.set("sampling", sampling());
    info.set("layers", layers());
    info.set("tokenizer", tokenizer());
    info.set("templates", templates());
    text(info, "licence", spec_.licence);
    text(info, "model_card", spec_.modelCard);
    if (spec_.embedding) {
      NamedAttrList embedding;
      text(embedding, "pooling", poolingName(spec_.embedding->pooling));
      flag(embedding, "normalized", spec_.embedding->normalized);
      info.set("embedding", dictionary(embedding));
    }
    return info.getDictionary(builder_.getContext());
  }

private:
  void text(NamedAttrList &list, llvm::StringRef key,
            const std::string &value) {
    list.set(key, builder_.getStringAttr(value));
  }
  void integer(NamedAttrList &list, llvm::StringRef key, std::int64_t value) {
    list.set(key, builder_.getI64IntegerAttr(value));
  }
  void real(NamedAttrList &list, llvm::StringRef key, double value) {
    list.set(key, builder_.getF64FloatAttr(value));
  }
  void flag(NamedAttrList &list, llvm::StringRef key, bool value) {
    list.set(key, builder_.getBoolAttr(value));
  }
  DictionaryAttr dictionary(NamedAttrList &list) {
    return list.getDictionary(builder_.getContext());
  }

  // "models/tiny/model.safetensors" is "tiny", "tiny.gguf" is "tiny".
  std::string modelName() const {
    if (!options_.name.empty() || spec_.sources.empty())
      return options_.name;
    std::filesystem::path path =
        std::filesystem::path(spec_.sources.front().path).lexically_normal();
    return path.extension() == ".gguf" ? path.stem().string()
                                       : path.parent_path().filename().string();
  }

  std::int64_t numParameters() const {
    std::int64_t total = 0;
    for (const auto &[role, tensor] : spec_.parameters) {
      // The maps of early exits are beside the model, not of it.
      if (role.rfind("exit.", 0) == 0)
        continue;
      std::int64_t elements = 1;
      for (std::int64_t dim : tensor.shape)
        elements *= dim;
      total += elements;
    }
    return total;
  }

  std::int64_t sourceBytes() const {
    std::int64_t total = 0;
    for (const SourceFile &source : spec_.sources)
      total += source.sizeBytes;
    return total;
  }

  // Greedy models (doSample false) have temperature 0.
  DictionaryAttr sampling() {
    NamedAttrList list;
    const DefaultSampling &from = spec_.sampling;
    if (from.doSample && !*from.doSample)
      real(list, "temperature", 0.0);
    else if (from.temperature)
      real(list, "temperature", *from.temperature);
    if (from.topP)
      real(list, "top_p", *from.topP);
    if (from.topK)
      integer(list, "top_k", *from.topK);
    if (from.minP)
      real(list, "min_p", *from.minP);
    if (from.repetitionPenalty)
      real(list, "repetition_penalty", *from.repetitionPenalty);
    return dictionary(list);
  }

  ArrayAttr layers() {
    llvm::SmallVector<Attribute> all;
    for (auto [index, layer] : llvm::enumerate(spec_.layers)) {
      NamedAttrList list;
      integer(list, "index", index);
      integer(list, "heads", layer.heads);
      integer(list, "kv_heads", layer.kvHeads);
      integer(list, "head_dim", layer.headDim);
      integer(list, "rotary_dim", layer.rotary.dim);
      text(list, "rope_kind",
           layer.rotary.dim == 0 ? "none" : rotaryKindName(layer.rotary.kind));
      real(list, "rope_theta", layer.rotary.theta);
      real(list, "rope_attention_factor", layer.rotary.attentionFactor);
      integer(list, "window", layer.slidingWindow);
      real(list, "softmax_scale", layer.softmaxScale);
      real(list, "soft_cap", layer.softCap);
      integer(list, "ffn", layer.ffnSize);
      text(list, "activation", activationName(layer.activation));
      real(list, "norm_eps", spec_.normEps);
      flag(list, "qk_norm", layer.qkNorm != QkNorm::None);
      flag(list, "qkv_bias",
           layer.biases.q || layer.biases.k || layer.biases.v);
      flag(list, "output_bias", layer.biases.o);
      all.push_back(dictionary(list));
    }
    return builder_.getArrayAttr(all);
  }

  std::string shownPath(const std::string &path) const {
    return options_.hidePaths ? std::filesystem::path(path).filename().string()
                              : path;
  }

  DictionaryAttr tokenizer() {
    NamedAttrList list;
    const TokenizerLocation &from = spec_.tokenizer;
    switch (from.kind) {
    case TokenizerLocation::Kind::None:
      text(list, "kind", "none");
      break;
    case TokenizerLocation::Kind::HuggingFaceJson:
      text(list, "kind", "huggingface");
      break;
    case TokenizerLocation::Kind::Gguf:
      text(list, "kind", "gguf");
      break;
    case TokenizerLocation::Kind::SentencePiece:
      text(list, "kind", "sentencepiece");
      break;
    }
    if (!from.path.empty())
      text(list, "path", shownPath(from.path));
    if (!from.configPath.empty())
      text(list, "config", shownPath(from.configPath));
    return dictionary(list);
  }

  ArrayAttr templates() {
    llvm::SmallVector<Attribute> all;
    for (const TemplateSource &chat : spec_.chatTemplates) {
      NamedAttrList list;
      text(list, "name", chat.name);
      text(list, "text", chat.text);
      all.push_back(dictionary(list));
    }
    return builder_.getArrayAttr(all);
  }

  Builder builder_;
  const ModelSpec &spec_;
  const LmBuildOptions &options_;
};

} // namespace

DictionaryAttr modelInfo(MLIRContext &context, const ModelSpec &spec,
                         const LmBuildOptions &options) {
  return InfoBuilder(context, spec, options).build();
}

} // namespace ingot
