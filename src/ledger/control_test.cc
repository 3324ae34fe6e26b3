#include "ledger/control.h"

#include <gtest/gtest.h>

namespace ledger {
namespace {

constexpr std::string_view kHost =
    R"({"seq":7,"members":[{"name":"worker-0@2","number":131072,"state":"live"}]})";

std::string ErrorOf(const auto& result) { return result ? "" : result.error().text(); }

std::string Replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  const size_t at = out.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return out.replace(at, what.size(), by);
}

MasterMessage Full() {
  return {
      .seq = 7,
      .port = 20500,
      .data = {
          .registered = true,
          .complete = false,
          .todo = 3,
          .doing = 2,
          .records_left = 1234,
          .records_total = -1,
          .quarantined = {{.set = "iris", .epoch = 1, .start = 0, .end = 64, .error = "\"e\"\n"}},
          .misled = {"worker-1@0"},
          .sets = {{.name = "iris",
                    .epoch = 2,
                    .epochs = 3,
                    .todo = 1,
                    .doing = 2,
                    .done = 3,
                    .records_done = 4}},
          .members = {{.name = "worker-0@0",
                       .doing = 1,
                       .done = 2,
                       .rate = 12.5,
                       .last = base::Time(base::Duration(1'800'000'000'123'456))}},
          .events = {{.reason = "ShardQuarantined", .message = "m", .warning = true}}}};
}

TEST(Control, AMessageOfTheHostIsTheLineThatTheProtocolSays) {
  HostMessage message{.seq = 7, .members = {{.name = "worker-0@2", .number = 131072}}};
  EXPECT_EQ(Encode(message), std::string(kHost) + "\n");
  for (const auto state :
       {MemberState::kLive, MemberState::kLeaving, MemberState::kSucceeded, MemberState::kFailed}) {
    message.members[0].state = state;
    EXPECT_EQ(DecodeHostMessage(Encode(message)), message);
  }
  EXPECT_EQ(DecodeHostMessage(R"({"seq":0,"members":[],"later":1})"), HostMessage());
}

TEST(Control, AMessageOfTheMasterReadsBackAsItWasWritten) {
  EXPECT_EQ(DecodeMasterMessage(Encode(Full())), Full());
  EXPECT_EQ(DecodeMasterMessage(Encode(MasterMessage())), MasterMessage());
  const std::string line = Encode(Full());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(
      line.substr(0, 90),
      R"({"seq":7,"port":20500,"data":{"registered":true,"complete":false,"todo":3,"doing":2,"recor)");
}

TEST(Control, AMessageOfTheHostThatLacksSomethingIsRefusedByName) {
  const auto error = [](std::string_view what, std::string_view by) {
    return ErrorOf(DecodeHostMessage(Replaced(kHost, what, by)));
  };
  EXPECT_EQ(error("\"seq\":7", "\"seq\":-1"), "seq is -1, outside of 0 to 9223372036854775807");
  EXPECT_EQ(error("\"seq\":7", "\"seq\":7.5"), "seq is not a whole number");
  EXPECT_EQ(error("\"seq\":7,", ""), "seq is missing");
  EXPECT_EQ(error("members", "people"), "members is missing");
  EXPECT_EQ(error("\"live\"", "\"asleep\""), "members[0]: no state is called asleep");
  EXPECT_EQ(error("131072", "2147483648"),
            "members[0]: number is 2147483648, outside of 0 to 2147483647");
  EXPECT_EQ(error("\"worker-0@2\"", "null"), "members[0]: name is not a text");
  EXPECT_EQ(ErrorOf(DecodeHostMessage("[]")), "not an object");
  EXPECT_NE(ErrorOf(DecodeHostMessage("")), "");
}

TEST(Control, AMessageOfTheMasterThatLacksSomethingIsRefusedByName) {
  const std::string line = Encode(Full());
  const auto error = [&](std::string_view what, std::string_view by) {
    return ErrorOf(DecodeMasterMessage(Replaced(line, what, by)));
  };
  EXPECT_EQ(error("20500", "70000"), "port is 70000, outside of 0 to 65535");
  EXPECT_EQ(error("\"complete\":false", "\"complete\":0"), "data: complete is not true or false");
  EXPECT_EQ(error("\"recordsTotal\":-1", "\"recordsTotal\":-2"),
            "data: recordsTotal is -2, outside of -1 to 9223372036854775807");
  EXPECT_EQ(error("[\"worker-1@0\"]", "[5]"), "data: misled[0]: not a text");
  EXPECT_EQ(error("\"epochs\":3", "\"x\":3"), "data: sets[0]: epochs is missing");
  EXPECT_EQ(error("2027-01-15T08:00:00.123456Z", "now"),
            "data: members[0]: last is not a time: now");
  EXPECT_EQ(error("\"warning\":true", "\"warning\":null"),
            "data: events[0]: warning is not true or false");
}

}  // namespace
}  // namespace ledger
