// A transport for tests: what was asked waits here until the test answers it.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "kube/transport.h"

namespace kube::testing {

using namespace std::chrono_literals;

inline constexpr base::Time kStart{1'794'779'400s};

inline base::Json J(std::string_view text) { return base::ParseJson(text).value(); }

class FakeTransport : public Transport {
 public:
  struct Asked {
    Request request;
    base::Duration patience;
    Answer answer;
    Data data;
    std::weak_ptr<int> open;  // of a stream
  };

  void Send(Request request, base::Duration timeout, Answer answer) override {
    asked.push_back({std::move(request), timeout, std::move(answer), nullptr, {}});
  }

  std::unique_ptr<Stream> Open(Request request, base::Duration silence, Data data,
                               Answer end) override {
    auto stream = std::make_unique<FakeStream>();
    streams.push_back({std::move(request), silence, std::move(end), std::move(data), stream->open});
    return stream;
  }

  // Answers the oldest request.
  void Reply(int status, std::string body, std::optional<base::Duration> retry_after = {}) {
    Give(Response{.status = status, .body = std::move(body), .retry_after = retry_after});
  }
  void Break() { Give(std::unexpected(base::Error(base::ErrorKind::kUnavailable, "cut"))); }

  // The stream that is open; nullptr without one.
  Asked* stream() {
    std::erase_if(streams, [](const Asked& s) { return s.open.expired(); });
    return streams.empty() ? nullptr : &streams.back();
  }
  void StreamSays(std::string_view bytes) {
    if (Asked* s = stream()) s->data(bytes);
  }
  void StreamEnds(base::Result<Response> how) {
    Asked* s = stream();
    if (!s) return;
    Answer answer = std::move(s->answer);
    streams.pop_back();
    answer(std::move(how));
  }

  std::deque<Asked> asked;
  std::deque<Asked> streams;

 private:
  struct FakeStream : Stream {
    std::shared_ptr<int> open = std::make_shared<int>();
  };

  void Give(base::Result<Response> response) {
    CHECK(!asked.empty());
    Asked first = std::move(asked.front());
    asked.pop_front();
    first.answer(std::move(response));
  }
};

}  // namespace kube::testing
