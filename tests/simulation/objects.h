// Objects as clients send and receive them, and as the store contains them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "simulation/history.h"
#include "value/value.h"

namespace holdfast::simulation {

struct ResourceName {
  std::string plural, api_version, kind;
  std::string path;  // Of the collection.

  std::string name_in(std::string_view key) const;                      // "configmaps/a" -> "/a"
  std::optional<std::string> key_of(std::string_view store_key) const;  // Null for other resources.
};

std::string method_of(Verb verb);
// The body of a write; empty if it has none. `declares`: with the field manager in the object.
std::string body_of(const ResourceName& resource, const std::string& key, const Wish& wish, bool declares);

// What the store contains. Ends the process if it cannot be read.
Object object_of_stored(const ResourceName& resource, std::string_view stored);
// The cluster IPs and node ports of a Service: "10.0.0.1", "port 30001".
std::set<std::string> allocations_of_stored(std::string_view service);

// A response, or an event of a watch. Members that are absent are empty.
class Parsed {
 public:
  explicit Parsed(std::string_view body);

  bool is_status() const { return root_.text_at("kind") == "Status"; }
  std::string message() const;  // Of a Status; otherwise empty, or the body if it is not JSON.
  std::string details_uid() const { return std::string(root_.text_at("details", "uid")); }
  Seen seen(const ResourceName& resource, bool with_owners) const;

  uint64_t list_revision() const;
  std::string continue_token() const { return std::string(root_.text_at("metadata", "continue")); }
  std::vector<Seen> items(const ResourceName& resource, bool with_owners) const;

  std::string event_type() const { return std::string(root_.text_at("type")); }
  WatchEvent event(const ResourceName& resource, bool with_owners) const;
  int error_code() const { return static_cast<int>(root_.int_at_or(0, "object", "code")); }
  std::string error_message() const { return std::string(root_.text_at("object", "message")); }

 private:
  Arena arena_;
  Value root_;
  std::string unreadable_;
};

}  // namespace holdfast::simulation
