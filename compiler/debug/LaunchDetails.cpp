// One function for each table of launches in runtime/plan/plan.fbs.
#include "compiler/debug/LaunchDetails.h"

#include <sstream>

namespace ingot::debug {
namespace {

class Reader {
public:
  explicit Reader(const fbs::Plan &plan) : plan_(plan) {}

  LaunchDetails take() {
    details_.settings = text_.str();
    return std::move(details_);
  }

  void read(const fbs::Embed &op) {
    weight(op.table());
    set("scale", op.scale());
    if (op.by_position())
      set("by_position", true);
    wrote(op.output());
  }
  void read(const fbs::RopeTable &op) {
    set("rotary_dim", op.rotary_dim());
    set("attention_factor", op.attention_factor());
    set("scaling", fbs::EnumNameRopeScaling(op.scaling()));
    wrote(op.output());
  }
  void read(const fbs::RmsNorm &op) {
    inputs({op.input()});
    set("eps", op.eps());
    if (op.weight_offset() != 0)
      set("weight_offset", op.weight_offset());
    wrote(op.output(), op.quantized());
  }
  void read(const fbs::LayerNorm &op) {
    inputs({op.input()});
    set("eps", op.eps());
    set("bias", op.bias() >= 0);
    wrote(op.output(), op.quantized());
  }
  void read(const fbs::Quantize &op) {
    inputs({op.input()});
    wrote(op.output());
  }
  void read(const fbs::Linear &op) {
    inputs({op.input(), op.residual()});
    set("k", op.k());
    set("n", op.n());
    weight(op.weight());
    set("bias", op.bias() >= 0);
    wrote(op.output());
    details_.firstColumn = op.output_column();
    details_.columns = op.n();
  }
  void read(const fbs::Gated &op) {
    inputs({op.input()});
    set("activation", textOf(op.activation()));
    wrote(op.output(), op.quantized());
  }
  void read(const fbs::RopeCacheWrite &op) {
    inputs({op.input(), op.table()});
    set("heads", op.heads());
    set("kv_heads", op.kv_heads());
    set("head_dim", op.head_dim());
    set("rotary_dim", op.rotary_dim());
    set("interleaved", op.interleaved());
    set("norms", op.q_norm() >= 0);
    wrote(op.query());
  }
  void read(const fbs::Attention &op) {
    inputs({op.query()});
    set("heads", op.heads());
    set("kv_heads", op.kv_heads());
    set("head_dim", op.head_dim());
    set("scale", op.scale());
    set("window", op.window());
    set("soft_cap", op.soft_cap());
    if (op.slopes())
      set("slopes", op.rounded_slopes() ? "rounded" : "exact");
    wrote(op.output(), op.quantized());
  }
  void read(const fbs::GatherRows &op) {
    inputs({op.input()});
    wrote(op.output());
  }
  void read(const fbs::Activate &op) {
    inputs({op.input()});
    set("activation", textOf(op.activation()));
    wrote(op.output(), op.quantized());
  }
  void read(const fbs::Add &op) {
    inputs({op.residual(), op.update()});
    set("scale", op.scale());
    wrote(op.output());
  }
  void read(const fbs::Cap &op) {
    inputs({op.input()});
    set("scale", op.scale());
    set("soft_cap", op.soft_cap());
    wrote(op.output());
  }
  void read(const fbs::Route &op) {
    inputs({op.logits()});
    set("experts", op.experts());
    set("top_k", op.top_k());
    set("normalized", op.normalized());
    wrote(op.routes());
  }
  // Its rows are indices of slots, not numbers of the model.
  void read(const fbs::OrderSlots &op) { inputs({op.routes()}); }
  void read(const fbs::Dispatch &op) {
    inputs({op.input()});
    wrote(op.output());
  }
  void read(const fbs::ExpertLinear &op) {
    inputs({op.input()});
    set("k", op.k());
    set("n", op.n());
    set("experts", op.experts());
    weight(op.weight());
    wrote(op.output());
  }
  void read(const fbs::Combine &op) {
    inputs({op.input(), op.routes()});
    wrote(op.output());
  }
  void read(const fbs::Pool &op) {
    inputs({op.input()});
    set("kind", fbs::EnumNamePoolKind(op.kind()));
    set("normalize", op.normalize());
    wrote(op.output());
  }

private:
  static std::string textOf(const flatbuffers::String *text) {
    return text ? text->str() : std::string();
  }
  template <typename Value> void set(const char *name, const Value &value) {
    text_ << (text_.tellp() > 0 ? ", " : "") << name << " = " << std::boolalpha
          << value;
  }
  void inputs(std::initializer_list<std::int32_t> buffers) {
    for (std::int32_t buffer : buffers)
      if (buffer >= 0)
        details_.inputs.push_back(buffer);
  }
  void wrote(std::int32_t output, std::int32_t quantized = -1) {
    details_.output = output >= 0 ? output : quantized;
  }
  void weight(std::int32_t index) {
    details_.weight = index;
    const fbs::Weight &weight =
        *plan_.weights()->Get(static_cast<std::uint32_t>(index));
    set("weight",
        textOf(weight.name()) + " (" + encodingText(encodingOf(weight)) + ")");
  }

  const fbs::Plan &plan_;
  LaunchDetails details_;
  std::ostringstream text_;
};

} // namespace

LaunchDetails detailsOf(const fbs::Plan &plan, const fbs::Launch &launch) {
  Reader reader(plan);
  switch (launch.params_type()) {
#define INGOT_LAUNCH(NAME)                                                     \
  case fbs::Params::NAME:                                                      \
    reader.read(*launch.params_as_##NAME());                                   \
    break;
    INGOT_LAUNCH(Embed)
    INGOT_LAUNCH(RopeTable)
    INGOT_LAUNCH(RmsNorm)
    INGOT_LAUNCH(Quantize)
    INGOT_LAUNCH(Linear)
    INGOT_LAUNCH(Gated)
    INGOT_LAUNCH(RopeCacheWrite)
    INGOT_LAUNCH(Attention)
    INGOT_LAUNCH(GatherRows)
    INGOT_LAUNCH(LayerNorm)
    INGOT_LAUNCH(Activate)
    INGOT_LAUNCH(Add)
    INGOT_LAUNCH(Cap)
    INGOT_LAUNCH(Route)
    INGOT_LAUNCH(OrderSlots)
    INGOT_LAUNCH(Dispatch)
    INGOT_LAUNCH(ExpertLinear)
    INGOT_LAUNCH(Combine)
    INGOT_LAUNCH(Pool)
#undef INGOT_LAUNCH
  case fbs::Params::NONE:
    break;
  }
  return reader.take();
}

WeightEncoding encodingOf(const fbs::Weight &weight) {
  WeightEncoding encoding;
  encoding.code = static_cast<WeightCode>(weight.encoding()->code());
  encoding.group = weight.encoding()->group();
  encoding.minimum = weight.encoding()->minimum();
  return encoding;
}

std::string encodingText(const WeightEncoding &encoding) {
  const char *codes[] = {"f32", "f16", "bf16", "i8", "i4"};
  std::string text = codes[static_cast<unsigned>(encoding.code)];
  if (encoding.group != 0)
    text += "-g" + std::to_string(encoding.group);
  return encoding.minimum ? text + "-min" : text;
}

} // namespace ingot::debug
