// Questions to an API server that are waited for, one at a time: for commands.
//
// Made with a test for "stop" (Ctrl-C): a wait ends within a tenth of a second once that is true,
// with an error. Answers of errors are errors of the kinds that ErrorOf gives, said as "GET /path:
// ...".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/server.h"

namespace kube {

class Client {
 public:
  // `server` outlives it. Other requests of that server go on while this one waits.
  explicit Client(Server& server, std::function<bool()> stopped = [] { return false; });
  // The same through another door, which ends at that server.
  Client(Server& server, Transport& door, std::function<bool()> stopped);

  // Any answer, also one that is an error. A 429 is asked again when the server says so, while
  // there is time.
  base::Result<Response> Call(Request request, base::Duration timeout = std::chrono::seconds(30));

  base::Result<base::Json> Get(const std::string& path);
  // All objects, in pages.
  base::Result<base::JsonArray> List(const std::string& path,
                                     const std::string& label_selector = "");
  base::Result<base::Json> Create(const std::string& path, const base::Json& object);
  // A JSON merge patch.
  base::Result<base::Json> Patch(const std::string& path, const base::Json& patch);
  // The object at `path`, which names one: a whole collection is refused. With `uid`, that one and
  // no other of its name. What it owns goes after it.
  base::Result<> Delete(const std::string& path, const std::string& uid = "");

 private:
  base::Result<base::Json> JsonOf(Request request);

  Server& server_;
  Transport& door_;
  std::function<bool()> stopped_;
};

}  // namespace kube
