#include "backend/sim/api_status.h"

#include <algorithm>

#include <fmt/core.h>

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

JsonObject DetailsOf(const Resource& resource, const std::string& name) {
  JsonObject details;
  if (!name.empty()) details["name"] = name;
  if (!resource.group.empty()) details["group"] = resource.group;
  details["kind"] = resource.plural;
  return details;
}

// The reason of a cause, and the words for people.
std::pair<std::string_view, std::string> Spoken(const FieldError& error) {
  const auto with = [&](std::string text) {
    return error.detail.empty() ? text : text + ": " + error.detail;
  };
  switch (error.kind) {
    case FieldError::Kind::kInvalid:
      return {"FieldValueInvalid", with("Invalid value: " + error.value)};
    case FieldError::Kind::kRequired:
      return {"FieldValueRequired", with("Required value")};
    case FieldError::Kind::kDuplicate:
      return {"FieldValueDuplicate", with("Duplicate value: " + error.value)};
    case FieldError::Kind::kNotSupported:
      return {"FieldValueNotSupported", with("Unsupported value: " + error.value)};
    case FieldError::Kind::kForbidden:
      return {"FieldValueForbidden", with("Forbidden")};
    case FieldError::Kind::kTooLong:
      return {"FieldValueTooLong", with("Too long")};
    case FieldError::Kind::kTypeInvalid:
      return {"FieldValueTypeInvalid", with("Invalid value: " + error.value)};
  }
  return {};
}

}  // namespace

std::unexpected<Refusal> NotFound(const Resource& resource, const std::string& name) {
  return std::unexpected(
      Refusal{.code = 404,
              .reason = "NotFound",
              .message = fmt::format("{} \"{}\" not found", resource.Qualified(), name),
              .details = DetailsOf(resource, name)});
}

std::unexpected<Refusal> AlreadyExists(const Resource& resource, const std::string& name) {
  return std::unexpected(
      Refusal{.code = 409,
              .reason = "AlreadyExists",
              .message = fmt::format("{} \"{}\" already exists", resource.Qualified(), name),
              .details = DetailsOf(resource, name)});
}

std::unexpected<Refusal> Conflict(const std::string& what, const Resource& resource,
                                  const std::string& details_kind, const std::string& name,
                                  const std::string& why) {
  JsonObject details = DetailsOf(resource, name);
  details["kind"] = details_kind;
  return std::unexpected(Refusal{
      .code = 409,
      .reason = "Conflict",
      .message = fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", what, name, why),
      .details = std::move(details)});
}

std::unexpected<Refusal> Modified(const Resource& resource, const std::string& name) {
  return Conflict(resource.Qualified(), resource, std::string(resource.plural), name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

std::unexpected<Refusal> WrongUid(const Resource& resource, const Target& target,
                                  const std::string& meant, const std::string& stored) {
  return Conflict(resource.Qualified(), resource, std::string(resource.plural), target.name,
                  fmt::format("StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{}, "
                              "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                              "precondition: {}, UID in object meta: {}",
                              resource.plural, target.name_space, target.name, meant, stored));
}

std::unexpected<Refusal> Forbidden(const Resource& resource, const std::string& name,
                                   const std::string& why) {
  return std::unexpected(
      Refusal{.code = 403,
              .reason = "Forbidden",
              .message = fmt::format("{} \"{}\" is forbidden: {}", resource.Qualified(), name, why),
              .details = DetailsOf(resource, name)});
}

std::unexpected<Refusal> InvalidObject(const std::string& kind, const std::string& group,
                                       const std::string& name, const FieldErrors& errors) {
  JsonArray causes;
  std::vector<std::string> told;  // each once, in the order of their first mention
  for (const FieldError& error : errors) {
    const auto [reason, words] = Spoken(error);
    causes.push_back(JsonObject{{"reason", reason}, {"message", words}, {"field", error.field}});
    const std::string line = error.field + ": " + words;
    if (std::ranges::find(told, line) == told.end()) told.push_back(line);
  }
  std::string all;
  for (const std::string& line : told) all += (all.empty() ? "" : ", ") + line;
  if (told.size() > 1) all = "[" + all + "]";
  JsonObject details;
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  details["kind"] = kind;
  details["causes"] = std::move(causes);
  const std::string qualified = group.empty() ? kind : kind + "." + group;
  return std::unexpected(
      Refusal{.code = 422,
              .reason = "Invalid",
              .message = fmt::format("{} \"{}\" is invalid: {}", qualified, name, all),
              .details = std::move(details)});
}

std::unexpected<Refusal> BadRequest(const std::string& message) {
  return std::unexpected(Refusal{.code = 400, .reason = "BadRequest", .message = message});
}

std::unexpected<Refusal> Expired(const std::string& message, const std::string& resume) {
  return std::unexpected(
      Refusal{.code = 410, .reason = "Expired", .message = message, .resume = resume});
}

std::unexpected<Refusal> InternalError(const std::string& message) {
  return std::unexpected(Refusal{.code = 500, .message = message});
}

Json StatusOf(const Refusal& refusal) {
  JsonObject metadata;
  if (!refusal.resume.empty()) metadata["continue"] = refusal.resume;
  JsonObject status{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", std::move(metadata)},
                    {"status", "Failure"},
                    {"message", refusal.message}};
  if (!refusal.reason.empty()) status["reason"] = refusal.reason;
  if (refusal.details) status["details"] = *refusal.details;
  status["code"] = refusal.code;
  return status;
}

kube::Response ResponseOf(const Refusal& refusal) {
  return {.status = refusal.code, .body = base::CompactJson(StatusOf(refusal))};
}

std::string ErrorEvent(const Refusal& refusal) {
  return base::CompactJson(JsonObject{{"type", "ERROR"}, {"object", StatusOf(refusal)}}) + "\n";
}

}  // namespace backend::sim
