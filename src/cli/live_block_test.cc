#include "cli/live_block.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using namespace std::chrono_literals;

LiveModel TwoWorkers() {
  return {.rows = {{.name = "worker/0",
                    .state = "running",
                    .step = 412,
                    .steps_per_second = 31.8,
                    .loss = 0.29141,
                    .cpu_percent = 96.2,
                    .memory_bytes = 310 << 20,
                    .since_output = 200ms},
                   {.name = "worker/1",
                    .state = "running",
                    .step = 409,
                    .steps_per_second = 31.4,
                    .loss = 0.2921,
                    .cpu_percent = 94,
                    .memory_bytes = 309 << 20,
                    .since_output = 100ms}},
          .percent = 41,
          .eta = 38s,
          .losses = {1, 0.5, 0.3},
          .restarts = 0};
}

TEST(RenderBlock, ShowsARowAReplicaAndTheProgress) {
  EXPECT_EQ(RenderBlock(TwoWorkers(), 100, true),
            (std::vector<std::string>{
                "  role      state    step    loss  step/s  cpu    mem  last",
                "  worker/0  running   412  0.2914    31.8  96%  310Mi  0.2s",
                "  worker/1  running   409  0.2921    31.4  94%  309Mi  0.1s",
                "  █▃▁ loss  41% ████████············   ETA 38s   restarts 0",
            }));
}

TEST(RenderBlock, NeverIsWiderThanTheTerminal) {
  for (int width = 1; width < 120; ++width) {
    for (bool unicode : {true, false}) {
      for (const std::string& line : RenderBlock(TwoWorkers(), width, unicode)) {
        EXPECT_LE(DisplayWidth(line), width) << line;
      }
    }
  }
}

TEST(RenderBlock, DropsColumnsBeforeItCuts) {
  const auto lines = RenderBlock(TwoWorkers(), 40, true);
  EXPECT_EQ(lines[1], "  worker/0  running   412  0.2914");
}

TEST(RenderBlock, HasNoColumnThatSaysNothing) {
  LiveModel model;
  model.rows = {{.name = "ps/0", .state = "starting"}};
  EXPECT_EQ(RenderBlock(model, 80, true)[0], "  role  state");
}

TEST(RenderBlock, TellsOfManyReplicasInOneLine) {
  LiveModel model;
  for (int i = 0; i < 64; ++i)
    model.rows.push_back({.name = "worker/" + std::to_string(i), .state = "running"});
  const auto lines = RenderBlock(model, 80, true);
  EXPECT_LE(lines.size(), 20u);
  EXPECT_EQ(lines[lines.size() - 2], "  and 48 more");
}

TEST(RenderLine, SaysTheSameForPipes) {
  EXPECT_EQ(RenderLine(TwoWorkers(), true),
            "worker/0 step 412 loss 0.2914 · 41% · ETA 38s · restarts 0");
  EXPECT_EQ(RenderLine(TwoWorkers(), false),
            "worker/0 step 412 loss 0.2914 - 41% - ETA 38s - restarts 0");
}

TEST(RenderLine, TellsOfRecordsWhereThereAreSome) {
  LiveModel model{.percent = 48.0, .records_done = 7200, .records_total = 15000};
  EXPECT_EQ(RenderLine(model, false), "48% - records 7200/15000 - restarts 0");
}

TEST(Elide, CutsWholeCharacters) {
  EXPECT_EQ(Elide("▁▂▃", 2), "▁▂");
  EXPECT_EQ(Elide("abc", 3), "abc");
  EXPECT_EQ(Elide("abc", 0), "");
}

}  // namespace
}  // namespace cli
