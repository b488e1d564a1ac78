#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "codec/codec.h"
#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

std::string shown(const Value& v) { return "&{" + codec::go_text(v) + "}"; }

std::string shown_with_syntax(const Value& v) { return "&value.valueUnstructured{Value:" + codec::go_syntax(v) + "}"; }

bool scalar_fits(ScalarKind kind, const Value& v) {
  switch (kind) {
    case ScalarKind::Numeric:
      return v.is_number();
    case ScalarKind::String:
      return v.is_string();
    case ScalarKind::Boolean:
      return v.is_bool();
    case ScalarKind::Untyped:
      return v.is_scalar();
  }
  return false;
}

// Walks once without allocating; the reporter walks again only if something is wrong.
class Checker {
 public:
  Checker(Arena& arena, Duplicates duplicates) : arena_(arena), duplicates_(duplicates) {}

  bool fits(const MergeType& type, const Value& v) {
    if (v.is_null()) return true;
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        return scalar_fits(type.scalar, v);
      case MergeType::kList:
        return v.is_list() && list_fits(type, v);
      default:
        return v.is_map() && map_fits(type, v);
    }
  }

 private:
  bool map_fits(const MergeType& type, const Value& v) {
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      if (child == nullptr || !fits(*child, m.value)) return false;
    }
    return true;
  }

  bool list_fits(const MergeType& type, const Value& v) {
    const std::span<const Value> items = v.items();
    if (!type.atomic_list) {
      for (const Value& item : items) {
        PathElement element = PathElement::index(0);
        if (!item_element(arena_, type, item, element)) return false;
      }
      if (duplicates_ == Duplicates::Refused && items.size() > 1) {
        const ItemIndex index(arena_, type, items);
        for (size_t i = 0; i < index.count(); ++i) {
          if (!index.is_first(i)) return false;
        }
      }
    }
    for (const Value& item : items) {
      if (!fits(*type.item, item)) return false;
    }
    return true;
  }

  Arena& arena_;
  const Duplicates duplicates_;
};

// Problems are described only up to a size: each names its whole path.
class Reporter {
 public:
  Reporter(Arena& arena, Duplicates duplicates) : arena_(arena), duplicates_(duplicates) {}

  void node(const MergeType& type, const Value& v) {
    if (v.is_null()) return;
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        return scalar(type, v);
      case MergeType::kList:
        return list(type, v);
      default:
        return map(type, v);
    }
  }

  std::string text() const {
    if (count_ == 0) return "";
    if (count_ == 1) return problems_[0];
    std::string all = "errors:";
    for (const std::string& problem : problems_) all += "\n  " + problem;
    if (count_ > problems_.size()) all += "\n  and " + std::to_string(count_ - problems_.size()) + " more";
    return all;
  }

 private:
  // `message` returns the text.
  template <class Message>
  void report(Message&& message) {
    ++count_;
    if (bytes_ >= limits::kReportedBytes) return;
    std::string problem = to_string(path_.path());
    if (!problem.empty()) problem += ": ";
    problem += message();
    bytes_ += problem.size();
    problems_.push_back(std::move(problem));
  }

  void scalar(const MergeType& type, const Value& v) {
    if (scalar_fits(type.scalar, v)) return;
    report([&]() -> std::string {
      switch (type.scalar) {
        case ScalarKind::Numeric:
          return "expected numeric (int or float), got " + std::string(codec::go_type(v));
        case ScalarKind::String:
          return "expected string, got " + shown_with_syntax(v);
        case ScalarKind::Boolean:
          return "expected boolean, got " + shown(v);
        case ScalarKind::Untyped:
          break;
      }
      return "expected any scalar, got " + shown(v);
    });
  }

  void list(const MergeType& type, const Value& v) {
    if (!v.is_list()) return report([&] { return "expected list, got " + shown(v); });
    std::unordered_multimap<uint64_t, PathElement> seen;  // By hash.
    int64_t position = 0;
    for (const Value& item : v.items()) {
      PathElement element = PathElement::index(position);
      if (!type.atomic_list) {
        std::string problem;
        if (!item_element(arena_, type, item, element, &problem)) {
          // Without an element nothing deeper can be named, so the walk of this list ends.
          return report([&] { return "element " + std::to_string(position) + ": " + problem; });
        }
        if (duplicates_ == Duplicates::Refused) {
          const uint64_t key = hash(element);
          const auto [first, last] = seen.equal_range(key);
          if (std::any_of(first, last, [&](const auto& other) { return other.second == element; })) {
            report([&] { return "duplicate entries for key " + to_string(element); });
          } else {
            seen.emplace(key, element);
          }
        }
      }
      path_.push(element);
      node(*type.item, item);
      path_.pop();
      ++position;
    }
  }

  void map(const MergeType& type, const Value& v) {
    if (!v.is_map()) return report([&] { return "expected map, got " + shown(v); });
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      path_.push(PathElement::field(m.key));
      if (child == nullptr) {
        report([] { return "field not declared in schema"; });
      } else {
        node(*child, m.value);
      }
      path_.pop();
      if (child == nullptr) return;
    }
  }

  Arena& arena_;
  const Duplicates duplicates_;
  detail::PathStack path_;
  std::vector<std::string> problems_;
  size_t count_ = 0, bytes_ = 0;
};

}  // namespace

std::string validate(const MergeType& type, const Value& value, Duplicates duplicates) {
  Arena scratch;
  if (Checker(scratch, duplicates).fits(type, value)) return "";
  Reporter reporter(scratch, duplicates);
  reporter.node(type, value);
  return reporter.text();
}

bool item_element(Arena& arena, const MergeType& list, const Value& item, PathElement& out, std::string* problem) {
  auto refuse = [&](std::string_view why) {
    if (problem != nullptr) *problem = why;
    return false;
  };
  if (list.keys.empty()) {
    if (item.is_map() || item.is_raw()) return refuse("associative list without keys has an element that's a map type");
    if (item.is_list()) return refuse("not supported: associative list with lists as elements");
    if (item.is_null()) return refuse("associative list without keys has an element that's an explicit null");
    out = PathElement::value(&item);
    return true;
  }
  if (item.is_null()) return refuse("associative list with keys may not have a null element");
  if (!item.is_map()) return refuse("associative list with keys may not have non-map elements");
  Member* key = arena.allocate_array<Member>(list.keys.size());
  size_t count = 0;
  for (size_t i = 0; i < list.keys.size(); ++i) {
    const Value* value = item.find(list.keys[i]);
    if (value == nullptr) value = list.key_defaults[i];
    if (value != nullptr) new (&key[count++]) Member{list.keys[i], *value};
  }
  if (count == 0) {
    if (problem != nullptr) {
      *problem = "associative list with keys has an element that omits all key fields [";
      bool first = true;
      for (const std::string_view name : list.keys_in_schema_order) {
        if (!first) *problem += ' ';
        first = false;
        *problem += go_quote(name);
      }
      *problem += "] (and doesn't have default values for any key fields)";
    }
    return false;
  }
  out = PathElement::key(std::span<const Member>(key, count));
  return true;
}

ItemIndex::ItemIndex(Arena& arena, const MergeType& list, std::span<const Value> items)
    : slots_(arena.allocate_array<Slot>(items.size())) {
  const bool hashed = items.size() > 8;
  if (hashed) {
    size_t table = 16;
    while (table < items.size() * 2) table *= 2;
    mask_ = table - 1;
    table_ = arena.allocate_array<uint32_t>(table);
    std::fill_n(table_, table, 0u);
  }
  for (const Value& item : items) {
    PathElement element = PathElement::index(0);
    // Already validated: every item has an element here.
    if (!item_element(arena, list, item, element)) element = PathElement::index(static_cast<int64_t>(count_));
    const uint64_t h = hashed ? hash(element) : 0;
    const uint32_t at = static_cast<uint32_t>(count_);
    const size_t before = lookup(element, h, count_);
    new (&slots_[count_++]) Slot{element, h, at, UINT32_MAX, at, 1};
    if (before < at) {
      Slot& first = slots_[before];
      slots_[at].first = static_cast<uint32_t>(before);
      slots_[first.last].next = at;
      first.last = at;
      ++first.copies;
    } else if (hashed) {
      size_t slot = h & mask_;
      while (table_[slot] != 0) slot = (slot + 1) & mask_;
      table_[slot] = at + 1;
    }
  }
  for (size_t i = 0; i < count_; ++i) {
    if (slots_[i].next == UINT32_MAX) slots_[i].next = static_cast<uint32_t>(count_);
  }
}

size_t ItemIndex::lookup(const PathElement& element, uint64_t h, size_t among) const {
  if (table_ == nullptr) {
    for (size_t i = 0; i < among; ++i) {
      if (slots_[i].first == i && slots_[i].element == element) return i;
    }
    return among;
  }
  for (size_t slot = h & mask_; table_[slot] != 0; slot = (slot + 1) & mask_) {
    const size_t i = table_[slot] - 1;
    if (slots_[i].hash == h && slots_[i].element == element) return i;
  }
  return among;
}

size_t ItemIndex::find(const PathElement& element, size_t hint) const {
  if (hint < count_ && slots_[hint].first == hint && slots_[hint].element == element) return hint;
  return lookup(element, table_ == nullptr ? 0 : hash(element), count_);
}

}  // namespace holdfast::ownership
