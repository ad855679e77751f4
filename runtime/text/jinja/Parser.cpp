// See Parser.h. One function per level of precedence, loosest first.
#include "runtime/text/jinja/Parser.h"

#include "runtime/text/jinja/Lexer.h"
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <optional>

namespace ingot::jinja {
namespace {

// Deep trees would overflow the stack of whoever walks them.
constexpr uint32_t maxTreeDepth = 250;
constexpr int maxParseDepth = 120;

class Parser {
public:
  Parser(Program &program, std::vector<Token> tokens)
      : program_(program), tokens_(std::move(tokens)) {}
  void run();
  uint32_t failureOffset() const { return failureOffset_; }

private:
  using EndTags = std::initializer_list<std::string_view>;

  const Token &current() const { return tokens_[next_]; }
  const Token &look() const {
    return tokens_[std::min(next_ + 1, tokens_.size() - 1)];
  }
  Token take() {
    Token token = current();
    if (next_ + 1 < tokens_.size())
      ++next_;
    return token;
  }
  bool isOp(std::string_view op) const {
    return current().kind == TokenKind::Operator && current().text == op;
  }
  bool isName(std::string_view name) const {
    return current().kind == TokenKind::Name && current().text == name;
  }
  bool skipOp(std::string_view op) { return isOp(op) && (take(), true); }
  bool skipName(std::string_view name) {
    return isName(name) && (take(), true);
  }
  void expectOp(std::string_view op) {
    if (!skipOp(op))
      expected(quoted(op));
  }
  std::string expectName();
  void expectKind(TokenKind kind, const char *what) {
    if (current().kind != kind)
      expected(what);
    take();
  }
  std::string describe(const Token &token) const;
  [[noreturn]] void expected(const std::string &what) {
    failHere(current().kind == TokenKind::End
                 ? "unexpected end of template, expected " + what
                 : "expected " + what + ", got " + describe(current()));
  }
  [[noreturn]] void failHere(std::string message) {
    failAt(current().offset, std::move(message));
  }
  [[noreturn]] void failAt(uint32_t offset, std::string message) {
    failureOffset_ = offset;
    fail(std::move(message));
  }

  struct Deeper {
    explicit Deeper(Parser &parser) : parser(parser) {
      if (++parser.depth_ > maxParseDepth)
        parser.failHere("the template is nested too deeply (more than " +
                        std::to_string(maxParseDepth) + " levels)");
    }
    ~Deeper() { --parser.depth_; }
    Parser &parser;
  };

  NodePtr make(NodeKind kind, uint32_t offset) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->offset = offset;
    return node;
  }
  // Sets the depth from the children; every node passes through here.
  NodePtr done(NodePtr node);
  uint32_t nameId(const std::string &name);
  NodePtr constant(Text text, uint32_t offset);

  // statements
  Body statements(EndTags endTags);
  Body subparse(EndTags endTags);
  NodePtr statement();
  NodePtr parseFor();
  NodePtr parseIf();
  NodePtr parseSet();
  NodePtr parseWith();
  NodePtr parseMacro();
  NodePtr parseCallBlock();
  NodePtr parseFilterBlock();
  NodePtr parseGeneration();
  NodePtr parsePrint();
  void parameters(Node &macro);
  Body macroBody(Node &macro, EndTags endTags);
  NodePtr target(bool namespaces, std::string_view end = "");
  NodePtr singleTarget(bool namespaces);

  // expressions
  NodePtr tuple(bool choose, std::string_view end = "", bool parens = false);
  NodePtr expression(bool choose = true);
  NodePtr orExpression();
  NodePtr andExpression();
  NodePtr notExpression();
  NodePtr compare();
  NodePtr sum();
  NodePtr concat();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool filters = true);
  NodePtr primary();
  NodePtr postfix(NodePtr node);
  NodePtr filterExpression(NodePtr node);
  NodePtr subscript(NodePtr node);
  NodePtr call(NodePtr node);
  NodePtr filters(NodePtr node, bool startInline = false);
  NodePtr test(NodePtr node);
  std::unique_ptr<CallArguments> callArguments();
  NodePtr binaryNode(BinaryOp op, NodePtr a, NodePtr b, uint32_t offset);

  void checkKnown(Known known, const char *what, const std::string &name,
                  uint32_t offset);

  Program &program_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  uint32_t failureOffset_ = 0;
  std::vector<std::string> openTags_;
  std::vector<Node *> macros_; // the macros being parsed, outermost first
  int loops_ = 0;              // loops around, within the innermost macro
  // Inside `if` and inline-if Jinja reports unknown filters only when reached.
  bool soft_ = false;
  // Unknown names found so far; an inline-if that follows may excuse them.
  std::vector<std::pair<uint32_t, std::string>> unknown_;
};

std::string Parser::describe(const Token &token) const {
  switch (token.kind) {
  case TokenKind::Data:
    return "template text";
  case TokenKind::VariableBegin:
    return "begin of print statement";
  case TokenKind::VariableEnd:
    return "end of print statement";
  case TokenKind::BlockBegin:
    return "begin of statement block";
  case TokenKind::BlockEnd:
    return "end of statement block";
  case TokenKind::End:
    return "end of template";
  case TokenKind::String:
    return "a string";
  default:
    return quoted(token.text);
  }
}

std::string Parser::expectName() {
  if (current().kind != TokenKind::Name)
    expected("a name");
  return take().text;
}

uint32_t Parser::nameId(const std::string &name) {
  auto [it, added] =
      program_.nameIds.try_emplace(name, uint32_t(program_.names.size()));
  if (added)
    program_.names.push_back(name);
  return it->second;
}

NodePtr Parser::done(NodePtr node) {
  uint32_t depth = 0;
  auto see = [&](const NodePtr &child) {
    if (child)
      depth = std::max(depth, child->depth);
  };
  see(node->a), see(node->b), see(node->c);
  for (auto &child : node->children)
    see(child);
  if (node->arguments) {
    for (auto &child : node->arguments->positional)
      see(child);
    for (auto &child : node->arguments->named)
      see(child.second);
    see(node->arguments->star), see(node->arguments->doubleStar);
  }
  for (auto &body : node->bodies)
    for (auto &child : body)
      see(child);
  for (auto &child : node->body)
    see(child);
  for (auto &child : node->orElse)
    see(child);
  for (auto &child : node->parameters)
    see(child.second);
  node->depth = depth + 1;
  if (node->depth > maxTreeDepth)
    failAt(node->offset, "the template is nested too deeply (more than " +
                             std::to_string(maxTreeDepth) + " levels)");
  return node;
}

NodePtr Parser::constant(Text text, uint32_t offset) {
  auto node = make(NodeKind::Const, offset);
  auto object = std::make_shared<StringObject>();
  object->text = std::move(text);
  node->value = Value(Value::Storage(StringPtr(std::move(object))));
  return done(std::move(node));
}

void Parser::checkKnown(Known known, const char *what, const std::string &name,
                        uint32_t offset) {
  if (known == Known::Unsupported) {
    failureOffset_ = offset;
    failUnsupported(std::string("the ") + what + " " + quoted(name) +
                    " is not supported");
  }
  if (known == Known::No && !soft_)
    unknown_.emplace_back(offset, std::string("No ") + what + " named " +
                                      quoted(name) + ".");
}

// --- statements

void Parser::run() {
  for (const char *name : {"loop", "caller", "varargs", "kwargs"})
    nameId(name);
  program_.body = subparse({});
  if (!unknown_.empty())
    failAt(unknown_[0].first, unknown_[0].second);
}

Body Parser::statements(EndTags endTags) {
  skipOp(":");
  expectKind(TokenKind::BlockEnd, "end of statement block");
  Body body = subparse(endTags);
  if (current().kind == TokenKind::End) {
    std::string wanted;
    for (std::string_view tag : endTags)
      wanted += (wanted.empty() ? "" : " or ") + quoted(tag);
    std::string message = "Unexpected end of template. Jinja was looking for "
                          "the following tags: " +
                          wanted + ".";
    if (!openTags_.empty())
      message += " The innermost block that needs to be closed is " +
                 quoted(openTags_.back()) + ".";
    failHere(message);
  }
  return body;
}

// Ends before the name of an end tag, or at the end of the template.
Body Parser::subparse(EndTags endTags) {
  Deeper deeper(*this);
  Body body;
  for (;;) {
    uint32_t offset = current().offset;
    switch (current().kind) {
    case TokenKind::End:
      return body;
    case TokenKind::Data: {
      auto node = make(NodeKind::Data, offset);
      auto object = std::make_shared<StringObject>();
      object->text = Text(take().text, Origin::Template);
      node->value = Value(Value::Storage(StringPtr(std::move(object))));
      body.push_back(done(std::move(node)));
      break;
    }
    case TokenKind::VariableBegin: {
      take();
      auto node = make(NodeKind::Print, offset);
      node->children.push_back(tuple(true));
      expectKind(TokenKind::VariableEnd, "end of print statement");
      body.push_back(done(std::move(node)));
      break;
    }
    default: {
      expectKind(TokenKind::BlockBegin, "begin of statement block");
      if (current().kind == TokenKind::Name &&
          std::find(endTags.begin(), endTags.end(), current().text) !=
              endTags.end())
        return body;
      body.push_back(done(statement()));
      expectKind(TokenKind::BlockEnd, "end of statement block");
    }
    }
  }
}

NodePtr Parser::statement() {
  if (current().kind != TokenKind::Name)
    failHere("tag name expected");
  static const std::pair<std::string_view, NodePtr (Parser::*)()> tags[] = {
      {"for", &Parser::parseFor},
      {"if", &Parser::parseIf},
      {"set", &Parser::parseSet},
      {"with", &Parser::parseWith},
      {"macro", &Parser::parseMacro},
      {"call", &Parser::parseCallBlock},
      {"filter", &Parser::parseFilterBlock},
      {"generation", &Parser::parseGeneration},
      {"print", &Parser::parsePrint},
  };
  std::string tag = current().text;
  for (auto &[name, parse] : tags) {
    if (tag != name)
      continue;
    openTags_.push_back(tag);
    NodePtr node = (this->*parse)();
    openTags_.pop_back();
    return node;
  }
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0)
      failHere(quoted(tag) + " outside of a loop");
    return make(tag == "break" ? NodeKind::Break : NodeKind::Continue,
                take().offset);
  }
  for (std::string_view known :
       {"block", "extends", "include", "import", "from", "autoescape"})
    if (tag == known) {
      failureOffset_ = current().offset;
      failUnsupported("the tag " + quoted(tag) +
                      " is not supported in chat templates");
    }
  std::string message = "Encountered unknown tag " + quoted(tag) + ".";
  if (!openTags_.empty())
    message += " The innermost block that needs to be closed is " +
               quoted(openTags_.back()) + ".";
  failHere(message);
}

NodePtr Parser::parseFor() {
  auto node = make(NodeKind::For, take().offset);
  node->a = target(false, "in");
  std::vector<const Node *> names{node->a.get()};
  while (!names.empty()) {
    const Node *name = names.back();
    names.pop_back();
    if (name->kind == NodeKind::TargetName && name->name == NameLoop)
      failAt(name->offset, "Can't assign to special loop variable in for-loop");
    for (auto &child : name->children)
      names.push_back(child.get());
  }
  if (!skipName("in"))
    expected("'in'");
  node->b = tuple(false, "recursive");
  if (skipName("if"))
    node->c = expression();
  node->recursive = skipName("recursive");
  bool soft = std::exchange(soft_, false);
  ++loops_;
  node->body = statements({"endfor", "else"});
  --loops_;
  if (take().text == "else") {
    node->orElse = statements({"endfor"});
    take();
  }
  soft_ = soft;
  return node;
}

NodePtr Parser::parseIf() {
  auto node = make(NodeKind::If, take().offset);
  bool soft = std::exchange(soft_, true);
  for (;;) {
    node->children.push_back(tuple(false));
    node->bodies.push_back(statements({"elif", "else", "endif"}));
    std::string tag = take().text;
    if (tag == "elif")
      continue;
    if (tag == "else") {
      node->orElse = statements({"endif"});
      take();
    }
    break;
  }
  soft_ = soft;
  return node;
}

NodePtr Parser::parseSet() {
  uint32_t offset = take().offset;
  NodePtr to = target(true);
  if (skipOp("=")) {
    auto node = make(NodeKind::Set, offset);
    node->a = std::move(to);
    node->b = tuple(true);
    return node;
  }
  auto node = make(NodeKind::SetBlock, offset);
  node->a = std::move(to);
  bool soft = std::exchange(soft_, false);
  node->b = filters(nullptr);
  node->body = statements({"endset"});
  take();
  soft_ = soft;
  return node;
}

NodePtr Parser::parseWith() {
  auto node = make(NodeKind::With, take().offset);
  std::vector<NodePtr> values;
  while (current().kind != TokenKind::BlockEnd) {
    if (!values.empty())
      expectOp(",");
    node->children.push_back(target(false));
    expectOp("=");
    values.push_back(expression());
  }
  for (auto &value : values)
    node->children.push_back(std::move(value));
  bool soft = std::exchange(soft_, false);
  node->body = statements({"endwith"});
  take();
  soft_ = soft;
  return node;
}

void Parser::parameters(Node &macro) {
  expectOp("(");
  bool defaults = false;
  while (!isOp(")")) {
    if (!macro.parameters.empty())
      expectOp(",");
    uint32_t offset = current().offset;
    uint32_t name = nameId(expectName());
    for (auto &other : macro.parameters)
      if (other.first == name)
        failAt(offset, "duplicate argument " + quoted(program_.names[name]) +
                           " in macro definition");
    NodePtr value;
    if (skipOp("=")) {
      value = expression();
      defaults = true;
    } else if (defaults) {
      failAt(offset, "non-default argument follows default argument");
    }
    macro.parameters.emplace_back(name, std::move(value));
  }
  expectOp(")");
}

Body Parser::macroBody(Node &macro, EndTags endTags) {
  macros_.push_back(&macro);
  int loops = std::exchange(loops_, 0);
  bool soft = std::exchange(soft_, false);
  Body body = statements(endTags);
  take();
  soft_ = soft;
  loops_ = loops;
  macros_.pop_back();
  return body;
}

NodePtr Parser::parseMacro() {
  auto node = make(NodeKind::Macro, take().offset);
  node->text = expectName();
  node->name = nameId(node->text);
  parameters(*node);
  node->body = macroBody(*node, {"endmacro"});
  return node;
}

NodePtr Parser::parseCallBlock() {
  auto node = make(NodeKind::CallBlock, take().offset);
  auto macro = make(NodeKind::Macro, node->offset);
  macro->text = "caller";
  macro->name = NameCaller;
  if (isOp("("))
    parameters(*macro);
  node->a = expression();
  if (node->a->kind != NodeKind::Call)
    failAt(node->a->offset, "expected call");
  macro->body = macroBody(*macro, {"endcall"});
  node->b = done(std::move(macro));
  return node;
}

NodePtr Parser::parseFilterBlock() {
  auto node = make(NodeKind::FilterBlock, take().offset);
  bool soft = std::exchange(soft_, false);
  node->a = filters(nullptr, true);
  node->body = statements({"endfilter"});
  take();
  soft_ = soft;
  return node;
}

NodePtr Parser::parseGeneration() {
  auto node = make(NodeKind::Generation, take().offset);
  Node scope; // `generation` is a call block: loops outside do not reach in
  node->body = macroBody(scope, {"endgeneration"});
  return node;
}

NodePtr Parser::parsePrint() {
  auto node = make(NodeKind::Print, take().offset);
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->children.empty())
      expectOp(",");
    node->children.push_back(expression());
  }
  return node;
}

NodePtr Parser::singleTarget(bool namespaces) {
  Token token = current();
  Deeper deeper(*this);
  if (skipOp("(")) {
    auto node = make(NodeKind::TargetTuple, token.offset);
    while (!isOp(")")) {
      node->children.push_back(singleTarget(false));
      if (!isOp(")"))
        expectOp(",");
    }
    expectOp(")");
    return done(std::move(node));
  }
  if (token.kind != TokenKind::Name)
    failHere("expected a name to assign to, got " + describe(token));
  for (std::string_view word :
       {"true", "false", "none", "True", "False", "None"})
    if (token.text == word)
      failHere("can't assign to " + quoted(word));
  take();
  auto node = make(NodeKind::TargetName, token.offset);
  node->name = nameId(token.text);
  if (namespaces && skipOp(".")) {
    node->kind = NodeKind::TargetNamespace;
    node->text = expectName();
  }
  return done(std::move(node));
}

NodePtr Parser::target(bool namespaces, std::string_view end) {
  uint32_t offset = current().offset;
  std::vector<NodePtr> items;
  bool isTuple = false;
  for (;;) {
    if (!items.empty() && isTuple &&
        (current().kind == TokenKind::BlockEnd || isOp("=") ||
         (!end.empty() && isName(end))))
      break;
    items.push_back(singleTarget(namespaces));
    if (!skipOp(","))
      break;
    isTuple = true;
  }
  if (!isTuple)
    return std::move(items[0]);
  auto node = make(NodeKind::TargetTuple, offset);
  node->children = std::move(items);
  return done(std::move(node));
}

// --- expressions

NodePtr Parser::tuple(bool choose, std::string_view end, bool parens) {
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

NodePtr Parser::expression(bool choose) {
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

NodePtr Parser::orExpression() {
  NodePtr left = andExpression();
  while (isName("or")) {
    auto node = make(NodeKind::Or, take().offset);
    node->a = std::move(left);
    node->b = andExpression();
    left = done(std::move(node));
  }
  return left;
}

NodePtr Parser::andExpression() {
  NodePtr left = notExpression();
  while (isName("and")) {
    auto node = make(NodeKind::And, take().offset);
    node->a = std::move(left);
    node->b = notExpression();
    left = done(std::move(node));
  }
  return left;
}

NodePtr Parser::notExpression() {
  if (!isName("not"))
    return compare();
  Deeper deeper(*this);
  auto node = make(NodeKind::Not, take().offset);
  node->a = notExpression();
  return done(std::move(node));
}

NodePtr Parser::compare() {
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

NodePtr Parser::binaryNode(BinaryOp op, NodePtr a, NodePtr b, uint32_t offset) {
  auto node = make(NodeKind::Binary, offset);
  node->op = static_cast<uint8_t>(op);
  node->a = std::move(a);
  node->b = std::move(b);
  return done(std::move(node));
}

NodePtr Parser::sum() {
  NodePtr left = concat();
  while (isOp("+") || isOp("-")) {
    Token token = take();
    NodePtr right = concat();
    left = binaryNode(token.text == "+" ? BinaryOp::Add : BinaryOp::Sub,
                      std::move(left), std::move(right), token.offset);
  }
  return left;
}

NodePtr Parser::concat() {
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

NodePtr Parser::product() {
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

NodePtr Parser::power() {
  NodePtr left = unary();
  while (isOp("**")) {
    uint32_t offset = take().offset;
    NodePtr right = unary();
    left = binaryNode(BinaryOp::Pow, std::move(left), std::move(right), offset);
  }
  return left;
}

NodePtr Parser::unary(bool withFilters) {
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

NodePtr Parser::primary() {
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

NodePtr Parser::postfix(NodePtr node) {
  for (;;) {
    if (isOp(".") || isOp("["))
      node = subscript(std::move(node));
    else if (isOp("("))
      node = call(std::move(node));
    else
      return node;
  }
}

NodePtr Parser::filterExpression(NodePtr node) {
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

NodePtr Parser::subscript(NodePtr object) {
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

std::unique_ptr<CallArguments> Parser::callArguments() {
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

NodePtr Parser::call(NodePtr callee) {
  auto node = make(NodeKind::Call, current().offset);
  node->a = std::move(callee);
  node->arguments = callArguments();
  return done(std::move(node));
}

NodePtr Parser::filters(NodePtr input, bool startInline) {
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

NodePtr Parser::test(NodePtr input) {
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

} // namespace

Result<std::shared_ptr<const Program>> parseProgram(std::string source) {
  auto program = std::make_shared<Program>();
  program->source = std::move(source);
  INGOT_ASSIGN_OR_RETURN(auto tokens, tokenize(program->source));
  Parser parser(*program, std::move(tokens));
  try {
    parser.run();
  } catch (const Failure &failure) {
    return Status(failure.code, located(program->source, parser.failureOffset(),
                                        failure.message));
  }
  return std::shared_ptr<const Program>(std::move(program));
}

} // namespace ingot::jinja
