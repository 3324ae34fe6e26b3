#include "api/manifest.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "api/plain_job.h"
#include "api/tree.h"
#include "base/strings.h"

namespace api {
namespace {

using base::Node;

// Of Lists and Templates in each other. The value of a parameter may be a Template that refers to
// that parameter, so there must be an end.
constexpr int kMostLevels = 8;

bool IsList(const Node& node) {
  return TextIn(node, "kind") == "List" && TextIn(node, "apiVersion") == "v1";
}

bool IsJob(const Node& node) {
  return base::Lower(TextIn(node, "kind")) == base::Lower(kKind) || IsPlainJob(node);
}

std::string NameOf(const Node& object) {
  const Node* metadata = object.Find("metadata");
  std::string name = metadata ? TextIn(*metadata, "name") : "";
  if (name.empty() && metadata) name = TextIn(*metadata, "generateName");
  return name.empty() ? "one without a name" : base::OneLine(name);
}

std::string NotOne(const std::vector<Node>& jobs, const std::vector<Node>& others) {
  std::vector<std::string> words;
  if (!jobs.empty()) {
    for (const Node& job : jobs) words.push_back(NameOf(job));
    return fmt::format("holds {} jobs ({}): run them one at a time", jobs.size(), Listed(words));
  }
  std::set<std::string> kinds;
  for (const Node& object : others) {
    const std::string kind = base::OneLine(TextIn(object, "kind"));
    if (kinds.insert(kind).second) words.push_back(kind.empty() ? "one without a kind" : kind);
  }
  return "holds no TFJob and no Job, only " + Listed(words);
}

class Reader {
 public:
  Reader(const Values& given, const Random& random) : templates_(given, random, reader_) {}

  Manifest Read(std::vector<Node> documents) {
    for (Node& document : documents) Collect(std::move(document), 1);
    templates_.CheckGiven();
    Manifest out;
    if (std::optional<Node> job = TakeJob()) {
      Decoded decoded = DecodeJobNode(std::move(*job));
      out.job = std::move(decoded.job);
      out.says_namespace = decoded.says_namespace;
      out.errors = std::move(decoded.errors);
      std::ranges::move(decoded.warnings, std::back_inserter(reader_.warnings()));
      for (const Node& object : objects_) out.others.push_back(base::ToJson(object));
    } else {
      out.errors = reader_.InOrder();
    }
    out.warnings = std::move(reader_.warnings());
    return out;
  }

  Objects ReadAll(std::vector<Node> documents) {
    for (Node& document : documents) Collect(std::move(document), 1);
    templates_.CheckGiven();
    for (const Node& object : objects_) CheckHeader(object);
    Objects out{.any_template = any_template_};
    out.errors = reader_.InOrder();
    out.warnings = std::move(reader_.warnings());
    for (const Node& object : objects_) {
      out.any_job |= IsJob(object);
      out.objects.push_back(base::ToJson(object));
    }
    return out;
  }

 private:
  // Adds an object, or those that it holds.
  void Collect(Node node, int level) {
    if (level > kMostLevels) {
      return reader_.Fail(
          node, "",
          fmt::format("Lists and Templates are nested deeper than {} levels", kMostLevels));
    }
    if (IsTemplate(node)) {
      any_template_ = true;
      for (Node& object : templates_.Expand(std::move(node))) Collect(std::move(object), level + 1);
    } else if (IsList(node)) {
      Node items = Take(node, "items");
      if (!reader_.IsList(items, "items")) return;
      for (Node& item : items.items) Collect(std::move(item), level + 1);
    } else {
      objects_.push_back(std::move(node));
    }
  }

  // Leaves the others in `objects_`. Nothing: there are errors.
  std::optional<Node> TakeJob() {
    if (!reader_.errors().empty()) return std::nullopt;
    // What stands alone is meant to be the job, and read as such it is told what is wrong with it.
    if (objects_.empty()) return Node{};
    if (objects_.size() == 1) return std::exchange(objects_, {}).front();
    std::vector<Node> jobs;
    for (Node& object : std::exchange(objects_, {})) {
      CheckHeader(object);
      (IsJob(object) ? jobs : objects_).push_back(std::move(object));
    }
    if (jobs.size() != 1) reader_.Fail(Node{}, "", NotOne(jobs, objects_));
    if (!reader_.errors().empty()) return std::nullopt;
    return std::move(jobs.front());
  }

  void CheckHeader(const Node& object) {
    if (!reader_.IsMapItem(object, "")) return;
    for (const char* key : {"apiVersion", "kind"}) {
      if (TextIn(object, key).empty()) reader_.Fail(object, key, "is required, as text");
    }
  }

  FieldReader reader_;
  Templates templates_;
  std::vector<Node> objects_;
  bool any_template_ = false;
};

}  // namespace

Manifest ReadManifest(std::string_view text, const Values& given, const Random& random) {
  auto documents = base::ReadYamlDocuments(text);
  if (documents) return Reader(given, random).Read(std::move(*documents));
  const base::YamlError& error = documents.error();
  return {.errors = {{"", error.line, error.column, error.detail}}};
}

Objects ReadObjects(std::string_view text, const Values& given, const Random& random) {
  auto documents = base::ReadYamlDocuments(text);
  if (documents) return Reader(given, random).ReadAll(std::move(*documents));
  const base::YamlError& error = documents.error();
  return {.errors = {{"", error.line, error.column, error.detail}}};
}

}  // namespace api
