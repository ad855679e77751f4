// The onnx dialect: a graph as it came in, each operator in the one form that
// its newest version has. Includes of the other .td files start here.
#ifndef INGOT_DIALECTS_ONNX_BASE
#define INGOT_DIALECTS_ONNX_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::ingot::onnx";
  let summary = "An ONNX graph, each operator normalised once.";
  let description = [{
    A `func.func` holds the graph; its arguments are the inputs and carry
    `onnx.name` and `onnx.dims`, the names of unknown dimensions ("" where a
    dimension is known or has none). Values are tensors of signless integers
    (signed in ONNX), unsigned ones (`ui8`), floats and `i1`. An input that is
    not given is the result of `onnx.None`; an output that nobody asked for has
    the type `none`. So the i-th operand of an operator is always the standard's
    i-th input, and an operator has one arity.

    All versions of an operator that an importer reads have one meaning here, the
    newest one's. Result types follow from operands and attributes
    (`dialects/onnx/TypeInference`): what is written may know more about a
    dimension, and may not contradict.

    All operators share one form:
    ```mlir
    %0 = onnx.Softmax(%x) {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  // Attributes stay in one dictionary: operators are made by name, from tables.
  let usePropertiesForAttributes = 0;
  let extraClassDeclaration = [{
    std::optional<ParseOpHook>
    getParseOperationHook(::llvm::StringRef name) const override;
    ::llvm::unique_function<void(::mlir::Operation *, ::mlir::OpAsmPrinter &)>
    getOperationPrinter(::mlir::Operation *op) const override;
  }];
}

def Onnx_Tensor : Type<CPred<"::llvm::isa<::mlir::TensorType>($_self)">, "a tensor">;
def Onnx_NumberTensor
    : Type<CPred<"::ingot::onnx::isNumberTensor($_self)">, "a tensor of numbers">;
def Onnx_FloatTensor
    : Type<CPred<"::ingot::onnx::isFloatTensor($_self)">, "a tensor of floats">;
def Onnx_IntTensor
    : Type<CPred<"::ingot::onnx::isIntTensor($_self)">, "a tensor of integers">;
def Onnx_BoolTensor
    : Type<CPred<"::ingot::onnx::isBoolTensor($_self)">, "a tensor of booleans">;
def Onnx_Absent
    : Type<CPred<"::llvm::isa<::mlir::NoneType>($_self)">, "none">;
// An input or output of a fixed place that need not be there.
class Onnx_Maybe<Type tensor> : AnyTypeOf<[tensor, Onnx_Absent]>;
// Which tensor a result is follows from operands and attributes (InferredTypes).
def Onnx_Result : AnyTypeOf<[Onnx_Tensor, Onnx_Absent]>;

def Onnx_InferredTypes : NativeOpTrait<"InferredTypes"> {
  let cppNamespace = "::ingot::onnx";
}

// `versions` are the versions of the operator that are read, from the one that
// opset 11 has to the newest one up to opset 26.
class Onnx_Op<string opName, list<int> versions, dag inputs, dag attributes,
              dag outputs, list<Trait> traits = [Pure]>
    : Op<Onnx_Dialect, opName, !listconcat(traits, [Onnx_InferredTypes])> {
  string domain = "";
  bit variadicInputs = false;  // the one input is a list
  bit variadicOutputs = false; // the one output is a list
  let arguments = !con(inputs, attributes);
  let results = outputs;
  // One builder: operators are made from tables, and their types are inferred.
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types,
      "::mlir::ValueRange":$inputs,
      CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attributes), [{
    $_state.addTypes(types);
    $_state.addOperands(inputs);
    $_state.addAttributes(attributes);
  }]>];
  let extraClassDeclaration =
      "static ::ingot::onnx::OperatorInfo getInfo() { return {\"" # domain #
      "\", {" # !interleave(versions, ", ") # "}, " # !size(inputs) # ", " #
      !if(variadicInputs, "true", "false") # ", " # !size(outputs) # ", " #
      !if(variadicOutputs, "true", "false") # "}; }";
}

#endif
