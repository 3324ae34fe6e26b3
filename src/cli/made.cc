#include "cli/made.h"

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "kube/api.h"

namespace cli {

using base::ErrorKind;
using base::Json;
using base::Result;

namespace {

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
    : writer_(NewWriter()), client_(server, door, [] { return false; }) {}

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
  const bool taken = made.error().kind() == ErrorKind::kTaken;
  const std::string name = kube::Metadata(object, "name");
  if ((!taken && made.error().kind() != ErrorKind::kUnavailable) || name.empty()) return made;
  auto there = client_.Get(path + "/" + name);
  if (!there || !IsBy(writer_, *there)) return made;
  Note(path, *there);
  return taken ? there : made;
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
