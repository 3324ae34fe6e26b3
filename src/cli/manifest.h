// The manifest that a command line speaks of: -f FILE, with --param NAME=VALUE for a Template.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/manifest.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/args.h"

namespace cli {

// `text` is what the file holds. An error has a line for everything that is wrong with it.
base::Result<api::Manifest> ManifestFrom(const std::string& text, const Args& args);

// The objects of a Template without a job, for `render`; nothing when the file is anything else.
base::Result<std::optional<api::Objects>> TemplateFrom(const std::string& text, const Args& args);

// A warning: "ConfigMap settings, Service board: on this machine they are not made".
std::string NotMadeHere(const std::vector<base::Json>& objects);

}  // namespace cli
