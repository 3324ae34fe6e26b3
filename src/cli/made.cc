#include "cli/made.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "kube/api.h"

namespace cli {

using base::ErrorKind;
using base::Json;
using base::Result;

namespace {

using namespace std::chrono_literals;

constexpr size_t kAtOnce = 32;
constexpr int kBusy = 429;
constexpr base::Duration kAnswersWithin = 30s;
constexpr base::Duration kBetweenLooks = 50ms;

std::string NewWriter() {
  std::random_device random;
  return fmt::format("trainyard-{:08x}{:08x}", random(), random());
}

bool IsBy(const std::string& writer, const Json& object) {
  const Json* metadata = base::Find(object, "metadata");
  const Json* writes = metadata ? base::Find(*metadata, "managedFields") : nullptr;
  return writes && writes->is_array() &&
         std::ranges::any_of(writes->get_array(), [&](const Json& one) {
           return base::StringOr(one, "manager") == writer;
         });
}

}  // namespace

Made::Made(kube::Server& server, kube::Transport& door)
    : writer_(NewWriter()),
      server_(server),
      door_(door),
      client_(server, door, [] { return false; }) {}

Made::~Made() {
  if (auto undone = TakeBack(); !undone)
    fmt::print(stderr, "trainyard: warning: left behind: {}\n", undone.error().text());
}

void Made::Note(const std::string& path, const Json& object) {
  objects_.push_back({path + "/" + kube::Metadata(object, "name"), kube::Metadata(object, "uid")});
}

Result<Json> Made::Create(const std::string& path, const Json& object) {
  auto made = client_.Create(kube::WithQuery(path, {{"fieldManager", writer_}}), object);
  if (made) {
    Note(path, *made);
    return made;
  }
  return AfterError(path, object, made.error());
}

Result<Json> Made::AfterError(const std::string& path, const Json& object,
                              const base::Error& error) {
  const bool taken = error.kind() == ErrorKind::kTaken;
  const std::string name = kube::Metadata(object, "name");
  const bool unknown = (taken || error.kind() == ErrorKind::kUnavailable) && !name.empty();
  auto there = unknown ? client_.Get(path + "/" + name) : std::unexpected(error);
  if (!there || !IsBy(writer_, *there)) return std::unexpected(error);
  Note(path, *there);
  if (!taken) return std::unexpected(error);
  return there;
}

Result<> Made::CreateAll(const std::vector<New>& objects,
                         const std::function<bool(size_t made)>& go_on) {
  size_t next = 0, under_way = 0, made = 0;
  std::vector<const New*> again;  // no answer came, or the server was busy
  std::vector<std::pair<const New*, base::Error>> failed;
  bool stopped = false;
  const auto send = [&](const New& one) {
    ++under_way;
    door_.Send({.method = "POST",
                .path = kube::WithQuery(one.path, {{"fieldManager", writer_}}),
                .content_type = "application/json",
                .body = base::CompactJson(one.object)},
               kAnswersWithin, [&](Result<kube::Response> answer) {
                 --under_way;
                 auto error = answer ? kube::ErrorOf(*answer) : std::nullopt;
                 if (!answer || answer->status == kBusy) return again.push_back(&one);
                 if (error) {
                   failed.emplace_back(&one, std::move(*error).Context("POST " + one.path));
                   return;
                 }
                 const auto object = base::ParseJson(answer->body);
                 if (!object) return again.push_back(&one);
                 Note(one.path, *object);
                 ++made;
               });
  };
  const auto go = [&] {
    return next < objects.size() && !stopped && again.empty() && failed.empty();
  };
  while (under_way > 0 || go()) {
    while (go() && under_way < kAtOnce) send(objects[next++]);
    server_.Poll(kBetweenLooks);
    stopped |= !go_on(made);
  }
  if (stopped) return std::unexpected(base::Error(ErrorKind::kUnavailable, "interrupted"));
  for (const auto& [one, error] : failed) TRY(AfterError(one->path, one->object, error));
  // One by one, with what can be done about each: a lost answer, a server that is busy.
  for (const New* one : again) TRY(Create(one->path, one->object));
  for (; next < objects.size(); ++next) {
    if (!go_on(next)) return std::unexpected(base::Error(ErrorKind::kUnavailable, "interrupted"));
    TRY(Create(objects[next].path, objects[next].object));
  }
  return {};
}

Result<> Made::TakeBack() {
  Result<> first;
  for (; !objects_.empty(); objects_.pop_back()) {
    const Object& last = objects_.back();
    auto gone = client_.Delete(last.path, last.uid);
    if (!gone && gone.error().kind() != ErrorKind::kNotFound && first) first = gone;
  }
  return first;
}

}  // namespace cli
