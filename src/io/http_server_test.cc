#include "io/http_server.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/files.h"
#include "io/http_client.h"
#include "io/http_routes.h"
#include "io/testing/certificates.h"

namespace io {
namespace {

using namespace std::chrono_literals;

constexpr int kPatienceMs = 20'000;

// A client that says exactly what a test wants.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }

  Client& Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) break;
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return *this;
  }

  void FinishSending() { shutdown(fd_.get(), SHUT_WR); }

  // Something has come; it is not taken.
  bool AwaitAnswer() {
    pollfd ready{fd_.get(), POLLIN, 0};
    return poll(&ready, 1, kPatienceMs) == 1;
  }

  // One answer, head and body.
  std::string Answer(bool to_head = false) {
    while (!pending_.contains("\r\n\r\n") && ReadMore()) continue;
    const size_t head = pending_.find("\r\n\r\n");
    if (head == std::string::npos) return std::exchange(pending_, {});
    size_t end = head + 4;
    const std::string_view key = "Content-Length: ";
    const size_t length = pending_.find(key);
    if (length < head && !to_head) end += std::stoul(pending_.substr(length + key.size()));
    while (pending_.size() < end && ReadMore()) continue;
    const std::string answer = pending_.substr(0, end);
    pending_.erase(0, end);
    return answer;
  }

  // All that comes until the server closes; "(open)" behind it if it does not.
  std::string Rest() {
    while (ReadMore()) continue;
    return std::exchange(pending_, {}) + (closed_ ? "" : "(open)");
  }

 private:
  bool ReadMore() {
    if (!AwaitAnswer()) return false;
    char buffer[65536];
    const ssize_t size = recv(fd_.get(), buffer, sizeof buffer, 0);
    closed_ = size <= 0;
    if (size > 0) pending_.append(buffer, static_cast<size_t>(size));
    return size > 0;
  }

  Fd fd_;
  bool connected_ = false;
  bool closed_ = false;
  std::string pending_;
};

std::string Get(std::string_view path, std::string_view headers = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n";
}

std::string BodyOf(const std::string& answer) {
  const size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? "(none)" : answer.substr(head + 4);
}

// Answers with the method, the path and the body.
ServerResponse Echo(const ServerRequest& request) {
  return {.body = request.method + " " + request.path + " " + request.body};
}

HttpServer Start(HttpServer::Options options = {}, ServerHandler handler = Echo) {
  options.limits.body = 1 << 20;
  auto server = HttpServer::Listen(options, std::move(handler));
  if (!server) throw std::runtime_error(server.error().text());
  return std::move(*server);
}

TEST(HttpServer, AnswersOverAPortOfItsChoice) {
  HttpServer server = Start();
  EXPECT_NE(server.port(), 0);
  EXPECT_EQ(BodyOf(Client(server.port()).Send(Get("/a")).Answer()), "GET /a ");
}

TEST(HttpServer, KeepsAConnectionForManyRequests) {
  HttpServer server = Start();
  Client client(server.port());
  for (int i = 0; i < 100; ++i) {
    const std::string path = "/" + std::to_string(i);
    EXPECT_EQ(BodyOf(client.Send(Get(path)).Answer()), "GET " + path + " ");
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  HttpServer server = Start();
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 2000; ++i) all += Get("/" + std::to_string(i));
  std::jthread sender([&] { client.Send(all); });
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(BodyOf(client.Answer()), "GET /" + std::to_string(i) + " ");
  }
}

TEST(HttpServer, ReadsARequestThatComesByteByByte) {
  HttpServer server = Start();
  Client client(server.port());
  for (char c : std::string("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")) {
    client.Send({&c, 1});
  }
  EXPECT_EQ(BodyOf(client.Answer()), "POST /b abc");
}

TEST(HttpServer, TellsAClientThatWaitsForItToGoOn) {
  HttpServer server = Start();
  Client client(server.port());
  client.Send("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Answer(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(BodyOf(client.Send("abc").Answer()), "POST /b abc");
}

TEST(HttpServer, AnswersHeadWithoutTheBody) {
  HttpServer server = Start();
  Client client(server.port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + Get("/b"));
  EXPECT_TRUE(client.Answer(true).contains("Content-Length: 8\r\n"));
  EXPECT_EQ(BodyOf(client.Answer()), "GET /b ");
}

TEST(HttpServer, ClosesWhenTheClientWantsThat) {
  HttpServer server = Start();
  for (const std::string& request :
       {Get("/", "Connection: close\r\n"), std::string("GET / HTTP/1.0\r\nHost: h\r\n\r\n")}) {
    const std::string answer = Client(server.port()).Send(request + Get("/more")).Rest();
    EXPECT_TRUE(answer.contains("Connection: close\r\n"));
    EXPECT_EQ(BodyOf(answer), "GET / ");
  }
}

TEST(HttpServer, AnswersAClientThatHasClosedItsDirection) {
  HttpServer server = Start();
  Client client(server.port());
  client.Send(Get("/a")).FinishSending();
  EXPECT_EQ(BodyOf(client.Rest()), "GET /a ");
}

TEST(HttpServer, RefusesAWrongRequestWithOneAnswerAndCloses) {
  HttpServer server = Start();
  const std::string answer =
      Client(server.port()).Send("GET / HTTP/1.1\r\n\r\n" + Get("/smuggled")).Rest();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(answer.contains("Connection: close\r\n"));
  EXPECT_EQ(BodyOf(answer), "refused: Host must be given exactly once\n");
}

TEST(HttpServer, ARefusalArrivesThoughMuchIsSentBehindIt) {
  HttpServer server = Start();
  Client client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\n");
  client.Send(std::string(3 << 20, 'x'));
  EXPECT_TRUE(client.Rest().starts_with("HTTP/1.1 413 "));
}

TEST(HttpServer, SurvivesGarbage) {
  HttpServer server = Start();
  uint32_t seed = 4711;
  for (int i = 0; i < 200; ++i) {
    std::string bytes;
    for (int length = i * 7; length > 0; --length) {
      seed = seed * 1664525 + 1013904223;
      bytes += static_cast<char>(seed >> 24);
    }
    Client client(server.port());
    client.Send(bytes).FinishSending();
    const std::string answer = client.Rest();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
  }
  EXPECT_EQ(BodyOf(Client(server.port()).Send(Get("/a")).Answer()), "GET /a ");
}

TEST(HttpServer, SurvivesClientsThatGoAwayInTheMiddle) {
  HttpServer server =
      Start({}, [](const auto&) { return ServerResponse{.body = std::string(4 << 20, 'x')}; });
  for (int i = 0; i < 20; ++i) Client(server.port()).Send(Get("/large"));
  for (int i = 0; i < 20; ++i) Client(server.port()).Send("GET /half HTT");
  EXPECT_EQ(BodyOf(Client(server.port()).Send(Get("/a")).Answer()).size(), size_t{4} << 20);
}

TEST(HttpServer, DropsAClientThatNeverEndsItsHead) {
  HttpServer server = Start({.head_time = 100ms});
  Client silent(server.port());
  Client slow(server.port());
  slow.Send("GET / HTTP/1.1\r\nHost: h\r\nX: ");
  EXPECT_EQ(silent.Rest(), "");
  EXPECT_EQ(slow.Rest(), "");
}

TEST(HttpServer, BytesThatDripInDoNotBuyTime) {
  HttpServer server = Start({.head_time = 300ms});
  Client slow(server.port());
  slow.Send("GET / HTTP/1.1\r\nHost: h\r\nX: ");
  std::jthread drip([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      slow.Send("x");
      std::this_thread::sleep_for(10ms);
    }
  });
  EXPECT_EQ(slow.Rest(), "");
}

TEST(HttpServer, DropsAClientThatNeverEndsItsBody) {
  HttpServer server = Start({.body_time = 100ms});
  Client slow(server.port());
  slow.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx");
  EXPECT_EQ(slow.Rest(), "");
}

TEST(HttpServer, DropsAClientThatIsIdleAfterItsRequest) {
  HttpServer server = Start({.idle_time = 100ms});
  Client client(server.port());
  EXPECT_EQ(BodyOf(client.Send(Get("/a")).Answer()), "GET /a ");
  EXPECT_EQ(client.Rest(), "");
}

// 64 MiB, more than the kernel holds for a client, at /large.
ServerResponse EchoOrMuch(const ServerRequest& request) {
  if (request.path != "/large") return Echo(request);
  return {.body = std::string(64 << 20, 'x')};
}

TEST(HttpServer, DropsAClientThatDoesNotTakeItsAnswer) {
  HttpServer server = Start({.connections = 1, .answer_time = 100ms}, EchoOrMuch);
  Client greedy(server.port());
  ASSERT_TRUE(greedy.Send(Get("/large")).AwaitAnswer());
  // Until then the only place is taken.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  std::string answer;
  while (answer.empty() && std::chrono::steady_clock::now() < end) {
    answer = Client(server.port()).Send(Get("/small")).Answer();
  }
  EXPECT_EQ(BodyOf(answer), "GET /small ");
  EXPECT_LT(greedy.Rest().size(), size_t{64} << 20);
}

TEST(HttpServer, Serves300IdleConnectionsAndABusyOne) {
  HttpServer server = Start();
  std::vector<Client> idle;
  for (int i = 0; i < 300; ++i) {
    idle.emplace_back(server.port());
    ASSERT_EQ(BodyOf(idle.back().Send(Get("/a")).Answer()), "GET /a ");
  }
  Client busy(server.port());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(BodyOf(busy.Send(Get("/b")).Answer()), "GET /b ");
  for (Client& client : idle) ASSERT_EQ(BodyOf(client.Send(Get("/c")).Answer()), "GET /c ");
}

TEST(HttpServer, GivesThePlaceOfTheLongestIdleToANewcomer) {
  HttpServer server = Start({.connections = 3});
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    ASSERT_EQ(BodyOf(clients.back().Send(Get("/a")).Answer()), "GET /a ");
  }
  ASSERT_EQ(BodyOf(clients[0].Send(Get("/b")).Answer()), "GET /b ");
  EXPECT_EQ(BodyOf(Client(server.port()).Send(Get("/new")).Answer()), "GET /new ");
  EXPECT_EQ(clients[1].Rest(), "");
  EXPECT_EQ(BodyOf(clients[0].Send(Get("/c")).Answer()), "GET /c ");
}

TEST(HttpServer, TurnsANewcomerAwayWhenAllAreBusy) {
  HttpServer server = Start({.connections = 1});
  Client busy(server.port());
  // Answered in the middle of the next request, so it is known to have been read.
  ASSERT_EQ(BodyOf(busy.Send(Get("/a") + "GET /b HTTP/1.1\r\n").Answer()), "GET /a ");
  EXPECT_EQ(Client(server.port()).Send(Get("/new")).Rest(), "");
  EXPECT_EQ(BodyOf(busy.Send("Host: h\r\n\r\n").Answer()), "GET /b ");
}

TEST(HttpServer, TheHandlerRunsOnTheThreadNamedHttp) {
  HttpServer server = Start({}, [](const auto&) {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return ServerResponse{.body = name};
  });
  EXPECT_EQ(BodyOf(Client(server.port()).Send(Get("/")).Answer()), "http");
}

TEST(HttpServer, AStopFinishesTheAnswerUnderWayAndClosesTheRest) {
  std::binary_semaphore entered(0), leave(0);
  HttpServer server = Start({}, [&](const ServerRequest& request) {
    if (request.path == "/slow") {
      entered.release();
      leave.acquire();
      return ServerResponse{.body = std::string(4 << 20, 'x')};
    }
    return Echo(request);
  });
  Client idle(server.port()), half(server.port()), slow(server.port());
  ASSERT_EQ(BodyOf(idle.Send(Get("/a")).Answer()), "GET /a ");
  ASSERT_EQ(BodyOf(half.Send(Get("/a") + "GET /ha").Answer()), "GET /a ");
  slow.Send(Get("/slow"));
  entered.acquire();
  Client waiting(server.port());
  std::jthread stopper([&] { server.Stop(); });
  leave.release();
  EXPECT_EQ(BodyOf(slow.Rest()).size(), size_t{4} << 20);
  EXPECT_EQ(idle.Rest(), "");
  EXPECT_EQ(half.Rest(), "");
  EXPECT_EQ(waiting.Rest(), "");
  stopper.join();
  EXPECT_FALSE(Client(server.port()).connected());
}

TEST(HttpServer, AStopDoesNotWaitForClientsThatTakeNothing) {
  HttpServer server = Start({}, EchoOrMuch);
  Client greedy(server.port());
  ASSERT_TRUE(greedy.Send(Get("/large")).AwaitAnswer());
  server.Stop();
  server.Stop();
  EXPECT_LT(greedy.Rest().size(), size_t{64} << 20);
}

TEST(HttpServer, ReleasesItsPortAndDescriptors) {
  const size_t before = ListDir("/proc/self/fd").size();
  uint16_t port = 0;
  for (int i = 0; i < 20; ++i) {
    HttpServer server = Start({.port = port});
    port = server.port();
    Client client(port);
    EXPECT_EQ(BodyOf(client.Send(Get("/a")).Answer()), "GET /a ");
  }
  EXPECT_EQ(ListDir("/proc/self/fd").size(), before);
}

TEST(HttpServer, StopsUnderLoad) {
  for (int round = 0; round < 10; ++round) {
    HttpServer server = Start();
    std::atomic<int> served = 0;
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, port = server.port()] {
        while (true) {
          Client client(port);
          const std::string answer = client.Send(Get("/a")).Answer();
          if (answer.empty()) return;
          EXPECT_EQ(BodyOf(answer), "GET /a ");
          served.fetch_add(1);
          served.notify_all();
        }
      });
    }
    for (int seen = served; seen < 50; seen = served) served.wait(seen);
    server.Stop();
  }
}

TEST(HttpServer, GoesOnWhenDescriptorsAreThereAgain) {
  HttpServer server = Start();
  Client first(server.port()), second(server.port());
  ASSERT_EQ(BodyOf(first.Send(Get("/a")).Answer()), "GET /a ");
  ASSERT_EQ(BodyOf(second.Send(Get("/a")).Answer()), "GET /a ");
  // Everything up to the limit is in use, but for the one that the next client needs itself.
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{256, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Fd> fill;
  for (int fd = 0; (fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) fill.emplace_back(fd);
  fill.pop_back();
  Client starved(server.port());
  starved.Send(Get("/b"));
  EXPECT_EQ(BodyOf(first.Send(Get("/c")).Answer()), "GET /c ");
  fill.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(BodyOf(starved.Answer()), "GET /b ");
}

TEST(HttpServer, AnswersThatComeLaterFromOtherThreadsKeepTheirOrder) {
  std::vector<std::jthread> threads;
  auto server = *HttpServer::ListenLater({}, [&](ServerRequest request, Reply reply) {
    threads.emplace_back(
        [path = request.path, reply = std::move(reply)]() mutable { reply({.body = path + ";"}); });
  });
  Client client(server.port());
  client.Send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.Answer().ends_with("/1;"));
  EXPECT_TRUE(client.Answer().ends_with("/2;"));
  server.Stop();
}

TEST(HttpServer, AnAnswerThatNobodyGivesIsAnErrorOfOurs) {
  auto server = *HttpServer::ListenLater({}, [](ServerRequest, Reply) {});
  Client client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.Answer().starts_with("HTTP/1.1 500 "));
}

TEST(HttpServer, AStopWaitsForAnswersThatAreStillToCome) {
  std::optional<Reply> kept;
  std::binary_semaphore asked(0);
  auto server = *HttpServer::ListenLater({}, [&](ServerRequest, Reply reply) {
    kept.emplace(std::move(reply));
    asked.release();
  });
  Client client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  asked.acquire();
  std::jthread stopping([&] { server.Stop(); });
  (*kept)({.body = "late"});
  EXPECT_TRUE(client.Rest().ends_with("late"));
}

TEST(HttpServer, AnAnswerThatDoesNotComeInTimeIsReplacedByOneThatSaysSo) {
  std::optional<Reply> kept;
  std::binary_semaphore asked(0);
  auto server = *HttpServer::ListenLater({.work_time = 10ms}, [&](ServerRequest, Reply reply) {
    kept.emplace(std::move(reply));
    asked.release();
  });
  Client client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  asked.acquire();
  EXPECT_TRUE(client.Answer().starts_with("HTTP/1.1 504 "));
  EXPECT_TRUE(*kept->closed());
  (*kept)({.body = "late"});  // harms nobody
  EXPECT_EQ(client.Rest(), "");
}

TEST(HttpServer, AHandlerCanTellThatItsClientHasClosed) {
  std::optional<Reply> kept;
  std::binary_semaphore asked(0);
  auto server = *HttpServer::ListenLater({}, [&](ServerRequest, Reply reply) {
    kept.emplace(std::move(reply));
    asked.release();
  });
  {
    Client client(server.port());
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    asked.acquire();
    EXPECT_FALSE(*kept->closed());
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!*kept->closed() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(*kept->closed());
  (*kept)({});
}

TEST(HttpServer, SpeaksTlsWithACertificate) {
  const testing::Authority authority;
  const testing::KeyPair pair = authority.Issue({});
  HttpServer::Options options{.limits = {.body = 4 << 20}};
  options.identity = *TlsIdentity::Make(pair.certificate, pair.key);
  auto server = *HttpServer::Listen(options, [](const ServerRequest& request) -> ServerResponse {
    return {.body = request.body};
  });
  HttpClient client({.tls = {.ca = authority.certificate()}});
  const std::string body(3 << 20, 'x');  // many records, both ways
  for (int i = 0; i < 3; ++i) {
    std::optional<base::Result<HttpResponse>> answer;
    client.Send({.method = "POST",
                 .url = "https://127.0.0.1:" + std::to_string(server.port()) + "/",
                 .body = body},
                20s, [&](auto came) { answer = std::move(came); });
    while (!answer) client.Poll(100ms);
    ASSERT_TRUE(*answer) << answer->error().text();
    EXPECT_EQ((*answer)->body.size(), body.size());
  }
  // One who does not speak it is dropped.
  EXPECT_EQ(
      Client(server.port()).Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").Rest().find("HTTP/1.1 200"),
      std::string::npos);
}

TEST(HttpServer, RefusesACertificateThatIsNotItsKeys) {
  const testing::Authority authority;
  const testing::KeyPair one = authority.Issue({}), other = authority.Issue({});
  EXPECT_TRUE(TlsIdentity::Make(one.certificate, one.key));
  EXPECT_FALSE(TlsIdentity::Make(one.certificate, other.key));
  EXPECT_FALSE(TlsIdentity::Make("nonsense", one.key));
  EXPECT_FALSE(TlsIdentity::Make(one.certificate, ""));
}

TEST(HttpServer, ListensToBothKindsOfAddresses) {
  auto server = HttpServer::Listen({.address = "::"}, Echo);
  if (!server) GTEST_SKIP() << "no IPv6 here: " << server.error().text();
  EXPECT_EQ(BodyOf(Client(server->port()).Send(Get("/a")).Answer()), "GET /a ");
}

TEST(HttpServer, SaysWhyItCannotListen) {
  HttpServer server = Start();
  const auto taken = HttpServer::Listen({.port = server.port()}, Echo);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error(), base::Error(base::ErrorKind::kTaken, "listen on 127.0.0.1 port " +
                                                                    std::to_string(server.port()) +
                                                                    ": Address already in use"));
  const auto wrong = HttpServer::Listen({.address = "localhost"}, Echo);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error(),
            base::Error(base::ErrorKind::kInvalid, "'localhost' is not an IP address"));
}

}  // namespace
}  // namespace io
