#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "base/limits.h"
#include "codec/codec.h"
#include "patch/patch.h"
#include "request/query.h"

namespace holdfast::patch {
namespace {

// The document being changed: parts become nodes when an operation walks through them, the rest stays a Value.
struct Node {
  Value value;  // Of a node that was not opened.
  enum class Opened : uint8_t { No, Map, List } opened = Opened::No;
  std::map<std::string_view, Node*> members;
  std::vector<Node*> items;  // Null pointers are JSON nulls, in members too.
};

class Editor {
 public:
  Editor(Arena& arena, const Value& root) : arena_(arena), root_(make(root)), depth_(depth_of(root)) {}

  // False: the operation does not fit, or the document would be nested too deeply.
  bool apply(const Value& operation) { return change(operation) && is_shallow(); }

  Value result() const { return build(root_); }

 private:
  bool change(const Value& operation) {
    const std::string_view op = text(operation, "op");
    if (op == "add") return add(operation);
    if (op == "remove") return remove(operation);
    if (op == "replace") return replace(operation);
    if (op == "move") return move(operation);
    if (op == "test") return test(operation);
    if (op == "copy") return copy(operation);
    return false;
  }

  struct Place {
    Node* container = nullptr;
    std::string_view key;
    uint32_t depth = 0;  // Of what stands there: one below the root for its members.
  };

  // Levels of maps and lists.
  static uint32_t depth_of(const Value& value) {
    uint32_t below = 0;
    if (value.is_map()) {
      for (const Member& member : value.members()) below = std::max(below, depth_of(member.value));
    } else if (value.is_list()) {
      for (const Value& item : value.items()) below = std::max(below, depth_of(item));
    } else {
      return 0;
    }
    return below + 1;
  }
  static uint32_t depth_of(const Node* node) {
    if (node == nullptr) return 0;
    uint32_t below = 0;
    switch (node->opened) {
      case Node::Opened::No:
        return depth_of(node->value);
      case Node::Opened::Map:
        for (const auto& [key, child] : node->members) below = std::max(below, depth_of(child));
        break;
      case Node::Opened::List:
        for (const Node* child : node->items) below = std::max(below, depth_of(child));
        break;
    }
    return below + 1;
  }

  // Something of `levels` was put at a place.
  void grew(const Place& at, uint32_t levels) { depth_ = std::max(depth_, at.depth + levels); }

  // depth_ says how deep the document is at most. Only where that is too much it is counted, which no patch of a real
  // object needs: not more than a few times, so that the patch cannot make it the most of the work.
  bool is_shallow() {
    constexpr int kMostCounts = 16;
    if (depth_ <= limits::kDecodedDepth) return true;
    if (++counts_ > kMostCounts) return false;
    depth_ = depth_of(root_);
    return depth_ <= limits::kDecodedDepth;
  }

  static std::string_view text(const Value& operation, std::string_view key) { return operation.text_at(key); }
  static bool has_text(const Value& operation, std::string_view key) {
    const Value* found = operation.find(key);
    return found != nullptr && found->is_string();
  }

  Node* make(const Value& value) {
    if (value.is_null()) return nullptr;
    nodes_.emplace_back();
    nodes_.back().value = value;
    return &nodes_.back();
  }
  Node* operand(const Value& operation) {
    const Value* value = operation.find("value");
    return value == nullptr ? nullptr : make(*value);
  }

  // Whether the node is a map or list, whose children can be reached.
  bool open(Node* node) {
    if (node->opened != Node::Opened::No) return true;
    if (node->value.is_map()) {
      for (const Member& member : node->value.members()) node->members.emplace(member.key, make(member.value));
      node->opened = Node::Opened::Map;
      return true;
    }
    if (node->value.is_list()) {
      for (const Value& item : node->value.items()) node->items.push_back(make(item));
      node->opened = Node::Opened::List;
      return true;
    }
    return false;
  }

  Value build(const Node* node) const {
    if (node == nullptr) return Value::null();
    switch (node->opened) {
      case Node::Opened::No:
        return node->value;
      case Node::Opened::Map: {
        MapBuilder map(arena_);
        for (const auto& [key, child] : node->members) map.add(key, build(child));
        return map.build();
      }
      case Node::Opened::List: {
        ListBuilder list(arena_);
        for (const Node* child : node->items) list.add(build(child));
        return list.build();
      }
    }
    return Value::null();
  }

  std::string_view unescape(std::string_view segment) {
    if (segment.find('~') == std::string_view::npos) return segment;
    std::string out;
    for (size_t i = 0; i < segment.size(); ++i) {
      if (segment[i] == '~' && i + 1 < segment.size() && (segment[i + 1] == '0' || segment[i + 1] == '1')) {
        out += segment[++i] == '0' ? '~' : '/';
      } else {
        out += segment[i];
      }
    }
    return arena_.copy(out);
  }

  // The container that holds what `path` names. What stands before the first slash is not looked at, as upstream.
  Place find(std::string_view path) {
    size_t slash = path.find('/');
    if (slash == std::string_view::npos || root_ == nullptr) return {};
    Node* node = root_;
    path.remove_prefix(slash + 1);
    for (uint32_t depth = 1;; ++depth) {
      if (!open(node)) return {};
      slash = path.find('/');
      const std::string_view key = unescape(path.substr(0, slash));
      if (slash == std::string_view::npos) return {node, key, depth};
      Node* next = nullptr;
      if (!get(node, key, next) || next == nullptr) return {};
      node = next;
      path.remove_prefix(slash + 1);
    }
  }

  // A position in the list, counted from the end when negative; nothing when it is outside [0, count).
  static std::optional<size_t> position(std::string_view key, size_t count) {
    Result<int64_t> index = request::go_parse_int(key);
    if (!index) return std::nullopt;
    int64_t at = *index;
    if (at < 0) at += static_cast<int64_t>(count);
    if (at < 0 || at >= static_cast<int64_t>(count)) return std::nullopt;
    return static_cast<size_t>(at);
  }

  // A missing member of a map is null, without an error.
  static bool get(Node* container, std::string_view key, Node*& out) {
    if (container->opened == Node::Opened::Map) {
      const auto found = container->members.find(key);
      out = found == container->members.end() ? nullptr : found->second;
      return true;
    }
    const std::optional<size_t> at = position(key, container->items.size());
    if (!at) return false;
    out = container->items[*at];
    return true;
  }

  static bool insert(Place place, Node* node) {
    if (place.container->opened == Node::Opened::Map) {
      place.container->members[place.key] = node;
      return true;
    }
    std::vector<Node*>& items = place.container->items;
    if (place.key == "-") {
      items.push_back(node);
      return true;
    }
    const std::optional<size_t> at = position(place.key, items.size() + 1);
    if (!at) return false;
    items.insert(items.begin() + static_cast<ptrdiff_t>(*at), node);
    return true;
  }

  static bool erase(Place place) {
    if (place.container->opened == Node::Opened::Map) return place.container->members.erase(place.key) == 1;
    std::vector<Node*>& items = place.container->items;
    const std::optional<size_t> at = position(place.key, items.size());
    if (!at) return false;
    items.erase(items.begin() + static_cast<ptrdiff_t>(*at));
    return true;
  }

  bool add(const Value& operation) {
    if (!has_text(operation, "path")) return false;
    const Place place = find(text(operation, "path"));
    return place.container != nullptr && put(place, operation);
  }

  bool remove(const Value& operation) {
    if (!has_text(operation, "path")) return false;
    const Place place = find(text(operation, "path"));
    return place.container != nullptr && erase(place);
  }

  bool replace(const Value& operation) {
    if (!has_text(operation, "path")) return false;
    const std::string_view path = text(operation, "path");
    if (path.empty()) {
      Node* whole = operand(operation);
      if (whole == nullptr || !open(whole)) return false;
      root_ = whole;
      depth_ = depth_of(whole);
      return true;
    }
    const Place place = find(path);
    if (place.container == nullptr) return false;
    if (place.container->opened == Node::Opened::Map) return put(place, operation);
    const std::optional<size_t> at = position(place.key, place.container->items.size());
    if (!at) return false;
    Node* const node = operand(operation);
    grew(place, depth_of(node));
    place.container->items[*at] = node;
    return true;
  }

  bool move(const Value& operation) {
    if (!has_text(operation, "from")) return false;
    const Place from = find(text(operation, "from"));
    Node* node = nullptr;
    if (from.container == nullptr || !get(from.container, from.key, node) || !erase(from)) return false;
    if (!has_text(operation, "path")) return false;
    const Place to = find(text(operation, "path"));
    if (to.container == nullptr) return false;
    grew(to, depth_ > from.depth ? depth_ - from.depth : 0);  // It cannot be deeper than what it was in.
    return insert(to, node);
  }

  bool test(const Value& operation) {
    if (!has_text(operation, "path")) return false;
    const std::string_view path = text(operation, "path");
    const Value* wanted = operation.find("value");
    const Value expected = wanted == nullptr ? Value::null() : *wanted;
    if (path.empty()) return same(root_, expected);
    const Place place = find(path);
    Node* node = nullptr;
    if (place.container == nullptr || !get(place.container, place.key, node)) return false;
    return same(node, expected);
  }

  // Looks at no more of the document than the operation's value has.
  static bool same(const Node* node, const Value& value) {
    if (node == nullptr) return value.is_null();
    switch (node->opened) {
      case Node::Opened::No:
        return equal(node->value, value);
      case Node::Opened::Map:
        if (!value.is_map() || value.count() != node->members.size()) return false;
        return std::all_of(value.members().begin(), value.members().end(), [&](const Member& member) {
          const auto found = node->members.find(member.key);
          return found != node->members.end() && same(found->second, member.value);
        });
      case Node::Opened::List:
        if (!value.is_list() || value.count() != node->items.size()) return false;
        for (size_t i = 0; i < node->items.size(); ++i) {
          if (!same(node->items[i], value.items()[i])) return false;
        }
        return true;
    }
    return false;
  }

  bool copy(const Value& operation) {
    if (!has_text(operation, "from")) return false;
    const Place from = find(text(operation, "from"));
    Node* node = nullptr;
    if (from.container == nullptr || !get(from.container, from.key, node)) return false;
    if (!has_text(operation, "path")) return false;
    const Place to = find(text(operation, "path"));
    if (to.container == nullptr) return false;
    const Value value = build(node);
    copied_bytes_ += value.is_null() ? 0 : codec::encode_json(value).size();
    if (copied_bytes_ > limits::kJsonPatchCopiedBytes) return false;
    grew(to, depth_of(value));
    return insert(to, make(value));
  }

  // The operation's value.
  bool put(const Place& place, const Value& operation) {
    Node* const node = operand(operation);
    grew(place, depth_of(node));
    return insert(place, node);
  }

  Arena& arena_;
  std::deque<Node> nodes_;
  Node* root_;
  size_t copied_bytes_ = 0;
  uint32_t depth_;  // At most this deep.
  int counts_ = 0;
};

}  // namespace

Result<Value> apply_json_patch(Arena& arena, const Value& object, const Value& patch) {
  assert(patch.is_list());
  if (patch.count() > limits::kJsonPatchOperations) {
    return Error{Reason::RequestEntityTooLarge,
                 "Request entity too large: The allowed maximum operations in a JSON patch is " +
                     std::to_string(limits::kJsonPatchOperations) + ", got " + std::to_string(patch.count())};
  }
  Editor editor(arena, object);
  for (const Value& operation : patch.items()) {
    if (editor.apply(operation)) continue;
    Error error{Reason::Invalid, "the server rejected our request due to an error in our request"};
    error.details.emplace();
    return error;
  }
  return editor.result();
}

}  // namespace holdfast::patch
