// An API server drops every field that the schema in deploy/crd.yaml does not name, without a word.
// What we write there must be named.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "api/sample_status.h"
#include "api/tfjob.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace api {
namespace {

using base::Json;

Json Definition() {
  std::ifstream in("deploy/crd.yaml", std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const auto tree = base::ReadYaml(text.str());
  EXPECT_TRUE(tree) << tree.error().Text();
  return tree ? base::ToJson(*tree) : Json();
}

// The schema of the version that is stored.
const Json& StoredSchema() {
  static const Json definition = Definition();
  for (const Json& version : definition.at("spec").at("versions").as_array()) {
    if (version.at("storage").as_bool()) return version.at("schema").at("openAPIV3Schema");
  }
  ADD_FAILURE() << "no version is stored";
  return definition;
}

bool Fits(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  return type == "number" && value.is_number();
}

// The paths of `value` that the schema does not name or has as another type, one a line.
std::string Lost(const Json& value, const Json& schema, const std::string& path) {
  if (!Fits(value, base::StringOr(schema, "type"))) return path + ": of another type\n";
  std::string out;
  if (value.is_array()) {
    for (const Json& item : value.get_array()) out += Lost(item, schema.at("items"), path + "[]");
  }
  if (!value.is_object()) return out;
  const Json* properties = base::Find(schema, "properties");
  const Json* others = base::Find(schema, "additionalProperties");
  for (const auto& [key, member] : value.get_object()) {
    const std::string here = path + "." + std::string(key);
    const Json* named = properties ? base::Find(*properties, key) : others;
    if (named) {
      out += Lost(member, *named, here);
    } else if (!base::BoolOr(schema, "x-kubernetes-preserve-unknown-fields")) {
      out += here + ": not named\n";
    }
  }
  return out;
}

TEST(Crd, NamesEveryFieldOfAStatus) {
  const Json& schema = StoredSchema().at("properties").at("status");
  EXPECT_EQ(Lost(EncodeStatus(FullStatus()), schema, "status"), "");
}

TEST(Crd, SeesAFieldThatIsNotNamed) {
  const Json& schema = StoredSchema().at("properties").at("status");
  EXPECT_EQ(
      Lost(*base::ParseJson(R"({"gang": {"attemp": 1}, "seen": {"Worker": 1}})"), schema, "s"),
      "s.gang.attemp: not named\ns.seen.Worker: of another type\n");
}

TEST(Crd, HasTheBoundsThatManifestsHave) {
  const Json& spec = StoredSchema().at("properties").at("spec").at("properties");
  const Json& replicas = spec.at("tfReplicaSpecs").at("additionalProperties").at("properties");
  EXPECT_EQ(base::IntOr(replicas.at("replicas"), "maximum"), kMaxReplicas);
  EXPECT_EQ(base::IntOr(spec.at("tfReplicaSpecs"), "maxProperties"), std::ssize(kRoles));
}

}  // namespace
}  // namespace api
