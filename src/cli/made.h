// What one command makes on a cluster, and takes back if it cannot make all of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client.h"
#include "kube/server.h"

namespace cli {

class Made {
 public:
  // `door` ends at that server. Its requests are not interrupted: one that was abandoned could be
  // carried out all the same. Whoever makes several things looks at Interrupted() in between.
  Made(kube::Server& server, kube::Transport& door);
  // Takes everything back unless Keep was called.
  ~Made();
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  // Creates `object` in the collection at `path`. When no answer comes nobody knows whether it was
  // made: then it is looked for. When a request was sent again because its answer was lost, what
  // has the name already is our own, and that is no error. The server keeps who wrote an object
  // (managedFields), and each Made writes under a name of its own.
  base::Result<base::Json> Create(const std::string& path, const base::Json& object);
  // The same for many, several at a time. `go_on` gets the number made so far and says whether to
  // go on; if not, the requests under way are finished, and the error is kUnavailable.
  struct New {
    std::string path;
    base::Json object;
  };
  base::Result<> CreateAll(const std::vector<New>& objects,
                           const std::function<bool(size_t made)>& go_on);
  // What has been made stays.
  void Keep() { objects_.clear(); }
  // The last made goes first; what is gone already is fine. The first error, after trying all.
  base::Result<> TakeBack();

 private:
  struct Object {
    std::string path, uid;
  };

  void Note(const std::string& path, const base::Json& object);
  // Finds out what became of an object whose creation got this error, and notes it if it was made.
  // Returns it if only the name was taken, by ourselves; else the error.
  base::Result<base::Json> AfterError(const std::string& path, const base::Json& object,
                                      const base::Error& error);

  const std::string writer_;
  kube::Server& server_;
  kube::Transport& door_;
  kube::Client client_;
  std::vector<Object> objects_;
};

}  // namespace cli
