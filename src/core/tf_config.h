// TF_CONFIG: how each replica learns who the others are. Of a TFJob, byte for byte as
// training-operator v1.9.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/tfjob.h"

namespace core {

// "mnist-worker-0.default.svc:2222" on a cluster, "127.0.0.1:20413" on one machine.
using AddressOf = std::function<std::string(api::ReplicaId)>;

// The value for one replica, or nothing where none is set: a TFJob of one replica alone, or a job
// that asks for none.
std::optional<std::string> TfConfig(const api::Job& job, api::ReplicaId id,
                                    const AddressOf& address);

}  // namespace core
