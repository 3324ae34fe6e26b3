#include "cli/made.h"

#include <fmt/core.h>

namespace cli {

using base::ErrorKind;
using base::Json;
using base::Result;

namespace {

std::string MetadataOf(const Json& object, std::string_view key) {
  const Json* metadata = base::Find(object, "metadata");
  return metadata ? base::StringOr(*metadata, key) : "";
}

// Whether all that `part` says is in `whole`; what a server adds may be there as well.
bool IsIn(const Json& part, const Json& whole) {
  if (part.is_object()) {
    for (const auto& [key, value] : part.get_object()) {
      const Json* there = base::Find(whole, key);
      if (!there || !IsIn(value, *there)) return false;
    }
    return whole.is_object();
  }
  if (!part.is_array()) return part == whole;
  if (!whole.is_array() || part.get_array().size() != whole.get_array().size()) return false;
  for (size_t i = 0; i < part.get_array().size(); ++i) {
    if (!IsIn(part.get_array()[i], whole.get_array()[i])) return false;
  }
  return true;
}

}  // namespace

Made::~Made() {
  if (auto undone = TakeBack(); !undone)
    fmt::print(stderr, "trainyard: warning: left behind: {}\n", undone.error().text());
}

void Made::Note(const std::string& path, const Json& object) {
  objects_.push_back({path + "/" + MetadataOf(object, "name"), MetadataOf(object, "uid")});
}

Result<Json> Made::Create(const std::string& path, const Json& object) {
  auto made = client_.Create(path, object);
  if (made) {
    Note(path, *made);
  } else if (made.error().kind() == ErrorKind::kUnavailable &&
             !MetadataOf(object, "name").empty()) {
    auto there = patient_.Get(path + "/" + MetadataOf(object, "name"));
    if (there && IsIn(object, *there)) Note(path, *there);
  }
  return made;
}

Result<> Made::TakeBack() {
  Result<> first;
  for (; !objects_.empty(); objects_.pop_back()) {
    const Object& last = objects_.back();
    auto gone = patient_.Delete(last.path, last.uid);
    if (!gone && gone.error().kind() != ErrorKind::kNotFound && first) first = gone;
  }
  return first;
}

}  // namespace cli
