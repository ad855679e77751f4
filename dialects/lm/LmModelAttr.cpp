// The dictionary `lm.model`: what is known of the model as a whole. Its keys
// are listed here and nowhere else; the frontend writes them, the lowering to
// plan reads them into ModelInfo (runtime/plan/plan.fbs).
#include "dialects/lm/LmDialect.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace ingot::lm;

namespace {

enum class Kind { String, Bool, Count, Integer, Real, Ids, Dict, DictList };

struct Key {
  llvm::StringLiteral name;
  Kind kind;
  bool required;
};

// Count is an i64 that is not negative; Integer any i64; Real an f64.
constexpr Key kModelKeys[] = {
    {"family", Kind::String, true},       {"name", Kind::String, true},
    {"architecture", Kind::String, true}, {"vocab", Kind::Count, true},
    {"hidden", Kind::Count, true},        {"context", Kind::Count, true},
    {"tied_head", Kind::Bool, true},      {"parameters", Kind::Count, true},
    {"bos", Kind::Count, false},          {"eos", Kind::Ids, true},
    {"source_bytes", Kind::Count, true},  {"sampling", Kind::Dict, true},
    {"layers", Kind::DictList, true},     {"tokenizer", Kind::Dict, true},
    {"templates", Kind::DictList, true},  {"licence", Kind::String, true},
    {"model_card", Kind::String, true},   {"embedding", Kind::Dict, false},
};

// Of an encoder: `pooling` is a name of PoolKind.
constexpr Key kEmbeddingKeys[] = {
    {"pooling", Kind::String, true},
    {"normalized", Kind::Bool, true},
};

constexpr Key kSamplingKeys[] = {
    {"temperature", Kind::Real, false},        {"top_p", Kind::Real, false},
    {"top_k", Kind::Integer, false},           {"min_p", Kind::Real, false},
    {"repetition_penalty", Kind::Real, false},
};

constexpr Key kLayerKeys[] = {
    {"index", Kind::Count, true},
    {"heads", Kind::Count, true},
    {"kv_heads", Kind::Count, true},
    {"head_dim", Kind::Count, true},
    {"rotary_dim", Kind::Count, true},
    {"rope_kind", Kind::String, true},
    {"rope_theta", Kind::Real, true},
    {"rope_attention_factor", Kind::Real, true},
    {"window", Kind::Count, true},
    {"softmax_scale", Kind::Real, true},
    {"soft_cap", Kind::Real, true},
    {"ffn", Kind::Count, true},
    {"activation", Kind::String, true},
    {"norm_eps", Kind::Real, true},
    {"qk_norm", Kind::Bool, true},
    {"qkv_bias", Kind::Bool, true},
    {"output_bias", Kind::Bool, true},
};

// `kind` is "huggingface" (path: tokenizer.json, config:
// tokenizer_config.json), "sentencepiece" (path: tokenizer.model, config the
// same), "gguf" (path: the file) or "none".
constexpr Key kTokenizerKeys[] = {
    {"kind", Kind::String, true},
    {"path", Kind::String, false},
    {"config", Kind::String, false},
};

constexpr Key kTemplateKeys[] = {
    {"name", Kind::String, true},
    {"text", Kind::String, true},
};

llvm::StringRef describe(Kind kind) {
  switch (kind) {
  case Kind::String:
    return "a string";
  case Kind::Bool:
    return "a bool";
  case Kind::Count:
    return "an i64 that is not negative";
  case Kind::Integer:
    return "an i64";
  case Kind::Real:
    return "an f64";
  case Kind::Ids:
    return "an array<i64>";
  case Kind::Dict:
    return "a dictionary";
  case Kind::DictList:
    return "an array of dictionaries";
  }
  llvm_unreachable("all kinds are handled");
}

bool matches(Kind kind, Attribute attr) {
  auto integer = [&]() -> IntegerAttr {
    auto value = dyn_cast<IntegerAttr>(attr);
    return value && value.getType().isSignlessInteger(64) ? value : nullptr;
  };
  switch (kind) {
  case Kind::String:
    return isa<StringAttr>(attr);
  case Kind::Bool:
    return isa<BoolAttr>(attr);
  case Kind::Count:
    return integer() && integer().getInt() >= 0;
  case Kind::Integer:
    return static_cast<bool>(integer());
  case Kind::Real:
    return isa<FloatAttr>(attr) && cast<FloatAttr>(attr).getType().isF64();
  case Kind::Ids:
    return isa<DenseI64ArrayAttr>(attr);
  case Kind::Dict:
    return isa<DictionaryAttr>(attr);
  case Kind::DictList: {
    auto array = dyn_cast<ArrayAttr>(attr);
    return array && llvm::all_of(array, [](Attribute element) {
             return isa<DictionaryAttr>(element);
           });
  }
  }
  llvm_unreachable("all kinds are handled");
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult verifyDict(EmitError emitError, const llvm::Twine &where,
                         DictionaryAttr dict, llvm::ArrayRef<Key> keys) {
  for (NamedAttribute entry : dict) {
    const Key *key = llvm::find_if(keys, [&](const Key &k) {
      return k.name == entry.getName().getValue();
    });
    if (key == keys.end())
      return emitError() << where << " has no key '"
                         << entry.getName().getValue() << "'";
    if (!matches(key->kind, entry.getValue()))
      return emitError() << where << ": '" << key->name << "' must be "
                         << describe(key->kind) << ", found "
                         << entry.getValue();
  }
  for (const Key &key : keys)
    if (key.required && !dict.contains(key.name))
      return emitError() << where << " lacks the key '" << key.name << "'";
  return success();
}

LogicalResult verifyList(EmitError emitError, const llvm::Twine &where,
                         ArrayAttr list, llvm::ArrayRef<Key> keys) {
  std::string name = where.str();
  for (auto [index, element] : llvm::enumerate(list))
    if (failed(verifyDict(emitError, name + "[" + llvm::Twine(index) + "]",
                          cast<DictionaryAttr>(element), keys)))
      return failure();
  return success();
}

} // namespace

LogicalResult ingot::lm::verifyModelAttr(EmitError emitError, Attribute attr) {
  auto model = dyn_cast<DictionaryAttr>(attr);
  if (!model)
    return emitError() << kModelAttr << " must be a dictionary, found " << attr;
  if (failed(verifyDict(emitError, kModelAttr, model, kModelKeys)) ||
      failed(verifyDict(emitError, "lm.model sampling",
                        model.getAs<DictionaryAttr>("sampling"),
                        kSamplingKeys)) ||
      failed(verifyDict(emitError, "lm.model tokenizer",
                        model.getAs<DictionaryAttr>("tokenizer"),
                        kTokenizerKeys)) ||
      failed(verifyList(emitError, "lm.model layers",
                        model.getAs<ArrayAttr>("layers"), kLayerKeys)) ||
      failed(verifyList(emitError, "lm.model templates",
                        model.getAs<ArrayAttr>("templates"), kTemplateKeys)))
    return failure();
  if (auto embedding = model.getAs<DictionaryAttr>("embedding")) {
    if (failed(verifyDict(emitError, "lm.model embedding", embedding,
                          kEmbeddingKeys)))
      return failure();
    auto pooling = embedding.getAs<StringAttr>("pooling");
    if (!symbolizePoolKind(pooling))
      return emitError() << "lm.model embedding: no pooling is called "
                         << pooling;
  }
  for (auto [index, element] :
       llvm::enumerate(model.getAs<ArrayAttr>("layers"))) {
    auto layer = cast<DictionaryAttr>(element);
    if (layer.getAs<IntegerAttr>("index").getInt() !=
        static_cast<std::int64_t>(index))
      return emitError() << "lm.model layers[" << index << "] has index "
                         << layer.getAs<IntegerAttr>("index").getInt();
  }
  return success();
}
