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
                                   std::span<const Uid> owners) {
  Change change;
  auto found = objects_.find(object);
  if (found == objects_.end()) {
    if (owners.empty()) return change;
    found = objects_.emplace(object, Node{Object{kind, std::string(key)}, {}}).first;
  }
  Node& node = found->second;
  node.object.kind = kind;  // Changes when the definition of its kind changes.
  const std::unordered_set<Uid, UidHash> wanted(owners.begin(), owners.end());
  std::unordered_set<Uid, UidHash> known;
  std::vector<Edge> kept, dropped;
  for (const Edge& edge : node.owners) (wanted.contains(edge.owner) ? kept : dropped).push_back(edge);
  for (const Edge& edge : kept) known.insert(edge.owner);
  node.owners = std::move(kept);
  for (const Edge& edge : dropped) {
    unlink(edge);
    change.lost.push_back(edge.owner);
  }
  for (const Uid& owner : owners) {
    if (known.contains(owner)) continue;
    std::vector<Uid>& list = owned_[owner];
    node.owners.push_back({owner, static_cast<uint32_t>(list.size())});
    list.push_back(object);
    change.gained.push_back(owner);
  }
  if (node.owners.empty()) objects_.erase(found);
  return change;
}

// Moves the last entry of the owner's list to the freed index.
void OwnerGraph::unlink(const Edge& edge) {
  const auto list = owned_.find(edge.owner);
  assert(list != owned_.end() && edge.place < list->second.size());
  const Uid moved = list->second.back();
  list->second[edge.place] = moved;
  list->second.pop_back();
  if (edge.place < list->second.size()) {
    for (Edge& other : objects_.find(moved)->second.owners) {
      if (other.owner == edge.owner) other.place = edge.place;
    }
  }
  if (list->second.empty()) owned_.erase(list);
}

std::vector<Uid> OwnerGraph::dependents(const Uid& owner) const {
  const auto found = owned_.find(owner);
  return found == owned_.end() ? std::vector<Uid>{} : found->second;
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
