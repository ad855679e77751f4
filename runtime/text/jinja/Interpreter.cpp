// See Interpreter.h.
#include "runtime/text/jinja/Interpreter.h"

#include <algorithm>

namespace ingot::jinja {

Interpreter::Interpreter(const Program &program, const RenderLimits &limits,
                         const std::tm &now)
    : Runtime(limits), program_(program), now_(now) {
  scope_ = &scopes_.emplace_back();
  scope_->captured = true; // the globals stay
  for (auto &[name, builtin] :
       {std::pair{"range", Builtin::Range}, std::pair{"dict", Builtin::Dict},
        std::pair{"namespace", Builtin::Namespace},
        std::pair{"cycler", Builtin::Cycler},
        std::pair{"joiner", Builtin::Joiner},
        std::pair{"raise_exception", Builtin::RaiseException},
        std::pair{"strftime_now", Builtin::StrftimeNow}})
    define(name, Value(Value::Storage(builtin)));
}

void Interpreter::define(const std::string &name, Value value) {
  auto it = program_.nameIds.find(name);
  if (it != program_.nameIds.end()) // else nobody can read it
    setVariable(*scope_, it->second, value);
}

void Interpreter::run() {
  Scoped scoped(*this, scope_);
  execute(program_.body);
}

// --- scopes, nesting and output

Interpreter::Deeper::Deeper(Interpreter &in) : in(in) {
  if (++in.depth_ > in.limits().depth) {
    --in.depth_;
    fail("the template recurses too deeply (more than " +
         std::to_string(in.limits().depth) + " levels)");
  }
}

Interpreter::Scoped::Scoped(Interpreter &in, Scope *parent)
    : in(in), saved(in.scope_) {
  if (in.free_.empty()) {
    in.hold(sizeof(Scope) + 4 * sizeof(Value));
    scope = &in.scopes_.emplace_back();
  } else {
    scope = in.free_.back();
    in.free_.pop_back();
  }
  scope->parent = parent;
  in.scope_ = scope;
}

Interpreter::Scoped::~Scoped() {
  in.scope_ = saved;
  if (scope->captured)
    return;
  scope->variables.clear();
  in.free_.push_back(scope);
}

Interpreter::Capture::Capture(Interpreter &in) : in(in), saved(in.buffer_) {
  in.buffer_ = &text;
}

void Interpreter::write(const Text &text) {
  touch(text.size());
  if (text.size() > limits().outputBytes ||
      buffer_->size() > limits().outputBytes - text.size())
    fail("the output exceeds its limit of " +
         std::to_string(limits().outputBytes) + " bytes");
  buffer_->append(text);
}

void Interpreter::setVariable(Scope &scope, uint32_t name, const Value &value) {
  for (auto &[other, stored] : scope.variables)
    if (other == name) {
      stored = value;
      return;
    }
  scope.variables.emplace_back(name, value);
}

MacroObject *Interpreter::closure(const Node &node) {
  MacroObject *macro = makeMacro();
  macro->node = &node;
  macro->scope = scope_;
  for (Scope *scope = scope_; scope && !scope->captured; scope = scope->parent)
    scope->captured = true;
  return macro;
}

void Interpreter::assign(const Node &target, const Value &value) {
  step();
  offset_ = target.offset;
  switch (target.kind) {
  case NodeKind::TargetName:
    setVariable(*scope_, target.name, value);
    return;
  case NodeKind::TargetNamespace: {
    Node name;
    name.kind = NodeKind::Name;
    name.name = target.name;
    name.offset = target.offset;
    Value object = evaluateName(name);
    auto *ns = object.as<NamespaceObject *>();
    if (!ns)
      fail("cannot assign attribute on non-namespace object");
    if (target.text.starts_with("_"))
      fail("Chat templates cannot store underscore-prefixed attributes on a "
           "namespace, but got " +
           quoted(target.text) + ". Please rename the attribute.");
    for (auto &[key, stored] : (*ns)->attributes)
      if (key == target.text) {
        stored = value;
        return;
      }
    (*ns)->attributes.emplace_back(target.text, value);
    return;
  }
  default: {
    std::vector<Value> items = iterate(*this, value);
    size_t wanted = target.children.size();
    if (items.size() < wanted)
      fail("not enough values to unpack (expected " + std::to_string(wanted) +
           ", got " + std::to_string(items.size()) + ")");
    if (items.size() > wanted)
      fail("too many values to unpack (expected " + std::to_string(wanted) +
           ")");
    for (size_t i = 0; i < wanted; ++i)
      assign(*target.children[i], items[i]);
  }
  }
}

// --- statements

Interpreter::Flow Interpreter::execute(const Body &body) {
  for (auto &node : body)
    if (Flow flow = execute(*node); flow != Flow::Normal)
      return flow;
  return Flow::Normal;
}

Interpreter::Flow Interpreter::execute(const Node &node) {
  Deeper deeper(*this);
  step();
  offset_ = node.offset;
  switch (node.kind) {
  case NodeKind::Data:
    write(node.value.string()->text);
    return Flow::Normal;
  case NodeKind::Print:
    for (auto &child : node.children) {
      Value value = evaluate(*child);
      if (auto *s = value.string())
        write(s->text);
      else
        write(str(*this, value));
    }
    return Flow::Normal;
  case NodeKind::If:
    for (size_t i = 0; i < node.children.size(); ++i)
      if (truthy(evaluate(*node.children[i])))
        return execute(node.bodies[i]);
    return execute(node.orElse);
  case NodeKind::For:
    return executeFor(node);
  case NodeKind::Set:
    assign(*node.a, evaluate(*node.b));
    return Flow::Normal;
  case NodeKind::SetBlock:
    return executeSetBlock(node);
  case NodeKind::With:
    return executeWith(node);
  case NodeKind::Macro: {
    MacroObject *macro = closure(node);
    setVariable(*scope_, node.name, Value(Value::Storage(macro)));
    return Flow::Normal;
  }
  case NodeKind::CallBlock:
    executeCallBlock(node);
    return Flow::Normal;
  case NodeKind::FilterBlock:
    return executeFilterBlock(node);
  case NodeKind::Generation:
    executeGeneration(node);
    return Flow::Normal;
  case NodeKind::Break:
    return Flow::Break;
  case NodeKind::Continue:
    return Flow::Continue;
  default:
    fail("a statement was expected");
  }
}

Interpreter::Flow Interpreter::executeFor(const Node &node) {
  Value iterable = evaluate(*node.b);
  offset_ = node.b->offset;
  return loop(node, iterable, 0);
}

Interpreter::Flow Interpreter::loop(const Node &node, const Value &iterable,
                                    uint32_t depth0) {
  std::vector<Value> items;
  const std::vector<Value> *view = &items;
  const SequenceObject *generator = nullptr;
  size_t first = 0;
  if (auto *s = iterable.sequence(); s && !node.c) {
    view = &s->items; // `iterable` keeps it alive
    if (s->kind == SequenceKind::Generator) {
      generator = s;
      first = s->consumed;
    }
  } else {
    items = iterate(*this, iterable);
  }
  if (node.c) {
    std::vector<Value> kept;
    for (auto &item : items) {
      Scoped scoped(*this, scope_);
      setVariable(*scope_, NameLoop, Value::undefined("'loop' is undefined"));
      assign(*node.a, item);
      if (truthy(evaluate(*node.c)))
        kept.push_back(item);
    }
    items = std::move(kept);
  }
  if (first >= view->size()) {
    Scoped scoped(*this, scope_);
    return execute(node.orElse);
  }
  LoopObject *object = makeLoop();
  object->items = view;
  object->first = first;
  object->depth0 = depth0;
  object->node = &node;
  object->scope = scope_;
  // The items live in this frame: afterwards the loop is an empty one.
  struct Detach {
    LoopObject *object;
    ~Detach() {
      static const std::vector<Value> empty;
      object->items = &empty;
      object->first = object->index0 = 0;
      object->scope = nullptr;
    }
  } detach{object};
  Value loopValue{Value::Storage(object)};
  for (size_t i = first; i < view->size(); ++i) {
    step();
    if (generator) {
      if (i < generator->consumed)
        continue;
      generator->consumed = i + 1;
    }
    object->index0 = i;
    Scoped scoped(*this, scope_);
    setVariable(*scope_, NameLoop, loopValue);
    assign(*node.a, (*view)[i]);
    if (execute(node.body) == Flow::Break)
      break;
  }
  return Flow::Normal;
}

Interpreter::Flow Interpreter::executeSetBlock(const Node &node) {
  Text text;
  {
    Scoped scoped(*this, scope_);
    Capture capture(*this);
    if (Flow flow = execute(node.body); flow != Flow::Normal)
      return flow;
    text = std::move(capture.text);
  }
  Value value = string(std::move(text));
  if (node.b)
    value = evaluateFilter(*node.b, &value);
  assign(*node.a, value);
  return Flow::Normal;
}

Interpreter::Flow Interpreter::executeWith(const Node &node) {
  size_t count = node.children.size() / 2;
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(evaluate(*node.children[count + i]));
  Scoped scoped(*this, scope_);
  for (size_t i = 0; i < count; ++i)
    assign(*node.children[i], values[i]);
  return execute(node.body);
}

Interpreter::Flow Interpreter::executeFilterBlock(const Node &node) {
  Scoped scoped(*this, scope_);
  Text text;
  {
    Capture capture(*this);
    if (Flow flow = execute(node.body); flow != Flow::Normal)
      return flow;
    text = std::move(capture.text);
  }
  Value input = string(std::move(text));
  write(str(*this, evaluateFilter(*node.a, &input)));
  return Flow::Normal;
}

void Interpreter::executeCallBlock(const Node &node) {
  Value value = evaluateCall(*node.a, closure(*node.b));
  write(str(*this, value));
}

void Interpreter::executeGeneration(const Node &node) {
  size_t begin = output_.size();
  const size_t outside = generations_.size();
  Scoped scoped(*this, scope_);
  execute(node.body);
  // Inside a captured block the place in the output is not known yet, and
  // Hugging Face's own tracker is off too.
  if (buffer_ != &output_ || output_.size() == begin)
    return;
  generations_.resize(outside); // this range covers those of blocks within
  generations_.push_back({begin, output_.size()});
}

// --- expressions

Value Interpreter::evaluate(const Node &node) {
  Deeper deeper(*this);
  step();
  switch (node.kind) {
  case NodeKind::Const:
    return node.value;
  case NodeKind::Name:
    return evaluateName(node);
  case NodeKind::Tuple:
  case NodeKind::List: {
    std::vector<Value> items;
    items.reserve(node.children.size());
    for (auto &child : node.children)
      items.push_back(evaluate(*child));
    offset_ = node.offset;
    return node.kind == NodeKind::List ? list(std::move(items))
                                       : tuple(std::move(items));
  }
  case NodeKind::Dict:
    return evaluateDict(node);
  case NodeKind::Attribute: {
    Value object = evaluate(*node.a);
    offset_ = node.offset;
    return getAttribute(*this, object, node.text);
  }
  case NodeKind::Item: {
    Value object = evaluate(*node.a);
    Value key = evaluate(*node.b);
    offset_ = node.offset;
    return getItem(*this, object, key);
  }
  case NodeKind::Slice:
    return evaluateSlice(node);
  case NodeKind::Call:
    return evaluateCall(node, nullptr);
  case NodeKind::Filter:
    return evaluateFilter(node, nullptr);
  case NodeKind::Test:
    return evaluateTest(node);
  case NodeKind::Not:
    return Value::boolean(!truthy(evaluate(*node.a)));
  case NodeKind::Negate:
  case NodeKind::Positive: {
    Value value = evaluate(*node.a);
    offset_ = node.offset;
    return node.kind == NodeKind::Negate ? negate(value) : positive(value);
  }
  case NodeKind::And:
  case NodeKind::Or: {
    Value value = evaluate(*node.a);
    if (truthy(value) == (node.kind == NodeKind::Or))
      return value;
    return evaluate(*node.b);
  }
  case NodeKind::Binary: {
    Value a = evaluate(*node.a);
    Value b = evaluate(*node.b);
    offset_ = node.offset;
    return binary(*this, static_cast<BinaryOp>(node.op), a, b);
  }
  case NodeKind::Concat:
    return evaluateConcat(node);
  case NodeKind::Compare:
    return evaluateCompare(node);
  case NodeKind::Choose:
    if (truthy(evaluate(*node.a)))
      return evaluate(*node.b);
    if (node.c)
      return evaluate(*node.c);
    return Value::undefined("the inline if-expression evaluated to false and "
                            "no else section was defined.");
  default:
    fail("an expression was expected");
  }
}

Value Interpreter::evaluateName(const Node &node) {
  for (Scope *scope = scope_; scope; scope = scope->parent)
    for (auto &[name, value] : scope->variables)
      if (name == node.name)
        return value;
  offset_ = node.offset;
  return Value::undefined(quoted(program_.names[node.name]) + " is undefined");
}

Value Interpreter::evaluateDict(const Node &node) {
  DictBuilder dict(*this);
  for (size_t i = 0; i < node.children.size(); i += 2) {
    Value key = evaluate(*node.children[i]);
    Value value = evaluate(*node.children[i + 1]);
    offset_ = node.offset;
    dict.set(key, value);
  }
  return dict.finish();
}

Value Interpreter::evaluateConcat(const Node &node) {
  Text out;
  for (auto &child : node.children) {
    Value value = evaluate(*child);
    offset_ = node.offset;
    if (auto *s = value.string())
      out.append(s->text);
    else
      out.append(str(*this, value));
    if (out.size() > limits().outputBytes)
      fail("a joined string exceeds the output limit");
  }
  offset_ = node.offset;
  return string(std::move(out));
}

Value Interpreter::evaluateCompare(const Node &node) {
  Value left = evaluate(*node.a);
  for (size_t i = 0; i < node.children.size(); ++i) {
    Value right = evaluate(*node.children[i]);
    offset_ = node.offset;
    bool holds = false;
    switch (node.operators[i]) {
    case CompareOp::Eq:
      holds = equal(*this, left, right);
      break;
    case CompareOp::Ne:
      holds = !equal(*this, left, right);
      break;
    case CompareOp::Lt:
      holds = less(*this, left, right, "<");
      break;
    case CompareOp::Le:
      holds = less(*this, left, right, "<=");
      break;
    case CompareOp::Gt:
      holds = less(*this, left, right, ">");
      break;
    case CompareOp::Ge:
      holds = less(*this, left, right, ">=");
      break;
    case CompareOp::In:
      holds = contains(*this, right, left);
      break;
    case CompareOp::NotIn:
      holds = !contains(*this, right, left);
      break;
    }
    if (!holds)
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluateSlice(const Node &node) {
  Value object = evaluate(*node.a);
  Value parts[3];
  for (int i = 0; i < 3; ++i)
    parts[i] = node.children[i] ? evaluate(*node.children[i]) : Value::none();
  offset_ = node.offset;
  return slice(*this, object, parts[0], parts[1], parts[2]);
}

Arguments Interpreter::evaluateArguments(const CallArguments &arguments) {
  Arguments out;
  for (auto &argument : arguments.positional)
    out.positional.push_back(evaluate(*argument));
  for (auto &[name, argument] : arguments.named)
    out.named.emplace_back(name, evaluate(*argument));
  if (arguments.star)
    for (Value &item : iterate(*this, evaluate(*arguments.star)))
      out.positional.push_back(std::move(item));
  if (arguments.doubleStar) {
    Value value = evaluate(*arguments.doubleStar);
    auto *dict = value.dict();
    if (!dict)
      fail("argument after ** must be a mapping, not " + typeName(value));
    for (auto &[key, item] : dict->entries) {
      if (!key.string())
        fail("keywords must be strings");
      out.named.emplace_back(key.string()->text.str(), item);
    }
  }
  return out;
}

Value Interpreter::evaluateFilter(const Node &node, const Value *blockInput) {
  Value input;
  if (node.a && node.a->kind == NodeKind::Filter && blockInput)
    input = evaluateFilter(*node.a, blockInput);
  else
    input = node.a ? evaluate(*node.a) : *blockInput;
  Arguments arguments = evaluateArguments(*node.arguments);
  offset_ = node.offset;
  return callFilter(node.text, input, std::move(arguments));
}

Value Interpreter::evaluateTest(const Node &node) {
  Value input = evaluate(*node.a);
  Arguments arguments = evaluateArguments(*node.arguments);
  offset_ = node.offset;
  return Value::boolean(callTest(node.text, input, std::move(arguments)));
}

Value Interpreter::evaluateCall(const Node &node, MacroObject *caller) {
  Value callee = evaluate(*node.a);
  Arguments arguments = evaluateArguments(*node.arguments);
  if (caller)
    arguments.named.emplace_back("caller", Value(Value::Storage(caller)));
  offset_ = node.offset;
  return call(callee, std::move(arguments));
}

Value Interpreter::callFilter(const std::string &name, const Value &input,
                              Arguments arguments) {
  if (!knownFilter(name))
    fail("No filter named " + quoted(name) + ".");
  return applyFilter(*this, name, input, arguments);
}

bool Interpreter::callTest(const std::string &name, const Value &input,
                           Arguments arguments) {
  if (!knownTest(name))
    fail("No test named " + quoted(name) + ".");
  return applyTest(*this, name, input, arguments);
}

Value Interpreter::call(const Value &callee, Arguments arguments) {
  Deeper deeper(*this);
  step();
  if (auto *macro = callee.as<MacroObject *>())
    return callMacro(**macro, std::move(arguments));
  if (auto *method = callee.as<std::shared_ptr<const MethodObject>>())
    return callMethod(*this, **method, arguments);
  if (auto *builtin = callee.as<Builtin>())
    return callBuiltin(*this, *builtin, arguments, now_);
  if (auto *object = callee.as<LoopObject *>())
    return callLoop(**object, std::move(arguments));
  if (auto *helper = callee.as<HelperObject *>(); helper && (*helper)->joiner)
    return (*helper)->position++ == 0 ? string("") : (*helper)->items[0];
  if (callee.isUndefined())
    failUndefined(callee);
  fail(quoted(typeName(callee)) + " object is not callable");
}

// A recursive loop's body over other items.
Value Interpreter::callLoop(LoopObject &object, Arguments arguments) {
  if (!object.node || !object.node->recursive)
    fail("The loop must have the 'recursive' marker to be called "
         "recursively.");
  if (!object.scope)
    fail("the loop has ended");
  Bound bound("loop", arguments, {"iterable"}, 1);
  Capture capture(*this);
  Scope *saved = std::exchange(scope_, object.scope);
  struct Restore {
    Interpreter &in;
    Scope *saved;
    ~Restore() { in.scope_ = saved; }
  } restore{*this, saved};
  loop(*object.node, bound[0], object.depth0 + 1);
  return string(std::move(capture.text));
}

Value Interpreter::callMacro(MacroObject &macro, Arguments arguments) {
  const Node &node = *macro.node;
  Scoped scoped(*this, macro.scope);
  Scope *scope = scope_;
  size_t count = node.parameters.size();
  auto takeNamed = [&](const std::string &name) -> std::optional<Value> {
    auto it =
        std::find_if(arguments.named.begin(), arguments.named.end(),
                     [&](auto &argument) { return argument.first == name; });
    if (it == arguments.named.end())
      return std::nullopt;
    Value value = it->second;
    arguments.named.erase(it);
    return value;
  };
  bool explicitCaller = false;
  std::vector<bool> given(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t name = node.parameters[i].first;
    explicitCaller |= name == NameCaller;
    std::optional<Value> value;
    if (i < arguments.positional.size())
      value = arguments.positional[i];
    else
      value = takeNamed(program_.names[name]);
    if (!value)
      continue;
    given[i] = true;
    setVariable(*scope, name, *value);
  }
  // Defaults come after, and may read the parameters before them.
  for (size_t i = 0; i < count; ++i) {
    if (given[i])
      continue;
    auto &[name, fallback] = node.parameters[i];
    setVariable(*scope, name,
                Value::undefined("parameter " + quoted(program_.names[name]) +
                                 " was not provided"));
    if (fallback)
      setVariable(*scope, name, evaluate(*fallback));
  }
  if (node.usesCaller && !explicitCaller) {
    auto caller = takeNamed("caller");
    setVariable(*scope, NameCaller,
                caller ? *caller : Value::undefined("No caller defined"));
  }
  if (node.usesKwargs) {
    DictBuilder dict(*this);
    for (auto &[name, value] : arguments.named)
      dict.set(string(name), value);
    setVariable(*scope, NameKwargs, dict.finish());
  } else if (!arguments.named.empty()) {
    if (arguments.named[0].first == "caller")
      fail("macro " + quoted(node.text) +
           " was invoked with two values for the special caller argument. "
           "This is most likely a bug.");
    fail("macro " + quoted(node.text) + " takes no keyword argument " +
         quoted(arguments.named[0].first));
  }
  if (node.usesVarargs) {
    std::vector<Value> rest;
    for (size_t i = count; i < arguments.positional.size(); ++i)
      rest.push_back(arguments.positional[i]);
    setVariable(*scope, NameVarargs, tuple(std::move(rest)));
  } else if (arguments.positional.size() > count) {
    fail("macro " + quoted(node.text) + " takes not more than " +
         std::to_string(count) + " argument(s)");
  }
  Capture capture(*this);
  execute(node.body);
  return string(std::move(capture.text));
}

} // namespace ingot::jinja
