// The model of the API server as a program, for comparing it with a real one
// (tests/cluster/test_conformance.py): one JSON command a line on stdin, one JSON answer a line.
//
//   {"method": "POST", "path": "...", "contentType": "...", "body": {...}}   a request
//   {"watch": "NAME", "path": "..."}         begins a watch
//   {"events": "NAME"}                       what it has told since last asked
//   {"settle": SECONDS}                      lets so much time pass, for the garbage collector
//   {"compact": true}                        forgets all changes so far
//   {"quota": N, "namespace": "NS"}          so many pods and no more
#include <iostream>
#include <map>
#include <string>

#include "backend/sim/agenda.h"
#include "backend/sim/api_server.h"
#include "backend/sim/collector.h"
#include "base/json.h"

namespace {

using namespace backend::sim;
using base::Json;
using base::JsonArray;
using base::JsonObject;

Json ParsedOrText(const std::string& body) {
  const base::Result<Json> parsed = base::ParseJson(body);
  return parsed ? *parsed : Json(body);
}

class Model {
 public:
  Json Do(const Json& command) {
    if (const std::string name = base::StringOr(command, "watch"); !name.empty()) {
      return Watch(name, base::StringOr(command, "path"));
    }
    if (const std::string name = base::StringOr(command, "events"); !name.empty()) {
      return Events(name);
    }
    if (base::Find(command, "settle")) {
      agenda_.RunUntil(agenda_.now() + std::chrono::seconds(base::IntOr(command, "settle")));
      return JsonObject();
    }
    if (base::BoolOr(command, "compact")) {
      server_.Compact(server_.store().version());
      return JsonObject();
    }
    if (base::Find(command, "quota")) {
      server_.pod_quota[base::StringOr(command, "namespace")] = base::IntOr(command, "quota");
      return JsonObject();
    }
    const Json* body = base::Find(command, "body");
    const kube::Response response =
        server_.Serve({.method = base::StringOr(command, "method"),
                       .path = base::StringOr(command, "path"),
                       .content_type = base::StringOr(command, "contentType"),
                       .body = !body               ? ""
                               : body->is_string() ? std::string(body->as_string())
                                                   : base::CompactJson(*body)});
    return JsonObject{{"status", response.status}, {"body", ParsedOrText(response.body)}};
  }

 private:
  Json Watch(const std::string& name, const std::string& path) {
    Outcome<Watcher> watcher = server_.Watch({.path = path});
    if (!watcher) {
      return JsonObject{{"status", watcher.error().code}, {"body", StatusOf(watcher.error())}};
    }
    watchers_[name] = *std::move(watcher);
    return JsonObject{{"status", 200}};
  }

  Json Events(const std::string& name) {
    JsonArray events;
    while (auto line = server_.Next(watchers_[name], server_.store().version())) {
      events.push_back(ParsedOrText(*line));
    }
    return JsonObject{{"events", std::move(events)}};
  }

  Agenda agenda_{1, base::Time(std::chrono::seconds(1'800'000'000))};
  ApiServer server_{agenda_};
  Random random_{1};
  Collector collector_{agenda_, server_, random_};
  std::map<std::string, Watcher> watchers_;
};

}  // namespace

int main() {
  Model model;
  for (std::string line; std::getline(std::cin, line);) {
    const base::Result<Json> command = base::ParseJson(line);
    if (!command) {
      std::cerr << "no JSON: " << command.error().text() << "\n";
      return 2;
    }
    std::cout << base::CompactJson(model.Do(*command)) << std::endl;
  }
}
