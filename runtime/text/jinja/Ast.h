// The tree of a parsed template. One node type for statements and expressions
// keeps the evaluator a plain switch. Names are numbers (see Program::names),
// and every node knows its place in the source for error messages.
#pragma once

#include "runtime/text/jinja/Value.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot::jinja {

enum class NodeKind : uint8_t {
  // expressions
  Const,     // value
  Name,      // name
  Tuple,     // children
  List,      // children
  Dict,      // children: key, value, key, value ...
  Attribute, // a . text
  Item,      // a [ b ]
  Slice,     // a [ children[0] : children[1] : children[2] ], each may be null
  Call,      // a ( arguments )
  Filter,    // a | text ( arguments ); a is null in filter blocks
  Test,      // a is text ( arguments )
  Not,       // a
  Negate,    // a
  Positive,  // a
  And,       // a and b
  Or,        // a or b
  Binary,    // a op b
  Concat,    // children joined by ~
  Compare,   // a, then children with operators[i]
  Choose,    // b if a else c (c may be null)
  // assignment targets
  TargetName,      // name
  TargetTuple,     // children
  TargetNamespace, // name . text
  // statements
  Data,        // value
  Print,       // children
  If,          // children are tests, bodies[i] their bodies; orElse
  For,         // a target, b iterable, c filter or null; body, orElse
  Set,         // a target, b expression
  SetBlock,    // a target, b filter or null; body
  With,        // children: targets then values, in two equal halves; body
  Macro,       // name, parameters; body
  CallBlock,   // a call; b the macro node that becomes `caller`
  FilterBlock, // a filter; body
  Generation,  // body
  Break,
  Continue,
};

enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, In, NotIn };

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Body = std::vector<NodePtr>;

struct CallArguments {
  std::vector<NodePtr> positional;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr star;       // *args
  NodePtr doubleStar; // **kwargs
};

struct Node {
  NodeKind kind = NodeKind::Const;
  uint8_t op = 0;           // BinaryOp of Binary
  bool recursive = false;   // For
  bool usesCaller = false;  // Macro: its body reads `caller`
  bool usesVarargs = false; // Macro
  bool usesKwargs = false;  // Macro
  uint32_t offset = 0;
  uint32_t depth = 1;
  uint32_t name = 0;
  std::string text;
  Value value;
  NodePtr a, b, c;
  std::vector<NodePtr> children;
  std::vector<CompareOp> operators;
  std::unique_ptr<CallArguments> arguments;
  std::vector<Body> bodies;
  Body body, orElse;
  // Macro: parameters with their defaults (null: none)
  std::vector<std::pair<uint32_t, NodePtr>> parameters;
};

// The names the engine itself gives a meaning; the parser numbers them first.
enum FixedName : uint32_t { NameLoop, NameCaller, NameVarargs, NameKwargs };

struct Program {
  std::string source; // normalised; node offsets refer to it
  Body body;
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> nameIds;
};

} // namespace ingot::jinja
