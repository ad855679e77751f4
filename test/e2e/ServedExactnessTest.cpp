// The promise of ServingExactnessTest, over the wire: two hundred random
// requests (greedy, sampled, with penalties, biases, masks, stop strings,
// log-probabilities and an echoed prompt) are answered with the same JSON alone
// and in a crowd, streamed and not, in pieces, preempted, after prefix hits and
// under each speculation.
#include "runtime/serve/EngineModel.h"
#include "test/e2e/CompiledModel.h"
#include "test/runtime/sample/ToyMasks.h"
#include "test/runtime/serve/RunningServer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <set>

using namespace ingot;
using namespace ingot::test;
using Json = nlohmann::json;

namespace {

constexpr unsigned kRequests = 200;
constexpr unsigned kClients = 12;

// Gives some requests a mask, as a structured output would: by the seed, since
// no field of the API asks for one.
class MaskingModel : public serve::ServedModel {
public:
  explicit MaskingModel(std::unique_ptr<serve::ServedModel> model)
      : model_(std::move(model)) {}

  const serve::ModelCard &card() const override { return model_->card(); }
  const Tokenizer &tokenizer() const override { return model_->tokenizer(); }
  bool hasChatTemplate() const override { return model_->hasChatTemplate(); }
  Result<std::vector<std::int32_t>>
  chatIds(const ChatRequest &request) const override {
    return model_->chatIds(request);
  }
  Result<RequestId> submit(TokenRequest request,
                           EngineCore::OnFinish onFinish) override {
    if (request.sampling.seed.value_or(0) % 6000 == 1000)
      request.mask = std::make_shared<RhymeMask>(7, 2.0f);
    if (request.sampling.seed.value_or(0) % 6000 == 2000)
      request.mask = std::make_shared<BracketMask>(30, 5, 400);
    return model_->submit(std::move(request), std::move(onFinish));
  }
  bool cancel(RequestId id) override { return model_->cancel(id); }
  bool isIdle() const override { return model_->isIdle(); }
  Status step() override { return model_->step(); }
  EngineMetrics metrics() const override { return model_->metrics(); }

private:
  std::unique_ptr<serve::ServedModel> model_;
};

Json request(unsigned index) {
  std::mt19937 random(index * 31 + 7);
  const char *beginnings[] = {
      "KING RICHARD III:\nNow is the winter of our discontent\n",
      "First Citizen:\nBefore we proceed any further, hear me speak.\n",
      "JULIET:\nO Romeo, Romeo! wherefore art thou Romeo?\n", ""};
  std::string prompt = beginnings[index % 4];
  for (unsigned words = 1 + random() % 20; words > 0; --words)
    prompt += random() % 2 ? "the king " : "my lord ";
  const double temperatures[] = {0, 0, 0.7, 1.0, 1.4};
  Json made = {{"prompt", prompt},
               {"seed", index * 1000},
               {"temperature", temperatures[random() % 5]},
               {"max_tokens", 1 + random() % 32},
               {"ignore_eos", random() % 2 == 0},
               {"priority", random() % 3}};
  if (random() % 3 == 0)
    made["top_k"] = 1 + random() % 50;
  if (random() % 3 == 0)
    made["top_p"] = 0.8;
  if (random() % 4 == 0)
    made["min_p"] = 0.05;
  if (random() % 3 == 0)
    made["repetition_penalty"] = 1.2;
  if (random() % 3 == 0) {
    made["presence_penalty"] = 0.4;
    made["frequency_penalty"] = 0.3;
  }
  if (random() % 4 == 0)
    made["logit_bias"] = {{"100", 3}, {"260", -100}, {"300", 1.5}};
  if (random() % 2) {
    made["logprobs"] = random() % 4;
    made["echo"] = random() % 3 == 0;
  }
  if (random() % 5 == 0)
    made["stop"] = {"e", "\n\n"};
  if (random() % 6 == 0)
    made["n"] = 2 + random() % 2;
  return made;
}

// The choices of an answer; of a stream, its pieces put together.
Json choicesOf(const TestResponse &response, bool stream) {
  EXPECT_EQ(response.status, 200) << response.body;
  if (!stream) {
    Json whole = response.json()["choices"];
    // Where a stop string leaves nothing there is no piece that would say so.
    for (Json &choice : whole)
      if (choice["logprobs"].is_object() &&
          choice["logprobs"]["tokens"].empty())
        choice["logprobs"] = nullptr;
    return whole;
  }
  std::map<int, Json> choices;
  std::string latest;
  for (const std::string &event : response.events()) {
    latest = event;
    if (event == "[DONE]")
      continue;
    const Json chunk = Json::parse(event);
    for (const Json &piece : chunk["choices"]) {
      auto [at, isNew] = choices.emplace(piece["index"], piece);
      Json &choice = at->second;
      if (isNew)
        continue;
      choice["text"] =
          choice["text"].get<std::string>() + piece["text"].get<std::string>();
      choice["finish_reason"] = piece["finish_reason"];
      if (piece["logprobs"].is_null())
        continue;
      if (choice["logprobs"].is_null()) {
        choice["logprobs"] = piece["logprobs"];
        continue;
      }
      for (auto &[key, values] : choice["logprobs"].items())
        if (values.is_array())
          for (const Json &value : piece["logprobs"][key])
            values.push_back(value);
    }
  }
  EXPECT_EQ(latest, "[DONE]");
  Json all = Json::array();
  for (auto &[index, choice] : choices)
    all.push_back(choice);
  return all;
}

std::string ask(RunningServer &server, unsigned index, bool stream) {
  Json body = request(index);
  body["stream"] = stream;
  return choicesOf(server.post("/v1/completions", body.dump()), stream).dump();
}

class ServedExactnessTest : public ::testing::Test {
protected:
  void SetUp() override {
    for (const char *model : {"target", "draft"})
      if (std::string missing = whyNotCompiled(model); !missing.empty())
        GTEST_SKIP() << missing;
    path_ = compiledModel("target", "int8");
    draft_ = compiledModel("draft", "int8");
    ASSERT_FALSE(path_.empty() || draft_.empty());
  }

  std::unique_ptr<RunningServer> serve(EngineOptions options,
                                       std::int64_t *stateBytes = nullptr) {
    options.context = 256;
    options.threads = 2;
    options.cache.poisonFreeBlocks = true;
    options.cache.shuffleSeed = 11;
    options.checkInvariants = true;
    auto engine = Engine::open(path_, options);
    if (!engine) {
      ADD_FAILURE() << engine.status().message();
      return nullptr;
    }
    if (stateBytes)
      *stateBytes = std::int64_t((*engine)->contract().stateBytes());
    std::vector<std::unique_ptr<serve::ServedModel>> models;
    models.push_back(std::make_unique<MaskingModel>(std::move(
        serve::EngineModel::create(std::move(*engine), "m").value())));
    return std::make_unique<RunningServer>(std::move(models),
                                           serve::ServerOptions());
  }

  // Each alone, whole.
  const std::vector<std::string> &expected() {
    static std::vector<std::string> answers;
    if (answers.empty()) {
      EngineOptions options;
      options.sequences = 3; // for the choices of one request
      auto server = serve(options);
      for (unsigned index = 0; index < kRequests; ++index)
        answers.push_back(ask(*server, index, false));
      EXPECT_GT(std::set<std::string>(answers.begin(), answers.end()).size(),
                150u);
    }
    return answers;
  }

  // All of them from many clients, half as streams: which half, `parity` says.
  void expectTheSame(RunningServer &server, unsigned parity) {
    const auto &alone = expected();
    std::vector<std::string> answers(kRequests);
    std::atomic<unsigned> next{0};
    std::vector<std::thread> clients;
    for (unsigned client = 0; client < kClients; ++client)
      clients.emplace_back([&] {
        for (unsigned index; (index = next++) < kRequests;)
          answers[index] = ask(server, index, index % 2 == parity);
      });
    for (std::thread &client : clients)
      client.join();
    for (unsigned index = 0; index < kRequests; ++index)
      EXPECT_EQ(answers[index], alone[index])
          << "request " << index << ": " << request(index).dump();
    EXPECT_TRUE(eventually(
        [&] { return metric(server, "ingot_kv_cache_blocks_used") == 0; }));
  }

  static double metric(RunningServer &server, const std::string &name) {
    std::string text = server.get("/metrics").body;
    std::size_t at = text.find("\n" + name + "{");
    EXPECT_NE(at, std::string::npos) << name;
    return std::stod(text.substr(text.find("} ", at) + 2));
  }

  std::string path_, draft_;
};

} // namespace

TEST_F(ServedExactnessTest, inACrowdAndAfterPrefixHits) {
  EngineOptions options;
  options.sequences = 10;
  auto server = serve(options);
  for (unsigned parity : {0u, 1u})
    expectTheSame(*server, parity);
  EXPECT_GT(metric(*server, "ingot_prefix_cache_hits_total"), 100);
}

TEST_F(ServedExactnessTest, inPiecesAndPreempted) {
  EngineOptions options;
  options.sequences = 8;
  std::int64_t whole = 0;
  serve(options, &whole);
  options.kvBytes = std::uint64_t(whole / 64 * 9); // of 8 x 8 blocks
  options.stepTokens = 23;
  options.chunkTokens = 5;
  auto server = serve(options);
  expectTheSame(*server, 1);
  EXPECT_GT(metric(*server, "ingot_num_preemptions_total"), 3);
}

TEST_F(ServedExactnessTest, speculating) {
  for (Speculation speculation : {Speculation::Ngram, Speculation::Draft}) {
    EngineOptions options;
    options.sequences = 6;
    options.chunkTokens = 17;
    options.speculation = speculation;
    if (speculation == Speculation::Draft)
      options.draft = draft_;
    auto server = serve(options);
    expectTheSame(*server, 0);
    EXPECT_GT(metric(*server, "ingot_spec_decode_num_accepted_tokens_total"),
              50);
  }
}
