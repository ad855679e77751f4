// Pieces of the server alone: metrics as text, log lines, keys, rate limits,
// and the output of a choice.
#include "runtime/serve/ChoiceOutput.h"
#include "runtime/serve/ClientKeys.h"
#include "runtime/serve/Metrics.h"
#include "runtime/serve/RequestLog.h"
#include "runtime/text/Tokenizer.h"
#include "test/runtime/text/TextTables.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace ingot;
using namespace ingot::serve;
using ::testing::HasSubstr;

TEST(MetricsTest, textFormat) {
  MetricRegistry registry;
  registry.counter("a_total", "Help with \\ and\nlines.").add(3);
  registry.gauge("b", "B.", {{"l", "x\"\\\ny"}}).set(0.1);
  Histogram &histogram = registry.histogram("c", "C.", {0.5, 2}, {{"m", "n"}});
  for (double value : {0.1, 0.5, 1.0, 99.0})
    histogram.observe(value);
  EXPECT_EQ(registry.text(), "# HELP a_total Help with \\\\ and\\nlines.\n"
                             "# TYPE a_total counter\n"
                             "a_total 3\n"
                             "# HELP b B.\n"
                             "# TYPE b gauge\n"
                             "b{l=\"x\\\"\\\\\\ny\"} 0.1\n"
                             "# HELP c C.\n"
                             "# TYPE c histogram\n"
                             "c_bucket{m=\"n\",le=\"0.5\"} 2\n"
                             "c_bucket{m=\"n\",le=\"2\"} 3\n"
                             "c_bucket{m=\"n\",le=\"+Inf\"} 4\n"
                             "c_sum{m=\"n\"} 100.6\n"
                             "c_count{m=\"n\"} 4\n");
  // A second asking is the same series.
  registry.counter("a_total", "").add();
  EXPECT_THAT(registry.text(), HasSubstr("a_total 4\n"));
}

// What a client sends cannot make a second line or another field.
TEST(RequestLogTest, linesCannotBeForged) {
  RequestRecord record;
  record.requestId = "id-1";
  record.client = "alice";
  record.method = "POST";
  record.path = "/v1/x\n2026 200";
  record.user = "a b\" status=200\x1b[0m";
  record.note = "a\nb";
  record.status = 400;
  std::string line = logLine(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_THAT(line, HasSubstr("user=\"a b\\\" status=200\\u001b[0m\""));
  auto json = nlohmann::json::parse(logJson(record));
  EXPECT_EQ(json["user"], record.user);
  EXPECT_EQ(json["note"], record.note);
  EXPECT_THAT(line, HasSubstr("note=\"a\\nb\""));
  EXPECT_FALSE(json.contains("prompt_tokens"));
}

TEST(ClientKeysTest, files) {
  auto keys = readApiKeys("# comment\n\nplain-key-1\nbob bobs-key-22\r\n");
  ASSERT_TRUE(keys.isOk()) << keys.status().message();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].name, "key-3");
  EXPECT_EQ((*keys)[1].name, "bob");
  EXPECT_EQ((*keys)[1].key, "bobs-key-22");
  for (const char *bad : {"", "# only\n", "short\n", "a b c-has-blanks\n",
                          "same-key-1\nsame-key-1\n",
                          "n key-number-1\nn "
                          "key-number-2\n",
                          "caf\xc3\xa9-key\n"})
    EXPECT_FALSE(readApiKeys(bad).isOk()) << bad;
}

TEST(RateLimitTest, bucketFillsWithTime) {
  RateLimit limit(60);
  auto now = RateLimit::Clock::now();
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(limit.take("a", now), 0);
  EXPECT_EQ(limit.take("a", now), 1);
  EXPECT_EQ(limit.take("b", now), 0);
  EXPECT_EQ(limit.take("a", now + std::chrono::milliseconds(1100)), 0);
  EXPECT_EQ(limit.take("a", now + std::chrono::milliseconds(1100)), 1);
  RateLimit slow(1);
  EXPECT_EQ(slow.take("a", now), 0);
  EXPECT_EQ(slow.take("a", now), 60);
  RateLimit none(0);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(none.take("a", now), 0);
}

namespace {

class ChoiceOutputTest : public ::testing::Test {
protected:
  std::vector<std::uint8_t> tables_ = test::textTables();
  Tokenizer tokenizer_ = std::move(Tokenizer::open(tables_).value());

  struct Run {
    std::string text;
    std::vector<std::int32_t> tokens;
    std::vector<std::size_t> offsets;
    bool stopped = false;
  };
  Run run(std::vector<std::int32_t> ids, std::vector<std::string> stops) {
    auto output = ChoiceOutput::create(IncrementalDetokenizer(tokenizer_),
                                       std::move(stops), /*wantsTokens=*/true);
    EXPECT_TRUE(output.isOk());
    OutputPiece piece;
    for (std::int32_t id : ids) {
      std::size_t before = piece.text.size();
      EXPECT_TRUE(output->push({id, -1, {}}, piece).isOk());
      // No token is out before its text has begun to be.
      if (piece.text.size() == before && !piece.tokens.empty()) {
        EXPECT_LE(piece.tokens.back().offset, piece.text.size());
      }
      if (output->stopped())
        break;
    }
    output->finish(piece);
    Run result{piece.text, {}, {}, output->stopped()};
    for (const ScoredToken &token : piece.tokens) {
      result.tokens.push_back(token.token);
      result.offsets.push_back(token.offset);
    }
    return result;
  }
};

} // namespace

// Bytes of one character in several tokens; cut at the end.
TEST_F(ChoiceOutputTest, charactersOfManyTokens) {
  Run emoji = run({'x', 0xF0, 0x9F, 0x98, 0x80, 'y'}, {});
  EXPECT_EQ(emoji.text, "x\xF0\x9F\x98\x80y");
  EXPECT_THAT(emoji.tokens,
              ::testing::ElementsAre('x', 0xF0, 0x9F, 0x98, 0x80, 'y'));
  EXPECT_THAT(emoji.offsets, ::testing::ElementsAre(0, 1, 1, 1, 1, 2));
  Run cut = run({'x', 0xF0, 0x9F}, {});
  EXPECT_EQ(cut.text, "x\xEF\xBF\xBD");
  EXPECT_EQ(cut.tokens.size(), 3u);
  Run broken = run({0xFF, 'a', 0xC4, 'b'}, {});
  EXPECT_EQ(broken.text, "\xEF\xBF\xBD"
                         "a\xEF\xBF\xBD"
                         "b");
}

// Tokens of a stop string stay in; the one that holds text before it goes out.
TEST_F(ChoiceOutputTest, tokensOfStopStrings) {
  // 256 "he", 257 "ll": the stop begins inside the second token.
  Run run1 = run({256, 257, 'o', 'x'}, {"lox"});
  EXPECT_TRUE(run1.stopped);
  EXPECT_EQ(run1.text, "hel");
  EXPECT_THAT(run1.tokens, ::testing::ElementsAre(256, 257));
  Run run2 = run({256, 257, 'o'}, {"ll"});
  EXPECT_EQ(run2.text, "he");
  EXPECT_THAT(run2.tokens, ::testing::ElementsAre(256));
  Run run3 = run({256, 257}, {"llx"});
  EXPECT_FALSE(run3.stopped);
  EXPECT_EQ(run3.text, "hell");
  EXPECT_THAT(run3.tokens, ::testing::ElementsAre(256, 257));
}
