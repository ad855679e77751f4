// All operators of the lm dialect.
#ifndef INGOT_DIALECTS_LM_OPS
#define INGOT_DIALECTS_LM_OPS

include "dialects/lm/SymbolOps.td"
include "dialects/lm/ActivationOps.td"
include "dialects/lm/FusedOps.td"

#endif
