#include "dialects/onnx/Windows.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ingot::onnx {

FailureOr<WindowPlan> planWindows(Operation *op) {
  Inference in(op);
  WindowPlan plan;
  llvm::StringRef name = op->getName().stripDialect();
  const bool isTranspose = name == "ConvTranspose";
  const bool isConv = isTranspose || name == "Conv";
  const std::int64_t rank = in.rank(0) - 2;
  auto fail = [&](const llvm::Twine &message) {
    (void)in.fail(message);
    return failure();
  };
  if (rank < 1 || (isConv && in.rank(1) != in.rank(0)))
    return fail("expected a batch, channels and spatial dimensions");
  auto kernel = in.integers("kernel_shape");
  plan.kernel = kernel ? *kernel : Dims(in.dims(1).drop_front(2));
  plan.strides = in.integers("strides").value_or(Dims(rank, 1));
  plan.dilations = in.integers("dilations").value_or(Dims(rank, 1));
  Dims pads = in.integers("pads").value_or(Dims(2 * rank, 0));
  if (std::int64_t(plan.kernel.size()) != rank ||
      std::int64_t(plan.strides.size()) != rank ||
      std::int64_t(plan.dilations.size()) != rank ||
      std::int64_t(pads.size()) != 2 * rank)
    return fail("its attributes are not for " + llvm::Twine(rank) +
                " spatial dimensions");
  for (std::int64_t i = 0; i < rank; ++i)
    if (plan.strides[i] < 1 || plan.dilations[i] < 1 ||
        (plan.kernel[i] != kUnknown && plan.kernel[i] < 1) ||
        plan.kernel[i] > (1 << 20) || plan.dilations[i] > (1 << 20) ||
        plan.strides[i] > (1 << 20))
      return fail("strides, dilations and kernel are positive");
  // A kernel_shape says no more of a convolution than its weights do.
  for (std::int64_t i = 0; isConv && i < rank; ++i)
    if (differ(plan.kernel[i], in.dims(1)[2 + i]))
      return fail("kernel_shape is " + dimsText(plan.kernel) +
                  ", but the weights are " + dimsText(in.dims(1)));
  plan.padsBefore.assign(pads.begin(), pads.begin() + rank);
  plan.padsAfter.assign(pads.begin() + rank, pads.end());

  llvm::StringRef autoPad = in.text("auto_pad");
  if (autoPad.empty())
    autoPad = "NOTSET";
  if (autoPad != "NOTSET" && autoPad != "VALID" && autoPad != "SAME_UPPER" &&
      autoPad != "SAME_LOWER")
    return fail("auto_pad \"" + autoPad + "\"");
  const bool isSame = autoPad.starts_with("SAME");
  const bool ceil = in.integer("ceil_mode") != 0;
  plan.outputDims = {in.dims(0)[0], in.dims(0)[1]};
  const std::int64_t group = in.integer("group", 1);
  if (isConv) {
    std::int64_t m = in.dims(1)[isTranspose ? 1 : 0];
    if (group < 1)
      return fail("group " + llvm::Twine(group));
    plan.outputDims[1] = isTranspose && m != kUnknown ? m * group : m;
  }
  auto outputShape = in.integers("output_shape");
  Dims extra = in.integers("output_padding").value_or(Dims(rank, 0));
  constexpr std::int64_t most = std::int64_t(1) << 31;
  auto isSmall = [&](std::int64_t value) { return value >= 0 && value < most; };
  for (std::int64_t dim : in.dims(0))
    if (dim != kUnknown && dim >= most)
      return fail("a dimension of " + llvm::Twine(dim));
  if (!llvm::all_of(extra, isSmall) ||
      !llvm::all_of(pads,
                    [&](auto pad) { return pad > -most && pad < most; }) ||
      (outputShape && !llvm::all_of(*outputShape, isSmall)))
    return fail("output_padding, output_shape and pads are numbers below 2^31");
  if (std::int64_t(extra.size()) != rank ||
      (outputShape && std::int64_t(outputShape->size()) != rank))
    return fail("its attributes are not for " + llvm::Twine(rank) +
                " spatial dimensions");
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t size = in.dims(0)[2 + i];
    if (size == kUnknown || plan.kernel[i] == kUnknown) {
      plan.outputDims.push_back(kUnknown);
      continue;
    }
    const std::int64_t span = (plan.kernel[i] - 1) * plan.dilations[i] + 1;
    const std::int64_t stride = plan.strides[i];
    std::int64_t &before = plan.padsBefore[i], &after = plan.padsAfter[i];
    if (isTranspose) {
      std::int64_t whole = stride * (size - 1) + extra[i] + span;
      std::int64_t out = whole - before - after;
      if (outputShape || isSame) {
        out = outputShape ? (*outputShape)[i] : size * stride;
        std::int64_t total = std::max<std::int64_t>(0, whole - out);
        before = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
        after = total - before;
      } else if (autoPad == "VALID") {
        before = after = 0;
        out = whole;
      }
      if (out < 0)
        return fail("an output dimension of " + llvm::Twine(out));
      plan.outputDims.push_back(out);
      continue;
    }
    if (isSame) {
      std::int64_t out = (size + stride - 1) / stride;
      std::int64_t total =
          std::max<std::int64_t>(0, (out - 1) * stride + span - size);
      before = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
      plan.outputDims.push_back(out);
      continue;
    }
    if (autoPad == "VALID")
      before = after = 0;
    std::int64_t room = size + before + after - span;
    if (before < 0 || after < 0 || before > (1 << 20) || after > (1 << 20) ||
        room < 0)
      return fail("a window of " + llvm::Twine(span) +
                  " does not fit dimension " + llvm::Twine(i));
    std::int64_t out = (ceil ? (room + stride - 1) : room) / stride + 1;
    // A window must start within the input or the padding before it.
    if (ceil && (out - 1) * stride >= size + before)
      --out;
    plan.outputDims.push_back(out);
  }
  return plan;
}

FailureOr<EinsumPlan> planEinsum(Operation *op) {
  Inference in(op);
  std::string equation = in.text("equation").str();
  llvm::erase(equation, ' ');
  auto fail = [&](const llvm::Twine &message) {
    (void)in.fail("equation \"" + in.text("equation") + "\": " + message);
    return failure();
  };
  auto [left, right] = llvm::StringRef(equation).split("->");
  const bool isExplicit = equation.find("->") != std::string::npos;
  SmallVector<llvm::StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != op->getNumOperands())
    return fail("it has " + llvm::Twine(terms.size()) + " terms for " +
                llvm::Twine(op->getNumOperands()) + " inputs");
  EinsumPlan plan;
  llvm::StringMap<unsigned> letters;
  auto letter = [&](llvm::StringRef name) {
    auto [found, isNew] = letters.try_emplace(name, plan.sizes.size());
    if (isNew)
      plan.sizes.push_back(kUnknown);
    return found->second;
  };
  std::size_t ellipsis = 0; // the longest
  llvm::StringMap<unsigned> uses;
  for (auto [i, term] : llvm::enumerate(terms)) {
    SmallVector<unsigned> own;
    auto [before, after] = term.split("...");
    const bool has = term.contains("...");
    std::int64_t rest = in.rank(i) - (before.size() + after.size());
    if (rest < 0 || (!has && rest != 0))
      return fail("term " + llvm::Twine(i) + " is not of rank " +
                  llvm::Twine(in.rank(i)));
    if (has)
      ellipsis = std::max<std::size_t>(ellipsis, rest);
    auto addLetters = [&](llvm::StringRef text) {
      for (char c : text) {
        if (!std::isalpha(static_cast<unsigned char>(c)))
          return false;
        own.push_back(letter(llvm::StringRef(&c, 1)));
        ++uses[llvm::StringRef(&c, 1)];
      }
      return true;
    };
    if (!addLetters(before))
      return fail("expected letters");
    for (std::int64_t j = rest; has && j-- > 0;)
      own.push_back(letter("..." + std::to_string(j)));
    if (!addLetters(after))
      return fail("expected letters");
    for (auto [index, dim] : llvm::zip(own, in.dims(i))) {
      std::int64_t &size = plan.sizes[index];
      if (size == kUnknown || size == 1)
        size = dim == kUnknown ? size : dim;
      else if (dim != kUnknown && dim != 1 && dim != size)
        return fail("dimensions " + llvm::Twine(size) + " and " +
                    llvm::Twine(dim) + " of one letter");
    }
    plan.inputs.push_back(std::move(own));
  }
  auto addEllipsis = [&] {
    for (std::size_t j = ellipsis; j-- > 0;)
      plan.output.push_back(letter("..." + std::to_string(j)));
  };
  if (!isExplicit) {
    addEllipsis();
    SmallVector<llvm::StringRef> once;
    for (auto &entry : uses)
      if (entry.second == 1)
        once.push_back(entry.first());
    llvm::sort(once);
    for (llvm::StringRef name : once)
      plan.output.push_back(letter(name));
    return plan;
  }
  if (ellipsis > 0 && !right.contains("..."))
    return fail("the output leaves out the dimensions of \"...\"");
  auto [before, after] = right.split("...");
  for (char c : before)
    if (!uses.count(llvm::StringRef(&c, 1)))
      return fail("the output names a letter that no input has");
    else
      plan.output.push_back(letter(llvm::StringRef(&c, 1)));
  if (right.contains("..."))
    addEllipsis();
  for (char c : after)
    if (!uses.count(llvm::StringRef(&c, 1)))
      return fail("the output names a letter that no input has");
    else
      plan.output.push_back(letter(llvm::StringRef(&c, 1)));
  SmallVector<unsigned> sorted(plan.output);
  llvm::sort(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return fail("the output names a letter twice");
  return plan;
}

} // namespace ingot::onnx
