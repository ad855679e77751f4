// Encoders from folders: what a block without head, with types and positions
// behind padding becomes; the files of sentence-transformers, each key of theirs;
// and what is refused, by its name.
#include "compiler/frontend/huggingface/HuggingFaceImporter.h"

#include "test/compiler/frontend/TempFolder.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ingot::testing::TempFolder;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

std::string modelPath(const std::string &name) {
  return INGOT_SOURCE_DIR "/test/models/encoders/" + name;
}

json readJson(const std::string &path) {
  std::ifstream file(path);
  return json::parse(file);
}

// A copy of a model whose files a test changes.
class Copy {
public:
  explicit Copy(const std::string &name) {
    fs::copy(modelPath(name), folder_.path(), fs::copy_options::recursive);
  }
  using Change = std::function<void(json &)>;
  Copy &change(const std::string &file, const Change &change) {
    json value = readJson(folder_.file(file));
    change(value);
    return write(file, value);
  }
  Copy &write(const std::string &file, const json &value) {
    fs::create_directories(fs::path(folder_.file(file)).parent_path());
    folder_.write(file, value.dump());
    return *this;
  }
  Result<ModelSpec> import() const { return importHuggingFace(folder_.path()); }
  std::string path(const std::string &file) const { return folder_.file(file); }

private:
  TempFolder folder_;
};

void expectFault(const Copy &copy, const std::string &message) {
  auto spec = copy.import();
  ASSERT_FALSE(spec.isOk()) << "accepted: " << message;
  EXPECT_THAT(spec.status().message(), HasSubstr(message));
}

} // namespace

TEST(EncoderImportTest, bert) {
  auto spec = importHuggingFace(modelPath("bert"));
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->family, "bert");
  EXPECT_EQ(spec->contextLength, 320);
  EXPECT_TRUE(spec->learnedPositions && spec->tokenTypes &&
              spec->embeddingNorm);
  EXPECT_EQ(spec->embedding, (EmbeddingSpec{Pooling::Mean, true}));
  ASSERT_EQ(spec->layers.size(), 2u);
  const LayerSpec &layer = spec->layers[0];
  EXPECT_TRUE(layer.bidirectional && layer.attnSumNorm && layer.ffnSumNorm);
  EXPECT_FALSE(layer.attnNorm || layer.ffnNorm || layer.gated);
  EXPECT_EQ(layer.activation, Activation::Gelu);
  EXPECT_TRUE(layer.biases.q && layer.biases.o && layer.biases.down);
  EXPECT_EQ(layer.rotary.dim, 0);
  // Of the types, the row of the first alone.
  const TensorSource &types = spec->parameters.at("token_types");
  EXPECT_EQ(types.shape, (std::vector<std::int64_t>{32}));
  EXPECT_EQ(types.sizeBytes, 32u * 4);
  EXPECT_FALSE(spec->parameters.count("final_norm") ||
               spec->parameters.count("lm_head"));
  EXPECT_THAT(
      spec->notes,
      Contains("vectors are made as modules.json says: mean pooling, of "
               "length 1"));
  EXPECT_THAT(spec->notes,
              Contains("2 tensors are left out by rule (a layer over the first "
                       "row for classifiers; vectors are pooled from the last "
                       "layer's rows)"));
}

TEST(EncoderImportTest, otherForms) {
  // A head that is left out, norms by their older names, no word on pooling.
  auto masked = importHuggingFace(modelPath("bert-masked"));
  ASSERT_TRUE(masked.isOk()) << masked.status().message();
  EXPECT_EQ(masked->embedding, (EmbeddingSpec{Pooling::Mean, true}));
  EXPECT_THAT(masked->parameters.at("layer.1.ffn_sum_norm").name,
              HasSubstr("LayerNorm.gamma"));
  EXPECT_EQ(masked->layers[0].activation, Activation::GeluTanh);
  EXPECT_THAT(masked->notes,
              Contains("6 tensors are left out by rule (the head that guesses "
                       "masked words; vectors need none)"));
  // Position 0 is row 2 of the table.
  auto roberta = importHuggingFace(modelPath("roberta"));
  ASSERT_TRUE(roberta.isOk()) << roberta.status().message();
  EXPECT_EQ(roberta->contextLength, 320);
  const TensorSource &positions = roberta->parameters.at("positions");
  EXPECT_EQ(positions.shape, (std::vector<std::int64_t>{320, 32}));
  EXPECT_EQ(positions.storedRows, 322);
  EXPECT_EQ(storedRow(positions, 0), 2);
  EXPECT_EQ(roberta->embedding, (EmbeddingSpec{Pooling::Cls, false}));
  auto distil = importHuggingFace(modelPath("distilbert"));
  ASSERT_TRUE(distil.isOk()) << distil.status().message();
  EXPECT_FALSE(distil->tokenTypes);
  EXPECT_EQ(distil->layers[0].headDim, 16);
}

TEST(EncoderImportTest, whatIsNotReadIsNamed) {
  auto config = [](const std::string &key, json value) {
    return [key, value](json &c) { c[key] = value; };
  };
  const struct {
    Copy::Change change;
    const char *message;
  } cases[] = {
      {config("architectures", {"BertForSequenceClassification"}),
       "unsupported architecture \"BertForSequenceClassification\""},
      {config("architectures", {"BertLMHeadModel"}),
       "unsupported architecture \"BertLMHeadModel\""},
      {config("model_type", "nomic_bert"),
       "unsupported model_type \"nomic_bert\""},
      {config("position_embedding_type", "relative_key"),
       "positions relative to each other are not read"},
      {config("is_decoder", true), "a decoder of this family is not read"},
      {config("add_cross_attention", true), "cross attention is not read"},
      {config("hidden_act", "mish"), "unsupported activations: \"mish\""},
      {config("type_vocab_size", 3), "expected [3, 32], found [2, 32]"},
      {config("type_vocab_size", 0), "expected an integer from 1"},
      {config("max_position_embeddings", 512),
       "expected [512, 32], found [320, 32]"},
      {config("rotary", true), "unknown config keys: \"rotary\""},
  };
  for (const auto &one : cases) {
    SCOPED_TRACE(one.message);
    expectFault(Copy("bert").change("config.json", one.change), one.message);
  }
  expectFault(Copy("roberta").change("config.json",
                                     [](json &c) { c["pad_token_id"] = 400; }),
              "expected more than the 401 positions before the first");
}

TEST(EncoderImportTest, sentenceTransformers) {
  const std::string pooling = "1_Pooling/config.json";
  // Every way that says it, and the longest text.
  auto with = [&](const json &config) {
    auto spec = Copy("bert").write(pooling, config).import();
    EXPECT_TRUE(spec.isOk()) << spec.status().message();
    return spec ? spec->embedding->pooling : Pooling::Mean;
  };
  EXPECT_EQ(with({{"pooling_mode_lasttoken", true},
                  {"pooling_mode_mean_tokens", false}}),
            Pooling::Last);
  EXPECT_EQ(with({{"pooling_mode", "cls"}, {"embedding_dimension", 32}}),
            Pooling::Cls);
  EXPECT_EQ(with({{"pooling_mode", "lasttoken"}}), Pooling::Last);
  Copy shorter("bert");
  shorter.write("sentence_bert_config.json",
                {{"max_seq_length", 128}, {"do_lower_case", false}});
  shorter.write("config_sentence_transformers.json",
                {{"__version__", json::object()},
                 {"prompts", {{"query", "query: "}}},
                 {"default_prompt_name", nullptr},
                 {"similarity_fn_name", "cosine"}});
  auto spec = shorter.import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->contextLength, 128);
  EXPECT_EQ(spec->parameters.at("positions").shape[0], 320);
  EXPECT_THAT(spec->notes,
              Contains("the longest text has 128 tokens, as "
                       "sentence_bert_config.json says, of 320 that the model "
                       "has positions for"));

  const struct {
    const char *file;
    json value;
    std::string message;
  } cases[] = {
      {"1_Pooling/config.json",
       {{"pooling_mode_max_tokens", true}},
       "expected one of mean, cls and last-token pooling, found "
       "\"pooling_mode_max_tokens\""},
      {"1_Pooling/config.json",
       {{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}},
       "found \"pooling_mode_cls_token\", \"pooling_mode_mean_tokens\""},
      {"1_Pooling/config.json",
       {{"pooling_mode_mean_tokens", false}},
       "found none"},
      {"1_Pooling/config.json", {{"pooling_mode", "max"}}, "found \"max\""},
      {"1_Pooling/config.json", {{"pooling_mode", 1}}, "expected a string"},
      {"1_Pooling/config.json",
       {{"pooling_mode_mean_tokens", 1}},
       "expected true or false"},
      {"1_Pooling/config.json",
       {{"word_embedding_dimension", 64}},
       "\"word_embedding_dimension\" is 64, the model's hidden size 32"},
      {"1_Pooling/config.json",
       {{"pooling_mode_mean_tokens", true}, {"layers", 4}},
       "unknown key \"layers\""},
      {"1_Pooling/config.json", json::array(), "expected an object"},
      {"modules.json", json::object(), "expected an array of modules"},
      {"modules.json", json::array(), "has no module that pools"},
      {"modules.json", {1}, "expected a module with \"type\" and \"path\""},
      {"modules.json",
       {{{"type", "sentence_transformers.models.Transformer"},
         {"path", "0_Transformer"}}},
       "a model in the folder \"0_Transformer\""},
      {"modules.json",
       {{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}},
        {{"type", "sentence_transformers.models.Pooling"},
         {"path", "1_Pooling"}},
        {{"type", "sentence_transformers.models.Dense"}, {"path", "2_Dense"}}},
       "module \"sentence_transformers.models.Dense\"; expected a Transformer, "
       "a Pooling, and perhaps a Normalize"},
      {"modules.json",
       {{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}},
        {{"type", "sentence_transformers.models.Pooling"},
         {"path", "../1_Pooling"}}},
       "is not a plain file in a plain folder"},
      {"modules.json",
       {{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}},
        {{"type", "sentence_transformers.models.Pooling"},
         {"path", "9_Pooling"}}},
       "file \"9_Pooling/config.json\""},
      {"sentence_bert_config.json",
       {{"max_seq_length", 321}},
       "expected 1 to 320, found 321"},
      {"sentence_bert_config.json",
       {{"max_seq_length", "long"}},
       "expected 1 to 320"},
      {"sentence_bert_config.json",
       {{"do_lower_case", 1}},
       "\"do_lower_case\" is 1, expected false"},
      {"sentence_bert_config.json", {{"model_args", 1}}, "unknown key"},
      {"config_sentence_transformers.json",
       {{"default_prompt_name", "query"}},
       "a prompt before every text is not added here"},
      {"config_sentence_transformers.json", {{"x", 1}}, "unknown key \"x\""},
  };
  for (const auto &one : cases) {
    SCOPED_TRACE(one.message);
    expectFault(Copy("bert").write(one.file, one.value), one.message);
  }
}

// Lowering a text first changes nothing where the tokenizer lowers it.
TEST(EncoderImportTest, lowered) {
  Copy copy("bert");
  copy.write("sentence_bert_config.json",
             {{"max_seq_length", 100}, {"do_lower_case", true}});
  auto spec = copy.import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->contextLength, 100);
  copy.change("tokenizer.json",
              [](json &t) { t["normalizer"]["lowercase"] = false; });
  expectFault(copy, "beside a tokenizer.json that lowers texts itself");
  copy.write("tokenizer.json", json::array());
  expectFault(copy, "beside a tokenizer.json that lowers texts itself");
}

// The folder of the pooling may not lead out of the model's.
TEST(EncoderImportTest, linksOutOfTheFolder) {
  TempFolder outside;
  outside.write("config.json", R"({"pooling_mode": "cls"})");
  Copy copy("bert");
  fs::remove(copy.path("1_Pooling/config.json"));
  fs::create_symlink(outside.file("config.json"),
                     copy.path("1_Pooling/config.json"));
  expectFault(copy, "is a link that leaves the folder");
  Copy whole("bert");
  fs::remove_all(whole.path("1_Pooling"));
  fs::create_directory_symlink(outside.path(), whole.path("1_Pooling"));
  expectFault(whole, "is a link that leaves the folder");
}
