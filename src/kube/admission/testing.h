// What plugins look up, for tests.
#pragma once

#include <algorithm>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "codec/json.h"

namespace holdfast::admission::testing {

// Objects by "group/plural/namespace/name", and the caller's permissions.
class Objects : public Lookup {
 public:
  void add(std::string_view group, std::string_view plural, std::string_view ns, std::string json) {
    const std::string& text = texts_.emplace_back(std::move(json));
    const Value object = *codec::decode_json(arena_, text);
    objects_.push_back({std::string(group), std::string(plural), std::string(ns), object});
  }
  void allow(std::string what) { allowed_.push_back(std::move(what)); }

  std::optional<Value> get(Arena&, std::string_view group, std::string_view plural, std::string_view ns,
                           std::string_view name) const override {
    for (const Entry& entry : objects_) {
      if (entry.group == group && entry.plural == plural && entry.ns == ns &&
          entry.object.text_at("metadata", "name") == name) {
        return entry.object;
      }
    }
    return std::nullopt;
  }
  std::vector<Value> list(Arena&, std::string_view group, std::string_view plural, std::string_view ns) const override {
    std::vector<Value> found;
    for (const Entry& entry : objects_) {
      if (entry.group == group && entry.plural == plural && entry.ns == ns) found.push_back(entry.object);
    }
    return found;
  }
  std::optional<std::string> denied(const Permission& permission) const override {
    std::string asked = std::string(permission.verb) + " " + std::string(permission.resource);
    if (!permission.subresource.empty()) asked += "/" + std::string(permission.subresource);
    asked += " " + std::string(permission.name);
    if (std::find(allowed_.begin(), allowed_.end(), asked) != allowed_.end()) return std::nullopt;
    return "not allowed to " + asked;
  }
  std::vector<KindResource> resources_of(std::string_view, std::string_view, std::string_view kind) const override {
    if (kind == "ReplicaSet") return {{"replicasets", true}};
    return {};
  }

 private:
  struct Entry {
    std::string group, plural, ns;
    Value object;
  };
  Arena arena_;
  std::list<std::string> texts_;
  std::vector<Entry> objects_;
  std::vector<std::string> allowed_;
};

}  // namespace holdfast::admission::testing
