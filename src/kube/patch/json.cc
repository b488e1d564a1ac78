#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "base/go_numbers.h"
#include "base/limits.h"
#include "base/text.h"
#include "codec/codec.h"
#include "patch/patch.h"
#include "patch/unfold.h"

namespace holdfast::patch {
namespace {

// The document being edited: parts become nodes when an operation traverses them, the rest stays a Value.
struct Node {
  Value value;  // If the node was not opened.
  enum class Opened : uint8_t { No, Map, List } opened = Opened::No;
  std::map<std::string_view, Node*> members;
  std::vector<Node*> items;  // Null pointers are JSON nulls, in members too.
};

class Editor {
 public:
  Editor(Arena& arena, const Value& root) : arena_(arena), root_(make(root)), depth_(depth_of(root)) {}

  // False if the operation cannot be applied (see problem()), or the document would be nested too deeply.
  bool apply(const Value& operation) {
    return change(operation) && (is_shallow() || fail("the document is nested too deeply"));
  }

  const std::string& problem() const { return problem_; }
  bool test_failed() const { return test_failed_; }

  Value result() const { return build(root_); }

 private:
  bool change(const Value& operation) {
    const std::string_view op = has_text(operation, "op") ? text(operation, "op") : "unknown";
    if (op == "add") return add(operation);
    if (op == "remove") return remove(operation);
    if (op == "replace") return replace(operation);
    if (op == "move") return move(operation);
    if (op == "test") return test(operation);
    if (op == "copy") return copy(operation);
    return fail("Unexpected kind: " + std::string(op));
  }

  // Sets problem() to the Go library's message. Concatenated only on failure.
  template <class... Parts>
  bool fail(const Parts&... parts) {
    problem_.clear();
    (problem_.append(parts), ...);
    return false;
  }

  struct Place {
    Node* container = nullptr;
    std::string_view key;
    uint32_t depth = 0;  // Depth of the value at this place: one for members of the root.
  };

  // Number of nested maps and lists.
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

  // A value with this many levels was put at the place.
  void grew(const Place& at, uint32_t levels) { depth_ = std::max(depth_, at.depth + levels); }

  // depth_ is an upper bound for the document's depth. Only if it exceeds the limit is the depth counted, which patches
  // of real objects do not need; the number of counts is limited so that they cannot dominate the work.
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

  // Makes the children of a map or list accessible; false for other nodes.
  bool open(Node* node) {
    if (node->opened != Node::Opened::No) return true;
    node->value = unfolded(arena_, node->value);
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

  // The container of the value at `path`. Like upstream, ignores everything before the first slash.
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

  // An index into the list, counted from the end if negative; nullopt if it is outside [0, count).
  static std::optional<size_t> position(std::string_view key, size_t count, std::string& why) {
    Result<int64_t> index = go_parse_int(key);
    if (!index) {
      const std::string_view digits = key.substr(key.starts_with('-') || key.starts_with('+') ? 1 : 0);
      const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
      why = "strconv.Atoi: parsing " + go_quote(key) + (is_number ? ": value out of range" : ": invalid syntax");
      return std::nullopt;
    }
    int64_t at = *index;
    if (at < 0) at += static_cast<int64_t>(count);
    if (at < 0 || at >= static_cast<int64_t>(count)) {
      why = "Unable to access invalid index: " + std::to_string(*index) + ": invalid index referenced";
      return std::nullopt;
    }
    return static_cast<size_t>(at);
  }

  // A missing member of a map is null, not an error.
  bool get(Node* container, std::string_view key, Node*& out) {
    if (container->opened == Node::Opened::Map) {
      const auto found = container->members.find(key);
      out = found == container->members.end() ? nullptr : found->second;
      return true;
    }
    const std::optional<size_t> at = position(key, container->items.size(), problem_);
    if (!at) return false;
    out = container->items[*at];
    return true;
  }

  bool insert(Place place, Node* node) {
    if (place.container->opened == Node::Opened::Map) {
      place.container->members[place.key] = node;
      return true;
    }
    std::vector<Node*>& items = place.container->items;
    if (place.key == "-") {
      items.push_back(node);
      return true;
    }
    const std::optional<size_t> at = position(place.key, items.size() + 1, problem_);
    if (!at) {
      if (problem_.starts_with("strconv")) {
        problem_ = "value was not a proper array index: '" + std::string(place.key) + "': " + problem_;
      }
      return false;
    }
    items.insert(items.begin() + static_cast<ptrdiff_t>(*at), node);
    return true;
  }

  bool erase(Place place) {
    if (place.container->opened == Node::Opened::Map) {
      return place.container->members.erase(place.key) == 1 ||
             fail("Unable to remove nonexistent key: ", place.key, ": missing value");
    }
    std::vector<Node*>& items = place.container->items;
    const std::optional<size_t> at = position(place.key, items.size(), problem_);
    if (!at) return false;
    items.erase(items.begin() + static_cast<ptrdiff_t>(*at));
    return true;
  }

  // Prefixes the problem with the operation and path.
  bool fail_at(std::string_view what, std::string_view path) {
    problem_ = std::string(what) + ": '" + std::string(path) + "': " + problem_;
    return false;
  }

  bool add(const Value& operation) {
    if (!has_text(operation, "path")) return fail("add operation failed to decode path: missing value");
    const std::string_view path = text(operation, "path");
    const Place place = find(path);
    if (place.container == nullptr) {
      return fail("add operation does not apply: doc is missing path: \"", path, "\": missing value");
    }
    return put(place, operation) || fail_at("error in add for path", path);
  }

  bool remove(const Value& operation) {
    if (!has_text(operation, "path")) return fail("remove operation failed to decode path: missing value");
    const std::string_view path = text(operation, "path");
    const Place place = find(path);
    if (place.container == nullptr) {
      return fail("remove operation does not apply: doc is missing path: \"", path, "\": missing value");
    }
    return erase(place) || fail_at("error in remove for path", path);
  }

  bool replace(const Value& operation) {
    if (!has_text(operation, "path")) return fail("replace operation failed to decode path: ", kNoPath);
    const std::string_view path = text(operation, "path");
    if (path.empty()) {
      Node* whole = operand(operation);
      if (whole == nullptr || !open(whole)) {
        return fail("replace operation value must be object or array: %!w(<nil>)");
      }
      root_ = whole;
      depth_ = depth_of(whole);
      return true;
    }
    const Place place = find(path);
    if (place.container == nullptr) {
      return fail("replace operation does not apply: doc is missing path: ", path, ": missing value");
    }
    if (place.container->opened == Node::Opened::Map) return put(place, operation);
    const std::optional<size_t> at = position(place.key, place.container->items.size(), problem_);
    if (!at) return fail("replace operation does not apply: doc is missing key: ", path, ": missing value");
    Node* const node = operand(operation);
    grew(place, depth_of(node));
    place.container->items[*at] = node;
    return true;
  }

  bool find_source(std::string_view name, const Value& operation, Place& from) {
    if (!has_text(operation, "from")) return fail(name, " operation failed to decode from: ", kNoFrom);
    const std::string_view source = text(operation, "from");
    from = find(source);
    return from.container != nullptr ||
           fail(name, " operation does not apply: doc is missing from path: ", source, ": missing value");
  }

  bool move(const Value& operation) {
    Place from;
    if (!find_source("move", operation, from)) return false;
    Node* node = nullptr;
    if (!get(from.container, from.key, node) || !erase(from)) return fail_at("error in move for path", from.key);
    if (!has_text(operation, "path")) return fail("move operation failed to decode path: ", kNoPath);
    const std::string_view path = text(operation, "path");
    const Place to = find(path);
    if (to.container == nullptr) {
      return fail("move operation does not apply: doc is missing destination path: ", path, ": missing value");
    }
    grew(to, depth_ > from.depth ? depth_ - from.depth : 0);  // It cannot be deeper than the value that contained it.
    return insert(to, node) || fail_at("error in move for path", path);
  }

  bool test(const Value& operation) {
    if (!has_text(operation, "path")) return fail("test operation failed to decode path: ", kNoPath);
    const std::string_view path = text(operation, "path");
    const Value* wanted = operation.find("value");
    const Value expected = wanted == nullptr ? Value::null() : *wanted;
    Node* node = root_;
    if (!path.empty()) {
      const Place place = find(path);
      if (place.container == nullptr) {
        return fail("test operation does not apply: is missing path: ", path, ": missing value");
      }
      Node* found = nullptr;
      if (!get(place.container, place.key, found)) return fail_at("error in test for path", path);
      node = found;
    }
    test_failed_ = !same(node, expected);
    return !test_failed_ || fail("testing value ", path, " failed: test failed");
  }

  // Examines no more of the document than the operation's value contains.
  bool same(Node* node, const Value& value) {
    if (node == nullptr) return value.is_null();
    open(node);
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
    Place from;
    if (!find_source("copy", operation, from)) return false;
    Node* node = nullptr;
    if (!get(from.container, from.key, node)) return fail_at("error in copy for from", text(operation, "from"));
    if (!has_text(operation, "path")) return fail("copy operation failed to decode path: missing value");
    const std::string_view path = text(operation, "path");
    const Place to = find(path);
    if (to.container == nullptr) {
      return fail("copy operation does not apply: doc is missing destination path: ", path, ": missing value");
    }
    const Value value = build(node);
    copied_bytes_ += value.is_null() ? 0 : codec::encode_json(value).size();
    if (copied_bytes_ > limits::kJsonPatchCopiedBytes) {
      return fail("Unable to complete the copy, the accumulated size increase of copy is ",
                  std::to_string(copied_bytes_), ", exceeding the limit ",
                  std::to_string(limits::kJsonPatchCopiedBytes));
    }
    grew(to, depth_of(value));
    if (insert(to, make(value))) return true;
    problem_ = "error while adding value during copy: " + problem_;
    return false;
  }

  // Puts the operation's value.
  bool put(const Place& place, const Value& operation) {
    Node* const node = operand(operation);
    grew(place, depth_of(node));
    return insert(place, node);
  }

  static constexpr std::string_view kNoPath = "operation missing path field: missing value";
  static constexpr std::string_view kNoFrom = "operation, missing from field: missing value";

  Arena& arena_;
  std::deque<Node> nodes_;
  Node* root_;
  std::string problem_;
  bool test_failed_ = false;
  size_t copied_bytes_ = 0;
  uint32_t depth_;  // Upper bound.
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
  JsonPatched patched = run_json_patch(arena, object, patch);
  if (patched.value) return *patched.value;
  Error error{Reason::Invalid, "the server rejected our request due to an error in our request"};
  error.details.emplace();
  return error;
}

JsonPatched run_json_patch(Arena& arena, const Value& object, const Value& patch) {
  assert(patch.is_list());
  Editor editor(arena, object);
  for (const Value& operation : patch.items()) {
    if (!editor.apply(operation)) return {std::nullopt, editor.problem(), editor.test_failed()};
  }
  return {editor.result(), {}, false};
}

}  // namespace holdfast::patch
