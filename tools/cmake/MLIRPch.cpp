#include "tools/cmake/MLIRPch.h"
