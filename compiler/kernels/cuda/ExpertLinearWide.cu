// expert_linear: the tiles of LinearWide.cu, each of one expert's rows.
#include "compiler/kernels/cuda/ExpertRows.h"
#include "compiler/kernels/cuda/LinearWide.cu"
