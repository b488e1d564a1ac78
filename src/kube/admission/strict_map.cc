#include "admission/strict_map.h"

#include "base/text.h"

namespace holdfast::admission {

StrictMap::StrictMap(const Value& map, std::string at, std::vector<std::string>& problems)
    : map_(map.is_map() ? map : Value::empty_map()), at_(std::move(at)), problems_(&problems) {
  if (!map.is_map() && !map.is_null()) complain(at_, "an object");
}

std::string StrictMap::path_of(std::string_view name) const {
  return at_.empty() ? std::string(name) : at_ + "." + std::string(name);
}

void StrictMap::complain(const std::string& path, std::string_view wanted) {
  problems_->push_back((path.empty() ? "the document" : path) + " must be " + std::string(wanted));
}

const Value* StrictMap::any(std::string_view name) {
  known_.emplace(name);
  const Value* found = map_.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string StrictMap::text(std::string_view name) {
  const Value* found = any(name);
  if (found == nullptr) return {};
  if (found->is_string()) return std::string(found->as_string());
  complain(path_of(name), "a string");
  return {};
}

std::vector<std::string> StrictMap::texts(std::string_view name) {
  std::vector<std::string> all;
  const Value* found = any(name);
  if (found == nullptr) return all;
  if (!found->is_list()) {
    complain(path_of(name), "a list of strings");
    return all;
  }
  for (const Value& item : found->items()) {
    if (item.is_string()) {
      all.emplace_back(item.as_string());
    } else {
      complain(path_of(name) + "[" + std::to_string(&item - found->items().data()) + "]", "a string");
    }
  }
  return all;
}

std::optional<int64_t> StrictMap::number(std::string_view name) {
  const Value* found = any(name);
  if (found == nullptr) return std::nullopt;
  if (found->is_int()) return found->as_int();
  complain(path_of(name), "an integer");
  return std::nullopt;
}

std::map<std::string, std::string, std::less<>> StrictMap::texts_by_name(std::string_view name) {
  std::map<std::string, std::string, std::less<>> all;
  const Value* found = any(name);
  if (found == nullptr) return all;
  if (!found->is_map()) {
    complain(path_of(name), "an object");
    return all;
  }
  for (const Member& member : found->members()) {
    if (member.value.is_string()) {
      all.insert_or_assign(std::string(member.key), std::string(member.value.as_string()));
    } else {
      complain(path_of(name) + "." + std::string(member.key), "a string");
    }
  }
  return all;
}

StrictMap StrictMap::map(std::string_view name) {
  const Value* found = any(name);
  return {found == nullptr ? Value::null() : *found, path_of(name), *problems_};
}

std::vector<StrictMap> StrictMap::maps(std::string_view name) {
  std::vector<StrictMap> all;
  const Value* found = any(name);
  if (found == nullptr) return all;
  if (!found->is_list()) {
    complain(path_of(name), "a list of objects");
    return all;
  }
  for (const Value& item : found->items()) {
    all.emplace_back(item, path_of(name) + "[" + std::to_string(all.size()) + "]", *problems_);
  }
  return all;
}

void StrictMap::finish() {
  for (const Member& member : map_.members()) {
    if (!known_.contains(member.key)) problems_->push_back("unknown field " + go_quote(path_of(member.key)));
  }
}

}  // namespace holdfast::admission
