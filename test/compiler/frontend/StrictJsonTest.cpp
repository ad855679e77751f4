// The JSON of model files is hostile text: what two readers could read in two
// ways is refused.
#include "compiler/frontend/StrictJson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

std::string faultOf(const std::string &text) {
  auto result = parseStrictJson(text, "x.json");
  return result.isOk() ? "" : result.status().message();
}

TEST(StrictJson, KeepsValues) {
  auto result = parseStrictJson(
      R"({"a":[1,-2,3.5,true,null,"s"],"b":{"c":[[],{}]}})", "x.json");
  ASSERT_TRUE(result.isOk()) << result.status().message();
  EXPECT_EQ(*result,
            nlohmann::json::parse(
                R"({"a":[1,-2,3.5,true,null,"s"],"b":{"c":[[],{}]}})"));
}

TEST(StrictJson, RefusesDuplicateKeys) {
  EXPECT_THAT(faultOf(R"({"a":1,"a":1})"),
              HasSubstr("key \"a\" is given twice"));
  EXPECT_THAT(faultOf(R"({"x":[{"a":1,"b":2,"a":{}}]})"),
              HasSubstr("key \"a\" is given twice"));
  // An escape spells the same key.
  EXPECT_THAT(faultOf(R"({"a":1,"\u0061":1})"), HasSubstr("given twice"));
}

TEST(StrictJson, RefusesDepth) {
  EXPECT_EQ(faultOf(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_THAT(faultOf(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("nested deeper than 64"));
  EXPECT_THAT(faultOf(std::string(1000000, '[')), HasSubstr("nested deeper"));
}

TEST(StrictJson, RefusesWhatIsNotJson) {
  for (const char *text : {"", "{", "{} x", "[1,]", "{'a':1}", "NaN", "[1e999]",
                           "\"\xff\"", "// c\n{}", "{\"a\"}"})
    EXPECT_THAT(faultOf(text), HasSubstr("x.json")) << text;
}

TEST(StrictJson, QuotesNames) {
  EXPECT_EQ(quoteName("a\n\"b\x7f"), "\"a\\x0a\\x22b\\x7f\"");
}

} // namespace
