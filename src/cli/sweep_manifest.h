// The manifest of a trial: the manifest of a sweep with the values of the trial in it.
//
// ${lr} becomes the value of the parameter, ${trial} the name of the trial's job. A parameter that
// is inactive in the trial has no value, so what stands for it is left out: an argument that is
// only ${momentum} or --momentum=${momentum}, with the flag before it if that is a word of its own,
// and a variable of `env` whose value is only ${momentum}.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/sweep_spec.h"

namespace cli {

// kInvalid: the manifest does not mention a parameter, or mentions an inactive one where it cannot
// be left out.
base::Result<std::string> ManifestOf(const SweepPlan& plan, const sweep::Trial& trial);

// Refuses what ManifestOf, or `run`, would refuse for any trial. `file` is named in errors.
base::Result<> CheckManifest(const SweepPlan& plan, const std::string& file);

}  // namespace cli
