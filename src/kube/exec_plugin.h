// Programs that a kubeconfig names to get a credential from, as client.authentication.k8s.io has
// it.
//
// They are somebody else's choice of what to run here, so only known ones are, found on our own
// PATH; others need the user's word (TRAINYARD_EXEC_PLUGINS).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/access.h"

namespace kube {

// Sets plugin.program if the plugin may be run. `directory` is that of the kubeconfig, `allowed`
// names more programs, joined by ','.
base::Result<> Allow(ExecPlugin& plugin, const std::string& directory, const std::string& allowed);

struct ExecCredential {
  std::string token;
  std::string certificate, key;  // PEM
  std::optional<base::Time> expires;
};

// Runs it, without a shell, and waits for it to end, at most `timeout`. What it says on standard
// error goes to ours; what it prints never does.
base::Result<ExecCredential> RunExecPlugin(const Access& access, base::Duration timeout);

// What a plugin printed.
base::Result<ExecCredential> ReadExecCredential(const std::string& text);

}  // namespace kube
