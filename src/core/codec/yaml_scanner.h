// Splits YAML text into tokens like go-yaml v2: YAML 1.1 with that library's own limits and messages. Private to the
// module.
//
// A key is recognized only when its colon is found. Tokens are therefore held back as long as the first of them may
// still be the start of a key: at most 1024 characters on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"

namespace holdfast::codec {

struct YamlMark {
  size_t index = 0;  // Characters from the start.
  size_t line = 0;
  size_t column = 0;
};

struct YamlToken {
  enum class Type : uint8_t {
    StreamStart,
    StreamEnd,
    Version,       // %YAML; major and minor.
    TagDirective,  // %TAG; value is the handle, suffix the prefix it represents.
    DocumentStart,
    DocumentEnd,
    BlockListStart,
    BlockMapStart,
    BlockEnd,
    FlowListStart,
    FlowListEnd,
    FlowMapStart,
    FlowMapEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias,
    Anchor,
    Tag,  // value is the handle, suffix the rest.
    Scalar,
  };
  Type type = Type::StreamStart;
  bool plain = false;  // Of a scalar.
  uint8_t major = 0;
  uint8_t minor = 0;
  YamlMark start;
  YamlMark end;
  std::string_view value;
  std::string_view suffix;
};

class YamlScanner {
 public:
  // Strings of tokens are in `arena`.
  YamlScanner(Arena& arena, std::string_view source);

  // The next token, without consuming it; null on error.
  const YamlToken* peek();
  void take();

  // The error message, with the line that go-yaml names, without "yaml: ".
  const std::string& problem() const { return problem_; }

 private:
  struct SimpleKey {
    bool possible = false;
    bool required = false;  // Must be a key.
    size_t token = 0;       // Number of the token that it would start with.
    YamlMark mark;
  };

  bool load(std::string_view source);
  bool load_utf16(std::string_view source, bool little_endian);
  bool fetch_enough();
  bool fetch();
  bool skip_to_token();

  bool save_simple_key();
  bool remove_simple_key();
  bool simple_key_valid(SimpleKey& key, bool& valid);
  bool roll_indent(int64_t column, int64_t number, YamlToken::Type type, const YamlMark& mark);
  void unroll_indent(int64_t column);

  bool fetch_stream_end();
  bool fetch_directive();
  bool fetch_document_mark(YamlToken::Type type);
  bool append_indicator(YamlToken::Type type);
  bool begin_block(YamlToken::Type start, std::string_view refusal);
  bool fetch_flow_start(YamlToken::Type type);
  bool fetch_flow_end(YamlToken::Type type);
  bool fetch_flow_entry();
  bool fetch_block_entry();
  bool fetch_key();
  bool fetch_value();
  bool fetch_anchor(YamlToken::Type type);
  bool fetch_tag();
  bool fetch_block_scalar(bool literal);
  bool fetch_quoted(bool single);
  bool fetch_plain();

  bool scan_version_number(const YamlMark& start, uint8_t& number);
  bool scan_tag_handle(bool directive, const YamlMark& start, std::string& handle);
  bool scan_tag_uri(bool directive, std::string_view head, const YamlMark& start, std::string& uri);
  bool scan_escape(const YamlMark& start, std::string& text);
  bool scan_block_breaks(size_t& indent, std::string& breaks, const YamlMark& start);

  // --- characters ---
  unsigned char at(size_t offset = 0) const { return static_cast<unsigned char>(p_[offset]); }
  bool is_z() const { return *p_ == 0; }
  bool is_blank(size_t offset = 0) const { return p_[offset] == ' ' || p_[offset] == '\t'; }
  bool is_break(size_t offset = 0) const {
    const unsigned char c = at(offset);
    if (c == '\n' || c == '\r') return true;
    if (c < 0xc2) return false;
    return (c == 0xc2 && at(offset + 1) == 0x85) ||
           (c == 0xe2 && at(offset + 1) == 0x80 && (at(offset + 2) | 1) == 0xa9);
  }
  bool is_breakz(size_t offset = 0) const { return p_[offset] == 0 || is_break(offset); }
  bool is_blankz(size_t offset = 0) const { return is_blank(offset) || is_breakz(offset); }
  bool is_document_mark(char c) const {
    return mark_.column == 0 && p_[0] == c && p_[1] == c && p_[2] == c && is_blankz(3);
  }
  static size_t width(unsigned char c) { return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4; }
  void skip() {
    ++mark_.index;
    ++mark_.column;
    p_ += width(at());
  }
  void skip_line();
  void read(std::string& to) {
    to.append(p_, width(at()));
    skip();
  }
  void read_line(std::string& to);
  void skip_blanks() {
    while (is_blank()) skip();
  }
  void skip_comment() {
    if (*p_ != '#') return;
    while (!is_breakz()) skip();
  }
  // False if the reader rejected the next characters.
  bool readable() { return limit_ == nullptr || p_ + 4 <= limit_ || refuse_input(); }
  bool refuse_input();

  bool fail(const YamlMark& context, std::string_view problem);
  void append(YamlToken token) { tokens_.push_back(token); }
  void append(YamlToken::Type type, const YamlMark& start, std::string_view value = {}, std::string_view suffix = {});
  size_t next_number() const { return taken_ + tokens_.size() - head_; }

  Arena& arena_;
  const char* p_ = nullptr;      // Zero-terminated, so that lookahead needs no bounds checks.
  const char* limit_ = nullptr;  // Start of the input that the reader rejects, or null.
  std::string reader_problem_;
  YamlMark mark_;
  std::vector<YamlToken> tokens_;
  size_t head_ = 0;
  size_t taken_ = 0;
  bool started_ = false;
  bool enough_ = false;
  bool key_allowed_ = false;
  size_t flow_level_ = 0;
  int64_t indent_ = -1;
  std::vector<int64_t> indents_;
  std::vector<SimpleKey> simple_keys_;                // One per flow level.
  std::unordered_map<size_t, size_t> keys_by_token_;  // Token number to level.
  std::string problem_;
};

}  // namespace holdfast::codec
