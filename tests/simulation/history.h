// What happened in a simulation, and whether a Kubernetes API server may behave like that.
//
//   clients  -> Op      what was asked for and answered, with its place in the order of everything that happened
//   store    -> Commit  every version of every object, as it was stored
//
// problems() checks:
//   * the model of ownership (effect_of): every stored version is the result of exactly one request, applied to the
//     version before; requests that were acknowledged have their effect, and those that were refused have none;
//   * linearizability: every response agrees with a version that was the latest at some moment of its request;
//   * lists are one state of the store, also over several pages; those that must be fresh are;
//   * no cluster IP or node port belongs to two Services at any time;
//   * watches send every event once, in order, with the object and its owners as of then; bookmarks are true; a watch
//     that has waited long enough has sent everything.
//
// Objects are small: fields are text, named "data/a", "labels/t" or "finalizers/example.com/f".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::simulation {

using Fields = std::map<std::string, std::string>;
using Owners = std::map<std::string, std::set<std::string>>;  // By manager and operation: "git Apply". None is empty.

struct Object {
  std::string uid;  // Empty if it is not known yet.
  bool deleting = false;
  Fields fields;
  Owners owners;
  Owners parents;  // Owners of "data", "labels" or "finalizers" itself. Not predicted, only read, like the next.
  // Whether it has managedFields at all, if only with entries that own none of these fields. Without them, updates are
  // not tracked until somebody applies.
  bool tracked = true;
};

enum class Verb : uint8_t { Create, Apply, Patch, Put, Delete, DeleteCollection, Get, List, Watch };
std::string_view to_string(Verb verb);

// What a write asks for.
struct Wish {
  Verb verb = Verb::Get;
  std::string manager;
  std::map<std::string, std::optional<std::string>>
      fields;  // A Patch removes those without a value, an Apply unsets them.
  bool force = false;
  bool dry_run = false;
  bool custom = false;               // Of a custom resource, whose schema does not allow null.
  std::optional<uint64_t> expected;  // The resourceVersion that a Put or a Delete depends on.
};

// What a write does to an object, according to the rules of Kubernetes.
struct Effect {
  std::set<int> refused;     // The possible status codes; empty if the write succeeds ...
  std::set<int> may_refuse;  // ... which it does not have to in this case.
  Object object;             // Afterwards, or in its last form if it is removed.
  bool removed = false;
};
Effect effect_of(const Wish& wish, const std::optional<Object>& before, uint64_t revision);

// A version of an object in a response or an event.
struct Seen {
  std::string key;  // "configmaps/a"
  uint64_t revision = 0;
  Object object;
  bool with_owners = false;  // False if the client asked for an answer without managedFields.
};

struct WatchEvent {
  std::string type;  // ADDED, MODIFIED, DELETED, BOOKMARK
  Seen seen;         // Only the revision for bookmarks.
  bool initial_end = false;
};

struct Op {
  enum class Outcome : uint8_t { Ok, Refused, Unknown };
  enum class Freshness : uint8_t { Newest, Any, Exact };

  int number = 0;
  std::string who;       // "client 2 of server 1"
  std::string resource;  // "configmaps"
  std::string key;       // "configmaps/a"; empty for a collection.
  Wish wish;
  uint64_t begin = 0, end = UINT64_MAX;  // Places in the order of everything.
  double begin_seconds = 0, end_seconds = 0;

  Outcome outcome = Outcome::Unknown;  // Unknown: it may have had an effect, and may still have one.
  int code = 0;                        // 0 if there was no response.
  std::string message;
  std::optional<Seen> seen;  // In the response to a write or a get.
  std::string deleted_uid;   // In the Status of a deletion.

  // Lists and watches.
  std::string selector;  // Value of the label "t"; empty selects everything.
  Freshness freshness = Freshness::Newest;
  uint64_t from = 0;        // The revision asked for.
  uint64_t revision = 0;    // Of the list.
  std::vector<Seen> items;  // Of all pages.
  bool initial = false;     // A watch that begins with the objects that exist.
  std::vector<WatchEvent> events;
  bool whole = false;    // The watch was open long enough to send everything.
  bool modelled = true;  // Otherwise its response is not checked.
};

struct Commit {
  uint64_t order = 0;
  uint64_t revision = 0;
  std::string key;
  std::optional<Object> object;  // Null if it was deleted.
};

struct History {
  std::vector<Op> ops;
  std::vector<Commit> commits;     // In order, of the keys that clients use.
  uint64_t last_revision = 0;      // Of the store at the end.
  bool failures = false;           // Whether requests may fail for no reason of their own.
  std::vector<std::string> found;  // Problems that were found while it happened.
};

// What cannot be explained, most important first, each with the requests concerned.
std::vector<std::string> problems(const History& history);

std::string to_string(const Op& op);
std::string to_string(const Commit& commit);
// Everything, in order.
std::string transcript(const History& history);

}  // namespace holdfast::simulation
