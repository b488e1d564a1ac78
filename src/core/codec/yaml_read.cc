#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/json_tree.h"
#include "codec/repeated.h"
#include "codec/yaml_nodes.h"
#include "codec/yaml_scalar.h"

namespace holdfast::codec {
namespace {

using Kind = YamlScalar::Kind;

// A float after a round trip through JSON text: an Int if the text is an integer.
Value after_json(double number) {
  char text[kMaxNumberText];
  const char* const end = write_float(number, FloatText::Json, text);
  int64_t integer = 0;
  const auto [stopped, error] = std::from_chars(text, end, integer);
  return error == std::errc() && stopped == end ? Value::integer(integer) : Value::number(number);
}

// strconv.FormatFloat(x, 'g', -1, 32): keys are printed as the nearest single-precision number.
std::string float_key_text(double number) {
  if (std::isnan(number)) return ".nan";
  const float single = std::fabs(number) > 3.4028235677973366e38
                           ? std::copysign(INFINITY, static_cast<float>(number < 0 ? -1 : 1))
                           : static_cast<float>(number);
  if (std::isinf(single)) return single > 0 ? ".inf" : "-.inf";
  return float_text(single);
}

// A map key with its YAML type: 1 and '1' are different keys until they become texts.
struct Key {
  YamlScalar scalar;
  std::string_view text;  // For strings.

  bool operator==(const Key& other) const {
    if (scalar.kind != other.scalar.kind) return false;
    switch (scalar.kind) {
      case Kind::Null:
        return true;
      case Kind::Bool:
        return scalar.boolean == other.scalar.boolean;
      case Kind::Int:
        return scalar.integer == other.scalar.integer;
      case Kind::Uint:
        return scalar.unsigned_integer == other.scalar.unsigned_integer;
      case Kind::Float:
        return scalar.number == other.scalar.number;
      default:
        return text == other.text;
    }
  }
  uint64_t hash() const {
    switch (scalar.kind) {
      case Kind::Bool:
        return scalar.boolean ? 1 : 2;
      case Kind::Int:
        return hash_combine(3, static_cast<uint64_t>(scalar.integer));
      case Kind::Uint:
        return hash_combine(4, scalar.unsigned_integer);
      case Kind::Float:
        return scalar.number == 0 ? 5 : hash_combine(5, std::bit_cast<uint64_t>(scalar.number));
      default:
        return hash_key(text);
    }
  }
};

constexpr std::string_view kKeyDefect = "unsupported map key of type: ";

struct Entry {
  Key key;
  Value value;
};

// Converts nodes to values. Does not recurse: ten thousand levels are allowed.
class Decoder {
 public:
  Decoder(Arena& arena, const YamlOptions& options, int inside_keys = 0)
      : arena_(arena), options_(options), inside_keys_(inside_keys) {}

  Result<Value> decode(const YamlNode& root);

 private:
  enum class Step : uint8_t { List, Map, MergeList };
  // A node whose children are being read. A merged map has its own frame, which adds to the entries of the map that
  // contains the merge key.
  struct Frame {
    const YamlNode* node;
    Step step;
    bool merged = false;            // Its entries go to another map.
    size_t owner = 0;               // The frame of that map; otherwise its own.
    const YamlNode* via = nullptr;  // The alias that led here.
    size_t next = 0;                // Next child to read; for a merge list, the number left.
    size_t start = 0;               // Position of its first item or entry.
    Key key = {};                   // Of the member whose value is being read.
    std::unique_ptr<std::unordered_multimap<uint64_t, size_t>> index = {};  // Of the entries, if there are many.
  };

  bool enter(const YamlNode* node, bool merged);
  bool step_list(Frame& frame);
  bool step_map(Frame& frame);
  bool step_merge(Frame& frame);
  bool merge(const YamlNode* node);
  bool scalar(const YamlNode& node, Key& key);
  bool map_key(const YamlNode* node, Key& key);
  Value value_of(const Key& key);
  void deliver(Value value);
  void set_entry(Frame& owner, const Key& key, Value value, uint32_t line);
  Value close_map(const Frame& frame);
  bool count();
  bool follow(const YamlNode*& node, const YamlNode*& via);
  std::string key_text(const Entry& entry);
  std::string go_syntax(const Key& key);
  std::string go_syntax(const Value& value, size_t budget);

  std::string_view first_defect() const;
  Value defect(const std::string& message) {
    has_defects_ = true;
    return Value::raw(arena_.copy(message));
  }
  bool fail(std::string message) {
    yaml_problem_ = "yaml: " + std::move(message);
    return false;
  }

  Arena& arena_;
  const YamlOptions& options_;  // Owned by the caller.
  const int inside_keys_;
  std::vector<Frame> frames_;
  std::vector<Value> items_;
  std::vector<Entry> entries_;
  std::vector<Member> members_;
  std::unordered_set<const YamlNode*> open_aliases_;
  Value root_;
  std::string yaml_problem_;
  bool has_defects_ = false;
  uint64_t decoded_ = 0;
  uint64_t from_aliases_ = 0;
};

// go-yaml's limit on alias expansion: up to 99 % of the nodes in small documents, down to 10 % in large ones.
bool Decoder::count() {
  ++decoded_;
  if (!open_aliases_.empty()) ++from_aliases_;
  if (from_aliases_ <= 100 || decoded_ <= 1000) return true;
  constexpr double kLow = 400000;
  constexpr double kHigh = 4000000;
  const auto all = static_cast<double>(decoded_);
  const double allowed = all <= kLow ? 0.99 : all >= kHigh ? 0.10 : 0.99 - 0.89 * ((all - kLow) / (kHigh - kLow));
  if (static_cast<double>(from_aliases_) / all <= allowed) return true;
  return fail("document contains excessive aliasing");
}

// Resolves an alias to its target.
bool Decoder::follow(const YamlNode*& node, const YamlNode*& via) {
  if (node->kind != YamlNode::Kind::Alias) return true;
  if (!open_aliases_.insert(node).second) return fail("anchor '" + std::string(node->text) + "' value contains itself");
  via = node;
  node = node->target;
  return count();
}

Result<Value> Decoder::decode(const YamlNode& root) {
  bool good = count() && enter(&root, false);  // The document itself counts.
  while (good && !frames_.empty()) {
    Frame& frame = frames_.back();
    switch (frame.step) {
      case Step::List:
        good = step_list(frame);
        break;
      case Step::Map:
        good = step_map(frame);
        break;
      case Step::MergeList:
        good = step_merge(frame);
        break;
    }
  }
  if (!yaml_problem_.empty()) return bad_request(yaml_problem_);
  if (has_defects_) {
    if (const std::string_view defect = first_defect(); !defect.empty()) return bad_request(std::string(defect));
  }
  return root_;
}

// A value that JSON cannot represent is an error only if it is still present at the end: a duplicate key may replace
// it. It is represented by a Raw leaf with the message; errors in keys take precedence over those in numbers.
std::string_view Decoder::first_defect() const {
  std::string_view number;
  std::vector<Value> left = {root_};
  while (!left.empty()) {
    const Value value = left.back();
    left.pop_back();
    if (value.is_raw()) {
      if (value.raw_json().starts_with(kKeyDefect)) return value.raw_json();
      number = value.raw_json();
    } else if (value.is_list()) {
      left.insert(left.end(), value.items().rbegin(), value.items().rend());
    } else if (value.is_map()) {
      for (size_t i = value.count(); i-- > 0;) left.push_back(value.members()[i].value);
    }
  }
  return number;
}

// Reads a scalar immediately, or opens a frame.
bool Decoder::enter(const YamlNode* node, bool merged) {
  if (!count()) return false;
  const YamlNode* via = nullptr;
  if (!follow(node, via)) return false;
  if (node->kind == YamlNode::Kind::Scalar) {
    Key key;
    if (!scalar(*node, key)) return false;
    if (via != nullptr) open_aliases_.erase(via);
    deliver(value_of(key));
    return true;
  }
  const bool list = node->kind == YamlNode::Kind::List;
  frames_.push_back({.node = node,
                     .step = list ? Step::List : Step::Map,
                     .merged = merged,
                     .owner = merged ? frames_.back().owner : frames_.size(),
                     .via = via,
                     .start = list ? items_.size() : entries_.size()});
  return true;
}

void Decoder::deliver(Value value) {
  if (frames_.empty()) {
    root_ = value;
    return;
  }
  Frame& frame = frames_.back();
  if (frame.step == Step::List) {
    items_.push_back(value);
  } else {
    set_entry(frames_[frame.owner], frame.key, value, frame.node->children[frame.next - 1]->line);
  }
}

bool Decoder::step_list(Frame& frame) {
  if (frame.next < frame.node->children.size()) return enter(frame.node->children[frame.next++], false);
  const std::span<const Value> items(items_.data() + frame.start, items_.size() - frame.start);
  const Value list = Value::list(arena_.copy(items));
  items_.resize(frame.start);
  if (frame.via != nullptr) open_aliases_.erase(frame.via);
  frames_.pop_back();
  deliver(list);
  return true;
}

bool Decoder::step_map(Frame& frame) {
  if (frame.next < frame.node->children.size()) {
    const YamlNode* key = frame.node->children[frame.next];
    const YamlNode* value = frame.node->children[frame.next + 1];
    frame.next += 2;
    const bool merge_key = key->kind == YamlNode::Kind::Scalar && key->text == "<<" &&
                           (key->implicit || key->tag == "tag:yaml.org,2002:merge");
    if (merge_key) return merge(value);
    return map_key(key, frame.key) && enter(value, false);
  }
  if (frame.via != nullptr) open_aliases_.erase(frame.via);
  if (frame.merged) {
    frames_.pop_back();
    return true;
  }
  const Value map = close_map(frame);
  frames_.pop_back();
  deliver(map);
  return true;
}

bool Decoder::merge(const YamlNode* node) {
  const auto is_map = [](const YamlNode* n) {
    return n->kind == YamlNode::Kind::Map ||
           (n->kind == YamlNode::Kind::Alias && n->target->kind == YamlNode::Kind::Map);
  };
  if (is_map(node)) return enter(node, true);
  if (node->kind != YamlNode::Kind::List) return fail("map merge requires map or sequence of maps as the value");
  // From last to first, so that earlier ones win.
  frames_.push_back({.node = node,
                     .step = Step::MergeList,
                     .merged = true,
                     .owner = frames_.back().owner,
                     .next = node->children.size()});
  return true;
}

bool Decoder::step_merge(Frame& frame) {
  if (frame.next == 0) {
    frames_.pop_back();
    return true;
  }
  const YamlNode* node = frame.node->children[--frame.next];
  const YamlNode* map = node->kind == YamlNode::Kind::Alias ? node->target : node;
  if (map->kind != YamlNode::Kind::Map) return fail("map merge requires map or sequence of maps as the value");
  return enter(node, true);
}

bool Decoder::scalar(const YamlNode& node, Key& key) {
  key = {.scalar = {}, .text = node.text};
  if (node.tag.empty()) {
    if (node.implicit) key.scalar = resolve_yaml(node.text);
    return true;
  }
  if (node.tag == "tag:yaml.org,2002:binary") {
    std::string decoded(base64_decoded_size(node.text.size()), '\0');
    // Go's decoder skips line breaks.
    std::string packed;
    for (const char c : node.text) {
      if (c != '\n' && c != '\r') packed += c;
    }
    const std::optional<char*> end = base64_decode(packed, decoded.data());
    if (!end) return fail("!!binary value contains invalid base64 data");
    decoded.resize(static_cast<size_t>(*end - decoded.data()));
    key.text = arena_.copy(is_valid_utf8(decoded) ? decoded : replace_invalid_utf8(decoded));
    return true;
  }
  std::string message;
  return resolve_yaml(node.tag, node.text, key.scalar, message) || fail(std::move(message));
}

bool Decoder::map_key(const YamlNode* node, Key& key) {
  if (!count()) return false;
  const YamlNode* via = nullptr;
  if (!follow(node, via)) return false;
  if (via != nullptr) open_aliases_.erase(via);
  if (node->kind == YamlNode::Kind::Scalar) return scalar(*node, key);
  // The error message shows the decoded key. Each level of keys inside keys needs another decoder on the stack.
  constexpr int kMostInsideKeys = 32;
  if (inside_keys_ == kMostInsideKeys) return fail("exceeded max depth of keys inside keys");
  const YamlOptions default_options;
  Decoder inner(arena_, default_options, inside_keys_ + 1);
  const Result<Value> value = inner.decode(*node);
  if (!inner.yaml_problem_.empty()) {
    yaml_problem_ = std::move(inner.yaml_problem_);
    return false;
  }
  if (!value) return fail("invalid map key: " + value.error().message);
  constexpr size_t kMostText = 4096;
  return fail("invalid map key: " + go_syntax(*value, kMostText));
}

Value Decoder::value_of(const Key& key) {
  switch (key.scalar.kind) {
    case Kind::Null:
      return Value::null();
    case Kind::Bool:
      return Value::boolean(key.scalar.boolean);
    case Kind::Int:
      return Value::integer(key.scalar.integer);
    case Kind::Uint:
      return Value::number(static_cast<double>(key.scalar.unsigned_integer));
    case Kind::Float:
      if (!std::isfinite(key.scalar.number)) {
        const bool nan = std::isnan(key.scalar.number);
        return defect(std::string("json: unsupported value: ") + (nan                     ? "NaN"
                                                                  : key.scalar.number > 0 ? "+Inf"
                                                                                          : "-Inf"));
      }
      return after_json(key.scalar.number);
    default:
      return Value::string(key.text);
  }
}

void Decoder::set_entry(Frame& owner, const Key& key, Value value, uint32_t line) {
  constexpr size_t kFewEntries = 16;
  const size_t count = entries_.size() - owner.start;
  Entry* found = nullptr;
  if (count < kFewEntries) {
    for (size_t i = owner.start; i < entries_.size() && found == nullptr; ++i) {
      if (entries_[i].key == key) found = &entries_[i];
    }
  } else {
    if (owner.index == nullptr) {
      owner.index = std::make_unique<std::unordered_multimap<uint64_t, size_t>>();
      for (size_t i = owner.start; i < entries_.size(); ++i) owner.index->emplace(entries_[i].key.hash(), i);
    }
    const auto [from, to] = owner.index->equal_range(key.hash());
    for (auto at = from; at != to && found == nullptr; ++at) {
      if (entries_[at->second].key == key) found = &entries_[at->second];
    }
    if (found == nullptr) owner.index->emplace(key.hash(), entries_.size());
  }
  if (found == nullptr) {
    entries_.push_back({key, value});
    return;
  }
  found->value = value;
  if (options_.duplicates != nullptr) {
    options_.duplicates->push_back("line " + std::to_string(line) + ": key " + go_syntax(key) + " already set in map");
  }
}

std::string Decoder::key_text(const Entry& entry) {
  switch (entry.key.scalar.kind) {
    case Kind::Bool:
      return entry.key.scalar.boolean ? "true" : "false";
    case Kind::Int:
      return std::to_string(entry.key.scalar.integer);
    case Kind::Float:
      return float_key_text(entry.key.scalar.number);
    default:
      break;
  }
  return {};
}

Value Decoder::close_map(const Frame& frame) {
  members_.clear();
  for (size_t i = frame.start; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const Kind kind = entry.key.scalar.kind;
    if (kind == Kind::Null || kind == Kind::Uint) {
      constexpr size_t kMostText = 4096;
      const std::string message = std::string(kKeyDefect) + (kind == Kind::Null ? "%!s(<nil>)" : "uint64") +
                                  ", key: " + go_syntax(entry.key) +
                                  ", value: " + (entry.value.is_null() ? "<nil>" : go_syntax(entry.value, kMostText));
      entries_.resize(frame.start);
      return defect(message);
    }
    const bool is_text = kind == Kind::String || kind == Kind::Timestamp || kind == Kind::Merge;
    members_.push_back({is_text ? entry.key.text : arena_.copy(key_text(entry)), entry.value});
  }
  entries_.resize(frame.start);
  std::stable_sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  // Keys of different types may print alike: one of them is kept.
  const auto end =
      std::unique(members_.begin(), members_.end(), [](const Member& a, const Member& b) { return a.key == b.key; });
  members_.erase(end, members_.end());
  return members_.empty() ? Value::empty_map() : Value::map(arena_, members_);
}

// %#v of a key.
std::string Decoder::go_syntax(const Key& key) {
  switch (key.scalar.kind) {
    case Kind::Null:
      return "<nil>";
    case Kind::Bool:
      return key.scalar.boolean ? "true" : "false";
    case Kind::Int:
      return std::to_string(key.scalar.integer);
    case Kind::Uint: {
      char digits[17];
      const auto end = std::to_chars(digits, digits + sizeof digits, key.scalar.unsigned_integer, 16).ptr;
      return "0x" + std::string(digits, end);
    }
    case Kind::Float:
      if (!std::isfinite(key.scalar.number))
        return std::isnan(key.scalar.number) ? "NaN" : key.scalar.number > 0 ? "+Inf" : "-Inf";
      return float_text(key.scalar.number, FloatText::Go);
    default:
      return go_quote(key.text);
  }
}

// %#v of the content of a key or a value, truncated to a readable length.
std::string Decoder::go_syntax(const Value& value, size_t budget) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return "interface {}(nil)";
    case Value::Kind::Bool:
      return value.as_bool() ? "true" : "false";
    case Value::Kind::Int:
      return std::to_string(value.as_int());
    case Value::Kind::Double:
      return float_text(value.as_double(), FloatText::Go);
    case Value::Kind::String:
    case Value::Kind::Raw:
      return go_quote(value.is_string() ? value.as_string() : value.raw_json());
    case Value::Kind::List:
    case Value::Kind::Map:
      break;
  }
  std::string out = value.is_list() ? "[]interface {}{" : "map[interface {}]interface {}{";
  const size_t count = value.count();
  for (size_t i = 0; i < count && out.size() < budget; ++i) {
    if (i > 0) out += ", ";
    const size_t left = budget - out.size();
    if (value.is_map()) {
      out += go_quote(value.members()[i].key) + ":" + go_syntax(value.members()[i].value, left / 2);
    } else {
      out += go_syntax(value.items()[i], left / 2);
    }
  }
  return out + "}";
}

// --- Fast path for JSON, which is most of what is sent as YAML: every apply by a client is ---

// Non-ASCII text may contain line breaks, a byte order mark, and characters and bytes that YAML rejects.
bool has_plain_runes(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<signed char>(text[at]) >= 0) {
      ++at;
      continue;
    }
    const Rune rune = decode_rune(text, at);
    if (!rune.valid || rune.value < 0xa0 || rune.value == 0x2028 || rune.value == 0x2029 || rune.value == 0xfeff ||
        rune.value == 0xfffe || rune.value == 0xffff) {
      return false;
    }
    at += rune.length;
  }
  return true;
}

// Whether YAML accepts all of these characters, with the same meaning as in JSON.
bool has_plain_text(std::string_view source) {
  // DEL is rejected; tabs cannot be used for indentation.
  unsigned odd = 0;
  unsigned bits = 0;
  for (const char c : source) {
    odd |= static_cast<unsigned>(c == 0x7f) | static_cast<unsigned>(c == '\t') | static_cast<unsigned>(c == '\r');
    bits |= static_cast<unsigned char>(c);
  }
  return odd == 0 && (bits < 0x80 || has_plain_runes(source));
}

// Builds the same tree from JSON as the YAML reader: maps sorted by key, integral floats as integers. Detects
// everything that YAML reads differently or rejects; if there is nothing, the tree is identical.
class JsonAsYaml : public JsonTree {
 public:
  using JsonTree::JsonTree;

  JsonTake key(const JsonText& text) {
    // A key's colon must be on the same line, and not too far away.
    constexpr size_t kLongestKey = 1000;
    const char* const after = text.raw.data() + text.raw.size() + 1;
    if (*after != ':' || text.raw.size() + 2 > kLongestKey) differs_ = true;
    check_escapes(text);
    return JsonTree::key(text);
  }
  void string(const JsonText& text) {
    check_escapes(text);
    JsonTree::string(text);
  }
  bool number(std::string_view text) {
    const std::optional<double> parsed = parse_float(text);
    if (!parsed) return false;
    add(after_json(*parsed));
    return true;
  }
  void begin_map() {
    JsonTree::begin_map();
    check_depth();
  }
  void begin_list() {
    JsonTree::begin_list();
    check_depth();
  }
  void end_map() {
    const std::span<Member> members = open_members();
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
    const auto same_key = [](const Member& a, const Member& b) { return a.key == b.key; };
    if (std::adjacent_find(members.begin(), members.end(), same_key) != members.end()) differs_ = true;
    close_map();
  }

  bool differs() const { return differs_; }

 private:
  // Escaped slashes and surrogates are errors in YAML.
  void check_escapes(const JsonText& text) {
    if (!text.escaped) return;
    for (size_t at = text.raw.find('\\'); at != std::string_view::npos; at = text.raw.find('\\', at + 2)) {
      const char* const escape = text.raw.data() + at + 1;
      if (escape[0] == '/' || (escape[0] == 'u' && (escape[1] | 0x20) == 'd' && escape[2] > '7')) differs_ = true;
    }
  }
  // Deeper JSON is left to the YAML reader, which enforces the depth limit.
  void check_depth() {
    constexpr size_t kShallow = 500;
    if (depth() > kShallow) differs_ = true;
  }

  bool differs_ = false;
};

}  // namespace

Result<Value> decode_yaml(Arena& arena, std::string_view source, const YamlOptions& options) {
  if (source.size() > UINT32_MAX) return bad_request("YAML of more than 4 GiB");
  if (source.starts_with('{') && has_plain_text(source)) {
    const JsonOptions plain;
    JsonAsYaml tree(arena, plain, source.size());
    if (JsonParser(source, tree).parse_document() && !tree.differs()) return tree.root();
  }
  const YamlParse parsed = parse_yaml_nodes(arena, source);
  if (parsed.problem) return bad_request("yaml: " + *parsed.problem);
  if (parsed.root == nullptr) return Value::null();
  return Decoder(arena, options).decode(*parsed.root);
}

Result<Document> parse_yaml(std::string source, const YamlOptions& options) {
  Document document(std::move(source));
  Result<Value> root = decode_yaml(document.arena(), document.source(), options);
  if (!root) return root.take_error();
  document.set_root(*root);
  return document;
}

Result<std::vector<std::string_view>> split_documents(std::string_view source) {
  std::vector<std::string_view> documents;
  const size_t first = static_cast<size_t>(std::find_if_not(source.begin(), source.end(), is_space) - source.begin());
  if (first < source.size() && source[first] == '{') {
    std::string_view rest = source.substr(first);
    while (!rest.empty()) {
      JsonIgnore ignore;
      JsonParser parser(rest, ignore);
      // Invalid JSON is returned as a whole: the reader will report the error.
      if (!parser.parse_value()) {
        documents.push_back(rest);
        break;
      }
      const auto length = static_cast<size_t>(parser.position() - rest.data());
      documents.push_back(rest.substr(0, length));
      rest.remove_prefix(length);
      while (!rest.empty() && is_space(rest[0])) rest.remove_prefix(1);
      if (rest.starts_with("---")) {
        // JSON in a YAML stream: what follows is a stream again.
        Result<std::vector<std::string_view>> others = split_documents(rest);
        if (!others) return others.take_error();
        documents.insert(documents.end(), others->begin(), others->end());
        break;
      }
    }
    return documents;
  }
  // Whether it contains anything but white space and comments.
  const auto has_content = [&](std::string_view text) {
    while (!text.empty()) {
      const size_t line_end = std::min(text.find('\n'), text.size() - 1);
      std::string_view line = text.substr(0, line_end + 1);
      text.remove_prefix(line_end + 1);
      while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
      if (!line.empty() && line[0] != '#') return true;
    }
    return false;
  };
  size_t start = 0;
  size_t at = 0;
  while (at < source.size()) {
    const size_t line_end = std::min(source.find('\n', at), source.size() - 1) + 1;
    std::string_view line = source.substr(at, line_end - at);
    if (line.starts_with("---")) {
      const std::string_view after = trim(line.substr(3));
      if (!after.empty() && after[0] != '#') {
        return bad_request("invalid Yaml document separator: " + std::string(after));
      }
      if (has_content(source.substr(start, at - start))) documents.push_back(source.substr(start, at - start));
      start = line_end;
    }
    at = line_end;
  }
  if (has_content(source.substr(start))) documents.push_back(source.substr(start));
  return documents;
}

}  // namespace holdfast::codec
