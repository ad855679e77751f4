// Every error names its line and column and says what is wrong.
#include "Support.h"

#include <gtest/gtest.h>

using namespace ingot;
using namespace ingot::jinjatest;

struct ErrorCase {
  const char *source;
  const char *message;
};

class JinjaErrors : public testing::TestWithParam<ErrorCase> {};

TEST_P(JinjaErrors, NamesThePlace) {
  EXPECT_EQ(text(GetParam().source, user("x")),
            std::string("ERROR: chat template: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, JinjaErrors,
    testing::Values(
        ErrorCase{"a\nb {{ nope.x }}",
                  "line 2, column 11: 'nope' is undefined"},
        ErrorCase{"{{ messages[0].nope.x }}",
                  "line 1, column 21: 'dict object' has no attribute 'nope'"},
        ErrorCase{"{{ messages[5].x }}",
                  "line 1, column 16: list object has no element 5"},
        ErrorCase{"é {{ none.x.y }}",
                  "line 1, column 13: 'None' has no attribute 'x'"},
        ErrorCase{"{{ raise_exception('stop') }}", "line 1, column 19: stop"},
        ErrorCase{"{{ 1 + 'a' }}", "line 1, column 6: unsupported operand "
                                   "type(s) for +: 'int' and 'str'"},
        ErrorCase{"{% if true %}\n{% for x in [1] %}\n{% endif %}",
                  "line 3, column 4: Encountered unknown tag 'endif'. The "
                  "innermost block that needs to be closed is 'for'."},
        ErrorCase{"{% if x %}",
                  "line 1, column 11: Unexpected end of template. Jinja was "
                  "looking for the following tags: 'elif' or 'else' or "
                  "'endif'. The innermost block that needs to be closed is "
                  "'if'."},
        ErrorCase{"{{ 'a'|nix }}", "line 1, column 8: No filter named 'nix'."},
        ErrorCase{"{{ 'a' is nix }}",
                  "line 1, column 11: No test named 'nix'."},
        ErrorCase{"x\n {{ 'a'|wordwrap(0) }}",
                  "line 2, column 9: invalid width 0 (must be > 0)"},
        ErrorCase{"{{ {'a b': 1}|xmlattr }}",
                  "line 1, column 15: Invalid character in attribute name: "
                  "'a b'"},
        ErrorCase{"{{ 'x'|filesizeformat }}",
                  "line 1, column 8: could not convert string to float: 'x'"},
        ErrorCase{"{{ 'a'|urlize(extra_schemes=['a']) }}",
                  "line 1, column 8: 'a' is not a valid URI scheme prefix."},
        ErrorCase{"{{ 5|random }}",
                  "line 1, column 6: object of type 'int' has no len()"},
        ErrorCase{"{{ 'a'|striptags(1) }}",
                  "line 1, column 8: striptags() takes at most 0 arguments "
                  "(1 given)"},
        ErrorCase{"{% include 'x' %}", "line 1, column 4: the tag 'include' is "
                                       "not supported in chat templates"},
        ErrorCase{"{{ a b }}", "line 1, column 6: expected end of print "
                               "statement, got 'b'"},
        ErrorCase{"{{ (1 }}", "line 1, column 7: unexpected '}', expected ')'"},
        ErrorCase{"{{ ? }}", "line 1, column 4: unexpected char '?'"},
        ErrorCase{"x\n{{ 'abc }}", "line 2, column 4: unexpected char ''': the "
                                   "string has no end"},
        ErrorCase{"{{ '\\N{BULLET}' }}", "line 1, column 4: \\N{...} escapes "
                                         "in strings are not supported"},
        ErrorCase{"{{ '\\ud800' }}", "line 1, column 4: the \\u escape in a "
                                     "string is not a character"},
        ErrorCase{"{{ 'a'.encode() }}",
                  "line 1, column 8: the string method 'encode' is not "
                  "supported"},
        ErrorCase{"{{ [].append(1) }}",
                  "line 1, column 13: access to attribute 'append' of 'list' "
                  "object is unsafe."},
        ErrorCase{"{{ [1]|map('int') }}",
                  "line 1, column 8: a value of type 'generator' cannot be "
                  "printed"},
        ErrorCase{"{{ 'a'.split(x=1) }}",
                  "line 1, column 13: split() got an unexpected keyword "
                  "argument 'x'"},
        ErrorCase{"{{ {}|tojson(nope=1) }}",
                  "line 1, column 7: tojson() got an unexpected keyword "
                  "argument 'nope'"},
        ErrorCase{"{% macro f(a) %}{{ a.b }}{% endmacro %}\n{{ f() }}",
                  "line 1, column 22: parameter 'a' was not provided"},
        ErrorCase{"{% block a %}{% endblock %}",
                  "line 1, column 4: the tag 'block' is not supported in chat "
                  "templates"},
        ErrorCase{"{# x", "line 1, column 1: Missing end of comment tag"},
        ErrorCase{"{{ strftime_now('%Q') }}",
                  "line 1, column 16: the strftime directive '%Q' is not "
                  "supported"}));

TEST(JinjaErrorCodes, UnsupportedIsNotInvalid) {
  EXPECT_EQ(render("{{ 'a'.encode() }}").status().code(),
            StatusCode::Unsupported);
  EXPECT_EQ(render("{{ nope.x }}").status().code(), StatusCode::InvalidInput);
}

TEST(JinjaErrorInputs, BadInputsAreNamed) {
  Request request;
  request.messages = "{}";
  EXPECT_EQ(text("x", request),
            "ERROR: chat template: messages must be an array of objects");
  request.messages = "[1]";
  EXPECT_EQ(text("x", request),
            "ERROR: chat template: messages[0] must be an object, not number");
  request = {};
  request.tools = "{}";
  EXPECT_EQ(text("x", request),
            "ERROR: chat template: tools must be an array, not object");
  EXPECT_FALSE(ChatTemplate::parse("a\xff").isOk());
  EXPECT_EQ(text("\x80"), "ERROR: chat template: not valid UTF-8 at byte 0");
}
