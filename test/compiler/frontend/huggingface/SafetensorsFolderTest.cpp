// Which file of a folder holds which tensor: the index decides, and without
// one nothing may be ambiguous. No name leads out of the folder.
#include "compiler/frontend/huggingface/SafetensorsFolder.h"

#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ingot::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

constexpr const char *indexName = "model.safetensors.index.json";

// A file that holds the named tensors, each of the one byte `value`.
void writeShard(const std::string &path, const std::vector<std::string> &names,
                std::uint8_t value) {
  SafetensorsWriter writer;
  for (const std::string &name : names)
    ASSERT_TRUE(
        writer.add(name, SafetensorsDtype::U8, {1}, {&value, 1}).isOk());
  ASSERT_TRUE(writer.write(path).isOk());
}

Result<SafetensorsFolder> openAt(const std::string &path) {
  auto folder = ModelFolder::open(path);
  if (!folder.isOk())
    return folder.status();
  return SafetensorsFolder::open(*folder);
}

std::uint8_t valueOf(const SafetensorsFolder &folder, const std::string &name) {
  LocatedTensor located = folder.tensors().at(name);
  return folder.files()[located.fileIndex].data(*located.tensor)[0];
}

// B05: shard 1 has an old copy of a tensor that the index gives to shard 2,
// and stray files lie beside.
TEST(SafetensorsFolder, IndexDecides) {
  TempFolder temp;
  writeShard(temp.file("m-1.safetensors"), {"a", "b"}, 1);
  writeShard(temp.file("m-2.safetensors"), {"a", "c"}, 2);
  writeShard(temp.file("model.safetensors"), {"a", "b", "z"}, 9);
  writeShard(temp.file("consolidated.safetensors"), {"q"}, 9);
  temp.write(indexName, R"({"metadata":{"total_size":3},"weight_map":{)"
                        R"("a":"m-2.safetensors","b":"m-1.safetensors",)"
                        R"("c":"m-2.safetensors"}})");
  auto folder = openAt(temp.path());
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(folder->tensors().size(), 3u);
  EXPECT_EQ(valueOf(*folder, "a"), 2);
  EXPECT_EQ(valueOf(*folder, "b"), 1);
  EXPECT_THAT(folder->fileNames(),
              ElementsAre("m-1.safetensors", "m-2.safetensors"));
  EXPECT_THAT(folder->notes(),
              ElementsAre(HasSubstr("1 tensors in the shards"),
                          AllOf(HasSubstr("consolidated.safetensors"),
                                HasSubstr("model.safetensors"))));
}

// B05: without an index, a name in two files is an error that names both.
TEST(SafetensorsFolder, AmbiguousWithoutIndex) {
  TempFolder temp;
  writeShard(temp.file("one.safetensors"), {"a"}, 1);
  writeShard(temp.file("two.safetensors"), {"b"}, 2);
  auto folder = openAt(temp.path());
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(valueOf(*folder, "b"), 2);
  writeShard(temp.file("three.safetensors"), {"a"}, 3);
  folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(),
              AllOf(HasSubstr("\"a\""), HasSubstr("one.safetensors"),
                    HasSubstr("three.safetensors")));
}

// X02: all missing shards are listed.
TEST(SafetensorsFolder, MissingShards) {
  TempFolder temp;
  writeShard(temp.file("m-2.safetensors"), {"b"}, 2);
  temp.write(indexName,
             R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors",)"
             R"("c":"m-3.safetensors"}})");
  auto folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_EQ(folder.status().code(), StatusCode::NotFound);
  EXPECT_THAT(folder.status().message(),
              AllOf(HasSubstr("m-1.safetensors"), HasSubstr("m-3.safetensors"),
                    ::testing::Not(HasSubstr("m-2.safetensors"))));
}

TEST(SafetensorsFolder, IndexNamesWhatIsNotThere) {
  TempFolder temp;
  writeShard(temp.file("m-1.safetensors"), {"b"}, 1);
  temp.write(indexName, R"({"weight_map":{"a":"m-1.safetensors",)"
                        R"("b":"m-1.safetensors","c":"m-1.safetensors"}})");
  auto folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(),
              AllOf(HasSubstr("\"a\" in"), HasSubstr("\"c\" in")));
}

TEST(SafetensorsFolder, MalformedIndex) {
  for (const char *text :
       {"[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{},"extra":1})", R"({"weight_map":{"a":"x.bin"}})",
        R"({"weight_map":{"a":"m.safetensors","a":"m.safetensors"}})"}) {
    TempFolder temp;
    temp.write(indexName, std::string(text));
    auto folder = openAt(temp.path());
    ASSERT_FALSE(folder.isOk()) << text;
    EXPECT_THAT(folder.status().message(), HasSubstr(indexName));
  }
}

// Shard names are plain file names, whatever lies at the other end.
TEST(SafetensorsFolder, NoPathOutside) {
  TempFolder temp;
  fs::create_directory(temp.file("model"));
  fs::create_directory(temp.file("model/inner"));
  writeShard(temp.file("out.safetensors"), {"a"}, 1);
  writeShard(temp.file("model/inner/in.safetensors"), {"a"}, 1);
  for (std::string name :
       {std::string("../out.safetensors"), temp.file("out.safetensors"),
        std::string("inner/in.safetensors"), std::string("./x.safetensors"),
        std::string("..\\\\out.safetensors"),
        std::string("a\\u0000.safetensors"), std::string(".safetensors")}) {
    temp.write("model/" + std::string(indexName),
               "{\"weight_map\":{\"a\":\"" + name + "\"}}");
    auto folder = openAt(temp.file("model"));
    ASSERT_FALSE(folder.isOk()) << name;
    EXPECT_THAT(folder.status().message(), HasSubstr("plain name")) << name;
  }
}

// The cache of Hugging Face: snapshots are links into blobs beside them.
TEST(SafetensorsFolder, Links) {
  TempFolder temp;
  fs::path model = temp.file("models--x--y");
  fs::create_directories(model / "blobs");
  fs::create_directories(model / "snapshots/abc");
  writeShard((model / "blobs/0123").string(), {"a"}, 7);
  fs::create_symlink("../../blobs/0123",
                     model / "snapshots/abc/model.safetensors");
  auto folder = openAt((model / "snapshots/abc").string());
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(valueOf(*folder, "a"), 7);
  // Also through a link to the snapshot itself.
  fs::create_directory_symlink(model / "snapshots/abc", temp.file("link"));
  EXPECT_TRUE(openAt(temp.file("link")).isOk());

  // Any other way out is refused: to another model's blobs, to a file beside.
  fs::create_directories(temp.file("other/blobs"));
  writeShard(temp.file("other/blobs/0123"), {"b"}, 1);
  fs::create_symlink(temp.file("other/blobs/0123"),
                     model / "snapshots/abc/extra.safetensors");
  folder = openAt((model / "snapshots/abc").string());
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(), HasSubstr("leaves the folder"));
  fs::create_directory(temp.file("plain"));
  fs::create_symlink(model / "blobs/0123",
                     temp.file("plain/model.safetensors"));
  folder = openAt(temp.file("plain"));
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(), HasSubstr("leaves the folder"));
}

TEST(SafetensorsFolder, NoFiles) {
  TempFolder temp;
  auto folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_EQ(folder.status().code(), StatusCode::NotFound);
  EXPECT_FALSE(openAt(temp.file("absent")).isOk());
}

// What is there instead of weights is named, with what to do about it.
TEST(SafetensorsFolder, OtherFormsOfWeights) {
  for (auto [name, advice] :
       {std::pair("pytorch_model.bin", "save_pretrained"),
        std::pair("pytorch_model-00001-of-00002.bin", "save_pretrained"),
        std::pair("tf_model.h5", "save_pretrained"),
        std::pair("consolidated.00.pth", "save_pretrained"),
        std::pair("model.Q4_K_M.gguf", "give that file itself"),
        std::pair("model.onnx", "give that file itself")}) {
    TempFolder temp;
    temp.write(name, "x");
    auto folder = openAt(temp.path());
    ASSERT_FALSE(folder.isOk()) << name;
    EXPECT_EQ(folder.status().code(), StatusCode::NotFound);
    EXPECT_THAT(folder.status().message(),
                AllOf(HasSubstr(name), HasSubstr(advice)));
  }
}

// Shards count each other where no index does.
TEST(SafetensorsFolder, MissingShardsWithoutIndex) {
  TempFolder temp;
  writeShard(temp.file("model-00002-of-00003.safetensors"), {"b"}, 2);
  auto folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_EQ(folder.status().code(), StatusCode::NotFound);
  EXPECT_THAT(folder.status().message(),
              AllOf(HasSubstr("\"model-00001-of-00003.safetensors\", "
                              "\"model-00003-of-00003.safetensors\""),
                    ::testing::Not(HasSubstr("model-00002-of"))));
  writeShard(temp.file("model-00001-of-00003.safetensors"), {"a"}, 1);
  writeShard(temp.file("model-00003-of-00003.safetensors"), {"c"}, 3);
  folder = openAt(temp.path());
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(folder->tensors().size(), 3u);
}

// Another program's copy of the weights beside the one file of them.
TEST(SafetensorsFolder, ConsolidatedCopy) {
  TempFolder temp;
  writeShard(temp.file("model.safetensors"), {"a"}, 1);
  writeShard(temp.file("consolidated.safetensors"), {"tok_embeddings"}, 2);
  auto folder = openAt(temp.path());
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(folder->tensors().size(), 1u);
  EXPECT_THAT(folder->notes(),
              ElementsAre(HasSubstr("consolidated.safetensors")));
}

// A clone without its large files.
TEST(SafetensorsFolder, PointerOfLfs) {
  TempFolder temp;
  temp.write("model.safetensors",
             "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  auto folder = openAt(temp.path());
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("git lfs pull")));
}

} // namespace
