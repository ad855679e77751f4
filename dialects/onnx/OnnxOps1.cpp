// A third of the generated operators, so that they compile side by side.
#include "dialects/onnx/OnnxOps.h"

using namespace mlir;

#define GET_OP_DEFS_1
#include "dialects/onnx/OnnxOpShards.cpp.inc"
