#include "cache/index.h"

#include <algorithm>
#include <unordered_map>

namespace holdfast::cache {

void Index::assign(std::vector<EntryRef> sorted) {
  by_key.assign(sorted);
  for (auto& [field, tree] : by_field) {
    // Few values, many entries, and these are in order already: no need to compare their keys again.
    std::unordered_map<std::string_view, std::vector<EntryRef>> by_value;
    for (const EntryRef& entry : sorted) by_value[entry->field(field)].push_back(entry);
    std::vector<std::string_view> values;
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

namespace {

// An equality on an indexed field: its tree and the value.
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

}  // namespace

ListPage Snapshot::list(const ListRequest& request) const {
  ListPage page;
  if (index_ == nullptr) return page;
  const std::string_view from = std::max<std::string_view>(request.from, request.scope);
  const Narrowed narrow = narrowed(*index_, request.selector);
  const Tree& tree = narrow.tree == nullptr ? index_->by_key : *narrow.tree;
  const bool select = !request.selector.empty();
  std::string_view last;
  for (Tree::Cursor at(tree, {narrow.value, from}); at; at.next()) {
    const Entry& entry = *at;
    if (narrow.tree != nullptr && entry.field(narrow.field) != narrow.value) break;
    if (!entry.key().starts_with(request.scope)) break;
    if (request.limit != 0 && page.entries.size() == request.limit) {
      page.more = true;
      break;
    }
    last = entry.key();
    if (!select || request.selector.matches(entry)) page.entries.push_back(EntryRef::share(entry));
  }
  if (page.more) {
    // Behind the last one looked at: no key lies between it and this.
    page.next = std::string(last) + '\0';
    const std::string end = store::prefix_end(request.scope);
    const uint64_t all = end.empty() ? count() : index_->by_key.rank({{}, end});
    page.remaining = all - index_->by_key.rank({{}, page.next});
  }
  return page;
}

// --- Selector -------------------------------------------------------------------------------------------------------

namespace {

// Decimal, as Go's ParseInt takes it.
std::optional<int64_t> parse_integer(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  int64_t n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, c - '0', &n)) return std::nullopt;
  }
  if (negative) return n;
  if (n == INT64_MIN) return std::nullopt;
  return -n;
}

bool holds(const LabelRequirement& requirement, const Entry& entry) {
  using Operator = LabelRequirement::Operator;
  const std::optional<std::string_view> value = entry.label(requirement.key);
  const auto among = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) != requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::Exists:
      return value.has_value();
    case Operator::Absent:
      return !value;
    case Operator::In:
      return value && among();
    case Operator::NotIn:
      return !value || !among();
    case Operator::Greater:
    case Operator::Less: {
      if (!value || requirement.values.size() != 1) return false;
      const std::optional<int64_t> mine = parse_integer(*value), bound = parse_integer(requirement.values[0]);
      if (!mine || !bound) return false;
      return requirement.op == Operator::Greater ? *mine > *bound : *mine < *bound;
    }
  }
  return false;
}

bool holds(const FieldRequirement& requirement, const Entry& entry) {
  const std::string_view value = requirement.field == FieldRequirement::kName ? entry.name()
                                 : requirement.field == FieldRequirement::kNamespace
                                     ? entry.namespace_name()
                                     : entry.field(static_cast<size_t>(requirement.field));
  return (value == requirement.value) == requirement.equal;
}

}  // namespace

bool Selector::matches(const Entry& entry) const {
  for (const FieldRequirement& requirement : fields) {
    if (!holds(requirement, entry)) return false;
  }
  for (const LabelRequirement& requirement : labels) {
    if (!holds(requirement, entry)) return false;
  }
  return true;
}

}  // namespace holdfast::cache
