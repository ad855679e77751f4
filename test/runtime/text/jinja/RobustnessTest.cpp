// Hostile templates end with an error: no hang, no overflow, no crash.
#include "Support.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

using namespace ingot;
using namespace ingot::jinjatest;

static void expectError(const std::string &source, const char *part) {
  std::string out = text(source);
  EXPECT_TRUE(out.starts_with("ERROR: chat template: ") &&
              out.find(part) != std::string::npos)
      << source.substr(0, 200) << "\n"
      << out.substr(0, 300);
}

static std::string repeat(const std::string &part, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += part;
  return out;
}

TEST(JinjaLimits, EndlessWork) {
  expectError("{% for a in range(100000) %}{% for b in range(100000) %}"
              "{% endfor %}{% endfor %}",
              "steps");
  expectError("{% set ns = namespace(s='x') %}{% for i in range(100) %}"
              "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
              "limit");
  expectError("{% set ns = namespace(l=[1]) %}{% for i in range(100) %}"
              "{% set ns.l = ns.l + ns.l %}{% endfor %}",
              "");
  expectError("{{ 'x' * 1000000000 }}", "limit");
  expectError("{{ [1] * 1000000000 }}", "too long");
  expectError("{{ '%999999999d' % 1 }}", "too big");
  expectError("{{ 'a'.center(999999999999) }}", "limit");
  expectError("{% set b = 'x' * 100000 %}{% for i in range(10000) %}{{ b }}"
              "{% endfor %}",
              "the output exceeds its limit");
  // Shared lists print as a tree of exponential size.
  expectError("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}"
              "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
              "");
  expectError("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}"
              "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}",
              "");
}

TEST(JinjaLimits, Recursion) {
  expectError("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recurses");
  expectError("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
              "recurses");
  expectError("{% set ns = namespace(l=[]) %}{% for i in range(90000) %}"
              "{% set ns.l = [ns.l] %}{% endfor %}",
              "nested too deeply");
  expectError("{% set ns = namespace() %}{% set ns.n = ns %}{{ ns }}",
              "nested too deeply");
  for (const char *part :
       {"(", "[", "{'a':", "-", "not ", "a.b(", "1 if ", "{% if 1 %}",
        "{% for x in [1] %}", "a|map(", "1 + (", "x is "})
    for (int count : {1000, 100000}) {
      std::string body = repeat(part, count);
      EXPECT_FALSE(
          ChatTemplate::parse(body[1] == '%' ? body : "{{ " + body).isOk())
          << part;
    }
  for (const char *part : {" + 1", ".a", " and 1", "|trim", "[0]", "()"})
    EXPECT_FALSE(
        ChatTemplate::parse("{{ a" + repeat(part, 100000) + " }}").isOk())
        << part;
}

TEST(JinjaLimits, DeepInput) {
  Request request;
  request.messages = R"([{"role":"user","content":)" + repeat("[", 400) +
                     repeat("]", 400) + "}]";
  EXPECT_NE(text("x", request).find("nested too deeply"), std::string::npos);
}

TEST(JinjaLimits, CallersMayLowerThem) {
  Request request;
  request.limits.steps = 100;
  EXPECT_NE(text("{% for i in range(1000) %}x{% endfor %}", request)
                .find("its 100 steps"),
            std::string::npos);
  request = {};
  request.limits.outputBytes = 10;
  EXPECT_NE(text("0123456789x", request).find("limit of 10 bytes"),
            std::string::npos);
  request = {};
  request.limits.memoryBytes = 100000;
  EXPECT_NE(text("{{ range(10000)|list }}", request).find("bytes of memory"),
            std::string::npos);
}

TEST(JinjaThreads, OneTemplateManyThreads) {
  std::string source =
      "{% macro m(x) %}{{ x|upper }}{% endmacro %}"
      "{% for m2 in messages %}{{ m(m2.content) }}{% endfor %}";
  auto parsed = ChatTemplate::parse(source);
  ASSERT_TRUE(parsed.isOk());
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        right[t] += text(source, user("abc")) == "ABC";
    });
  for (auto &thread : threads)
    thread.join();
  for (int count : right)
    EXPECT_EQ(count, 50);
}

// Changes real templates at random: every outcome but a crash is fine, and
// user ranges always lie in order within the text.
TEST(JinjaFuzz, MutatedTemplates) {
  std::vector<std::string> seeds = {
      "{% macro f(a, b=1) %}{{ a ~ b }}{% endmacro %}{{ f('x', b=2) }}",
      "{% for k, v in messages[0].items() if k != 'x' %}{{ loop.index }}"
      "{{ k|upper }}={{ v[1:]|tojson(indent=2) }}{% else %}-{% endfor %}",
      "{% set ns = namespace(a=[1]) %}{% set ns.a = ns.a + [2] %}"
      "{{ '%5s{:>4}' % ns.a[::-1] }}{{ '{:>4} {0[a].b!r:^{}}'.format(1, 2) }}",
      "{%- raw -%} x {%- endraw %}{# c #}{{ 'a\\n\\x41'.split('a', 1)|join }}",
      "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute="
      "'content')|list|sort|batch(2, 0)|list }}{{ 1.5e3 // -2 ** 2 }}",
  };
  std::string folder =
      std::string(INGOT_SHARED_DIR) + "/data/chat-templates/templates";
  bool hasShared = std::filesystem::exists(folder);
  if (hasShared)
    for (auto &file : std::filesystem::directory_iterator(folder))
      seeds.push_back(readFile(file.path()));
  static const char *pieces[] = {"{%",
                                 "%}",
                                 "{{",
                                 "}}",
                                 "{#",
                                 "#}",
                                 "-%}",
                                 "{%-",
                                 "if ",
                                 "for ",
                                 "in ",
                                 "endif ",
                                 "else ",
                                 "endfor ",
                                 "(",
                                 ")",
                                 "[",
                                 "]",
                                 "|",
                                 ".",
                                 ":",
                                 "'",
                                 "\"",
                                 "\\",
                                 "~",
                                 "**",
                                 "9999999999999999999999",
                                 "1e999",
                                 "-1",
                                 "not ",
                                 "is ",
                                 "loop",
                                 "|tojson",
                                 "|length",
                                 "|join",
                                 "[::-1]",
                                 "%s",
                                 "{}",
                                 ".format(",
                                 " recursive",
                                 "caller()",
                                 "\xc3\xa9",
                                 "\n",
                                 ", ",
                                 "= ",
                                 "|map('upper')",
                                 "|list",
                                 "* 100000",
                                 "namespace()",
                                 "set x = "};
  Request request;
  request.messages =
      R"([{"role":"system","content":"Be."},{"role":"user","content":"ä <|x|>"},
          {"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi",
            "type":"function","function":{"name":"f","arguments":{"a":1}}}]},
          {"role":"tool","content":"{}","tool_call_id":"abcdefghi"}])";
  request.tools = R"([{"type":"function","function":{"name":"f",
      "description":"d","parameters":{"type":"object","properties":{}}}}])";
  request.limits.steps = 200000;
  std::mt19937 random(20250115);
  auto below = [&](size_t n) { return random() % n; };
  int rendered = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string source = seeds[below(seeds.size())];
    for (size_t k = 1 + below(4); k > 0 && !source.empty(); --k) {
      size_t at = below(source.size());
      switch (below(4)) {
      case 0:
        source.erase(at, 1 + below(8));
        break;
      case 1:
        source.insert(at, pieces[below(std::size(pieces))]);
        break;
      case 2:
        source[at] = char(32 + below(95));
        break;
      default:
        source.insert(at, source.substr(below(source.size()), below(40)));
      }
    }
    auto out = render(source, request);
    if (!out) {
      EXPECT_FALSE(out.status().message().empty());
      continue;
    }
    ++rendered;
    size_t end = 0;
    for (size_t i = 0; i < out->userRanges.size(); ++i) {
      EXPECT_TRUE(i == 0 || out->userRanges[i].begin > end);
      EXPECT_LT(out->userRanges[i].begin, out->userRanges[i].end);
      end = out->userRanges[i].end;
    }
    EXPECT_LE(end, out->text.size());
  }
  // Most templates of models render with a few characters changed.
  EXPECT_GT(rendered, hasShared ? 500 : 100);
}
