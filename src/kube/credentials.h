// As whom we speak to an API server: what the Authorization header says now, and which certificate
// is shown.
//
// A token in a file is read again each minute (kubelet renews those of pods in place), an exec
// plugin is asked again when what it said expires. A plugin is waited for, which stops everything
// else of this thread: for command-line use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/access.h"

namespace kube {

class Credentials {
 public:
  explicit Credentials(Access access);

  // Reads what is due. An error only when there is nothing to go on with.
  base::Result<> Refresh(base::Time now);

  // The server did not accept those of `generation`. Reads them again, but not more than once in 10
  // seconds; true when there are others now, so that it is worth asking again.
  bool Renew(uint64_t generation, base::Time now);

  const std::string& authorization() const { return authorization_; }  // "Bearer ..."; may be empty
  const io::Tls& tls() const { return access_.tls; }
  uint64_t generation() const { return generation_; }  // changes with the two above
  const Access& access() const { return access_; }

 private:
  base::Result<> Read(base::Time now);
  base::Result<> ReadTokenFile();
  base::Result<> AskPlugin();
  void Take(std::string authorization);

  Access access_;
  std::string authorization_;
  uint64_t generation_ = 0;
  std::optional<base::Time> read_;     // when last
  std::optional<base::Time> renewed_;  // when last, because the server wanted others
  std::optional<base::Time> expires_;
};

}  // namespace kube
