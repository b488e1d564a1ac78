// The errors that field validation reports for a body of a built-in type.
#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "codec/json_parse.h"
#include "codec/typed.h"

namespace holdfast::codec {
namespace {

using types::Field;
using types::Type;
using Kind = types::Shape;

constexpr size_t kMostErrors = 100;

class Findings {
 public:
  // `path` is that of the container, empty at the root.
  void add(std::string_view what, std::string_view path, std::string_view key) {
    if (errors_.size() == kMostErrors) return;
    std::string full(path);
    if (!full.empty()) full += '.';
    full += key;
    std::string text = std::string(what) + " field " + go_quote(full);
    if (std::ranges::find(errors_, text) == errors_.end()) errors_.push_back(std::move(text));
  }
  std::vector<std::string> take() { return std::move(errors_); }

 private:
  std::vector<std::string> errors_;
};

// Whether Go's decoder checks the members of such a value: other types have their own unmarshaler, which is never
// strict.
bool is_strictly_decoded(const Type& type) {
  switch (type.shape) {
    case Kind::Struct:
    case Kind::Map:
    case Kind::List:
    case Kind::Any:
      return true;
    default:
      return false;
  }
}

const Field* known_member(const Type& type, std::string_view key, const Gates* gates, size_t depth) {
  const Field* field = types::find_member(type, key);
  if (field == nullptr || !field->exists(gates) || (field->root_only && depth != 2)) return nullptr;
  return field;
}

const Type* inside(const Type& type) { return type.shape == Kind::Any ? &type : type.element; }

class JsonChecker : public JsonIgnore {
 public:
  JsonChecker(const Type& root, const Gates* gates) : gates_(gates), pending_(&root) {}

  JsonTake key(const JsonText& text) {
    Frame& frame = frames_.back();
    const std::string_view key = unescape_json(text, arena_);
    path_.resize(frame.path_size);
    const Type* type = nullptr;
    if (frame.type->shape == Kind::Struct) {
      const Field* field = known_member(*frame.type, key, gates_, frames_.size());
      if (field == nullptr) {
        findings_.add("unknown", path_, key);
        return JsonTake::Skip;
      }
      type = field->type;
    } else {
      type = inside(*frame.type);
    }
    if (!frame.seen.emplace(key).second) findings_.add("duplicate", path_, key);
    if (!is_strictly_decoded(*type)) return JsonTake::Skip;
    if (!path_.empty()) path_ += '.';
    path_ += key;
    pending_ = type;
    return JsonTake::Value;
  }
  void string(const JsonText&) { begin_value(); }
  void integer(int64_t, std::string_view) { begin_value(); }
  bool number(std::string_view) {
    begin_value();
    return true;
  }
  void boolean(bool) { begin_value(); }
  void null() { begin_value(); }
  void begin_map() { open(Kind::Map); }
  void begin_list() { open(Kind::List); }
  void end_map() { frames_.pop_back(); }
  void end_list() { frames_.pop_back(); }

  std::vector<std::string> take() { return findings_.take(); }

 private:
  struct Frame {
    const Type* type;  // Of the container itself; untyped if it is of the wrong kind (a list instead of a map).
    size_t path_size;
    bool is_list;
    size_t position = 0;
    std::unordered_set<std::string, KeyHash, std::equal_to<>> seen = {};
  };

  // List items have no key: their path element is added here.
  void begin_value() {
    if (frames_.empty() || !frames_.back().is_list) return;
    Frame& frame = frames_.back();
    path_.resize(frame.path_size);
    path_ += "[" + std::to_string(frame.position++) + "]";
    pending_ = inside(*frame.type);
  }
  void open(Kind kind) {
    begin_value();
    const bool is_list = kind == Kind::List;
    const bool fits =
        pending_->shape == Kind::Any || (is_list ? pending_->shape == Kind::List : pending_->shape != Kind::List);
    static const Type kAny{.shape = Kind::Any};
    frames_.push_back({.type = fits && is_strictly_decoded(*pending_) ? pending_ : &kAny,
                       .path_size = path_.size(),
                       .is_list = is_list});
  }

  const Gates* gates_;
  const Type* pending_;
  Arena arena_;
  std::string path_;
  std::vector<Frame> frames_;
  Findings findings_;
};

struct TreeChecker {
  const Gates* gates;
  bool hides_map_keys;
  std::string path = {};
  Findings findings = {};

  void check(const Type& type, const Value& value, size_t depth);
};

void TreeChecker::check(const Type& type, const Value& value, size_t depth) {
  const size_t size = path.size();
  if (value.is_list() && type.shape == Kind::List) {
    for (size_t i = 0; i < value.items().size(); ++i) {
      path += "[" + std::to_string(i) + "]";
      check(*type.element, value.items()[i], depth + 1);
      path.resize(size);
    }
    return;
  }
  if (!value.is_map() || (type.shape != Kind::Struct && type.shape != Kind::Map)) return;
  std::vector<const Member*> members;
  for (const Member& member : value.members()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const Member* member) { return member->key; });
  for (const Member* member : members) {
    const Type* below = type.element;
    if (type.shape == Kind::Struct) {
      const Field* field = known_member(type, member->key, gates, depth);
      if (field == nullptr) {
        findings.add("unknown", path, member->key);
        continue;
      }
      below = field->type;
    }
    if (type.shape == Kind::Struct || !hides_map_keys) {
      if (!path.empty()) path += '.';
      path += member->key;
    }
    check(*below, member->value, depth + 1);
    path.resize(size);
  }
}

}  // namespace

std::vector<std::string> strict_json_errors(const types::Type& type, std::string_view source, const Gates* gates) {
  JsonChecker checker(type, gates);
  JsonParser(source, checker).parse_document();
  return checker.take();
}

std::vector<std::string> strict_tree_errors(const types::Type& type, const Value& tree, const Gates* gates,
                                            bool hides_map_keys) {
  TreeChecker checker{.gates = gates, .hides_map_keys = hides_map_keys};
  checker.check(type, tree, 1);
  return checker.findings.take();
}

}  // namespace holdfast::codec
