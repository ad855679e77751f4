// All operators of the onnx dialect.
#ifndef INGOT_DIALECTS_ONNX_OPS
#define INGOT_DIALECTS_ONNX_OPS

include "dialects/onnx/ElementwiseOps.td"
include "dialects/onnx/ShapeOps.td"
include "dialects/onnx/LinearOps.td"
include "dialects/onnx/ModelOps.td"

#endif
