// Native code of a lowered graph, made for this machine and kept in memory.
#pragma once

#include "compiler/codegen/graph/LowerGraph.h"

#include <memory>

namespace ingot::graph {

class GraphCode {
public:
  virtual ~GraphCode() = default;
  // `arguments` are the pointers of LoweredGraph::arguments, each aligned to its
  // elements; the arena to 64 bytes.
  virtual void run(void **arguments) const = 0;
};

// Takes the module apart.
Result<std::unique_ptr<GraphCode>> compileGraph(LoweredGraph &graph);

} // namespace ingot::graph
