// A plain Kubernetes Job (batch/v1), read as a TFJob of one worker.
//
// A training that is one process is often written as a Job. It keeps its name, pod template and
// policies, and what a Job means unless it says otherwise: six retries. Both of its restart
// policies answer a failure with another try (in the same pod, or in a new one), and that is
// OnFailure. Its only container is named tensorflow, whatever it was called.
//
// A Job that asks for several pods is refused: a TFJob tells its replicas of each other, and pods
// of a Job know nothing of it.
#pragma once

#include "api/spelling.h"

namespace api {

bool IsPlainJob(const base::Node& root);

Spelling RewritePlainJob(base::Node& root, FieldReader& reader);

}  // namespace api
