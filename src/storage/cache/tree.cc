#include "cache/tree.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace holdfast::cache {

struct TreeNode {
  std::atomic<uint32_t> users{1};
  uint16_t count = 0;
  const bool leaf;
  const uint64_t edit;  // The edit that may change this node.

  TreeNode(bool is_leaf, uint64_t id) : leaf(is_leaf), edit(id) {}
};

namespace {

constexpr uint32_t kLeafEntries = 64, kChildren = 32;

struct Leaf : TreeNode {
  Entry* entries[kLeafEntries];  // One reference each.
  const LabelSet* labels[kLeafEntries];
  explicit Leaf(uint64_t id) : TreeNode(true, id) {}

  void set(uint32_t at, Entry* entry) {
    entries[at] = entry;
    labels[at] = entry->labels();
  }
  // Entries [from, from + n) of another leaf, or of this one.
  void take(uint32_t at, const Leaf& other, uint32_t from, uint32_t n) {
    std::memmove(entries + at, other.entries + from, n * sizeof(entries[0]));
    std::memmove(labels + at, other.labels + from, n * sizeof(labels[0]));
  }
  void insert(uint32_t at, Entry* entry) {
    take(at + 1, *this, at, count - at);
    set(at, entry);
    ++count;
  }
  void remove(uint32_t at) {
    --count;
    take(at, *this, at + 1, count - at);
  }
};

struct Child {
  TreeNode* node;      // One reference.
  const Entry* first;  // Kept alive by its leaf.
  uint64_t below;
};

struct Inner : TreeNode {
  Child children[kChildren];
  explicit Inner(uint64_t id) : TreeNode(false, id) {}
};

Leaf* as_leaf(TreeNode* node) { return static_cast<Leaf*>(node); }
const Leaf* as_leaf(const TreeNode* node) { return static_cast<const Leaf*>(node); }
Inner* as_inner(TreeNode* node) { return static_cast<Inner*>(node); }
const Inner* as_inner(const TreeNode* node) { return static_cast<const Inner*>(node); }

void hold(Entry* entry) { EntryRef::share(*entry).release(); }
void drop(Entry* entry) { EntryRef gone = EntryRef::adopt(entry); }

void drop(TreeNode* node, std::atomic<uint64_t>& bytes) {
  if (node == nullptr || node->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (node->leaf) {
    for (uint32_t i = 0; i < node->count; ++i) drop(as_leaf(node)->entries[i]);
    bytes.fetch_sub(sizeof(Leaf), std::memory_order_relaxed);
    delete as_leaf(node);
  } else {
    for (uint32_t i = 0; i < node->count; ++i) drop(as_inner(node)->children[i].node, bytes);
    bytes.fetch_sub(sizeof(Inner), std::memory_order_relaxed);
    delete as_inner(node);
  }
}

uint64_t below(const TreeNode* node) {
  if (node->leaf) return node->count;
  uint64_t total = 0;
  for (uint32_t i = 0; i < node->count; ++i) total += as_inner(node)->children[i].below;
  return total;
}

const Entry* first_of(const TreeNode* node) {
  return node->leaf ? as_leaf(node)->entries[0] : as_inner(node)->children[0].first;
}

Position position_of(Order order, const Entry& entry) {
  return {order.field < 0 ? std::string_view{} : entry.field(static_cast<size_t>(order.field)), entry.key()};
}

bool before(Order order, const Entry& entry, const Position& position) {
  if (order.field >= 0) {
    const int c = entry.field(static_cast<size_t>(order.field)).compare(position.value);
    if (c != 0) return c < 0;
  }
  return entry.key() < position.key;
}
bool at_or_before(Order order, const Entry& entry, const Position& position) {
  if (order.field >= 0) {
    const int c = entry.field(static_cast<size_t>(order.field)).compare(position.value);
    if (c != 0) return c < 0;
  }
  return entry.key() <= position.key;
}

// The first entry of a leaf that is not before the position.
uint32_t lower_bound(Order order, const Leaf& leaf, const Position& position) {
  const auto* found = std::partition_point(leaf.entries, leaf.entries + leaf.count,
                                           [&](const Entry* e) { return before(order, *e, position); });
  return static_cast<uint32_t>(found - leaf.entries);
}
// The child that contains the position: the last one whose first entry is not after it, or the first child.
uint32_t child_for(Order order, const Inner& inner, const Position& position) {
  const auto* found = std::partition_point(inner.children + 1, inner.children + inner.count,
                                           [&](const Child& c) { return at_or_before(order, *c.first, position); });
  return static_cast<uint32_t>(found - inner.children) - 1;
}

uint64_t next_edit() {
  static std::atomic<uint64_t> id{0};
  return id.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Applies one edit to nodes.
class Editor {
 public:
  Editor(Order order, std::atomic<uint64_t>& bytes, uint64_t id) : order_(order), bytes_(bytes), id_(id) {}

  Leaf* new_leaf() {
    bytes_.fetch_add(sizeof(Leaf), std::memory_order_relaxed);
    return new Leaf(id_);
  }
  Inner* new_inner() {
    bytes_.fetch_add(sizeof(Inner), std::memory_order_relaxed);
    return new Inner(id_);
  }
  static Child child(TreeNode* node) { return {node, first_of(node), below(node)}; }

  // The node itself if this edit created it, otherwise a copy in its place; consumes the reference.
  TreeNode* own(TreeNode* node) {
    if (node->edit == id_) return node;
    TreeNode* copy;
    if (node->leaf) {
      Leaf* made = new_leaf();
      made->take(0, *as_leaf(node), 0, node->count);
      for (uint32_t i = 0; i < node->count; ++i) hold(made->entries[i]);
      copy = made;
    } else {
      Inner* made = new_inner();
      std::copy_n(as_inner(node)->children, node->count, made->children);
      for (uint32_t i = 0; i < node->count; ++i) made->children[i].node->users.fetch_add(1, std::memory_order_relaxed);
      copy = made;
    }
    copy->count = node->count;
    drop(node, bytes_);
    return copy;
  }

  // Both consume the node's reference and return the changed node's; `split` receives a new right neighbour.
  TreeNode* put(TreeNode* node, const Position& position, EntryRef entry, TreeNode*& split) {
    node = own(node);
    if (node->leaf) {
      Leaf& leaf = *as_leaf(node);
      const uint32_t at = lower_bound(order_, leaf, position);
      if (at < leaf.count && at_or_before(order_, *leaf.entries[at], position)) {
        drop(leaf.entries[at]);
        leaf.set(at, entry.release());
        return node;
      }
      if (leaf.count < kLeafEntries) {
        leaf.insert(at, entry.release());
        return node;
      }
      // Keys often arrive in ascending order: then keep the left leaf full.
      const uint32_t keep = at == kLeafEntries ? kLeafEntries : kLeafEntries / 2;
      Leaf* right = new_leaf();
      right->take(0, leaf, keep, kLeafEntries - keep);
      right->count = static_cast<uint16_t>(kLeafEntries - keep);
      leaf.count = static_cast<uint16_t>(keep);
      if (at <= keep && keep < kLeafEntries) {
        leaf.insert(at, entry.release());
      } else {
        right->insert(at - keep, entry.release());
      }
      split = right;
      return node;
    }

    Inner& inner = *as_inner(node);
    const uint32_t at = child_for(order_, inner, position);
    TreeNode* right = nullptr;
    TreeNode* changed = put(inner.children[at].node, position, std::move(entry), right);
    inner.children[at] = child(changed);
    if (right == nullptr) return node;
    if (inner.count < kChildren) {
      insert(inner.children, inner.count, at + 1, child(right));
      return node;
    }
    const uint32_t keep = at + 1 == kChildren ? kChildren : kChildren / 2;
    Inner* sibling = new_inner();
    std::copy(inner.children + keep, inner.children + kChildren, sibling->children);
    sibling->count = static_cast<uint16_t>(kChildren - keep);
    inner.count = static_cast<uint16_t>(keep);
    if (at + 1 <= keep && keep < kChildren) {
      insert(inner.children, inner.count, at + 1, child(right));
    } else {
      insert(sibling->children, sibling->count, at + 1 - keep, child(right));
    }
    split = sibling;
    return node;
  }

  // Null if the node became empty. The entry must exist.
  TreeNode* erase(TreeNode* node, const Position& position) {
    node = own(node);
    if (node->leaf) {
      Leaf& leaf = *as_leaf(node);
      const uint32_t at = lower_bound(order_, leaf, position);
      drop(leaf.entries[at]);
      leaf.remove(at);
    } else {
      Inner& inner = *as_inner(node);
      const uint32_t at = child_for(order_, inner, position);
      TreeNode* changed = erase(inner.children[at].node, position);
      if (changed == nullptr) {
        remove(inner.children, inner.count, at);
      } else {
        inner.children[at] = child(changed);
        if (at + 1 < inner.count) {
          merge(inner, at);
        } else if (at > 0) {
          merge(inner, at - 1);
        }
      }
    }
    if (node->count > 0) return node;
    drop(node, bytes_);
    return nullptr;
  }

 private:
  template <class T, class N>
  static void insert(T* list, N& count, uint32_t at, T item) {
    std::copy_backward(list + at, list + count, list + count + 1);
    list[at] = item;
    ++count;
  }
  template <class T, class N>
  static void remove(T* list, N& count, uint32_t at) {
    std::copy(list + at + 1, list + count, list + at);
    --count;
  }

  // Merges child `at` with its right neighbour if together they would be well below full.
  void merge(Inner& inner, uint32_t at) {
    TreeNode* left = inner.children[at].node;
    TreeNode* right = inner.children[at + 1].node;
    const uint32_t most = (left->leaf ? kLeafEntries : kChildren) / 2;
    if (left->count + right->count > most) return;
    left = own(left);
    right = own(right);
    if (left->leaf) {
      as_leaf(left)->take(left->count, *as_leaf(right), 0, right->count);
    } else {
      std::copy_n(as_inner(right)->children, right->count, as_inner(left)->children + left->count);
    }
    left->count = static_cast<uint16_t>(left->count + right->count);
    right->count = 0;
    drop(right, bytes_);
    inner.children[at] = child(left);
    remove(inner.children, inner.count, at + 1);
  }

  Order order_;
  std::atomic<uint64_t>& bytes_;
  uint64_t id_;
};

}  // namespace

Tree::Tree(const Tree& other) : order_(other.order_), bytes_(other.bytes_), root_(other.root_) {
  if (root_ != nullptr) root_->users.fetch_add(1, std::memory_order_relaxed);
}
Tree& Tree::operator=(Tree other) noexcept {
  std::swap(order_, other.order_);
  std::swap(bytes_, other.bytes_);
  std::swap(root_, other.root_);
  return *this;
}
Tree::~Tree() { drop(root_, *bytes_); }

void Tree::assign(const std::vector<EntryRef>& sorted) {
  drop(std::exchange(root_, nullptr), *bytes_);
  Editor editor(order_, *bytes_, next_edit());
  std::vector<TreeNode*> level;
  for (size_t i = 0; i < sorted.size(); i += kLeafEntries) {
    Leaf* leaf = editor.new_leaf();
    for (size_t j = i; j < std::min<size_t>(i + kLeafEntries, sorted.size()); ++j) {
      leaf->insert(leaf->count, EntryRef(sorted[j]).release());
    }
    level.push_back(leaf);
  }
  while (level.size() > 1) {
    std::vector<TreeNode*> above;
    for (size_t i = 0; i < level.size(); i += kChildren) {
      Inner* inner = editor.new_inner();
      for (size_t j = i; j < std::min<size_t>(i + kChildren, level.size()); ++j) {
        inner->children[inner->count++] = Editor::child(level[j]);
      }
      above.push_back(inner);
    }
    level = std::move(above);
  }
  if (!level.empty()) root_ = level[0];
}

uint64_t Tree::count() const { return root_ == nullptr ? 0 : below(root_); }

const Entry* Tree::find(Position position) const {
  const TreeNode* node = root_;
  if (node == nullptr) return nullptr;
  while (!node->leaf) node = as_inner(node)->children[child_for(order_, *as_inner(node), position)].node;
  const Leaf& leaf = *as_leaf(node);
  const uint32_t at = lower_bound(order_, leaf, position);
  if (at == leaf.count || !at_or_before(order_, *leaf.entries[at], position)) return nullptr;
  return leaf.entries[at];
}

uint64_t Tree::rank(Position position) const {
  uint64_t before_it = 0;
  const TreeNode* node = root_;
  if (node == nullptr) return 0;
  while (!node->leaf) {
    const Inner& inner = *as_inner(node);
    const uint32_t at = child_for(order_, inner, position);
    for (uint32_t i = 0; i < at; ++i) before_it += inner.children[i].below;
    node = inner.children[at].node;
  }
  return before_it + lower_bound(order_, *as_leaf(node), position);
}

Tree::Cursor::Cursor(const Tree& tree, Position from, Ahead ahead) : ahead_(ahead) {
  const TreeNode* node = tree.root_;
  if (node == nullptr) return;
  while (!node->leaf) {
    const uint32_t at = child_for(tree.order_, *as_inner(node), from);
    assert(depth_ < kMaxDepth - 1);
    steps_[depth_++] = {node, at};
    node = as_inner(node)->children[at].node;
  }
  steps_[depth_++] = {node, lower_bound(tree.order_, *as_leaf(node), from)};
  settle();
}

const LabelSet* Tree::Cursor::labels() const {
  const Step& step = steps_[depth_ - 1];
  return as_leaf(step.node)->labels[step.at];
}

const Entry& Tree::Cursor::operator*() const {
  const Step& step = steps_[depth_ - 1];
  return *as_leaf(step.node)->entries[step.at];
}

namespace {

// Entries are scattered in memory. A walk over all of them is dominated by cache misses, unless they are prefetched.
constexpr uint32_t kAhead = 8;

void fetch(const Leaf& leaf, uint32_t at) {
  if (at < leaf.count) __builtin_prefetch(leaf.entries[at]);
}

}  // namespace

void Tree::Cursor::next() {
  Step& step = steps_[depth_ - 1];
  if (++step.at == step.node->count) return settle();
  if (ahead_ == Ahead::Fetch) fetch(*as_leaf(step.node), step.at + kAhead);
}

// At the end of a node, continues at its right neighbour.
void Tree::Cursor::settle() {
  while (depth_ > 0 && steps_[depth_ - 1].at == steps_[depth_ - 1].node->count) {
    if (--depth_ > 0) ++steps_[depth_ - 1].at;
  }
  while (depth_ > 0 && !steps_[depth_ - 1].node->leaf) {
    const Step& step = steps_[depth_ - 1];
    steps_[depth_] = {as_inner(step.node)->children[step.at].node, 0};
    ++depth_;
  }
  if (depth_ == 0 || ahead_ == Ahead::Leave) return;
  const Step& step = steps_[depth_ - 1];
  for (uint32_t i = 0; i <= kAhead; ++i) fetch(*as_leaf(step.node), step.at + i);
}

namespace {

// Walks a tree from left to right, and decides at each node whether to enter or to skip it.
class Walk {
 public:
  explicit Walk(const TreeNode* root) : ahead_(root) {}

  bool over() const { return ahead_ == nullptr && path_.empty(); }
  // The node ahead; null if an entry is ahead.
  const TreeNode* node() const {
    if (ahead_ != nullptr) return ahead_;
    const auto& [inside, at] = path_.back();
    return inside->leaf ? nullptr : as_inner(inside)->children[at].node;
  }
  const Entry* entry() const {
    const auto& [inside, at] = path_.back();
    return as_leaf(inside)->entries[at];
  }
  // The first entry ahead.
  const Entry* first() const { return node() == nullptr ? entry() : first_of(node()); }
  void enter() {
    const TreeNode* into = node();
    ahead_ = nullptr;
    path_.emplace_back(into, 0);
  }
  void skip() {
    ahead_ = nullptr;
    while (!path_.empty() && ++path_.back().second == path_.back().first->count) path_.pop_back();
  }

 private:
  const TreeNode* ahead_;  // The root, before the first step.
  std::vector<std::pair<const TreeNode*, uint32_t>> path_;
};

uint32_t height(const TreeNode* node) {
  uint32_t levels = 0;
  for (; !node->leaf; node = as_inner(node)->children[0].node) ++levels;
  return levels;
}

}  // namespace

void Tree::compare(const Tree& before, const Tree& now,
                   const std::function<void(const Entry* before, const Entry* now)>& visit) {
  Walk old(before.root_), fresh(now.root_);
  // Enters what is ahead; at an entry, visits it alone.
  const auto advance = [&visit](Walk& walk, bool is_old) {
    if (walk.node() != nullptr) return walk.enter();
    visit(is_old ? walk.entry() : nullptr, is_old ? nullptr : walk.entry());
    walk.skip();
  };
  while (!old.over() && !fresh.over()) {
    const TreeNode *a = old.node(), *b = fresh.node();
    if (a != nullptr && a == b) {
      old.skip();
      fresh.skip();
      continue;
    }
    const int order = old.first()->key().compare(fresh.first()->key());
    if (a != nullptr && b != nullptr) {
      // Of two nodes, the higher one is entered, or the one that begins earlier: so that both walks arrive at a shared
      // node together.
      const uint32_t high = height(a), other = height(b);
      if (high > other || (high == other && order <= 0)) old.enter();
      if (other > high || (high == other && order >= 0)) fresh.enter();
    } else if (order < 0) {
      advance(old, true);
    } else if (order > 0) {
      advance(fresh, false);
    } else if (a != nullptr || b != nullptr) {
      (a != nullptr ? old : fresh).enter();
    } else {
      if (old.entry() != fresh.entry()) visit(old.entry(), fresh.entry());
      old.skip();
      fresh.skip();
    }
  }
  while (!old.over()) advance(old, true);
  while (!fresh.over()) advance(fresh, false);
}

Tree::Edit::Edit(Tree& tree) : tree_(tree), id_(next_edit()) {}

void Tree::Edit::put(EntryRef entry) {
  Editor editor(tree_.order_, *tree_.bytes_, id_);
  const Entry& kept = *entry;
  if (tree_.root_ == nullptr) {
    Leaf* leaf = editor.new_leaf();
    leaf->insert(0, entry.release());
    tree_.root_ = leaf;
    return;
  }
  TreeNode* split = nullptr;
  tree_.root_ = editor.put(tree_.root_, position_of(tree_.order_, kept), std::move(entry), split);
  if (split == nullptr) return;
  Inner* root = editor.new_inner();
  root->children[root->count++] = Editor::child(tree_.root_);
  root->children[root->count++] = Editor::child(split);
  tree_.root_ = root;
}

void Tree::Edit::erase(Position position) {
  if (tree_.find(position) == nullptr) return;
  Editor editor(tree_.order_, *tree_.bytes_, id_);
  tree_.root_ = editor.erase(tree_.root_, position);
  while (tree_.root_ != nullptr && !tree_.root_->leaf && tree_.root_->count == 1) {
    TreeNode* only = as_inner(tree_.root_)->children[0].node;
    only->users.fetch_add(1, std::memory_order_relaxed);
    drop(tree_.root_, *tree_.bytes_);
    tree_.root_ = only;
  }
}

}  // namespace holdfast::cache
