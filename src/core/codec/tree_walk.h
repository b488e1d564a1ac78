// Visits a tree in order, for writers. Does not recurse: a tree may be ten thousand levels deep, and a thread's stack
// is small. Private to the module.
#pragma once

#include <span>
#include <vector>

#include "value/value.h"

namespace holdfast::codec {

// `Writer` derives from it and has
//   begin(value)         writes a scalar, or the start of a list or map that it then enters
//   separate(position)   writes what precedes the item or member at that position
//   key(text)            writes the key of a member
//   end(is_map)          writes the end of a container that was entered
template <class Writer>
class TreeWalk {
 protected:
  void walk(const Value& root) {
    writer().begin(root);
    while (!open_.empty()) {
      Open& top = open_.back();
      if (top.at == top.count) {
        const bool is_map = top.members != nullptr;
        open_.pop_back();
        writer().end(is_map);
        continue;
      }
      writer().separate(top.at);
      const size_t at = top.at++;
      if (top.members != nullptr) {
        const Member& member = top.members[at];
        writer().key(member.key);
        writer().begin(member.value);
      } else {
        writer().begin(top.items[at]);
      }
    }
  }

  // Only containers that are not empty are entered.
  void enter(std::span<const Value> items) { open_.push_back({nullptr, items.data(), items.size()}); }
  void enter(std::span<const Member> members) { open_.push_back({members.data(), nullptr, members.size()}); }
  size_t depth() const { return open_.size(); }

 private:
  struct Open {
    const Member* members;  // Null for a list.
    const Value* items;
    size_t count;
    size_t at = 0;
  };
  friend Writer;
  TreeWalk() = default;  // Only a `Writer` may derive from TreeWalk<Writer>.
  Writer& writer() { return static_cast<Writer&>(*this); }

  std::vector<Open> open_;
};

}  // namespace holdfast::codec
