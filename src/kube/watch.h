// Follows a collection of objects: lists it in pages, then watches it from that version on, for
// ever.
//
// A step machine: answers move it (as the transport hands them out), and Advance() does what is due
// (the first list, a retry after a pause, the next watch). What it learns goes to a Sink, whose
// owner decides what to keep; nothing is stored here but versions.
//
// - 410, a gap, a stream that cannot be read: lists again.
// - The stream ended, or went silent: watches again from the last version; bookmarks count.
// - The stream fails twice in a row: requests the server's version before it watches again. A watch
//   from a version that a restored server does not have yet would miss all changes up to it.
// - Other errors, 429 and 5xx: the same again after a growing pause (Retry-After is heeded).
// - A list older than what was seen already is not believed: asks again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/transport.h"

namespace kube {

// Versions of objects are decimal numbers that grow over the whole cluster. 0: none, or unreadable.
using Version = uint64_t;
Version VersionOf(const base::Json& object);

class Watch {
 public:
  struct Source {
    std::string path;                 // "/api/v1/pods", "/api/v1/namespaces/team-a/pods"
    std::string label_selector;       // empty: all
    int32_t page = 500;               // objects a page
    std::string field_selector = "";  // "metadata.name=x"; empty: all
  };

  class Sink {
   public:
    virtual ~Sink() = default;
    // A new list begins. What is neither told between here and ListEnd nor newer than the list is
    // gone.
    virtual void ListBegin() = 0;
    virtual void ListEnd(Version version) = 0;
    virtual void Apply(const base::Json& object) = 0;   // is so now
    virtual void Remove(const base::Json& object) = 0;  // was so last, and is gone
    virtual void Reached(Version) {}  // everything up to here has been told: a bookmark
    // It does not get through. Told once for each failure; going on by itself.
    virtual void Trouble(const base::Error& error) = 0;
  };

  // `jitter`, any number, spreads the ends of streams of several watches.
  Watch(Transport& transport, Source source, Sink& sink, uint64_t jitter);
  ~Watch();

  void Advance(base::Time now);
  // When Advance has something to do next; nothing: when an answer has come.
  std::optional<base::Time> next() const;
  // A list is complete that was begun since the start, and since the last ListAgain: what was
  // missing then did not exist. False while the server is behind.
  bool synced() const;
  // The server's last list was older than a version seen before. What this watch reported may be
  // wrong.
  bool behind() const;
  // The server insists on a version that is older than what it told before, as after a restore of
  // its data from a backup. This watch, and everything learned from it, is of no use any more.
  bool rolled_back() const;
  // The stream may be behind: lists at once, whatever was waited for. Not from a Sink.
  void ListAgain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kube
