#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/json_error.h"
#include "codec/json_tree.h"

namespace holdfast::codec {
namespace {

uint32_t value_of_four(const char* digits) {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) code = code * 16 + static_cast<uint32_t>(hex_value(digits[i]));
  return code;
}

constexpr size_t kUnescapeSlack = 16;

// Decodes escapes; the result is never longer than the source. `to` must have kUnescapeSlack bytes beyond that.
char* unescape_to(std::string_view raw, char* to) {
  const char* p = raw.data();
  const char* const end = p + raw.size();
  while (p != end) {
    // Runs between escapes are short (keys inside FieldsV1), so whole vectors are copied and the excess is overwritten.
    if (end - p >= 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
      const auto stops = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
      const int run = stops == 0 ? 16 : std::countr_zero(stops);
      p += run;
      to += run;
      if (stops == 0) continue;
    } else if (*p != '\\') {
      *to++ = *p++;
      continue;
    }
    const char kind = p[1];
    p += 2;
    switch (kind) {
      case 'b':
        *to++ = '\b';
        break;
      case 'f':
        *to++ = '\f';
        break;
      case 'n':
        *to++ = '\n';
        break;
      case 'r':
        *to++ = '\r';
        break;
      case 't':
        *to++ = '\t';
        break;
      case 'u': {
        uint32_t code = value_of_four(p);
        p += 4;
        if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
          const uint32_t low = value_of_four(p + 2);
          if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
          }
        }
        to = encode_rune(code, to);
        break;
      }
      default:
        *to++ = kind;
    }
  }
  return to;
}

// Walks valid JSON again to report duplicate keys, in the order in which Kubernetes finds them.
class RepeatedKeys : public JsonIgnore {
 public:
  explicit RepeatedKeys(std::vector<std::string>& findings) : findings_(findings) {}

  JsonTake key(const JsonText& text) {
    Frame& frame = frames_.back();
    const std::string_view key = unescape_json(text, arena_);
    path_.resize(frame.path_length);
    if (!path_.empty()) path_ += '.';
    path_ += key;
    if (!frame.keys.insert(key).second) report();
    return JsonTake::Value;
  }
  void string(const JsonText&) { item(); }
  void integer(int64_t, std::string_view) { item(); }
  bool number(std::string_view) {
    item();
    return true;
  }
  void boolean(bool) { item(); }
  void null() { item(); }
  void begin_map() { open(); }
  void end_map() { close(); }
  void begin_list() {
    open();
    frames_.back().index = 0;
    at_index();
  }
  void end_list() { close(); }

 private:
  static constexpr int64_t kNotAList = -1;
  static constexpr size_t kMostFindings = 100;
  // Each may have a long path and repeat an earlier finding.
  static constexpr size_t kMostLookedAt = 1000;
  struct Frame {
    size_t path_length;  // Of the path to the container.
    int64_t index = kNotAList;
    std::unordered_set<std::string_view, KeyHash> keys = {};
  };

  void open() { frames_.push_back({path_.size()}); }
  void close() {
    frames_.pop_back();
    item();
  }
  void at_index() {
    path_.resize(frames_.back().path_length);
    path_ += '[' + std::to_string(frames_.back().index) + ']';
  }
  // After a value: advances the index if this is a list.
  void item() {
    if (frames_.empty() || frames_.back().index == kNotAList) return;
    ++frames_.back().index;
    at_index();
  }
  void report() {
    if (findings_.size() >= kMostFindings || ++looked_at_ > kMostLookedAt) return;
    std::string text = "duplicate field " + go_quote(path_);
    if (std::find(findings_.begin(), findings_.end(), text) == findings_.end()) findings_.push_back(std::move(text));
  }

  std::vector<std::string>& findings_;
  size_t looked_at_ = 0;
  std::vector<Frame> frames_;
  std::string path_;
  Arena arena_;
};

Error refuse(const JsonOptions& options, JsonError error) {
  if (options.error != nullptr) *options.error = error;
  return bad_request(std::move(error.message));
}

// Finds a value by keys and list positions.
class TextAt : public JsonIgnore {
 public:
  TextAt(const std::vector<std::string>& path) : path_(path) {}

  JsonTake key(const JsonText& text) {
    Frame& frame = frames_.back();
    frame.matches = frame.inside && unescape_json(text, arena_) == path_[frames_.size() - 1];
    if (!frame.matches) return JsonTake::Skip;
    return frames_.size() == path_.size() ? JsonTake::Raw : JsonTake::Value;
  }
  void raw(std::string_view json) { found_ = json; }
  void string(const JsonText& text) { item({text.raw.data() - 1, text.raw.size() + 2}); }
  void integer(int64_t, std::string_view text) { item(text); }
  bool number(std::string_view text) {
    item(text);
    return true;
  }
  void boolean(bool b) { item(b ? "true" : "false"); }
  void null() { item("null"); }
  void begin_map() { open(); }
  void end_map() { close(); }
  void begin_list() {
    open();
    frames_.back().index = 0;
    frames_.back().matches = frames_.back().inside && path_[frames_.size() - 1] == "0";
  }
  void end_list() { close(); }
  std::string_view found() const { return found_; }

 private:
  struct Frame {
    bool inside;           // The container is on the path.
    bool matches = false;  // So is the value being read in it.
    int64_t index = -1;
  };
  void open() {
    const bool inside = frames_.size() < path_.size() && (frames_.empty() || frames_.back().matches);
    frames_.push_back({inside});
  }
  void close() {
    frames_.pop_back();
    item({});
  }
  void item(std::string_view text) {
    if (frames_.empty() || frames_.back().index < 0) return;
    Frame& frame = frames_.back();
    if (frame.matches && frames_.size() == path_.size()) found_ = text;
    ++frame.index;
    frame.matches = frame.inside && path_[frames_.size() - 1] == std::to_string(frame.index);
  }

  const std::vector<std::string>& path_;
  std::vector<Frame> frames_;
  Arena arena_;
  std::string_view found_;
};

}  // namespace

Value JsonTree::united(std::span<const Value> maps) {
  struct Given {
    std::string_view key;
    std::vector<Value> values;
  };
  std::vector<Given> given;
  std::unordered_map<std::string_view, size_t, KeyHash> places;
  for (const Value& map : maps) {
    merged_bytes_ += map.count() * sizeof(Member);
    if (too_many_repeated()) return maps.back();  // The document will be rejected.
    for (const Member& member : map.members()) {
      const auto [at, fresh] = places.try_emplace(member.key, given.size());
      if (fresh) given.push_back({member.key, {}});
      given[at->second].values.push_back(member.value);
    }
  }
  MapBuilder all(arena_);
  for (const Given& one : given) all.add(one.key, last_of(one.values));
  return all.build();
}

Value JsonTree::last_of(std::span<const Value> values) {
  if (!options_.merge_duplicate_maps || !values.back().is_map()) return values.back();
  size_t first = values.size() - 1;
  while (first > 0 && values[first - 1].is_map()) --first;
  return first + 1 == values.size() ? values.back() : united(values.subspan(first));
}

void JsonTree::merge_repeated(size_t start) {
  saw_repeated_ = true;
  constexpr size_t kAlone = SIZE_MAX;
  struct Place {
    size_t member;            // Position of the first one.
    size_t repeats = kAlone;  // Index of all of them in `repeated`.
  };
  std::unordered_map<std::string_view, Place, KeyHash> places;
  std::vector<std::pair<size_t, std::vector<Value>>> repeated;
  size_t kept = start;
  for (size_t i = start; i < members_.size(); ++i) {
    const auto [at, fresh] = places.try_emplace(members_[i].key, Place{kept});
    if (fresh) {
      members_[kept++] = members_[i];
      continue;
    }
    Place& place = at->second;
    if (place.repeats == kAlone) {
      place.repeats = repeated.size();
      repeated.push_back({place.member, {members_[place.member].value}});
    }
    repeated[place.repeats].second.push_back(members_[i].value);
  }
  members_.resize(kept);
  for (const auto& [member, values] : repeated) members_[member].value = last_of(values);
}

std::string_view unescape_json(const JsonText& text, Arena& arena) {
  if (!text.ascii && !is_valid_utf8(text.raw)) {
    // Escapes are ASCII, so replacing first and decoding afterwards gives the same result as decoding rune by rune.
    const std::string_view valid = arena.copy(replace_invalid_utf8(text.raw));
    return unescape_json({valid, text.escaped, true}, arena);
  }
  if (!text.escaped) return text.raw;
  char* const to = arena.allocate_array<char>(text.raw.size() + kUnescapeSlack);
  return {to, static_cast<size_t>(unescape_to(text.raw, to) - to)};
}

std::string_view unescape_json(const JsonText& text, std::string& scratch) {
  if (!text.ascii && !is_valid_utf8(text.raw)) {
    const std::string valid = replace_invalid_utf8(text.raw);
    if (text.escaped) return unescape_json({valid, true, true}, scratch);
    scratch = valid;
    return scratch;
  }
  if (!text.escaped) return text.raw;
  if (scratch.size() < text.raw.size() + kUnescapeSlack) scratch.resize(text.raw.size() + kUnescapeSlack);
  return {scratch.data(), static_cast<size_t>(unescape_to(text.raw, scratch.data()) - scratch.data())};
}

Result<Value> decode_json(Arena& arena, std::string_view source, const JsonOptions& options) {
  if (source.size() > UINT32_MAX) return refuse(options, {"JSON of more than 4 GiB", 0});
  JsonTree handler(arena, options, source.size());
  JsonParser parser(source, handler);
  if (!parser.parse_document()) {
    JsonError error = find_json_error(source);
    if (error.message.empty()) {
      const std::string_view text = handler.out_of_range();
      assert(!text.empty());
      error.message = "json: cannot unmarshal number " + std::string(text) + " into Go value of type float64";
      error.offset = static_cast<size_t>(text.data() + text.size() - source.data());
    }
    return refuse(options, std::move(error));
  }
  if (handler.too_many_repeated()) return refuse(options, {"json: too many members are given more than once", 0});
  if (options.duplicates != nullptr && handler.saw_repeated()) {
    RepeatedKeys repeated(*options.duplicates);
    JsonParser(source, repeated).parse_document();
  }
  return handler.root();
}

Result<Document> parse_json(std::string source, const JsonOptions& options) {
  Document document(std::move(source));
  Result<Value> root = decode_json(document.arena(), document.source(), options);
  if (!root) return root.take_error();
  document.set_root(*root);
  return document;
}

std::string_view json_text_at(std::string_view source, const std::vector<std::string>& path) {
  if (path.empty()) return source;
  TextAt finder(path);
  JsonParser(source, finder).parse_document();
  return finder.found();
}

}  // namespace holdfast::codec
