#include "cache/index.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "cache/selector_index.h"

namespace holdfast::cache {

void Index::assign(std::vector<EntryRef> sorted) {
  by_key.assign(sorted);
  for (auto& [field, tree] : by_field) {
    // There are few values and many entries, already in key order: no need to compare their keys again.
    std::unordered_map<std::string_view, std::vector<EntryRef>, KeyHash> by_value;
    for (const EntryRef& entry : sorted) by_value[entry->field(field)].push_back(entry);
    std::vector<std::string_view> values;
    values.reserve(by_value.size());
    for (const auto& [value, entries] : by_value) values.push_back(value);
    std::sort(values.begin(), values.end());
    std::vector<EntryRef> ordered;
    ordered.reserve(sorted.size());
    for (std::string_view value : values) {
      std::vector<EntryRef>& entries = by_value[value];
      std::move(entries.begin(), entries.end(), std::back_inserter(ordered));
    }
    tree.assign(ordered);
  }
}

IndexEdit::IndexEdit(Index& index) : index_(index), by_key_(index.by_key) {
  for (auto& [field, tree] : index.by_field) by_field_.emplace_back(tree);
}

void IndexEdit::change(const EntryRef& before, const EntryRef& now) {
  for (size_t i = 0; i < by_field_.size(); ++i) {
    const size_t field = index_.by_field[i].first;
    if (before && (!now || before->field(field) != now->field(field))) {
      by_field_[i].erase({before->field(field), before->key()});
    }
    if (now) by_field_[i].put(now);
  }
  if (now) {
    by_key_.put(now);
  } else if (before) {
    by_key_.erase({{}, before->key()});
  }
}

// --- Snapshot -------------------------------------------------------------------------------------------------------

uint64_t Snapshot::count() const { return index_ == nullptr ? 0 : index_->by_key.count(); }

EntryRef Snapshot::find(std::string_view key) const {
  const Entry* found = index_ == nullptr ? nullptr : index_->by_key.find({{}, key});
  return found == nullptr ? EntryRef{} : EntryRef::share(*found);
}

bool Snapshot::has_unreadable() const { return index_ != nullptr && index_->unreadable != nullptr; }

const Unreadable* Snapshot::find_unreadable(std::string_view key) const {
  if (index_ == nullptr || index_->unreadable == nullptr) return nullptr;
  const auto found = index_->unreadable->find(key);
  return found == index_->unreadable->end() ? nullptr : &found->second;
}

namespace {

// An equality requirement on an indexed field: its tree and the value.
struct Narrowed {
  const Tree* tree = nullptr;
  size_t field = 0;
  std::string_view value;
};
Narrowed narrowed(const Index& index, const Selector& selector) {
  for (const FieldRequirement& requirement : selector.fields) {
    if (!requirement.equal || requirement.field < 0) continue;
    for (const auto& [field, tree] : index.by_field) {
      if (field == requirement.field) return {&tree, field, requirement.value};
    }
  }
  return {};
}

// Whether the object with this key may match the selector, judging by the key only.
bool may_match(const Selector& selector, std::string_view key) {
  const size_t slash = key.find('/');
  const std::string_view ns = slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  return std::all_of(selector.fields.begin(), selector.fields.end(), [&](const FieldRequirement& requirement) {
    if (requirement.field >= 0) return true;
    return ((requirement.field == FieldRequirement::kName ? name : ns) == requirement.value) == requirement.equal;
  });
}

// Which label sets match a selector. Many entries share a set: the result per set is cached.
class LabelFilter {
 public:
  // `index` may be null.
  LabelFilter(const std::vector<LabelRequirement>& requirements, const SelectorIndex* index)
      : requirements_(requirements), index_(index) {}

  bool matches(const LabelSet* labels) {
    if (requirements_.empty()) return true;
    Known& known = known_[(reinterpret_cast<uintptr_t>(labels) >> 4) % std::size(known_)];
    if (!known.set || *known.set != labels) {
      known.set = labels;
      known.matches = index_ != nullptr ? index_->labels_hold(labels) : labels_hold(requirements_, labels);
    }
    return known.matches;
  }

 private:
  struct Known {
    std::optional<const LabelSet*> set;
    bool matches = false;
  };
  const std::vector<LabelRequirement>& requirements_;
  const SelectorIndex* const index_;
  Known known_[256];
};

}  // namespace

ListPage Snapshot::list(const ListRequest& request) const {
  ListPage page;
  if (index_ == nullptr) return page;
  const Selector& selector = request.selector;
  const std::string_view from = std::max<std::string_view>(request.from, request.scope);
  const Narrowed narrow = narrowed(*index_, selector);
  const std::string end = store::prefix_end(request.scope);
  const auto rank_of_end = [&] { return end.empty() ? count() : index_->by_key.rank({{}, end}); };
  // All entries by key, up to the end of the scope; or those with the required value, while they are in scope.
  const Tree& tree = narrow.tree == nullptr ? index_->by_key : *narrow.tree;
  uint64_t left = tree.count();
  if (narrow.tree == nullptr) {
    const uint64_t first = tree.rank({{}, from}), behind = rank_of_end();
    left = behind > first ? behind - first : 0;
  }
  const std::unique_ptr<const SelectorIndex> many = SelectorIndex::of(selector);
  LabelFilter filter(selector.labels, many.get());
  const auto fields_match = [&](const Entry& entry) {
    return many != nullptr ? many->fields_hold(entry) : fields_hold(selector.fields, entry);
  };
  const auto ahead = selector.labels.empty() ? Tree::Cursor::Ahead::Fetch : Tree::Cursor::Ahead::Leave;
  const Entry* last = nullptr;
  for (Tree::Cursor at(tree, {narrow.value, from}, ahead); at && left > 0; at.next(), --left) {
    const Entry& entry = *at;
    if (narrow.tree != nullptr &&
        (entry.field(narrow.field) != narrow.value || !entry.key().starts_with(request.scope))) {
      break;
    }
    if (request.limit != 0 && page.entries.size() == request.limit) {
      page.more = true;
      break;
    }
    last = &entry;
    if (filter.matches(at.labels()) && fields_match(entry)) page.entries.push_back(EntryRef::share(entry));
  }
  if (page.more) {
    // Immediately after the last entry examined.
    page.next = std::string(last->key()) + '\0';
    page.remaining = rank_of_end() - index_->by_key.rank({{}, page.next});
  }
  if (index_->unreadable != nullptr) {
    for (auto at = index_->unreadable->lower_bound(from); at != index_->unreadable->end(); ++at) {
      if (!at->first.starts_with(request.scope) || (page.more && at->first >= page.next)) break;
      if (may_match(selector, at->first)) page.unreadable.push_back(at->second);
    }
  }
  return page;
}

bool Selector::matches(const Entry& entry) const {
  return fields_hold(fields, entry) && labels_hold(labels, entry.labels());
}

}  // namespace holdfast::cache
