// The activation of a variant: INGOT_ACTIVATION names the law of Exp.h.
#pragma once

#include "compiler/kernels/cuda/Device.h"
// The builtins of Exp.h are defined by Device.h.
#include "compiler/kernels/Exp.h"

namespace ingot::device {

INGOT_DEVICE float activated(float x) { return kernels::INGOT_ACTIVATION(x); }

} // namespace ingot::device
