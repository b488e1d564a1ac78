#include <deque>
#include <map>
#include <vector>

#include "codec/codec.h"
#include "patch/patch.h"
#include "request/query.h"

namespace holdfast::patch {
namespace {

constexpr size_t kMaxOperations = 10000;
// What `copy` may add in all, so that doubling a document again and again ends.
constexpr size_t kMaxCopiedBytes = 3 << 20;

// The document being changed: parts become nodes when an operation walks through them, the rest stays a Value.
struct Node {
  Value value;  // Of a node that was not opened.
  enum class Opened : uint8_t { No, Map, List } opened = Opened::No;
  std::map<std::string_view, Node*> members;
  std::vector<Node*> items;  // Null pointers are JSON nulls, in members too.
};

class Editor {
 public:
  Editor(Arena& arena, const Value& root) : arena_(arena), root_(make(root)) {}

  // False: the operation does not fit.
  bool apply(const Value& operation) {
    const std::string_view op = text(operation, "op");
    if (op == "add") return add(operation);
    if (op == "remove") return remove(operation);
    if (op == "replace") return replace(operation);
    if (op == "move") return move(operation);
    if (op == "test") return test(operation);
    if (op == "copy") return copy(operation);
    return false;
  }

  Value result() const { return build(root_); }

 private:
  struct Place {
    Node* container = nullptr;
    std::string_view key;
  };

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
    while (true) {
      if (!open(node)) return {};
      slash = path.find('/');
      const std::string_view key = unescape(path.substr(0, slash));
      if (slash == std::string_view::npos) return {node, key};
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
    return place.container != nullptr && insert(place, operand(operation));
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
      return true;
    }
    const Place place = find(path);
    if (place.container == nullptr) return false;
    if (place.container->opened == Node::Opened::Map) {
      place.container->members[place.key] = operand(operation);
      return true;
    }
    const std::optional<size_t> at = position(place.key, place.container->items.size());
    if (!at) return false;
    place.container->items[*at] = operand(operation);
    return true;
  }

  bool move(const Value& operation) {
    if (!has_text(operation, "from")) return false;
    const Place from = find(text(operation, "from"));
    Node* node = nullptr;
    if (from.container == nullptr || !get(from.container, from.key, node) || !erase(from)) return false;
    if (!has_text(operation, "path")) return false;
    const Place to = find(text(operation, "path"));
    return to.container != nullptr && insert(to, node);
  }

  bool test(const Value& operation) {
    if (!has_text(operation, "path")) return false;
    const std::string_view path = text(operation, "path");
    const Value* wanted = operation.find("value");
    const Value expected = wanted == nullptr ? Value::null() : *wanted;
    if (path.empty()) return equal(build(root_), expected);
    const Place place = find(path);
    Node* node = nullptr;
    if (place.container == nullptr || !get(place.container, place.key, node)) return false;
    return equal(build(node), expected);
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
    if (copied_bytes_ > kMaxCopiedBytes) return false;
    return insert(to, make(value));
  }

  Arena& arena_;
  std::deque<Node> nodes_;
  Node* root_;
  size_t copied_bytes_ = 0;
};

}  // namespace

Result<Value> apply_json_patch(Arena& arena, const Value& object, const Value& patch) {
  assert(patch.is_list());
  if (patch.count() > kMaxOperations) {
    return Error{Reason::RequestEntityTooLarge,
                 "Request entity too large: The allowed maximum operations in a JSON patch is " +
                     std::to_string(kMaxOperations) + ", got " + std::to_string(patch.count())};
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
