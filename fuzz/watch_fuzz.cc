// A server may answer a list and a watch with any bytes, in any pieces: nothing breaks, what is
// told keeps its order, and there is always a next step.
//
// The input is a row of answers. The first byte of each says what it is, the rest up to a byte 0xff
// is its text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kube/testing.h"
#include "kube/watch.h"

namespace {

struct Order : kube::Watch::Sink {
  void ListBegin() override { listing = true; }
  void ListEnd(kube::Version version) override {
    CHECK(listing && version > 0);
    listing = false;
    listed = true;
  }
  void Apply(const base::Json& object) override {
    CHECK(listing || (listed && kube::VersionOf(object) > 0));
  }
  void Remove(const base::Json& object) override { CHECK(listed && kube::VersionOf(object) > 0); }
  void Trouble(const base::Error& error) override { CHECK(!error.text().empty()); }
  bool listing = false, listed = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  kube::testing::FakeTransport transport;
  Order order;
  kube::Watch watch(transport, {.path = "/api/v1/pods"}, order, 1);
  base::Time now = kube::testing::kStart;
  while (!input.empty()) {
    const std::string_view said = input.substr(0, input.find('\xff'));
    input.remove_prefix(std::min(said.size() + 1, input.size()));
    watch.Advance(now);
    while (const auto next = watch.next()) {
      CHECK(*next <= now + std::chrono::minutes(5));
      now = std::max(now, *next);
      watch.Advance(now);
    }
    if (said.empty()) continue;
    const int status = said[0] == 'g' ? 410 : said[0] == 'e' ? 500 : 200;
    const std::string text(said.substr(1));
    if (!transport.asked.empty()) {
      if (said[0] == 'b') {
        transport.Break();
      } else {
        transport.Reply(status, text);
      }
      continue;
    }
    CHECK(transport.stream());
    if (said[0] == 'l') {
      transport.StreamSays(text);
    } else if (said[0] == 's') {
      for (const char c : text) transport.StreamSays({&c, 1});
    } else {
      transport.StreamEnds(kube::Response{.status = status, .body = text});
    }
  }
  return 0;
}
