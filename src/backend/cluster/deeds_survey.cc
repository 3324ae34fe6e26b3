// All that a job has of one kind, from a list of its own: for when the watch may be behind.
//
// A sound API server answers such a list from what is stored, not from a cache that may be behind.
// Which it was, the version of the list tells: one that is older than what we already know is not
// believed, and asked for again in another turn. (Not asked for by version: to the one that is
// behind that is a time-out, which would be taken for a crowd.)
#include <fmt/core.h>

#include "backend/cluster/deeds.h"
#include "kube/api.h"

namespace backend::cluster {

using base::Error;
using base::ErrorKind;
using base::Json;
using kube::Request;

namespace {

// Pods of a large job are large themselves: each carries the addresses of all.
constexpr const char* kPage = "200";
constexpr int kMostPages = 1000;

}  // namespace

template <typename Object>
struct Deeds::Listing {
  Collection<Object>& known;
  const Key job;
  const std::string path;
  const std::string selector;
  const kube::Version at_least;
  const Done done;
  kube::Version version = 0;  // of the list
  std::string next;           // the token of the next page
  int pages = 0;
  std::set<std::string> names;
  std::optional<Error> wrong;
};

template <typename Object>
void Deeds::ReadPage(Listing<Object>& listing, const Json& page) {
  const kube::Version version = kube::VersionOf(page);
  const Json* items = base::Find(page, "items");
  if (version == 0 || (items && !items->is_array() && !items->is_null())) {
    listing.wrong = Error(ErrorKind::kUnavailable, "the answer is no list of objects");
  } else if (version < listing.at_least) {
    listing.wrong = Error(ErrorKind::kUnavailable,
                          fmt::format("the server is behind: its list is of version {}, and {} was "
                                      "seen already",
                                      version, listing.at_least));
  }
  if (listing.wrong) return;
  if (listing.version == 0) listing.version = version;
  if (items && items->is_array()) {
    for (const Json& item : items->get_array()) {
      listing.known.Learn(item);
      listing.names.insert(kube::Metadata(item, "name"));
    }
  }
  const Json* metadata = base::Find(page, "metadata");
  listing.next = metadata ? base::StringOr(*metadata, "continue") : "";
  if (!listing.next.empty() && ++listing.pages > kMostPages) {
    listing.wrong = Error(ErrorKind::kUnavailable, "the list does not end");
  }
}

template <typename Object>
void Deeds::ListOn(std::shared_ptr<Listing<Object>> listing) {
  Ask(
      listing->job.name_space,
      [listing] {
        return Request{.path = kube::WithQuery(listing->path, {{"labelSelector", listing->selector},
                                                               {"limit", kPage},
                                                               {"continue", listing->next}})};
      },
      [this, listing](const Json* page) { ReadPage(*listing, *page); },
      [this, listing](std::optional<Error> error) {
        if (!error) error = listing->wrong;
        if (error) return listing->done(std::move(error));
        if (!listing->next.empty()) return ListOn(listing);
        listing->known.Survey(listing->job, listing->names, listing->version);
        listing->done(std::nullopt);
      });
}

void Deeds::SurveyPods(const JobPtr& job, kube::Version at_least, Done done) {
  const Key key{job->metadata.name_space, job->metadata.name};
  ListOn(std::make_shared<Listing<Pod>>(Listing<Pod>{.known = know_.pods,
                                                     .job = key,
                                                     .path = PathOf(Kind::kPod, key.name_space),
                                                     .selector = SelectorOf(*job),
                                                     .at_least = at_least,
                                                     .done = std::move(done)}));
}

void Deeds::SurveyServices(const JobPtr& job, kube::Version at_least, Done done) {
  const Key key{job->metadata.name_space, job->metadata.name};
  ListOn(std::make_shared<Listing<Service>>(
      Listing<Service>{.known = know_.services,
                       .job = key,
                       .path = PathOf(Kind::kService, key.name_space),
                       .selector = SelectorOf(*job),
                       .at_least = at_least,
                       .done = std::move(done)}));
}

}  // namespace backend::cluster
