#include "controllers/owner_graph.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "base/ascii.h"
#include "base/hash.h"

namespace holdfast::controllers {

Uid Uid::of(std::string_view text) {
  Uid uid;
  size_t digits = 0;
  for (size_t i = 0; text.size() == 36 && i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (c == '-')) break;
    if (dash) continue;
    const int value = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) break;
    uid.bits[digits / 16] = uid.bits[digits / 16] << 4 | static_cast<uint64_t>(value);
    ++digits;
  }
  if (digits != 32) uid.bits = {hash_bytes(text), hash_bytes(text, 1)};
  return uid;
}

OwnerGraph::Change OwnerGraph::set(const Uid& object, uint32_t kind, std::string_view key,
                                   std::span<const Owner> owners) {
  Change change;
  auto found = objects_.find(object);
  if (found == objects_.end()) {
    if (owners.empty()) return change;
    found = objects_.emplace(object, Node{Object{kind, std::string(key)}, {}}).first;
  }
  Node& node = found->second;
  node.object.kind = kind;  // Changes when the definition of its kind changes.
  std::unordered_map<Uid, bool, UidHash> blocked;
  for (const Owner& owner : owners) blocked.emplace(owner.uid, owner.blocked);
  std::unordered_set<Uid, UidHash> known;
  std::vector<Edge> kept, dropped;
  for (const Edge& edge : node.owners) {
    const auto wanted = blocked.find(edge.owner);
    if (wanted == blocked.end()) {
      dropped.push_back(edge);
      continue;
    }
    known.insert(edge.owner);
    owned_.find(edge.owner)->second[edge.place] = {object, static_cast<uint32_t>(kept.size()), wanted->second};
    kept.push_back(edge);
  }
  node.owners = std::move(kept);
  for (const Edge& edge : dropped) {
    unlink(edge);
    change.lost.push_back(edge.owner);
  }
  for (const Owner& owner : owners) {
    if (known.contains(owner.uid)) continue;
    std::vector<Link>& list = owned_[owner.uid];
    const auto place = static_cast<uint32_t>(list.size());
    list.push_back({object, static_cast<uint32_t>(node.owners.size()), owner.blocked});
    node.owners.push_back({owner.uid, place});
    change.gained.push_back(owner.uid);
  }
  if (node.owners.empty()) objects_.erase(found);
  return change;
}

// Moves the last entry of the owner's list to the freed index.
void OwnerGraph::unlink(const Edge& edge) {
  const auto list = owned_.find(edge.owner);
  assert(list != owned_.end() && edge.place < list->second.size());
  const Link moved = list->second.back();
  list->second[edge.place] = moved;
  list->second.pop_back();
  if (edge.place < list->second.size()) objects_.find(moved.object)->second.owners[moved.place].place = edge.place;
  if (list->second.empty()) owned_.erase(list);
}

std::vector<Uid> OwnerGraph::dependents(const Uid& owner) const {
  std::vector<Uid> all;
  const auto found = owned_.find(owner);
  if (found == owned_.end()) return all;
  all.reserve(found->second.size());
  for (const Link& link : found->second) all.push_back(link.object);
  return all;
}

std::vector<Uid> OwnerGraph::blocking_dependents(const Uid& owner) const {
  std::vector<Uid> all;
  const auto found = owned_.find(owner);
  if (found == owned_.end()) return all;
  for (const Link& link : found->second) {
    if (link.blocks) all.push_back(link.object);
  }
  return all;
}

const OwnerGraph::Object* OwnerGraph::find(const Uid& object) const {
  const auto found = objects_.find(object);
  return found == objects_.end() ? nullptr : &found->second.object;
}

std::vector<Uid> OwnerGraph::objects() const {
  std::vector<Uid> all;
  all.reserve(objects_.size());
  for (const auto& [uid, node] : objects_) all.push_back(uid);
  return all;
}

}  // namespace holdfast::controllers
