// Every way in which the books can be wrong is told apart.
#include "runtime/memory/CacheInvariants.h"

#include <gmock/gmock.h>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

CacheSnapshot good() {
  CacheSnapshot snapshot;
  CacheSnapshot::Group group;
  group.name = "kv";
  group.blockTokens = 4;
  group.window = 6;
  group.references = {2, 1, 0, 0, 1};
  group.free = {2};
  group.reusable = {3};
  group.published = {true, false, false, true, false};
  snapshot.groups = {group};
  snapshot.sequences = {{7, 6, {{0, 1}}}, {8, 13, {{-1, -1, 0, 4}}}};
  return snapshot;
}

void refuse(void (*change)(CacheSnapshot &), const char *message) {
  CacheSnapshot snapshot = good();
  change(snapshot);
  Status status = checkInvariants(snapshot);
  EXPECT_FALSE(status.isOk()) << message;
  EXPECT_THAT(status.message(), HasSubstr(message));
}

} // namespace

TEST(CacheInvariantsTest, eachIsChecked) {
  Status status = checkInvariants(good());
  ASSERT_TRUE(status.isOk()) << status.message();
  refuse([](auto &s) { s.groups[0].free = {2, 2}; },
         "block 2 is in the free list and in the free list");
  refuse([](auto &s) { s.groups[0].reusable = {3, 2}; },
         "block 2 is in the free list and in the reusable list");
  refuse([](auto &s) { s.groups[0].free = {9}; }, "names block 9 of 5");
  refuse([](auto &s) { s.groups[0].free = {}; },
         "block 2 has 0 references and is in no list");
  refuse([](auto &s) { s.groups[0].free = {2, 1}; },
         "block 1 has 1 references and is in free list");
  refuse([](auto &s) { s.groups[0].published[2] = true; },
         "free block 2 is published");
  refuse([](auto &s) { s.groups[0].published[3] = false; },
         "reusable block 3 is not published");
  refuse([](auto &s) { s.groups[0].references[0] = 1; },
         "block 0 is held 2 times and counted 1");
  refuse([](auto &s) { s.sequences[0].committed = 9; },
         "sequence 7: has 9 tokens in blocks for 8");
  refuse([](auto &s) { s.sequences[0].tables[0][0] = -1; },
         "sequence 7: lacks the block of position 0 of 6");
  refuse([](auto &s) { s.sequences[1].tables[0][2] = -1; },
         "sequence 8: lacks the block of position 8 of 13");
}
