// Reads the constants of a kernel, one small function an operation.
#include "compiler/codegen/cpu/KernelEntry.h"

#include "compiler/codegen/cpu/KernelLimits.h"

#include <set>

namespace ingot::codegen {
namespace {

std::string print(const ConfigValue &value) {
  if (const auto *text = std::get_if<std::string>(&value))
    return "\"" + *text + "\"";
  return std::to_string(std::get<std::int64_t>(value));
}

// Reads the keys of one configuration and remembers the first thing wrong with it.
class Reader {
public:
  Reader(const std::string &op, const KernelConfig &config)
      : op_(op), config_(config) {}

  std::int64_t number(const std::string &key, std::int64_t absent,
                      bool required) {
    seen_.insert(key);
    auto found = config_.find(key);
    if (found == config_.end()) {
      if (required)
        fail("needs \"" + key + "\"");
      return absent;
    }
    if (const auto *value = std::get_if<std::int64_t>(&found->second))
      return *value;
    fail("\"" + key + "\": expected a number, found " + print(found->second));
    return absent;
  }

  std::string text(const std::string &key,
                   const std::vector<std::string> &choices) {
    seen_.insert(key);
    auto found = config_.find(key);
    std::string list;
    for (const std::string &choice : choices)
      list += (list.empty() ? "" : ", ") + choice;
    if (found == config_.end()) {
      fail("needs \"" + key + "\" (" + list + ")");
      return choices.front();
    }
    if (const auto *value = std::get_if<std::string>(&found->second))
      for (const std::string &choice : choices)
        if (*value == choice)
          return choice;
    fail("\"" + key + "\": expected one of " + list + ", found " +
         print(found->second));
    return choices.front();
  }

  // A K-group: a multiple of 32 within what the kernels hold on their stack, and
  // for codes of 16 bits within what an int32 sum holds.
  std::int32_t group(bool required, bool wide) {
    const std::int64_t group = number("group", 0, required);
    const std::int64_t largest = wide ? kLargestWideGroup : kLargestGroup;
    const bool none = !required && group == 0;
    if (!none && (group < 32 || group > largest || group % 32 != 0))
      fail("\"group\": expected a multiple of 32 up to " +
           std::to_string(largest) + ", found " + std::to_string(group));
    return static_cast<std::int32_t>(group);
  }

  // How a result is quantised: group and bits, both absent where it may stay
  // float32.
  std::vector<std::int32_t> quantization(bool required) {
    const std::int64_t bits =
        number("bits", 0, required || config_.count("group"));
    const std::int32_t size = group(required, bits == 16);
    const bool none = !required && size == 0;
    if (none ? bits != 0 : bits != 8 && bits != 16)
      fail("\"bits\": expected 8 or 16 with a group, found " +
           std::to_string(bits));
    return {size, static_cast<std::int32_t>(bits)};
  }

  std::int32_t headDim() {
    const std::int64_t size = number("head_dim", 8, true);
    if (size < 8 || size > kLargestHeadDim || size % 8 != 0)
      fail("\"head_dim\": expected a multiple of 8 up to " +
           std::to_string(kLargestHeadDim) + ", found " + std::to_string(size));
    return static_cast<std::int32_t>(size);
  }

  // Whether the encoding has minima, which only int4 can have.
  std::int32_t minimum(const std::string &encoding) {
    const std::int64_t minimum = number("minimum", 0, false);
    if (minimum != 0 && (minimum != 1 || encoding != "i4"))
      fail("\"minimum\": expected 0, or 1 for i4, found " +
           std::to_string(minimum) + " for " + encoding);
    return static_cast<std::int32_t>(minimum);
  }

  void fail(const std::string &what) {
    if (status_.isOk())
      status_ = Status::unsupported("kernel " + op_ + ": " + what);
  }

  // The status after every key was read: unknown keys are errors.
  Status finish() {
    for (const auto &entry : config_)
      if (!seen_.count(entry.first))
        fail("unknown key \"" + entry.first + "\"");
    return status_;
  }

private:
  const std::string &op_;
  const KernelConfig &config_;
  std::set<std::string> seen_;
  Status status_;
};

const std::vector<std::string> kEncodings = {"f32", "f16", "bf16", "i8", "i4"};
const std::vector<std::string> kCacheTypes = {"f32", "f16", "i8"};
const std::vector<std::string> kActivations = {"silu", "gelu_tanh", "gelu",
                                               "relu"};

// Group and minimum of an encoding, and its part of a kernel's name.
struct EncodingParts {
  std::string encoding;
  bool integer = false;
  std::int32_t group = 0;
  std::int32_t minimum = 0;
  std::string name;
};
EncodingParts readEncoding(Reader &reader) {
  EncodingParts parts;
  parts.encoding = reader.text("encoding", kEncodings);
  parts.integer = parts.encoding == "i8" || parts.encoding == "i4";
  parts.name = parts.encoding;
  parts.minimum = reader.minimum(parts.encoding);
  if (parts.integer) {
    parts.group = reader.group(true, parts.encoding == "i8");
    parts.name +=
        "g" + std::to_string(parts.group) + (parts.minimum ? "m" : "");
  } else if (reader.number("group", 0, false) != 0) {
    reader.fail("\"group\": a float encoding has none");
  }
  return parts;
}

std::string outputName(const std::vector<std::int32_t> &quantization) {
  if (quantization[0] == 0)
    return "f32";
  return "q" + std::to_string(quantization[1]) + "g" +
         std::to_string(quantization[0]);
}

} // namespace

Result<KernelEntry> kernelEntry(const std::string &op,
                                const KernelConfig &constants) {
  Reader reader(op, constants);
  KernelEntry entry;
  if (op == "embed") {
    const EncodingParts parts = readEncoding(reader);
    entry = {"Elementwise",
             "ingot_embed_" + parts.encoding,
             {parts.group, parts.minimum},
             "embed_" + parts.name};
  } else if (op == "rope_table") {
    entry = {"Rope", "ingot_rope_table", {}, "rope_table"};
  } else if (op == "rms_norm") {
    const auto output = reader.quantization(false);
    entry = {"Elementwise", "ingot_rms_norm", output,
             "rms_norm_" + outputName(output)};
  } else if (op == "quantize") {
    const auto output = reader.quantization(true);
    entry = {"Elementwise", "ingot_quantize", output,
             "quantize_" + outputName(output)};
  } else if (op == "route" || op == "order_slots" || op == "dispatch" ||
             op == "combine") {
    entry = {"Experts", "ingot_" + op, {}, op};
  } else if (op == "linear" || op == "expert_linear") {
    const EncodingParts parts = readEncoding(reader);
    const std::int64_t tokens = reader.number("tokens", 1, true);
    if (tokens != 1 && tokens != kFewTokens && tokens != kManyTokens)
      reader.fail("\"tokens\": expected 1, " + std::to_string(kFewTokens) +
                  " or " + std::to_string(kManyTokens) + ", found " +
                  std::to_string(tokens));
    entry.source = parts.integer ? "LinearInteger" : "LinearFloat";
    entry.function = "ingot_" + op + "_" + parts.encoding;
    if (parts.integer)
      entry.constants = {parts.group, parts.minimum};
    entry.constants.push_back(static_cast<std::int32_t>(tokens));
    entry.name = op + "_" + parts.name + "_t" + std::to_string(tokens);
  } else if (op == "gated") {
    const std::string activation = reader.text("activation", kActivations);
    const auto output = reader.quantization(false);
    entry = {"Elementwise", "ingot_gated_" + activation, output,
             "gated_" + activation + "_" + outputName(output)};
  } else if (op == "activate") {
    const std::string activation = reader.text("activation", kActivations);
    const auto output = reader.quantization(false);
    entry = {"Elementwise", "ingot_activate_" + activation, output,
             "activate_" + activation + "_" + outputName(output)};
  } else if (op == "layer_norm") {
    const auto output = reader.quantization(false);
    entry = {"Elementwise", "ingot_layer_norm", output,
             "layer_norm_" + outputName(output)};
  } else if (op == "add") {
    entry = {"Elementwise", "ingot_add", {}, "add"};
  } else if (op == "cap") {
    entry = {"Elementwise", "ingot_cap", {}, "cap"};
  } else if (op == "rope_cache_write") {
    const std::int32_t headDim = reader.headDim();
    const std::string type = reader.text("kv", kCacheTypes);
    entry = {"Rope",
             "ingot_rope_cache_write_" + type,
             {headDim},
             "rope_cache_write_h" + std::to_string(headDim) + "_" + type};
  } else if (op == "attention" || op == "alibi_attention") {
    const std::int32_t headDim = reader.headDim();
    const std::string type = reader.text("kv", kCacheTypes);
    const auto output = reader.quantization(false);
    if (output[0] != 0 && headDim % output[0] != 0)
      reader.fail("\"group\": " + std::to_string(output[0]) +
                  " does not divide a head of " + std::to_string(headDim) +
                  "; a quantize launch must follow");
    entry = {"Attention",
             "ingot_" + op + "_" + type,
             {headDim, output[0], output[1]},
             op + "_h" + std::to_string(headDim) + "_" + type + "_" +
                 outputName(output)};
  } else if (op == "gather_rows") {
    entry = {"Elementwise", "ingot_gather_rows", {}, "gather_rows"};
  } else if (op == "pool") {
    entry = {"Elementwise", "ingot_pool", {}, "pool"};
  } else {
    return Status::unsupported("no CPU kernel for the operation \"" + op +
                               "\"");
  }
  INGOT_RETURN_IF_ERROR(reader.finish());
  return entry;
}

} // namespace ingot::codegen
