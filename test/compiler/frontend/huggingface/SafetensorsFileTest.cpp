// The safetensors reader against hostile and odd files, each kind once by path
// and once from memory, and the writer's determinism.
#include "compiler/frontend/huggingface/SafetensorsFile.h"

#include "test/compiler/frontend/GgufBuilder.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace ingot;
using ingot::testing::ByteWriter;
using ingot::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::vector<std::uint8_t> fileOf(const std::string &header,
                                 std::size_t dataBytes) {
  ByteWriter out;
  out.text(header);
  for (std::size_t i = 0; i < dataBytes; ++i)
    out.put<std::uint8_t>(static_cast<std::uint8_t>(i));
  return out.bytes;
}

// Reads both ways, which must agree, and hands the result to `use`.
template <typename Use>
void readBoth(const std::vector<std::uint8_t> &bytes, Use use) {
  TempFolder folder;
  folder.write("x.safetensors", bytes);
  use(SafetensorsFile::open(folder.file("x.safetensors")));
  use(SafetensorsFile::fromMemory(bytes, "x.safetensors"));
}

void expectFault(const std::vector<std::uint8_t> &bytes,
                 const ::testing::Matcher<std::string> &message) {
  readBoth(bytes, [&](Result<SafetensorsFile> file) {
    ASSERT_FALSE(file.isOk());
    EXPECT_THAT(file.status().message(), HasSubstr("x.safetensors"));
    EXPECT_THAT(file.status().message(), message);
  });
}

// B01: a zero anywhere in the shape is a tensor of 0 bytes; no shape is one
// element.
TEST(SafetensorsFile, EmptyTensorsAndScalars) {
  readBoth(fileOf(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},)"
                  R"("b":{"dtype":"F32","shape":[0,128],"data_offsets":[8,8]},)"
                  R"("c":{"dtype":"F32","shape":[4,0,8],"data_offsets":[0,0]},)"
                  R"("d":{"dtype":"F32","shape":[4611686018427387904,0,16],)"
                  R"("data_offsets":[4,4]},)"
                  R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                  R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8),
           [](Result<SafetensorsFile> file) {
             ASSERT_TRUE(file.isOk()) << file.status().message();
             EXPECT_EQ(file->tensors().size(), 6u);
             EXPECT_THAT(file->find("a")->shape, ElementsAre(0));
             EXPECT_THAT(file->find("b")->shape, ElementsAre(0, 128));
             EXPECT_THAT(file->find("c")->shape, ElementsAre(4, 0, 8));
             for (const char *name : {"a", "b", "c", "d"})
               EXPECT_EQ(file->data(*file->find(name)).size(), 0u) << name;
             EXPECT_THAT(file->find("s")->shape, ElementsAre());
             EXPECT_THAT(file->data(*file->find("s")), ElementsAre(0, 1, 2, 3));
             EXPECT_THAT(file->data(*file->find("t")), ElementsAre(4, 5, 6, 7));
             EXPECT_EQ(file->find("z"), nullptr);
           });
}

// B01: an element that is not empty does not pass for one.
TEST(SafetensorsFile, ScalarIsOneElement) {
  expectFault(
      fileOf(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,0]}})", 0),
      AllOf(HasSubstr("\"s\""), HasSubstr("takes 4 bytes")));
}

// B02: every header length that the file does not bear out.
TEST(SafetensorsFile, HeaderLength) {
  for (std::uint64_t length :
       {0xFFFFFFFFFFFFFFFDull, 0xFFFFFFFFFFFFFFFFull, 0xFFFFFFFFFFFFFFF8ull,
        0x8000000000000000ull, 19ull, 11ull}) {
    ByteWriter out;
    out.put(length).append(std::vector<std::uint8_t>(10, ' '));
    expectFault(out.bytes, HasSubstr("header length"));
  }
  for (std::uint64_t length : {0ull, 1ull}) {
    ByteWriter out;
    out.put(length).append(std::vector<std::uint8_t>(10, ' '));
    expectFault(out.bytes, HasSubstr("header length"));
  }
  for (std::size_t size = 0; size < 8; ++size)
    expectFault(std::vector<std::uint8_t>(size, 0), HasSubstr("header length"));
}

// B02: a file that really holds a header of 101 MiB; sparse, so it costs none.
// The same bytes from memory.
TEST(SafetensorsFile, HeaderAboveLimit) {
  TempFolder folder;
  std::uint64_t length = 101ull << 20;
  ByteWriter out;
  out.put(length).put<std::uint8_t>('{');
  folder.write("big.safetensors", out.bytes);
  ASSERT_EQ(::truncate(folder.file("big.safetensors").c_str(),
                       static_cast<off_t>(length + 8)),
            0);
  std::vector<std::uint8_t> bytes = out.bytes;
  bytes.resize(length + 8);
  for (const auto &file :
       {SafetensorsFile::open(folder.file("big.safetensors")),
        SafetensorsFile::fromMemory(bytes, "big.safetensors")}) {
    ASSERT_FALSE(file.isOk());
    EXPECT_THAT(file.status().message(),
                AllOf(HasSubstr("big.safetensors"), HasSubstr("header length"),
                      HasSubstr(std::to_string(length)),
                      HasSubstr("100000000")));
  }
}

std::string oneTensor(const std::string &dtype, const std::string &shape,
                      const std::string &offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

// B03: offsets and shapes that do not fit each other or the file.
TEST(SafetensorsFile, OffsetsAgainstShape) {
  expectFault(
      fileOf(oneTensor("F32", "[1000,1000]", "[0,4]"), 4),
      AllOf(HasSubstr("\"t\""), HasSubstr("4000000"), HasSubstr("[0, 4)")));
  expectFault(fileOf(oneTensor("F32", "[1]", "[4,0]"), 4),
              AllOf(HasSubstr("\"t\""), HasSubstr("begin after")));
  expectFault(fileOf(oneTensor("F32", "[2]", "[0,8]"), 4),
              AllOf(HasSubstr("\"t\""), HasSubstr("past the data section")));
  expectFault(fileOf(oneTensor("F32", "[2]", "[18446744073709551608,0]"), 4),
              HasSubstr("\"t\""));
  // Products that wrap: to 0, to 4 bytes, and only when the size comes in.
  for (const char *shape :
       {"[4611686018427387904,4]", "[4294967296,4294967296,1]",
        "[4611686018427387905,4]", "[9223372036854775808,2]",
        "[4611686018427387904]"})
    expectFault(fileOf(oneTensor("F32", shape, "[0,0]"), 0),
                AllOf(HasSubstr("\"t\""), HasSubstr("64 bits")));
}

TEST(SafetensorsFile, OverlapsAndHoles) {
  auto two = [](const char *a, const char *b, std::size_t data) {
    return fileOf(std::string(R"({"a":{"dtype":"U8","shape":[100],)") +
                      R"("data_offsets":)" + a +
                      R"(},"b":{"dtype":"U8","shape":[100],)" +
                      R"("data_offsets":)" + b + "}}",
                  data);
  };
  expectFault(two("[0,100]", "[50,150]", 150), HasSubstr("overlap"));
  expectFault(two("[0,100]", "[0,100]", 100), HasSubstr("overlap"));
  expectFault(two("[1,101]", "[101,201]", 201), HasSubstr("no tensor"));
  expectFault(two("[0,100]", "[101,201]", 201), HasSubstr("no tensor"));
  expectFault(two("[0,100]", "[100,200]", 201), HasSubstr("no tensor"));
  // An empty tensor within another's bytes belongs nowhere.
  expectFault(fileOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                     4),
              HasSubstr("overlap"));
  readBoth(two("[100,200]", "[0,100]", 200), [](Result<SafetensorsFile> file) {
    ASSERT_TRUE(file.isOk()) << file.status().message();
    EXPECT_EQ(file->tensors()[0].name, "b");
  });
}

// B03: a dtype is known, with its size, or refused by name.
TEST(SafetensorsFile, Dtypes) {
  for (const char *dtype : {"F99", "f32", "", "BF16 "})
    expectFault(fileOf(oneTensor(dtype, "[1]", "[100,200]"), 0),
                AllOf(HasSubstr("unsupported dtype"), HasSubstr(dtype),
                      HasSubstr("tensor \"t\"")));
  expectFault(fileOf(oneTensor("F8_E8M0", "[4]", "[100,104]"), 4),
              HasSubstr("past the data section"));
  // Three elements of 4 bits are not whole bytes.
  expectFault(fileOf(oneTensor("F4", "[3]", "[0,2]"), 2), HasSubstr("\"t\""));
  for (auto [dtype, shape, size] :
       {std::tuple("BOOL", "[3]", 3), std::tuple("I64", "[3]", 24),
        std::tuple("F8_E4M3", "[3]", 3), std::tuple("F8_E8M0", "[3]", 3),
        std::tuple("F4", "[4]", 2), std::tuple("F6_E2M3", "[4]", 3),
        std::tuple("F8_E4M3FNUZ", "[3]", 3),
        std::tuple("F8_E5M2FNUZ", "[3]", 3), std::tuple("C64", "[2]", 16),
        std::tuple("BF16", "[3,2]", 12)})
    readBoth(fileOf(oneTensor(dtype, shape, "[0," + std::to_string(size) + "]"),
                    static_cast<std::size_t>(size)),
             [dtype = dtype](Result<SafetensorsFile> file) {
               ASSERT_TRUE(file.isOk()) << file.status().message();
               EXPECT_STREQ(safetensorsDtypeName(file->find("t")->dtype),
                            dtype);
             });
}

TEST(SafetensorsFile, MalformedEntries) {
  for (const char *header :
       {R"([])", R"({"t":1})", R"({"t":{}})", R"({"t":null})",
        R"({"t":{"dtype":"F32","shape":[1]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})",
        R"({"t":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":"x","data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})",
        R"({"t":{"dtype":0,"shape":[1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})",
        R"( {"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} x)",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})"})
    expectFault(fileOf(header, 4), HasSubstr("x.safetensors"));
}

// A name or an attribute given twice is refused at any level.
TEST(SafetensorsFile, DuplicateKeys) {
  std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expectFault(fileOf("{\"t\":" + entry + ",\"t\":" + entry + "}", 4),
              HasSubstr("\"t\" is given twice"));
  expectFault(fileOf(R"({"t":{"dtype":"F32","dtype":"I32","shape":[1],)"
                     R"("data_offsets":[0,4]}})",
                     4),
              HasSubstr("given twice"));
  expectFault(fileOf(R"({"__metadata__":{},"__metadata__":{}})", 0),
              HasSubstr("given twice"));
}

// X01: metadata is never a tensor, even when empty or alone.
TEST(SafetensorsFile, Metadata) {
  readBoth(fileOf(R"({"__metadata__":{}})", 0),
           [](Result<SafetensorsFile> file) {
             ASSERT_TRUE(file.isOk()) << file.status().message();
             EXPECT_TRUE(file->hasMetadata());
             EXPECT_TRUE(file->metadata().empty());
             EXPECT_TRUE(file->tensors().empty());
           });
  readBoth(fileOf(R"({"__metadata__":{"format":"pt"}})", 0),
           [](Result<SafetensorsFile> file) {
             ASSERT_TRUE(file.isOk()) << file.status().message();
             EXPECT_EQ(file->metadata().at("format"), "pt");
           });
  readBoth(fileOf("{}", 0), [](Result<SafetensorsFile> file) {
    ASSERT_TRUE(file.isOk()) << file.status().message();
    EXPECT_FALSE(file->hasMetadata());
  });
  expectFault(fileOf(R"({"__metadata__":{"a":1}})", 0),
              HasSubstr("expected a string"));
  expectFault(fileOf(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__"));
}

SafetensorsFile reread(const SafetensorsWriter &writer,
                       std::vector<std::uint8_t> &bytes) {
  auto written = writer.bytes();
  EXPECT_TRUE(written.isOk());
  bytes = *written;
  auto file = SafetensorsFile::fromMemory(bytes, "written");
  EXPECT_TRUE(file.isOk()) << file.status().message();
  return std::move(file).value();
}

// X01: what is written comes back: nothing, empty metadata, empty tensors.
TEST(SafetensorsWriter, RoundTrips) {
  std::vector<std::uint8_t> bytes;
  EXPECT_FALSE(reread(SafetensorsWriter(), bytes).hasMetadata());
  SafetensorsWriter writer;
  writer.setMetadata({});
  EXPECT_TRUE(reread(writer, bytes).hasMetadata());
  writer.setMetadata({{"k", "v\n\"\xc3\xa9"}});
  std::vector<std::uint8_t> three = {1, 2, 3}, four = {4, 5, 6, 7};
  ASSERT_TRUE(writer.add("u", SafetensorsDtype::U8, {3}, three).isOk());
  ASSERT_TRUE(writer.add("s", SafetensorsDtype::F32, {}, four).isOk());
  ASSERT_TRUE(writer.add("e", SafetensorsDtype::F32, {4, 0}, {}).isOk());
  SafetensorsFile file = reread(writer, bytes);
  EXPECT_EQ(file.metadata().at("k"), "v\n\"\xc3\xa9");
  EXPECT_THAT(file.data(*file.find("u")), ElementsAre(1, 2, 3));
  EXPECT_THAT(file.data(*file.find("s")), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(file.find("e")->shape, ElementsAre(4, 0));
  EXPECT_EQ(file.find("s")->fileOffset % 8, 0u);
}

TEST(SafetensorsWriter, OrderOfCallsDoesNotMatter) {
  std::vector<std::uint8_t> two = {1, 2}, four = {3, 4, 5, 6};
  SafetensorsWriter a, b;
  ASSERT_TRUE(a.add("x", SafetensorsDtype::F16, {1}, two).isOk());
  ASSERT_TRUE(a.add("y", SafetensorsDtype::F32, {1}, four).isOk());
  ASSERT_TRUE(b.add("y", SafetensorsDtype::F32, {1}, four).isOk());
  ASSERT_TRUE(b.add("x", SafetensorsDtype::F16, {1}, two).isOk());
  EXPECT_EQ(*a.bytes(), *b.bytes());
}

TEST(SafetensorsWriter, RefusesWrongTensors) {
  SafetensorsWriter writer;
  std::vector<std::uint8_t> four(4);
  EXPECT_FALSE(writer.add("t", SafetensorsDtype::F32, {2}, four).isOk());
  EXPECT_FALSE(
      writer.add("__metadata__", SafetensorsDtype::F32, {1}, four).isOk());
  EXPECT_TRUE(writer.add("t", SafetensorsDtype::F32, {1}, four).isOk());
  EXPECT_FALSE(writer.add("t", SafetensorsDtype::F32, {1}, four).isOk());
  SafetensorsWriter notText;
  EXPECT_TRUE(notText.add("\xff", SafetensorsDtype::F32, {1}, four).isOk());
  EXPECT_FALSE(notText.bytes().isOk());
  EXPECT_FALSE(writer.write("/nonexistent/x.safetensors").isOk());
}

} // namespace
