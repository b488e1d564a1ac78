#include "ownership/field_set.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/hash.h"
#include "base/same_text.h"
#include "base/text.h"
#include "codec/text.h"
#include "ownership/unions.h"

namespace holdfast::ownership {
namespace {

inline int compare_text(std::string_view a, std::string_view b) {
  if (same_text(a, b)) return 0;  // Compared sets mostly have the same members.
  const size_t shared = std::min(a.size(), b.size());
  if (a.data() != b.data() && shared != 0) {
    // The first bytes usually differ: saves a call to memcmp.
    const unsigned char x = static_cast<unsigned char>(a[0]), y = static_cast<unsigned char>(b[0]);
    if (x != y) return x < y ? -1 : 1;
    if (const int c = std::memcmp(a.data(), b.data(), shared); c != 0) return c;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

int compare_doubles(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

// Rank in the order of value kinds: numbers, strings, booleans, lists, maps, null.
int rank(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::Int:
    case Value::Kind::Double:
      return 0;
    case Value::Kind::String:
      return 1;
    case Value::Kind::Bool:
      return 2;
    case Value::Kind::List:
      return 3;
    case Value::Kind::Map:
    case Value::Kind::Raw:
      return 4;
    case Value::Kind::Null:
      return 5;
  }
  return 6;
}

int compare_maps(const Value& a, const Value& b) {
  if (a.is_raw() || b.is_raw()) {
    if (a.is_raw() != b.is_raw()) return a.is_raw() ? 1 : -1;
    return compare_text(a.raw_json(), b.raw_json());
  }
  // Compared by their sorted members, pair by pair.
  auto sorted = [](const Value& map) {
    std::vector<const Member*> members;
    for (const Member& member : map.members()) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const Member* x, const Member* y) { return compare_text(x->key, y->key) < 0; });
    return members;
  };
  const std::vector<const Member*> left = sorted(a), right = sorted(b);
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (const int c = compare_text(left[i]->key, right[i]->key); c != 0) return c;
    if (const int c = compare_values(left[i]->value, right[i]->value); c != 0) return c;
  }
  return left.size() == right.size() ? 0 : left.size() < right.size() ? -1 : 1;
}

int compare_keys(std::span<const Member> a, std::span<const Member> b) {
  if (a.data() == b.data() && a.size() == b.size()) return 0;
  const size_t shared = std::min(a.size(), b.size());
  for (size_t i = 0; i < shared; ++i) {
    if (const int c = compare_text(a[i].key, b[i].key); c != 0) return c;
    if (const int c = compare_values(a[i].value, b[i].value); c != 0) return c;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

void append_value(std::string& out, const Value& v, ShownNumbers numbers) {
  switch (v.kind()) {
    case Value::Kind::Null:
      out += "null";
      break;
    case Value::Kind::Bool:
      out += v.as_bool() ? "true" : "false";
      break;
    case Value::Kind::Int:
      if (numbers == ShownNumbers::AsRead) {
        out += codec::go_float_text(v.number_value());
      } else {
        out += std::to_string(v.as_int());
      }
      break;
    case Value::Kind::Double:
      out += codec::go_float_text(v.as_double());
      break;
    case Value::Kind::String:
      out += go_quote(v.as_string());
      break;
    case Value::Kind::Raw:
      out += v.raw_json();
      break;
    case Value::Kind::List: {
      out += '[';
      bool first = true;
      for (const Value& item : v.items()) {
        if (!first) out += ',';
        first = false;
        append_value(out, item, numbers);
      }
      out += ']';
      break;
    }
    case Value::Kind::Map:
      for (const Member& member : v.members()) {
        out += member.key;
        out += '=';
        append_value(out, member.value, numbers);
      }
      break;
  }
}

void append_element(std::string& out, const PathElement& e, ShownNumbers numbers) {
  switch (e.kind()) {
    case PathElement::Kind::Field:
      out += '.';
      out += e.name();
      return;
    case PathElement::Kind::Key: {
      out += '[';
      bool first = true;
      for (const Member& field : e.key()) {
        if (!first) out += ',';
        first = false;
        out += field.key;
        out += '=';
        append_value(out, field.value, numbers);
      }
      out += ']';
      return;
    }
    case PathElement::Kind::Value:
      out += "[=";
      append_value(out, e.value(), numbers);
      out += ']';
      return;
    case PathElement::Kind::Index:
      out += '[';
      out += std::to_string(e.index());
      out += ']';
      return;
  }
}

}  // namespace

int compare_values(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return compare_text(a.as_string(), b.as_string());
  if (const int c = rank(a) - rank(b); c != 0) return c;
  switch (a.kind()) {
    case Value::Kind::Int:
      if (b.is_int()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
      return compare_doubles(a.number_value(), b.number_value());
    case Value::Kind::Double:
      return compare_doubles(a.number_value(), b.number_value());
    case Value::Kind::Bool:
      return static_cast<int>(a.as_bool()) - static_cast<int>(b.as_bool());
    case Value::Kind::List: {
      const std::span<const Value> left = a.items(), right = b.items();
      for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
        if (const int c = compare_values(left[i], right[i]); c != 0) return c;
      }
      return left.size() == right.size() ? 0 : left.size() < right.size() ? -1 : 1;
    }
    case Value::Kind::Map:
    case Value::Kind::Raw:
      return compare_maps(a, b);
    default:
      return 0;
  }
}

int compare(const PathElement& a, const PathElement& b) {
  if (a.kind() != b.kind()) return static_cast<int>(a.kind()) - static_cast<int>(b.kind());
  switch (a.kind()) {
    case PathElement::Kind::Field:
      return compare_text(a.name(), b.name());
    case PathElement::Kind::Key:
      return compare_keys(a.key(), b.key());
    case PathElement::Kind::Value:
      return compare_values(a.value(), b.value());
    case PathElement::Kind::Index:
      return a.index() < b.index() ? -1 : a.index() > b.index() ? 1 : 0;
  }
  return 0;
}

uint64_t hash(const PathElement& e) {
  const uint64_t kind = static_cast<uint64_t>(e.kind());
  switch (e.kind()) {
    case PathElement::Kind::Field:
      return hash_combine(kind, hash_key(e.name()));
    case PathElement::Kind::Key: {
      uint64_t h = kind;
      for (const Member& field : e.key()) {
        h = hash_combine(h, hash_key(field.key));
        h = hash_combine(h, hash(field.value));
      }
      return h;
    }
    case PathElement::Kind::Value:
      return hash_combine(kind, hash(e.value()));
    case PathElement::Kind::Index:
      return hash_combine(kind, static_cast<uint64_t>(e.index()));
  }
  return kind;
}

std::string to_string(const PathElement& element, ShownNumbers numbers) {
  std::string out;
  append_element(out, element, numbers);
  return out;
}

std::string to_string(Path path, ShownNumbers numbers) {
  std::string out;
  for (const PathElement& element : path) append_element(out, element, numbers);
  return out;
}

size_t FieldSet::size() const {
  size_t count = 0;
  for (const SetEntry& entry : entries()) count += (entry.member ? 1 : 0) + entry.children().size();
  return count;
}

const SetEntry* FieldSet::find(const PathElement& element) const {
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const int c = compare(entries_[middle].element, element);
    if (c == 0) return &entries_[middle];
    if (c < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

bool FieldSet::has(Path path) const {
  FieldSet set = *this;
  for (size_t i = 0; i < path.size(); ++i) {
    const SetEntry* entry = set.find(path[i]);
    if (entry == nullptr) return false;
    if (i + 1 == path.size()) return entry->member;
    set = entry->children();
  }
  return false;
}

bool FieldSet::includes(FieldSet other) const {
  if (same(other)) return true;
  if (count_ < other.count_) return false;
  size_t i = 0;
  for (const SetEntry& wanted : other.entries()) {
    int c = 1;
    while (i < count_ && (c = compare(entries_[i].element, wanted.element)) < 0) ++i;
    if (i == count_ || c != 0) return false;
    if (wanted.member && !entries_[i].member) return false;
    if (!entries_[i].children().includes(wanted.children())) return false;
    ++i;
  }
  return true;
}

bool operator==(FieldSet a, FieldSet b) {
  if (a.same(b)) return true;
  if (a.count_ != b.count_) return false;
  for (size_t i = 0; i < a.count_; ++i) {
    const SetEntry &x = a.entries_[i], &y = b.entries_[i];
    if (x.member != y.member || x.child_count != y.child_count || compare(x.element, y.element) != 0) return false;
    if (!(x.children() == y.children())) return false;
  }
  return true;
}

uint64_t hash(FieldSet set) {
  uint64_t h = set.entries().size();
  for (const SetEntry& entry : set.entries()) {
    h = hash_combine(h, hash(entry.element));
    h = hash_combine(h, (entry.child_count == 0 ? 0 : hash(entry.children())) * 2 + (entry.member ? 1 : 0));
  }
  return h;
}

SetBuilder::~SetBuilder() { std::free(entries_); }

void SetBuilder::grow() {
  capacity_ = capacity_ == 0 ? 64 : capacity_ * 2;
  // Entries are trivially copyable, so that growing is one realloc.
  void* bigger = std::realloc(static_cast<void*>(entries_), capacity_ * sizeof(SetEntry));
  if (bigger == nullptr) throw std::bad_alloc();
  entries_ = static_cast<SetEntry*>(bigger);
}

FieldSet SetBuilder::close(size_t level) { return close(level, DuplicateElements::LaterWins); }
FieldSet SetBuilder::close_items(size_t level) { return close(level, DuplicateElements::MemberOnly); }

FieldSet SetBuilder::close(size_t level, DuplicateElements twice) {
  assert(level <= count_);
  SetEntry* const first = entries_ + level;
  size_t count = count_ - level;
  count_ = level;
  if (count == 0) return {};
  bool sorted = true;
  for (size_t i = 1; i < count && sorted; ++i) sorted = compare(first[i - 1].element, first[i].element) < 0;
  if (!sorted) {
    auto before = [](const SetEntry& a, const SetEntry& b) { return compare(a.element, b.element) < 0; };
    if (count <= 24) {
      for (size_t i = 1; i < count; ++i) {
        const SetEntry entry = first[i];
        size_t j = i;
        for (; j > 0 && before(entry, first[j - 1]); --j) first[j] = first[j - 1];
        first[j] = entry;
      }
    } else {
      // Sort pointers; ties are broken by address, which keeps equal elements in insertion order.
      std::vector<const SetEntry*> order(count);
      for (size_t i = 0; i < count; ++i) order[i] = &first[i];
      std::sort(order.begin(), order.end(), [](const SetEntry* a, const SetEntry* b) {
        const int c = compare(a->element, b->element);
        return c != 0 ? c < 0 : a < b;
      });
      std::vector<SetEntry> sorted_entries;
      sorted_entries.reserve(count);
      for (const SetEntry* entry : order) sorted_entries.push_back(*entry);
      std::copy(sorted_entries.begin(), sorted_entries.end(), first);
    }
    size_t kept = 0;
    for (size_t i = 1; i < count; ++i) {
      if (compare(first[kept].element, first[i].element) == 0) {
        first[kept].member |= first[i].member;
        if (twice == DuplicateElements::MemberOnly) {
          first[kept].child_entries = nullptr;
          first[kept].child_count = 0;
        } else if (first[i].child_count != 0) {
          // If equal elements have different texts (0 and -0), the one with children is written.
          if (first[kept].child_count == 0) first[kept].element = first[i].element;
          first[kept].child_entries = first[i].child_entries;
          first[kept].child_count = first[i].child_count;
        }
      } else {
        first[++kept] = first[i];
      }
    }
    count = kept + 1;
  }
  return FieldSet(arena_->copy(std::span<const SetEntry>(first, count)));
}

namespace {

// The entries of a result with a known maximum size, built in place at the end of the arena's memory.
class Output {
 public:
  Output(Arena& arena, size_t most) : entries_(arena.allocate_array<SetEntry>(most)) {}
  void add(const SetEntry& entry) { new (&entries_[count_++]) SetEntry(entry); }
  void add(const PathElement& element, bool member, FieldSet children) {
    if (member || !children.empty()) new (&entries_[count_++]) SetEntry(element, member, children);
  }
  FieldSet set() const { return FieldSet(std::span<const SetEntry>(entries_, count_)); }

 private:
  SetEntry* entries_;
  size_t count_ = 0;
};

}  // namespace

FieldSet union_of(Arena& arena, FieldSet a, FieldSet b) {
  if (a.empty() || a.same(b)) return b;
  if (b.empty()) return a;
  const std::span<const SetEntry> x = a.entries(), y = b.entries();
  Output out(arena, x.size() + y.size());
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int c = compare(x[i].element, y[j].element);
    if (c < 0) {
      out.add(x[i++]);
    } else if (c > 0) {
      out.add(y[j++]);
    } else {
      out.add(x[i].element, x[i].member || y[j].member, union_of(arena, x[i].children(), y[j].children()));
      ++i, ++j;
    }
  }
  for (; i < x.size(); ++i) out.add(x[i]);
  for (; j < y.size(); ++j) out.add(y[j]);
  return out.set();
}

FieldSet union_of(Arena& arena, std::vector<FieldSet> sets) {
  while (sets.size() > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < sets.size(); i += 2) {
      sets[kept++] = i + 1 < sets.size() ? union_of(arena, sets[i], sets[i + 1]) : sets[i];
    }
    sets.resize(kept);
  }
  return sets.empty() ? FieldSet() : sets[0];
}

namespace {

// Compares entries of two sets one after the other. A manager may own a few of the many fields that a write changes,
// and there may be thousands of managers: a long run of entries before the wanted one is skipped in logarithmic time.
class Seeker {
 public:
  explicit Seeker(std::span<const SetEntry> entries) : entries_(entries) {}
  // The position behind `at`, whose entry is before `wanted`; further if that continues.
  size_t next(size_t at, const PathElement& wanted) {
    if (++run_ < kRun) return at + 1;
    run_ = 0;
    size_t step = 1;
    while (at + step < entries_.size() && compare(entries_[at + step].element, wanted) < 0) {
      at += step;
      step *= 2;
    }
    const auto end = entries_.begin() + static_cast<ptrdiff_t>(std::min(at + step, entries_.size()));
    const auto found =
        std::lower_bound(entries_.begin() + static_cast<ptrdiff_t>(at + 1), end, wanted,
                         [](const SetEntry& entry, const PathElement& e) { return compare(entry.element, e) < 0; });
    return static_cast<size_t>(found - entries_.begin());
  }
  void stop() { run_ = 0; }

 private:
  static constexpr size_t kRun = 8;
  const std::span<const SetEntry> entries_;
  size_t run_ = 0;
};

}  // namespace

FieldSet intersection(Arena& arena, FieldSet a, FieldSet b) {
  if (a.same(b)) return a;
  if (a.empty() || b.empty()) return {};
  const std::span<const SetEntry> x = a.entries(), y = b.entries();
  Output out(arena, std::min(x.size(), y.size()));
  Seeker in_x(x), in_y(y);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int c = compare(x[i].element, y[j].element);
    if (c < 0) {
      i = in_x.next(i, y[j].element);
    } else if (c > 0) {
      j = in_y.next(j, x[i].element);
    } else {
      out.add(x[i].element, x[i].member && y[j].member, intersection(arena, x[i].children(), y[j].children()));
      in_x.stop(), in_y.stop();
      ++i, ++j;
    }
  }
  return out.set();
}

namespace {

// The entries of `a`; add_common(out, x, y) adds what is left of those whose element is also in `b`.
template <class AddCommon>
FieldSet without_common(Arena& arena, FieldSet a, FieldSet b, AddCommon add_common) {
  const std::span<const SetEntry> x = a.entries(), y = b.entries();
  Output out(arena, x.size());
  Seeker in_y(y);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int c = compare(x[i].element, y[j].element);
    if (c < 0) {
      out.add(x[i++]);
      in_y.stop();
    } else if (c > 0) {
      j = in_y.next(j, x[i].element);
    } else {
      add_common(out, x[i++], y[j++]);
      in_y.stop();
    }
  }
  for (; i < x.size(); ++i) out.add(x[i]);
  return out.set();
}

}  // namespace

FieldSet difference(Arena& arena, FieldSet a, FieldSet b) {
  if (a.empty() || b.empty()) return a;
  if (a.same(b)) return {};
  return without_common(arena, a, b, [&arena](Output& out, const SetEntry& x, const SetEntry& y) {
    out.add(x.element, x.member && !y.member, difference(arena, x.children(), y.children()));
  });
}

FieldSet recursive_difference(Arena& arena, FieldSet a, FieldSet b) {
  if (a.empty() || b.empty()) return a;
  return without_common(arena, a, b, [&arena](Output& out, const SetEntry& x, const SetEntry& y) {
    if (!y.member) out.add(x.element, x.member, recursive_difference(arena, x.children(), y.children()));
  });
}

FieldSet at_or_below(Arena& arena, FieldSet set, FieldSet roots) {
  if (set.empty() || roots.empty()) return {};
  const std::span<const SetEntry> x = set.entries(), y = roots.entries();
  Output out(arena, x.size());
  Seeker in_x(x), in_y(y);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int c = compare(x[i].element, y[j].element);
    if (c < 0) {
      i = in_x.next(i, y[j].element);
    } else if (c > 0) {
      j = in_y.next(j, x[i].element);
    } else {
      if (y[j].member) {
        out.add(x[i]);
      } else {
        out.add(x[i].element, false, at_or_below(arena, x[i].children(), y[j].children()));
      }
      in_x.stop(), in_y.stop();
      ++i, ++j;
    }
  }
  return out.set();
}

FieldSet leaves(Arena& arena, FieldSet set) {
  if (set.empty()) return set;
  Output out(arena, set.entries().size());
  for (const SetEntry& entry : set.entries()) {
    if (entry.child_count == 0) {
      out.add(entry);
    } else {
      out.add(entry.element, false, leaves(arena, entry.children()));
    }
  }
  return out.set();
}

FieldSet copy(Arena& arena, FieldSet set) {
  if (set.empty()) return {};
  Output out(arena, set.entries().size());
  for (const SetEntry& entry : set.entries()) {
    PathElement element = entry.element;
    switch (element.kind()) {
      case PathElement::Kind::Field:
        element = PathElement::field(arena.copy(element.name()));
        break;
      case PathElement::Kind::Key: {
        std::span<Member> key = arena.copy(element.key());
        for (Member& field : key) field = {arena.copy(field.key), deep_copy(arena, field.value)};
        element = PathElement::key(key);
        break;
      }
      case PathElement::Kind::Value:
        element = PathElement::value(arena.make<Value>(deep_copy(arena, element.value())));
        break;
      case PathElement::Kind::Index:
        break;
    }
    out.add(element, entry.member, copy(arena, entry.children()));
  }
  return out.set();
}

FieldSet single(Arena& arena, Path path) {
  FieldSet set;
  for (size_t i = path.size(); i > 0; --i) {
    SetEntry* entry = arena.make<SetEntry>(path[i - 1], i == path.size(), set);
    set = FieldSet(std::span<const SetEntry>(entry, 1));
  }
  return set;
}

namespace detail {

PathStack::~PathStack() { std::free(elements_); }

void PathStack::push(const PathElement& element) {
  if (count_ == capacity_) {
    capacity_ = capacity_ == 0 ? 16 : capacity_ * 2;
    void* bigger = std::realloc(static_cast<void*>(elements_), capacity_ * sizeof(PathElement));
    if (bigger == nullptr) throw std::bad_alloc();
    elements_ = static_cast<PathElement*>(bigger);
  }
  new (&elements_[count_++]) PathElement(element);
}

}  // namespace detail
}  // namespace holdfast::ownership
