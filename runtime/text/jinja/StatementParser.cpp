// The statements of the grammar: one function a tag.
#include "runtime/text/jinja/GrammarParser.h"

#include <algorithm>

namespace ingot::jinja {

Body GrammarParser::statements(EndTags endTags) {
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
Body GrammarParser::subparse(EndTags endTags) {
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

NodePtr GrammarParser::statement() {
  if (current().kind != TokenKind::Name)
    failHere("tag name expected");
  static const std::pair<std::string_view, NodePtr (GrammarParser::*)()>
      tags[] = {
          {"for", &GrammarParser::parseFor},
          {"if", &GrammarParser::parseIf},
          {"set", &GrammarParser::parseSet},
          {"with", &GrammarParser::parseWith},
          {"macro", &GrammarParser::parseMacro},
          {"call", &GrammarParser::parseCallBlock},
          {"filter", &GrammarParser::parseFilterBlock},
          {"generation", &GrammarParser::parseGeneration},
          {"print", &GrammarParser::parsePrint},
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

NodePtr GrammarParser::parseFor() {
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

NodePtr GrammarParser::parseIf() {
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

NodePtr GrammarParser::parseSet() {
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

NodePtr GrammarParser::parseWith() {
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

void GrammarParser::parameters(Node &macro) {
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

Body GrammarParser::macroBody(Node &macro, EndTags endTags) {
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

NodePtr GrammarParser::parseMacro() {
  auto node = make(NodeKind::Macro, take().offset);
  node->text = expectName();
  node->name = nameId(node->text);
  parameters(*node);
  node->body = macroBody(*node, {"endmacro"});
  return node;
}

NodePtr GrammarParser::parseCallBlock() {
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

NodePtr GrammarParser::parseFilterBlock() {
  auto node = make(NodeKind::FilterBlock, take().offset);
  bool soft = std::exchange(soft_, false);
  node->a = filters(nullptr, true);
  node->body = statements({"endfilter"});
  take();
  soft_ = soft;
  return node;
}

NodePtr GrammarParser::parseGeneration() {
  auto node = make(NodeKind::Generation, take().offset);
  Node scope; // `generation` is a call block: loops outside do not reach in
  node->body = macroBody(scope, {"endgeneration"});
  return node;
}

NodePtr GrammarParser::parsePrint() {
  auto node = make(NodeKind::Print, take().offset);
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->children.empty())
      expectOp(",");
    node->children.push_back(expression());
  }
  return node;
}

NodePtr GrammarParser::singleTarget(bool namespaces) {
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

NodePtr GrammarParser::target(bool namespaces, std::string_view end) {
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

} // namespace ingot::jinja
