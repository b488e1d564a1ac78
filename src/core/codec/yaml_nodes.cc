#include "codec/yaml_nodes.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "codec/json.h"
#include "codec/yaml_scalar.h"
#include "codec/yaml_scanner.h"

namespace holdfast::codec {
namespace {

using Type = YamlToken::Type;

template <class... Types>
bool is_one_of(Type type, Types... types) {
  return ((type == types) || ...);
}

// Builds nodes from tokens: YAML 1.1's grammar with an explicit stack instead of recursion.
class Parser {
 public:
  Parser(Arena& arena, std::string_view source) : arena_(arena), scanner_(arena, source) {}

  YamlParse parse() {
    if (!document() && result_.problem == std::nullopt) result_.problem = scanner_.problem();
    if (result_.problem) result_.root = nullptr;
    return result_;
  }

 private:
  enum class State : uint8_t {
    BlockList,
    IndentlessList,  // Dashes at the column of their key: no token closes it.
    BlockMapKey,
    BlockMapValue,
    FlowList,
    FlowPairKey,  // A single pair in a flow list, [a: b].
    FlowPairValue,
    FlowPairEnd,
    FlowMapKey,
    FlowMapValue,
  };
  struct Open {
    State state;
    YamlNode* node;
    size_t start;  // Position of its first child on the stack.
    YamlMark mark;
    bool first = true;
  };
  enum class Context : uint8_t { Block, BlockOrIndentless, Flow };

  bool document();
  bool directives();
  bool step();
  // Takes the current token, an indicator, and adds the node after it; an empty one at `mark` if one of `ends` follows.
  template <class... Types>
  bool node_or_empty(Context context, const YamlMark& mark, Types... ends) {
    YamlToken token;
    if (!take_and_peek(token)) return false;
    if (!is_one_of(token.type, ends...)) return node(context);
    add_empty(mark);
    return true;
  }
  bool step_block_list(Open& open);
  bool step_indentless_list(Open& open);
  bool step_block_key(Open& open);
  bool step_block_value(Open& open);
  bool step_flow_list(Open& open);
  bool step_flow_pair(Open& open);
  bool step_flow_key(Open& open);
  bool step_flow_value(Open& open);
  bool node(Context context);
  bool tag_of(const YamlToken& token, const YamlMark& start, std::string_view& tag);

  // The next token, by value: looking further ahead may move the queue.
  bool peek(YamlToken& token) {
    const YamlToken* next = scanner_.peek();
    if (next == nullptr) return false;
    token = *next;
    return true;
  }
  bool take_and_peek(YamlToken& token) {
    scanner_.take();
    return peek(token);
  }
  // go-yaml names the line of the problem, counted from 0, or that of the context if the problem is on the first line.
  bool fail(std::string_view problem, const YamlMark& mark, const YamlMark& context = {}) {
    const size_t line = mark.line != 0 ? mark.line : context.line;
    result_.problem = (line == 0 ? "" : "line " + std::to_string(line) + ": ") + std::string(problem);
    return false;
  }

  YamlNode* make(YamlNode::Kind kind, const YamlMark& mark, std::string_view anchor = {}) {
    auto* made = arena_.make<YamlNode>();
    made->kind = kind;
    made->line = static_cast<uint32_t>(mark.line + 1);
    if (!anchor.empty()) anchors_[anchor] = made;
    return made;
  }
  void add(const YamlNode* child) {
    if (open_.empty()) {
      result_.root = child;
    } else {
      children_.push_back(child);
    }
  }
  void add_empty(const YamlMark& mark) {
    YamlNode* empty = make(YamlNode::Kind::Scalar, mark);
    empty->implicit = true;
    add(empty);
  }
  void open(State state, YamlNode* opened, const YamlMark& mark) {
    open_.push_back({state, opened, children_.size(), mark});
  }
  void close() {
    const Open top = open_.back();
    open_.pop_back();
    top.node->children =
        arena_.copy(std::span<const YamlNode* const>(children_.data() + top.start, children_.size() - top.start));
    children_.resize(top.start);
    add(top.node);
  }

  Arena& arena_;
  YamlScanner scanner_;
  YamlParse result_;
  std::vector<Open> open_;
  std::vector<const YamlNode*> children_;
  std::unordered_map<std::string_view, const YamlNode*, KeyHash> anchors_;
  std::unordered_map<std::string_view, std::string_view, KeyHash> tag_prefixes_;
};

bool Parser::document() {
  YamlToken token;
  if (!peek(token) || !take_and_peek(token)) return false;  // The start of the stream.
  if (token.type == Type::StreamEnd) return true;
  const bool is_explicit = is_one_of(token.type, Type::Version, Type::TagDirective, Type::DocumentStart);
  if (!directives() || !peek(token)) return false;
  if (is_explicit) {
    if (token.type != Type::DocumentStart) return fail("did not find expected <document start>", token.start);
    if (!take_and_peek(token)) return false;
    if (is_one_of(token.type, Type::Version, Type::TagDirective, Type::DocumentStart, Type::DocumentEnd,
                  Type::StreamEnd)) {
      add_empty(token.start);
      return true;
    }
  }
  if (!node(Context::Block)) return false;
  while (!open_.empty()) {
    if (!step()) return false;
  }
  // go-yaml also looks at the token that ends the document.
  return peek(token);
}

bool Parser::directives() {
  YamlToken token;
  if (!peek(token)) return false;
  bool has_version = false;
  while (is_one_of(token.type, Type::Version, Type::TagDirective)) {
    if (token.type == Type::Version) {
      if (has_version) return fail("found duplicate %YAML directive", token.start);
      if (token.major != 1 || token.minor != 1) return fail("found incompatible YAML document", token.start);
      has_version = true;
    } else if (!tag_prefixes_.emplace(token.value, token.suffix).second) {
      return fail("found duplicate %TAG directive", token.start);
    }
    if (!take_and_peek(token)) return false;
  }
  tag_prefixes_.emplace("!", "!");
  tag_prefixes_.emplace("!!", kYamlTagPrefix);
  return true;
}

bool Parser::tag_of(const YamlToken& token, const YamlMark& start, std::string_view& tag) {
  if (token.value.empty()) {
    tag = token.suffix;
    return true;
  }
  const auto prefix = tag_prefixes_.find(token.value);
  if (prefix == tag_prefixes_.end()) return fail("found undefined tag handle", token.start, start);
  tag = arena_.copy(std::string(prefix->second) + std::string(token.suffix));
  return true;
}

// A node: its anchor and tag, then its content. Collections are opened here and read by the steps.
bool Parser::node(Context context) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type == Type::Alias) {
    YamlNode* alias = make(YamlNode::Kind::Alias, token.start);
    alias->text = token.value;
    const auto target = anchors_.find(token.value);
    if (target == anchors_.end()) {
      result_.problem = "unknown anchor '" + std::string(token.value) + "' referenced";
      return false;
    }
    alias->target = target->second;
    scanner_.take();
    add(alias);
    return true;
  }
  const YamlMark start = token.start;
  std::string_view anchor;
  YamlToken tag_token;
  bool has_tag = false;
  for (int i = 0; i < 2; ++i) {
    if (token.type == Type::Anchor && anchor.empty()) {
      anchor = token.value;
    } else if (token.type == Type::Tag && !has_tag) {
      has_tag = true;
      tag_token = token;
    } else {
      break;
    }
    if (!take_and_peek(token)) return false;
  }
  std::string_view tag;
  if (has_tag && !tag_of(tag_token, start, tag)) return false;
  if (context == Context::BlockOrIndentless && token.type == Type::BlockEntry) {
    open(State::IndentlessList, make(YamlNode::Kind::List, start, anchor), token.start);
    return true;
  }
  switch (token.type) {
    case Type::Scalar: {
      YamlNode* scalar = make(YamlNode::Kind::Scalar, start, anchor);
      scalar->implicit = (tag.empty() && token.plain) || tag == "!";
      scalar->tag = tag;
      scalar->text = token.value;
      scanner_.take();
      add(scalar);
      return true;
    }
    case Type::FlowListStart:
      open(State::FlowList, make(YamlNode::Kind::List, start, anchor), token.start);
      scanner_.take();
      return true;
    case Type::FlowMapStart:
      open(State::FlowMapKey, make(YamlNode::Kind::Map, start, anchor), token.start);
      scanner_.take();
      return true;
    case Type::BlockListStart:
      if (context == Context::Flow) break;
      open(State::BlockList, make(YamlNode::Kind::List, start, anchor), token.start);
      scanner_.take();
      return true;
    case Type::BlockMapStart:
      if (context == Context::Flow) break;
      open(State::BlockMapKey, make(YamlNode::Kind::Map, start, anchor), token.start);
      scanner_.take();
      return true;
    default:
      break;
  }
  if (!anchor.empty() || !tag.empty()) {
    YamlNode* empty = make(YamlNode::Kind::Scalar, start, anchor);
    empty->implicit = tag.empty();
    empty->tag = tag;
    add(empty);
    return true;
  }
  return fail("did not find expected node content", token.start, start);
}

bool Parser::step() {
  Open& open = open_.back();
  switch (open.state) {
    case State::BlockList:
      return step_block_list(open);
    case State::IndentlessList:
      return step_indentless_list(open);
    case State::BlockMapKey:
      return step_block_key(open);
    case State::BlockMapValue:
      return step_block_value(open);
    case State::FlowList:
      return step_flow_list(open);
    case State::FlowPairKey:
    case State::FlowPairValue:
    case State::FlowPairEnd:
      return step_flow_pair(open);
    case State::FlowMapKey:
      return step_flow_key(open);
    case State::FlowMapValue:
      return step_flow_value(open);
  }
  return false;
}

bool Parser::step_block_list(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type == Type::BlockEntry) {
    return node_or_empty(Context::Block, token.end, Type::BlockEntry, Type::BlockEnd);
  }
  if (token.type != Type::BlockEnd) return fail("did not find expected '-' indicator", token.start, open.mark);
  scanner_.take();
  close();
  return true;
}

bool Parser::step_indentless_list(Open&) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type != Type::BlockEntry) {
    close();
    return true;
  }
  return node_or_empty(Context::Block, token.end, Type::BlockEntry, Type::Key, Type::Value, Type::BlockEnd);
}

bool Parser::step_block_key(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type == Type::Key) {
    open.state = State::BlockMapValue;
    return node_or_empty(Context::BlockOrIndentless, token.end, Type::Key, Type::Value, Type::BlockEnd);
  }
  if (token.type != Type::BlockEnd) return fail("did not find expected key", token.start, open.mark);
  scanner_.take();
  close();
  return true;
}

bool Parser::step_block_value(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  open.state = State::BlockMapKey;
  if (token.type == Type::Value) {
    return node_or_empty(Context::BlockOrIndentless, token.end, Type::Key, Type::Value, Type::BlockEnd);
  }
  add_empty(token.start);
  return true;
}

bool Parser::step_flow_list(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type != Type::FlowListEnd) {
    if (!open.first) {
      if (token.type != Type::FlowEntry) return fail("did not find expected ',' or ']'", token.start, open.mark);
      if (!take_and_peek(token)) return false;
    }
    open.first = false;
    if (token.type == Type::Key) {
      YamlNode* pair = make(YamlNode::Kind::Map, token.start);
      scanner_.take();
      this->open(State::FlowPairKey, pair, token.start);
      return true;
    }
    if (token.type != Type::FlowListEnd) return node(Context::Flow);
  }
  scanner_.take();
  close();
  return true;
}

bool Parser::step_flow_pair(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  switch (open.state) {
    case State::FlowPairKey:
      open.state = State::FlowPairValue;
      if (!is_one_of(token.type, Type::Value, Type::FlowEntry, Type::FlowListEnd)) return node(Context::Flow);
      // go-yaml consumes the token here, whatever it is.
      scanner_.take();
      add_empty(token.end);
      return true;
    case State::FlowPairValue:
      open.state = State::FlowPairEnd;
      if (token.type == Type::Value) {
        return node_or_empty(Context::Flow, token.start, Type::FlowEntry, Type::FlowListEnd);
      }
      add_empty(token.start);
      return true;
    default:
      close();
      return true;
  }
}

bool Parser::step_flow_key(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  if (token.type != Type::FlowMapEnd) {
    if (!open.first) {
      if (token.type != Type::FlowEntry) return fail("did not find expected ',' or '}'", token.start, open.mark);
      if (!take_and_peek(token)) return false;
    }
    open.first = false;
    if (token.type == Type::Key) {
      open.state = State::FlowMapValue;
      if (!take_and_peek(token)) return false;
      if (!is_one_of(token.type, Type::Value, Type::FlowEntry, Type::FlowMapEnd)) return node(Context::Flow);
      add_empty(token.start);
      return true;
    }
    if (token.type != Type::FlowMapEnd) {
      // A key without a value: what follows is not parsed as its value.
      open.state = State::FlowMapValue;
      open.first = true;
      return node(Context::Flow);
    }
  }
  scanner_.take();
  close();
  return true;
}

bool Parser::step_flow_value(Open& open) {
  YamlToken token;
  if (!peek(token)) return false;
  open.state = State::FlowMapKey;
  const bool without_value = open.first;
  open.first = false;
  if (!without_value && token.type == Type::Value) {
    if (!take_and_peek(token)) return false;
    if (!is_one_of(token.type, Type::FlowEntry, Type::FlowMapEnd)) return node(Context::Flow);
  }
  add_empty(token.start);
  return true;
}

}  // namespace

YamlParse parse_yaml_nodes(Arena& arena, std::string_view source) { return Parser(arena, source).parse(); }

}  // namespace holdfast::codec
