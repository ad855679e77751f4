// Walks a Program and writes the prompt. One Interpreter serves one render.
#pragma once

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Runtime.h"

#include <ctime>

namespace ingot::jinja {

// Where names live. A loop body, macro, `with` or block of its own has its own
// scope; `if` has none. Scopes that a macro closes over stay until the end of
// the render, the others are used again.
struct Scope {
  Scope *parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> variables;
  bool captured = false;
};

class Interpreter final : public Runtime {
public:
  Interpreter(const Program &program, const RenderLimits &limits,
              const std::tm &now);

  // Variables of the render, before run().
  void define(const std::string &name, Value value);
  void run();
  const Text &output() const { return output_; }
  const std::vector<ByteRange> &generations() const { return generations_; }
  // Where the last operation was, for errors.
  uint32_t offset() const { return offset_; }

  Value call(const Value &callee, Arguments arguments) override;
  Value callFilter(const std::string &name, const Value &input,
                   Arguments arguments) override;
  bool callTest(const std::string &name, const Value &input,
                Arguments arguments) override;

private:
  enum class Flow { Normal, Break, Continue };

  // Counts nesting of evaluation; every recursion passes through one.
  struct Deeper {
    explicit Deeper(Interpreter &in);
    ~Deeper() { --in.depth_; }
    Interpreter &in;
  };
  // A scope for the lifetime of the object.
  struct Scoped {
    Scoped(Interpreter &in, Scope *parent);
    ~Scoped();
    Interpreter &in;
    Scope *saved;
    Scope *scope;
  };
  // Collects output for the lifetime of the object.
  struct Capture {
    explicit Capture(Interpreter &in);
    ~Capture() { in.buffer_ = saved; }
    Interpreter &in;
    Text *saved;
    Text text;
  };

  Flow execute(const Body &body);
  Flow execute(const Node &node);
  Flow executeFor(const Node &node);
  Flow loop(const Node &node, const Value &iterable, uint32_t depth0);
  Flow executeSetBlock(const Node &node);
  Flow executeWith(const Node &node);
  Flow executeFilterBlock(const Node &node);
  void executeCallBlock(const Node &node);
  void executeGeneration(const Node &node);
  void write(const Text &text);
  void assign(const Node &target, const Value &value);
  void setVariable(Scope &scope, uint32_t name, const Value &value);
  MacroObject *closure(const Node &node);

  Value evaluate(const Node &node);
  Value evaluateName(const Node &node);
  Value evaluateDict(const Node &node);
  Value evaluateCompare(const Node &node);
  Value evaluateConcat(const Node &node);
  Value evaluateFilter(const Node &node, const Value *blockInput);
  Value evaluateTest(const Node &node);
  Value evaluateSlice(const Node &node);
  Value evaluateCall(const Node &node, MacroObject *caller);
  Arguments evaluateArguments(const CallArguments &arguments);
  Value callMacro(MacroObject &macro, Arguments arguments);
  Value callLoop(LoopObject &loop, Arguments arguments);

  const Program &program_;
  std::tm now_;
  std::deque<Scope> scopes_;
  std::vector<Scope *> free_;
  Scope *scope_ = nullptr;
  Text output_;
  Text *buffer_ = &output_;
  std::vector<ByteRange> generations_;
  uint32_t offset_ = 0;
  uint32_t depth_ = 0;
};

} // namespace ingot::jinja
