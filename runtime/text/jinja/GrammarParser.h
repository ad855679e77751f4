// The parser's insides, which Parser.cpp, StatementParser.cpp and
// ExpressionParser.cpp share: one recursive descent over the tokens. Failures are
// thrown inside of it and caught by parseProgram.
#pragma once

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Lexer.h"
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::jinja {

// Deep trees would overflow the stack of whoever walks them.
constexpr uint32_t maxTreeDepth = 250;
constexpr int maxParseDepth = 120;

class GrammarParser {
public:
  GrammarParser(Program &program, std::vector<Token> tokens)
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
    explicit Deeper(GrammarParser &parser) : parser(parser) {
      if (++parser.depth_ > maxParseDepth)
        parser.failHere("the template is nested too deeply (more than " +
                        std::to_string(maxParseDepth) + " levels)");
    }
    ~Deeper() { --parser.depth_; }
    GrammarParser &parser;
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

  void checkKnown(bool known, const char *what, const std::string &name,
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

} // namespace ingot::jinja
