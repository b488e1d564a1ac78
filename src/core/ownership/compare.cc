#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

// All paths of a value that is absent on the other side.
class AllPaths {
 public:
  explicit AllPaths(Arena& arena) : arena_(arena), builder_(arena) {}

  FieldSet below(const MergeType& type, const Value& v) {
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        return {};
      case MergeType::kList: {
        if (type.atomic_list || !v.is_list() || v.count() == 0) return {};
        const size_t level = builder_.open();
        for (const Value& item : v.items()) {
          PathElement element = PathElement::index(0);
          if (!item_element(arena_, type, item, element)) continue;
          const FieldSet children = below(*type.item, item);
          builder_.add(element, true, children);
        }
        return builder_.close_items(level);
      }
      default: {
        if (type.atomic_map || !v.is_map() || v.count() == 0) return {};
        const size_t level = builder_.open();
        for (const Member& m : v.members()) {
          bool declared = false;
          const MergeType* child = type.member(m.key, declared);
          const FieldSet children = child == nullptr ? FieldSet() : below(*child, m.value);
          builder_.add(PathElement::field(m.key), true, children);
        }
        return builder_.close(level);
      }
    }
  }

 private:
  Arena& arena_;
  SetBuilder builder_;
};

// What a node and everything below it added, modified and removed.
struct Change {
  bool added = false, modified = false, removed = false;
  Comparison below;
};

class CompareWalk {
 public:
  explicit CompareWalk(Arena& arena) : arena_(arena), all_(arena), added_(arena), modified_(arena), removed_(arena) {}

  Change node(const MergeType& type, const Value* left, const Value* right) {
    Change change;
    if (left == nullptr) {
      change.added = true;
      change.below.added = all_.below(type, *right);
    } else if (right == nullptr) {
      change.removed = true;
      change.below.removed = all_.below(type, *left);
    } else if (!left->same(*right)) {
      const uint8_t by_left = pick(type, *left), by_right = pick(type, *right);
      if (by_left != by_right) {
        // Compared as the kind of the left side, then as that of the right side; the results are combined.
        change = as(handled(by_left), type, *left, *right);
        const Change again = as(handled(by_right), type, *left, *right);
        change.modified |= again.modified;
        change.below.added = union_of(arena_, change.below.added, again.below.added);
        change.below.modified = union_of(arena_, change.below.modified, again.below.modified);
        change.below.removed = union_of(arena_, change.below.removed, again.below.removed);
      } else {
        change = as(handled(by_right), type, *left, *right);
      }
    }
    return change;
  }

 private:
  static Change leaf(const Value& left, const Value& right) {
    Change change;
    change.modified = !equal(left, right, Numbers::ByValue);
    return change;
  }

  Change as(uint8_t kind, const MergeType& type, const Value& left, const Value& right) {
    const bool map = kind == MergeType::kMap;
    const Value::Kind wanted = map ? Value::Kind::Map : Value::Kind::List;
    const bool l = left.kind() == wanted && left.count() != 0, r = right.kind() == wanted && right.count() != 0;
    const bool atomic = map ? type.atomic_map : type.atomic_list;
    // Two empty containers are compared as leaves: {} and null differ.
    if (kind == MergeType::kScalar || atomic || (!l && !r)) return leaf(left, right);
    Change change;
    if (!l || !r) {
      FieldSet& side = l ? change.below.removed : change.below.added;
      side = all_.below(type, l ? left : right);
      return change;
    }
    const size_t added = added_.open(), modified = modified_.open(), removed = removed_.open();
    if (map) {
      members(type, left, right);
      change.below = {added_.close(added), modified_.close(modified), removed_.close(removed)};
    } else {
      items(type, left, right);
      change.below = {added_.close(added), modified_.close(modified), removed_.close(removed)};
    }
    return change;
  }

  void emit(const PathElement& element, const Change& change) {
    added_.add(element, change.added, change.below.added);
    modified_.add(element, change.modified, change.below.modified);
    removed_.add(element, change.removed, change.below.removed);
  }

  void member(const MergeType& type, std::string_view key, const Value* left, const Value* right) {
    if (left != nullptr && right != nullptr && left->same(*right)) return;
    bool declared = false;
    const MergeType* child = type.member(key, declared);
    if (child == nullptr) child = &MergeTypes::untyped_atomic();
    emit(PathElement::field(key), node(*child, left, right));
  }

  void members(const MergeType& type, const Value& left, const Value& right) {
    const std::span<const Member> lm = left.members(), rm = right.members();
    size_t shared = 0;
    for (size_t i = 0; i < lm.size(); ++i) {
      const Value* other = find_near(right, lm[i].key, i);
      if (other != nullptr) ++shared;
      member(type, lm[i].key, &lm[i].value, other);
    }
    if (shared == rm.size()) return;
    for (size_t i = 0; i < rm.size(); ++i) {
      if (find_near(left, rm[i].key, i) == nullptr) member(type, rm[i].key, nullptr, &rm[i].value);
    }
  }

  void items(const MergeType& type, const Value& left, const Value& right) {
    const std::span<const Value> li = left.items(), ri = right.items();
    const ItemIndex l(arena_, type, li), r(arena_, type, ri);
    for (size_t i = 0; i < l.count(); ++i) {
      if (!l.is_first(i)) continue;
      const size_t j = r.find(l.element(i), i);
      const uint32_t copies = j == r.count() ? 0 : r.copies(j);
      item(type, l.element(i), li, l, i, l.copies(i), ri, r, j, copies);
    }
    for (size_t j = 0; j < r.count(); ++j) {
      if (!r.is_first(j) || l.find(r.element(j), j) != l.count()) continue;
      item(type, r.element(j), li, l, l.count(), 0, ri, r, j, r.copies(j));
    }
  }

  void item(const MergeType& type, const PathElement& element, std::span<const Value> li, const ItemIndex& l, size_t i,
            uint32_t left_copies, std::span<const Value> ri, const ItemIndex& r, size_t j, uint32_t right_copies) {
    if (left_copies <= 1 && right_copies <= 1) {
      return emit(element, node(*type.item, left_copies == 0 ? nullptr : &li[i], right_copies == 0 ? nullptr : &ri[j]));
    }
    Change change;
    if (left_copies >= 2 && right_copies >= 2) {
      // Duplicates on both sides are compared as a whole.
      change.modified = left_copies != right_copies;
      for (; !change.modified && i < l.count(); i = l.next_copy(i), j = r.next_copy(j)) {
        change.modified = !equal(li[i], ri[j], Numbers::ByValue);
      }
    } else if (left_copies >= 2) {
      if (right_copies != 0) change = node(*type.item, nullptr, &ri[j]);
      change.removed = true;
    } else {
      if (left_copies != 0) change = node(*type.item, &li[i], nullptr);
      change.added = true;
    }
    emit(element, change);
  }

  Arena& arena_;
  AllPaths all_;
  SetBuilder added_, modified_, removed_;
};

}  // namespace

Comparison compare(Arena& arena, const MergeType& type, const Value& left, const Value& right) {
  return CompareWalk(arena).node(type, &left, &right).below;
}

}  // namespace holdfast::ownership
