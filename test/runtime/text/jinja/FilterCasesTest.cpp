// The filters that are programs of their own, on random inputs, compared with
// what Jinja2 makes of them (FilterCases.json, by GenerateFilterCases.py).
#include "Support.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

using namespace ingot;
using namespace ingot::jinjatest;
using Json = nlohmann::ordered_json;

TEST(JinjaFilterCases, SameAsTheReference) {
  Json cases =
      Json::parse(readFile(std::string(INGOT_SOURCE_DIR) +
                           "/test/runtime/text/jinja/FilterCases.json"));
  ASSERT_GT(cases.size(), 600u);
  int different = 0;
  for (const Json &entry : cases) {
    Request request;
    request.normalizeMessages = false;
    request.messages =
        Json::array({{{"role", "user"}, {"content", entry["value"]}}}).dump();
    std::string source = entry["template"];
    auto out = render(source, request);
    if (entry.contains("error")) {
      EXPECT_FALSE(out.isOk())
          << entry << "\nrendered: " << (out.isOk() ? out->text : "");
      continue;
    }
    ASSERT_TRUE(out.isOk()) << entry << "\n" << out.status().message();
    EXPECT_EQ(out->text, entry["output"].get<std::string>()) << entry;
    different += out->text != entry["output"].get<std::string>();
    ASSERT_LT(different, 10);
  }
}

// Chance: every item comes, and nothing else.
TEST(JinjaFilterCases, RandomItems) {
  std::set<std::string> seen;
  for (int i = 0; i < 400 && seen.size() < 3; ++i) {
    auto out = render("{{ ['a', 'b', 'c']|random }}");
    ASSERT_TRUE(out.isOk()) << out.status().message();
    seen.insert(out->text);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a", "b", "c"}));
}

// Hostile inputs end with an error or a result, within the limits of a render.
TEST(JinjaFilterCases, HostileInputs) {
  RenderLimits limits;
  limits.steps = 200'000;
  limits.outputBytes = 1 << 20;
  for (std::string text :
       {std::string(200'000, '('), std::string(200'000, '<'),
        std::string(200'000, '-'), "http://" + std::string(100'000, 'a'),
        "www." +
            [] {
              std::string dots;
              for (int i = 0; i < 50'000; ++i)
                dots += "a.";
              return dots;
            }(),
        std::string(100'000, '&'),
        [] {
          std::string at;
          for (int i = 0; i < 50'000; ++i)
            at += "@a";
          return at;
        }(),
        std::string(200'000, ' ')}) {
    Request request;
    request.limits = limits;
    request.messages =
        Json::array({{{"role", "user"}, {"content", text}}}).dump();
    for (const char *filter : {"urlize", "striptags", "wordwrap(1)",
                               "wordwrap(79)", "pprint", "safe|urlize"}) {
      auto out = render(std::string("{{ messages[0].content|") + filter + " }}",
                        request);
      if (out.isOk())
        EXPECT_LE(out->text.size(), limits.outputBytes) << filter;
      else
        EXPECT_NE(out.status().message().find("line 1"), std::string::npos)
            << filter << ": " << out.status().message();
    }
  }
}
