#include "cli/manifest.h"

#include <random>

#include <fmt/core.h>

#include "api/field_reader.h"
#include "base/strings.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;

Result<api::Values> ParametersOf(const Args& args) {
  api::Values values;
  for (const std::string& word : args.All("param")) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == word.npos) {
      return Invalid(fmt::format("--param {}: must be NAME=VALUE", base::OneLine(word)));
    }
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (base::CleanUtf8(word) != word) {
      return Invalid(fmt::format("--param {}: is not UTF-8", base::OneLine(name)));
    }
    if (!values.emplace(name, value).second) {
      return Invalid(fmt::format("--param {}: is given twice", base::OneLine(name)));
    }
  }
  return values;
}

// A generated value may be a password.
size_t Drawn(size_t below) {
  std::random_device device;
  return std::uniform_int_distribution<size_t>(0, below - 1)(device);
}

}  // namespace

Result<api::Manifest> ManifestFrom(const std::string& text, const Args& args) {
  api::Manifest manifest = api::ReadManifest(text, TRY(ParametersOf(args)), Drawn);
  if (manifest.errors.empty()) return manifest;
  return Invalid(api::Describe(manifest.errors, args.Get("file")));
}

Result<std::optional<api::Objects>> TemplateFrom(const std::string& text, const Args& args) {
  api::Objects all = api::ReadObjects(text, TRY(ParametersOf(args)), Drawn);
  if (!all.any_template || all.any_job) return std::nullopt;
  if (all.errors.empty()) return all;
  return Invalid(api::Describe(all.errors, args.Get("file")));
}

std::string NotMadeHere(const std::vector<base::Json>& objects) {
  std::vector<std::string> names;
  for (const base::Json& object : objects) {
    const base::Json* metadata = base::Find(object, "metadata");
    const std::string name = metadata ? base::StringOr(*metadata, "name") : "";
    names.push_back(
        base::OneLine(base::StringOr(object, "kind") + (name.empty() ? "" : " " + name)));
  }
  return fmt::format("{}: on this machine {} not made", api::Listed(names),
                     names.size() == 1 ? "it is" : "they are");
}

}  // namespace cli
