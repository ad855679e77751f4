// The expressions of the grammar: one function a level of precedence, loosest
// first.
#include "runtime/text/jinja/GrammarParser.h"

#include <algorithm>
#include <optional>

namespace ingot::jinja {

NodePtr GrammarParser::tuple(bool choose, std::string_view end, bool parens) {
  uint32_t offset = current().offset;
  std::vector<NodePtr> items;
  bool isTuple = false;
  for (;;) {
    if (current().kind == TokenKind::VariableEnd ||
        current().kind == TokenKind::BlockEnd || isOp(")") ||
        (!end.empty() && isName(end)))
      break;
    items.push_back(expression(choose));
    if (!skipOp(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return std::move(items[0]);
  if (!isTuple && !parens)
    failHere("Expected an expression, got " + describe(current()));
  auto node = make(NodeKind::Tuple, offset);
  node->children = std::move(items);
  return done(std::move(node));
}

NodePtr GrammarParser::expression(bool choose) {
  Deeper deeper(*this);
  uint32_t offset = current().offset;
  size_t unknown = unknown_.size();
  NodePtr left = orExpression();
  while (choose && isName("if")) {
    take();
    unknown_.resize(unknown);
    auto node = make(NodeKind::Choose, offset);
    bool soft = std::exchange(soft_, true);
    node->b = std::move(left);
    node->a = orExpression();
    if (skipName("else"))
      node->c = expression();
    soft_ = soft;
    left = done(std::move(node));
  }
  return left;
}

NodePtr GrammarParser::orExpression() {
  NodePtr left = andExpression();
  while (isName("or")) {
    auto node = make(NodeKind::Or, take().offset);
    node->a = std::move(left);
    node->b = andExpression();
    left = done(std::move(node));
  }
  return left;
}

NodePtr GrammarParser::andExpression() {
  NodePtr left = notExpression();
  while (isName("and")) {
    auto node = make(NodeKind::And, take().offset);
    node->a = std::move(left);
    node->b = notExpression();
    left = done(std::move(node));
  }
  return left;
}

NodePtr GrammarParser::notExpression() {
  if (!isName("not"))
    return compare();
  Deeper deeper(*this);
  auto node = make(NodeKind::Not, take().offset);
  node->a = notExpression();
  return done(std::move(node));
}

NodePtr GrammarParser::compare() {
  static const std::pair<std::string_view, CompareOp> ops[] = {
      {"==", CompareOp::Eq}, {"!=", CompareOp::Ne}, {"<", CompareOp::Lt},
      {"<=", CompareOp::Le}, {">", CompareOp::Gt},  {">=", CompareOp::Ge},
  };
  NodePtr first = sum();
  NodePtr node;
  for (;;) {
    std::optional<CompareOp> found;
    uint32_t at = current().offset;
    for (auto &[text, op] : ops)
      if (isOp(text))
        found = op;
    if (isName("in"))
      found = CompareOp::In;
    if (isName("not") && look().kind == TokenKind::Name &&
        look().text == "in") {
      take();
      found = CompareOp::NotIn;
    }
    if (!found)
      break;
    take();
    if (!node) {
      node = make(NodeKind::Compare, at);
      node->a = std::move(first);
    }
    node->operators.push_back(*found);
    node->children.push_back(sum());
  }
  return node ? done(std::move(node)) : std::move(first);
}

NodePtr GrammarParser::binaryNode(BinaryOp op, NodePtr a, NodePtr b,
                                  uint32_t offset) {
  auto node = make(NodeKind::Binary, offset);
  node->op = static_cast<uint8_t>(op);
  node->a = std::move(a);
  node->b = std::move(b);
  return done(std::move(node));
}

NodePtr GrammarParser::sum() {
  NodePtr left = concat();
  while (isOp("+") || isOp("-")) {
    Token token = take();
    NodePtr right = concat();
    left = binaryNode(token.text == "+" ? BinaryOp::Add : BinaryOp::Sub,
                      std::move(left), std::move(right), token.offset);
  }
  return left;
}

NodePtr GrammarParser::concat() {
  uint32_t offset = current().offset;
  NodePtr first = product();
  if (!isOp("~"))
    return first;
  auto node = make(NodeKind::Concat, offset);
  node->children.push_back(std::move(first));
  while (skipOp("~"))
    node->children.push_back(product());
  return done(std::move(node));
}

NodePtr GrammarParser::product() {
  NodePtr left = power();
  while (isOp("*") || isOp("/") || isOp("//") || isOp("%")) {
    Token token = take();
    BinaryOp op = token.text == "*"    ? BinaryOp::Mul
                  : token.text == "/"  ? BinaryOp::Div
                  : token.text == "//" ? BinaryOp::FloorDiv
                                       : BinaryOp::Mod;
    NodePtr right = power();
    left = binaryNode(op, std::move(left), std::move(right), token.offset);
  }
  return left;
}

NodePtr GrammarParser::power() {
  NodePtr left = unary();
  while (isOp("**")) {
    uint32_t offset = take().offset;
    NodePtr right = unary();
    left = binaryNode(BinaryOp::Pow, std::move(left), std::move(right), offset);
  }
  return left;
}

NodePtr GrammarParser::unary(bool withFilters) {
  NodePtr node;
  if (isOp("-") || isOp("+")) {
    Deeper deeper(*this);
    Token token = take();
    auto sign = make(token.text == "-" ? NodeKind::Negate : NodeKind::Positive,
                     token.offset);
    sign->a = unary(false);
    node = done(std::move(sign));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return withFilters ? filterExpression(std::move(node)) : std::move(node);
}

NodePtr GrammarParser::primary() {
  Token token = current();
  auto literal = [&](Value value) {
    auto node = make(NodeKind::Const, token.offset);
    node->value = std::move(value);
    return done(std::move(node));
  };
  switch (token.kind) {
  case TokenKind::Name: {
    take();
    if (token.text == "true" || token.text == "True")
      return literal(Value::boolean(true));
    if (token.text == "false" || token.text == "False")
      return literal(Value::boolean(false));
    if (token.text == "none" || token.text == "None")
      return literal(Value::none());
    auto node = make(NodeKind::Name, token.offset);
    node->name = nameId(token.text);
    for (Node *macro : macros_) {
      macro->usesCaller |= node->name == NameCaller;
      macro->usesVarargs |= node->name == NameVarargs;
      macro->usesKwargs |= node->name == NameKwargs;
    }
    return done(std::move(node));
  }
  case TokenKind::String: {
    std::string text;
    while (current().kind == TokenKind::String)
      text += take().text;
    return constant(Text(std::move(text), Origin::Template), token.offset);
  }
  case TokenKind::Integer: {
    take();
    std::optional<Int> value = parseInt(token.text, 0);
    if (!value)
      failAt(token.offset, "the integer " + token.text + " is out of range");
    return literal(Value::integer(*value));
  }
  case TokenKind::Float:
    take();
    return literal(Value::number(*parseFloat(token.text)));
  default:
    break;
  }
  if (skipOp("(")) {
    Deeper deeper(*this);
    NodePtr node = tuple(true, "", true);
    expectOp(")");
    return node;
  }
  if (isOp("[") || isOp("{")) {
    Deeper deeper(*this);
    bool isDict = take().text == "{";
    auto node = make(isDict ? NodeKind::Dict : NodeKind::List, token.offset);
    const char *close = isDict ? "}" : "]";
    while (!isOp(close)) {
      if (!node->children.empty()) {
        expectOp(",");
        if (isOp(close))
          break;
      }
      node->children.push_back(expression());
      if (isDict) {
        expectOp(":");
        node->children.push_back(expression());
      }
    }
    expectOp(close);
    return done(std::move(node));
  }
  failHere("unexpected " + describe(token));
}

NodePtr GrammarParser::postfix(NodePtr node) {
  for (;;) {
    if (isOp(".") || isOp("["))
      node = subscript(std::move(node));
    else if (isOp("("))
      node = call(std::move(node));
    else
      return node;
  }
}

NodePtr GrammarParser::filterExpression(NodePtr node) {
  for (;;) {
    if (isOp("|"))
      node = filters(std::move(node));
    else if (isName("is"))
      node = test(std::move(node));
    else if (isOp("("))
      node = call(std::move(node));
    else
      return node;
  }
}

NodePtr GrammarParser::subscript(NodePtr object) {
  Token token = take();
  if (token.text == ".") {
    Token attribute = take();
    if (attribute.kind == TokenKind::Name) {
      auto node = make(NodeKind::Attribute, attribute.offset);
      node->a = std::move(object);
      node->text = attribute.text;
      return done(std::move(node));
    }
    std::optional<Int> index;
    if (attribute.kind == TokenKind::Integer)
      index = parseInt(attribute.text, 0);
    if (!index)
      failAt(attribute.offset, "expected name or number");
    auto node = make(NodeKind::Item, token.offset);
    node->a = std::move(object);
    node->b = make(NodeKind::Const, attribute.offset);
    node->b->value = Value::integer(*index);
    return done(std::move(node));
  }
  std::vector<NodePtr> keys;
  bool slice = false;
  while (!isOp("]")) {
    if (!keys.empty() || slice)
      expectOp(",");
    if (slice)
      failHere("a slice inside a tuple of subscripts is not supported");
    NodePtr parts[3];
    if (!isOp(":"))
      parts[0] = expression();
    if (!isOp(":")) {
      keys.push_back(std::move(parts[0]));
      continue;
    }
    if (!keys.empty())
      failHere("a slice inside a tuple of subscripts is not supported");
    slice = true;
    for (int i = 1; i < 3 && skipOp(":"); ++i)
      if (!isOp(":") && !isOp("]") && !isOp(","))
        parts[i] = expression();
    for (auto &part : parts)
      keys.push_back(std::move(part));
  }
  expectOp("]");
  auto node = make(slice ? NodeKind::Slice : NodeKind::Item, token.offset);
  node->a = std::move(object);
  if (slice) {
    node->children = std::move(keys);
  } else if (keys.size() == 1) {
    node->b = std::move(keys[0]);
  } else {
    auto tuple = make(NodeKind::Tuple, token.offset);
    tuple->children = std::move(keys);
    node->b = done(std::move(tuple));
  }
  return done(std::move(node));
}

std::unique_ptr<CallArguments> GrammarParser::callArguments() {
  Deeper deeper(*this);
  auto out = std::make_unique<CallArguments>();
  uint32_t offset = current().offset;
  expectOp("(");
  bool comma = false;
  auto ensure = [&](bool valid) {
    if (!valid)
      failAt(offset, "invalid syntax for function call expression");
  };
  while (!isOp(")")) {
    if (comma) {
      expectOp(",");
      if (isOp(")"))
        break;
    }
    comma = true;
    if (skipOp("*")) {
      ensure(!out->star && !out->doubleStar);
      out->star = expression();
    } else if (skipOp("**")) {
      ensure(!out->doubleStar);
      out->doubleStar = expression();
    } else if (current().kind == TokenKind::Name &&
               look().kind == TokenKind::Operator && look().text == "=") {
      ensure(!out->doubleStar);
      std::string name = take().text;
      for (auto &other : out->named)
        if (other.first == name)
          failHere("keyword argument repeated: " + name);
      take();
      out->named.emplace_back(std::move(name), expression());
    } else {
      ensure(!out->star && !out->doubleStar && out->named.empty());
      out->positional.push_back(expression());
    }
  }
  expectOp(")");
  return out;
}

NodePtr GrammarParser::call(NodePtr callee) {
  auto node = make(NodeKind::Call, current().offset);
  node->a = std::move(callee);
  node->arguments = callArguments();
  return done(std::move(node));
}

NodePtr GrammarParser::filters(NodePtr input, bool startInline) {
  while (startInline || skipOp("|")) {
    startInline = false;
    auto node = make(NodeKind::Filter, current().offset);
    node->text = expectName();
    while (skipOp("."))
      node->text += "." + expectName();
    checkKnown(knownFilter(node->text), "filter", node->text, node->offset);
    node->a = std::move(input);
    node->arguments =
        isOp("(") ? callArguments() : std::make_unique<CallArguments>();
    input = done(std::move(node));
  }
  return input;
}

NodePtr GrammarParser::test(NodePtr input) {
  uint32_t offset = take().offset;
  bool negated = skipName("not");
  auto node = make(NodeKind::Test, current().offset);
  node->text = expectName();
  while (skipOp("."))
    node->text += "." + expectName();
  checkKnown(knownTest(node->text), "test", node->text, node->offset);
  node->a = std::move(input);
  node->arguments = std::make_unique<CallArguments>();
  TokenKind kind = current().kind;
  if (isOp("(")) {
    node->arguments = callArguments();
  } else if ((kind == TokenKind::Name || kind == TokenKind::String ||
              kind == TokenKind::Integer || kind == TokenKind::Float ||
              isOp("[") || isOp("{")) &&
             !isName("else") && !isName("or") && !isName("and")) {
    if (isName("is"))
      failHere("You cannot chain multiple tests with is");
    Deeper deeper(*this);
    node->arguments->positional.push_back(postfix(primary()));
  }
  NodePtr out = done(std::move(node));
  if (!negated)
    return out;
  auto inverse = make(NodeKind::Not, offset);
  inverse->a = std::move(out);
  return done(std::move(inverse));
}

} // namespace ingot::jinja
