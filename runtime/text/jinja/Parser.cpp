// See Parser.h. What statements and expressions have in common.
#include "runtime/text/jinja/Parser.h"

#include "runtime/text/jinja/GrammarParser.h"

namespace ingot::jinja {

std::string GrammarParser::describe(const Token &token) const {
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

std::string GrammarParser::expectName() {
  if (current().kind != TokenKind::Name)
    expected("a name");
  return take().text;
}

uint32_t GrammarParser::nameId(const std::string &name) {
  auto [it, added] =
      program_.nameIds.try_emplace(name, uint32_t(program_.names.size()));
  if (added)
    program_.names.push_back(name);
  return it->second;
}

NodePtr GrammarParser::done(NodePtr node) {
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

NodePtr GrammarParser::constant(Text text, uint32_t offset) {
  auto node = make(NodeKind::Const, offset);
  auto object = std::make_shared<StringObject>();
  object->text = std::move(text);
  node->value = Value(Value::Storage(StringPtr(std::move(object))));
  return done(std::move(node));
}

void GrammarParser::checkKnown(bool known, const char *what,
                               const std::string &name, uint32_t offset) {
  if (!known && !soft_)
    unknown_.emplace_back(offset, std::string("No ") + what + " named " +
                                      quoted(name) + ".");
}

void GrammarParser::run() {
  for (const char *name : {"loop", "caller", "varargs", "kwargs"})
    nameId(name);
  program_.body = subparse({});
  if (!unknown_.empty())
    failAt(unknown_[0].first, unknown_[0].second);
}

Result<std::shared_ptr<const Program>> parseProgram(std::string source) {
  auto program = std::make_shared<Program>();
  program->source = std::move(source);
  INGOT_ASSIGN_OR_RETURN(auto tokens, tokenize(program->source));
  GrammarParser parser(*program, std::move(tokens));
  try {
    parser.run();
  } catch (const Failure &failure) {
    return Status(failure.code, located(program->source, parser.failureOffset(),
                                        failure.message));
  }
  return std::shared_ptr<const Program>(std::move(program));
}

} // namespace ingot::jinja
