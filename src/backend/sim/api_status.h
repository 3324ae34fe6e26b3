// How an API server says no: a Status object with code, reason, message and details, worded as
// Kubernetes 1.34 words them (tests/cluster/test_conformance.py compares).
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "backend/sim/api_resource.h"
#include "base/json.h"
#include "kube/transport.h"

namespace backend::sim {

// A request that was refused.
struct Refusal {
  int code = 500;
  std::string reason;
  std::string message;
  std::optional<base::JsonObject> details;
  std::string resume;  // metadata.continue, of an expired list
};

template <typename T = void>
using Outcome = std::expected<T, Refusal>;

// What is wrong with one field.
struct FieldError {
  enum class Kind {
    kInvalid,
    kRequired,
    kDuplicate,
    kNotSupported,
    kForbidden,
    kTooLong,
    kTypeInvalid
  };
  Kind kind = Kind::kInvalid;
  std::string field;
  std::string value;  // as Go prints it: quoted when it is text
  std::string detail;
};
using FieldErrors = std::vector<FieldError>;

std::unexpected<Refusal> NotFound(const Resource& resource, const std::string& name);
std::unexpected<Refusal> AlreadyExists(const Resource& resource, const std::string& name);
std::unexpected<Refusal> Conflict(const std::string& what, const Resource& resource,
                                  const std::string& details_kind, const std::string& name,
                                  const std::string& why);
// The version that the request was based on is not the latest.
std::unexpected<Refusal> Modified(const Resource& resource, const std::string& name);
// The object that is stored is not the one that the request is about.
std::unexpected<Refusal> WrongUid(const Resource& resource, const Target& target,
                                  const std::string& meant, const std::string& stored);
std::unexpected<Refusal> Forbidden(const Resource& resource, const std::string& name,
                                   const std::string& why);
std::unexpected<Refusal> InvalidObject(const std::string& kind, const std::string& group,
                                       const std::string& name, const FieldErrors& errors);
std::unexpected<Refusal> BadRequest(const std::string& message);
std::unexpected<Refusal> Expired(const std::string& message, const std::string& resume = "");
std::unexpected<Refusal> InternalError(const std::string& message);

base::Json StatusOf(const Refusal& refusal);
kube::Response ResponseOf(const Refusal& refusal);
// As a line of a watch.
std::string ErrorEvent(const Refusal& refusal);

}  // namespace backend::sim
