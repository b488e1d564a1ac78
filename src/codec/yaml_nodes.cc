// go-yaml v2 is a port of libyaml, so libyaml itself accepts and refuses the same texts with the same words. What
// go-yaml changed is made up for here.
#include "codec/yaml_nodes.h"

#include <yaml.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "codec/json.h"

namespace holdfast::codec {
namespace {

// libyaml looks at every open flow level for each token. Bodies made to abuse that are refused as too deep; an honest
// one stays far below.
constexpr uint64_t kMostWork = 300'000'000;

class Parser {
 public:
  Parser(Arena& arena, std::string_view source)
      : arena_(arena), source_(source), has_escaped_slash_(source.find("\\/") != std::string_view::npos) {
    yaml_parser_initialize(&parser_);
    // go-yaml reads nothing as an empty line.
    if (source.empty()) source = "\n";
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(source.data()), source.size());
  }
  ~Parser() { yaml_parser_delete(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  YamlParse parse();

 private:
  struct Open {
    YamlNode* node;
    size_t start;  // First child on the stack.
  };

  bool next(yaml_event_t& event);
  bool take(const yaml_event_t& event);
  bool fail(std::string problem) {
    result_.problem = std::move(problem);
    return false;
  }
  std::string failure() const;
  bool has_escaped_slash(const yaml_event_t& event);

  YamlNode* make(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor, const yaml_char_t* tag);
  void add(const YamlNode* node) {
    if (open_.empty()) {
      result_.root = node;
    } else {
      children_.push_back(node);
    }
  }
  bool open(YamlNode* node) {
    open_.push_back({node, children_.size()});
    return open_.size() <= kMaxDepth || fail("exceeded max depth of 10000");
  }
  void close() {
    const Open top = open_.back();
    open_.pop_back();
    top.node->children =
        arena_.copy(std::span<const YamlNode* const>(children_.data() + top.start, children_.size() - top.start));
    children_.resize(top.start);
    add(top.node);
  }
  std::string_view copy(const yaml_char_t* text) {
    return text == nullptr ? std::string_view{} : arena_.copy(std::string_view(reinterpret_cast<const char*>(text)));
  }

  Arena& arena_;
  yaml_parser_t parser_;
  YamlParse result_;
  std::string_view source_;
  bool has_escaped_slash_;
  size_t seen_bytes_ = 0;  // Where in the source the character number `seen_runes_` is.
  size_t seen_runes_ = 0;
  bool ended_ = false;
  uint64_t work_ = 0;
  std::vector<Open> open_;
  std::vector<const YamlNode*> children_;
  std::unordered_map<std::string_view, const YamlNode*> anchors_;
};

YamlParse Parser::parse() {
  while (!ended_) {
    yaml_event_t event;
    if (!next(event)) break;
    const bool good = take(event);
    yaml_event_delete(&event);
    if (!good) break;
  }
  if (result_.problem) result_.root = nullptr;
  return result_;
}

bool Parser::next(yaml_event_t& event) {
  if (!yaml_parser_parse(&parser_, &event)) return fail(failure());
  work_ += open_.size() + 1;
  if (work_ > kMostWork) {
    yaml_event_delete(&event);
    return fail("exceeded max depth of 10000");
  }
  return true;
}

// Where go-yaml says the problem is: lines count from 0 except in the scanner's errors, and line 0 is not told.
std::string Parser::failure() const {
  size_t line = 0;
  const bool reader = parser_.error == YAML_READER_ERROR;
  if (!reader && parser_.problem_mark.line != 0) {
    line = parser_.problem_mark.line + (parser_.error == YAML_SCANNER_ERROR ? 1 : 0);
  } else if (!reader) {
    line = parser_.context_mark.line;
  }
  const std::string problem = parser_.problem == nullptr ? "unknown problem parsing YAML content" : parser_.problem;
  return (line == 0 ? "" : "line " + std::to_string(line) + ": ") + problem;
}

YamlNode* Parser::make(YamlNode::Kind kind, const yaml_event_t& event, const yaml_char_t* anchor,
                       const yaml_char_t* tag) {
  auto* node = arena_.make<YamlNode>();
  node->kind = kind;
  node->line = static_cast<uint32_t>(event.start_mark.line + 1);
  node->tag = copy(tag);
  if (anchor != nullptr) anchors_[copy(anchor)] = node;
  return node;
}

// libyaml has learnt the escape \/ of JSON since go-yaml was made from it. Marks count characters.
bool Parser::has_escaped_slash(const yaml_event_t& event) {
  if (!has_escaped_slash_ || parser_.encoding != YAML_UTF8_ENCODING) return false;
  if (seen_bytes_ == 0 && source_.starts_with("\xef\xbb\xbf")) seen_bytes_ = 3;
  const auto advance = [this] {
    ++seen_bytes_;
    while (seen_bytes_ < source_.size() && (source_[seen_bytes_] & '\xc0') == '\x80') ++seen_bytes_;
    ++seen_runes_;
  };
  while (seen_runes_ < event.start_mark.index && seen_bytes_ < source_.size()) advance();
  while (seen_runes_ < event.end_mark.index && seen_bytes_ < source_.size()) {
    const bool escape = source_[seen_bytes_] == '\\';
    advance();
    if (!escape || seen_bytes_ >= source_.size()) continue;
    if (source_[seen_bytes_] == '/') return true;
    advance();
  }
  return false;
}

bool Parser::take(const yaml_event_t& event) {
  switch (event.type) {
    case YAML_DOCUMENT_START_EVENT: {
      const yaml_version_directive_t* version = event.data.document_start.version_directive;
      // libyaml has learnt to take 1.2 since.
      if (version != nullptr && (version->major != 1 || version->minor != 1)) {
        return fail("found incompatible YAML document");
      }
      return true;
    }
    case YAML_DOCUMENT_END_EVENT:
    case YAML_STREAM_END_EVENT:
      ended_ = true;
      return true;
    case YAML_ALIAS_EVENT: {
      YamlNode* node = make(YamlNode::Kind::Alias, event, nullptr, nullptr);
      node->text = copy(event.data.alias.anchor);
      const auto found = anchors_.find(node->text);
      if (found == anchors_.end()) return fail("unknown anchor '" + std::string(node->text) + "' referenced");
      node->target = found->second;
      add(node);
      return true;
    }
    case YAML_SCALAR_EVENT: {
      const auto& scalar = event.data.scalar;
      if (scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE && has_escaped_slash(event)) {
        const size_t line = event.start_mark.line;
        return fail((line == 0 ? "" : "line " + std::to_string(line + 1) + ": ") + "found unknown escape character");
      }
      YamlNode* node = make(YamlNode::Kind::Scalar, event, scalar.anchor, scalar.tag);
      node->text = arena_.copy(std::string_view(reinterpret_cast<const char*>(scalar.value), scalar.length));
      node->implicit = scalar.plain_implicit != 0;
      add(node);
      return true;
    }
    case YAML_SEQUENCE_START_EVENT:
      return open(make(YamlNode::Kind::List, event, event.data.sequence_start.anchor, event.data.sequence_start.tag));
    case YAML_MAPPING_START_EVENT:
      return open(make(YamlNode::Kind::Map, event, event.data.mapping_start.anchor, event.data.mapping_start.tag));
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      close();
      return true;
    default:
      return true;
  }
}

}  // namespace

YamlParse parse_yaml_nodes(Arena& arena, std::string_view source) { return Parser(arena, source).parse(); }

}  // namespace holdfast::codec
