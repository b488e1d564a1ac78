#include "ownership/fields_v2.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "base/varint.h"
#include "codec/codec.h"
#include "ownership/fields_v2_codes.h"
#include "ownership/fields_v2_names.h"

namespace holdfast::ownership {
namespace {

// --- The format's constants: they never change ----------------------------------------------------------------------

enum NodeType : uint8_t { kField = 1, kKey = 2, kValue = 3, kIndex = 4, kSelf = 5 };
constexpr uint8_t kTypeMask = 0x07;
constexpr uint8_t kHasChildren = 0x08;   // NameTable and later: children follow.
constexpr uint8_t kAlsoMember = 0x10;    // NameTable and later, with kHasChildren: the element itself is a member too.
constexpr uint8_t kSharesPrefix = 0x20;  // CodedNames, for a field: shares a prefix with the preceding field.
// For a text that is not in the Words code.
enum Spelling : uint8_t { kPlainText, kInHex, kInAlphabet };

enum ValueTag : uint8_t { kNull, kFalse, kTrue, kInteger, kDouble, kText, kList, kMap };

constexpr uint32_t kFixedNames = std::size(kFieldsV2Names);
// Longer texts are never looked up: comparing them costs more than it saves, and the table stays small.
constexpr size_t kMaxTableText = 128;
// Maximum number of names in a table; later names are written out each time.
constexpr uint32_t kMaxNames = 8192;
static_assert(kMaxNames << 1 <= 1 << 14, "a number takes at most two bytes");

// The same depth as FieldsV1, since each form is converted to the other.
constexpr int kMaxDepth = limits::kFieldSetDepth;
constexpr double kExactIntegers = 9007199254740992.0;

// --- Looking up a text's number --------------------------------------------------------------------------------------

template <class Word>
inline uint64_t load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// A text's first and last bytes and its length: the entire text if it is short, otherwise most of what distinguishes
// texts.
struct Words {
  uint64_t first = 0, last = 0;
  uint32_t length = 0;
  bool operator==(const Words&) const = default;

  explicit Words(std::string_view text) : length(static_cast<uint32_t>(text.size())) {
    const char* const at = text.data();
    if (length >= 8) {
      first = load<uint64_t>(at);
      last = load<uint64_t>(at + length - 8);
    } else if (length >= 4) {
      first = load<uint32_t>(at);
      last = load<uint32_t>(at + length - 4);
    } else if (length > 0) {
      first = static_cast<uint8_t>(at[0]) | static_cast<uint64_t>(static_cast<uint8_t>(at[length / 2])) << 8;
      last = static_cast<uint8_t>(at[length - 1]);
    }
  }
  Words() = default;
  uint32_t hash() const {
    const uint64_t x = (first ^ (last * 0x9e3779b97f4a7c15ull) ^ length) * 0xff51afd7ed558ccdull;
    return static_cast<uint32_t>(x >> 32);
  }
  // Whether texts with equal words are equal.
  static bool same(std::string_view a, std::string_view b) {
    return a.size() <= 16 || std::memcmp(a.data() + 8, b.data() + 8, a.size() - 16) == 0;
  }
};

struct FixedNames {
  static constexpr uint32_t kSlots = 1024;
  struct Slot {
    Words words;
    uint32_t number = UINT32_MAX;
  };
  std::array<Slot, kSlots> slots;
  FixedNames() {
    for (uint32_t i = 0; i < kFixedNames; ++i) {
      const Words words(kFieldsV2Names[i]);
      uint32_t at = words.hash() % kSlots;
      while (slots[at].number != UINT32_MAX) at = (at + 1) % kSlots;
      slots[at] = {words, i};
    }
  }
};
const FixedNames& fixed_names() {
  static const FixedNames names;
  return names;
}

// The names of the set being written. Slots of earlier sets are recognized by their generation.
class NameTable {
 public:
  void start() {
    used_ = 0;
    if (++generation_ == 0) {
      slots_.assign(slots_.size(), {});
      generation_ = 1;
    }
  }

  // The text's number. If it has none yet, assigns the next one and returns kMaxNames.
  uint32_t find_or_add(std::string_view text) {
    const Words words(text);
    const uint32_t hash = words.hash();
    for (uint32_t at = hash % FixedNames::kSlots;; at = (at + 1) % FixedNames::kSlots) {
      const FixedNames::Slot& slot = fixed_.slots[at];
      if (slot.number == UINT32_MAX) break;
      if (slot.words == words && Words::same(kFieldsV2Names[slot.number], text)) return slot.number;
    }
    const uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
    uint32_t at = hash & mask;
    for (; slots_[at].generation == generation_; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.words == words && Words::same(slot.text, text)) return slot.number;
    }
    const uint32_t number = kFixedNames + used_;
    if (number < kMaxNames) {
      slots_[at] = {words, text, number, generation_};
      if (++used_ * 2 > slots_.size()) grow();
    }
    return kMaxNames;
  }

 private:
  struct Slot {
    Words words;
    std::string_view text;
    uint32_t number = 0;
    uint32_t generation = 0;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
    for (const Slot& slot : old) {
      if (slot.generation != generation_) continue;
      uint32_t at = slot.words.hash() & mask;
      while (slots_[at].generation == generation_) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  const FixedNames& fixed_ = fixed_names();
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  uint32_t used_ = 0;
  uint32_t generation_ = 0;
};

// --- Encoding a text --------------------------------------------------------------------------------------------

// The shortest encoding of a name that is not in the table.
struct EncodedText {
  uint64_t head = 0;  // A varint.
  size_t bytes = 0;   // Following the head.
  bool coded = false;
  TextCode code = TextCode::Words;

  size_t total() const { return (head < 0x80 ? 1 : head < 0x4000 ? 2 : 10) + bytes; }
};

EncodedText spell(std::string_view text) {
  const uint64_t length = text.size();
  EncodedText best{.head = length << 4 | kPlainText << 2 | 3, .bytes = length};
  if (length > kMaxCodedText) return best;
  uint64_t lanes = 0;
  for (const char c : text) lanes += text_codes().lanes[static_cast<unsigned char>(c)];
  const auto consider = [&](TextCode code, uint64_t head) {
    const uint64_t bits = lanes >> (static_cast<unsigned>(code) * TextCodes::kLane) & ((1u << TextCodes::kLane) - 1);
    if (bits >= TextCodes::kUnfit) return;
    const EncodedText coded{.head = head, .bytes = (bits + 7) / 8, .coded = true, .code = code};
    if (coded.total() < best.total()) best = coded;
  };
  consider(TextCode::Words, length << 2 | 1);
  consider(TextCode::Hex, length << 4 | kInHex << 2 | 3);
  consider(TextCode::Alphabet, length << 4 | kInAlphabet << 2 | 3);
  return best;
}

// The length of the common prefix: at most what fits into one byte, and never splitting a UTF-8 character.
size_t shared_prefix(std::string_view before, std::string_view name) {
  const size_t most = std::min({before.size(), name.size(), size_t{0x7f}});
  size_t shared = 0;
  while (shared < most && before[shared] == name[shared]) ++shared;
  while (shared > 0 && shared < name.size() && continues_character(name[shared])) --shared;
  return shared;
}

// The encoding of a field name that is not in the table and follows the field `before`.
struct EncodedName {
  size_t shared = 0;  // Number of leading bytes taken from the preceding field, or 0.
  EncodedText rest;
};
EncodedName encode_name_after(std::string_view before, std::string_view name) {
  const EncodedText whole = spell(name);
  if (const size_t shared = shared_prefix(before, name); shared >= 2) {
    const EncodedText rest = spell(name.substr(shared));
    if (1 + rest.total() < whole.total()) return {shared, rest};
  }
  return {0, whole};
}

// Packs codes, highest bit first; the last byte is padded with zeros.
size_t encode_text(TextCode code, std::string_view text, char* to) {
  const auto& letters = text_codes().letters[static_cast<size_t>(code)];
  uint64_t held = 0;
  unsigned bits = 0;
  char* at = to;
  for (const char c : text) {
    const TextCodes::Letter letter = letters[static_cast<unsigned char>(c)];
    held = held << letter.bits | letter.code;
    for (bits += letter.bits; bits >= 8; bits -= 8) *at++ = static_cast<char>(held >> (bits - 8));
  }
  if (bits > 0) *at++ = static_cast<char>(held << (8 - bits));
  return static_cast<size_t>(at - to);
}

// --- Writing --------------------------------------------------------------------------------------------------------

template <FieldsV2Layout layout>
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out), names_(table()) { names_.start(); }

  void set(FieldSet set) {
    byte(static_cast<uint8_t>(layout));
    if constexpr (layout == FieldsV2Layout::Plain) {
      varint(set.entries().size());
      nodes_plain(set);
    } else {
      children(set);
    }
    out_.append(buffer_, used_);
  }

 private:
  static NameTable& table() {
    thread_local NameTable names;
    return names;
  }

  void room(size_t bytes) {
    if (used_ + bytes <= sizeof(buffer_)) return;
    out_.append(buffer_, used_);
    used_ = 0;
  }
  void byte(uint8_t b) {
    room(1);
    buffer_[used_++] = static_cast<char>(b);
  }
  void varint(uint64_t n) {
    room(kMaxVarint);
    used_ = static_cast<size_t>(write_varint(n, buffer_ + used_) - buffer_);
  }
  void zigzag(int64_t n) { varint((static_cast<uint64_t>(n) << 1) ^ static_cast<uint64_t>(n >> 63)); }
  void bytes(std::string_view text) {
    if (text.size() > sizeof(buffer_) / 4) {
      out_.append(buffer_, used_);
      used_ = 0;
      out_.append(text);
      return;
    }
    room(text.size());
    if (!text.empty()) std::memcpy(buffer_ + used_, text.data(), text.size());
    used_ += text.size();
  }

  void text(std::string_view text, bool coded = layout == FieldsV2Layout::CodedNames) {
    if constexpr (layout == FieldsV2Layout::Plain) {
      varint(text.size());
      bytes(text);
    } else {
      if (text.size() <= kMaxTableText) {
        const uint32_t number = names_.find_or_add(text);
        if (number < kMaxNames) {
          varint(uint64_t{number} << 1);
          return;
        }
      }
      if (coded) {
        spelled(spell(text), text);
      } else {
        varint(uint64_t{text.size()} << 1 | 1);
        bytes(text);
      }
    }
  }

  void spelled(const EncodedText& how, std::string_view text) {
    varint(how.head);
    if (!how.coded) return bytes(text);
    room(how.bytes);
    used_ += encode_text(how.code, text, buffer_ + used_);
  }

  void value(const Value& v) {
    switch (v.kind()) {
      case Value::Kind::Null:
        return byte(kNull);
      case Value::Kind::Bool:
        return byte(v.as_bool() ? kTrue : kFalse);
      case Value::Kind::Int:
        byte(kInteger);
        return zigzag(v.as_int());
      case Value::Kind::Double: {
        // 80.0 is 80: equal elements have equal bytes. -0 prints differently and is kept.
        const double d = v.as_double();
        if (d == std::floor(d) && std::abs(d) <= kExactIntegers && !(d == 0 && std::signbit(d))) {
          byte(kInteger);
          return zigzag(static_cast<int64_t>(d));
        }
        byte(kDouble);
        uint64_t bits = std::bit_cast<uint64_t>(d);
        for (int i = 0; i < 8; ++i, bits >>= 8) byte(static_cast<uint8_t>(bits));
        return;
      }
      case Value::Kind::String:
        byte(kText);
        return text(v.as_string(), false);
      case Value::Kind::Raw:
        byte(kText);
        return text(v.raw_json(), false);
      case Value::Kind::List:
        byte(kList);
        varint(v.items().size());
        for (const Value& item : v.items()) value(item);
        return;
      case Value::Kind::Map:
        return map(v);
    }
  }

  void map(const Value& v) {
    // Sorted, so that equal sets have equal bytes.
    std::vector<const Member*> sorted;
    for (const Member& member : v.members()) sorted.push_back(&member);
    std::sort(sorted.begin(), sorted.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
    byte(kMap);
    varint(sorted.size());
    for (const Member* member : sorted) {
      text(member->key);
      value(member->value);
    }
  }

  static uint8_t type_of(const PathElement& element) {
    switch (element.kind()) {
      case PathElement::Kind::Field:
        return kField;
      case PathElement::Kind::Key:
        return kKey;
      case PathElement::Kind::Value:
        return kValue;
      case PathElement::Kind::Index:
        break;
    }
    return kIndex;
  }

  void payload(const PathElement& element) {
    switch (element.kind()) {
      case PathElement::Kind::Field:
        return text(element.name());
      case PathElement::Kind::Key:
        varint(element.key().size());
        for (const Member& member : element.key()) {
          text(member.key);
          value(member.value);
        }
        return;
      case PathElement::Kind::Value:
        return value(element.value());
      case PathElement::Kind::Index:
        return zigzag(element.index());
    }
  }

  void children(FieldSet set) {
    varint(set.entries().size());
    std::string_view before;  // The preceding field, with which this one may share a prefix.
    for (const SetEntry& entry : set.entries()) {
      uint8_t head = type_of(entry.element);
      if (entry.child_count != 0) head |= entry.member ? kHasChildren | kAlsoMember : kHasChildren;
      if (entry.element.is_field()) {
        field(head, entry.element.name(), before);
        before = entry.element.name();
      } else {
        byte(head);
        payload(entry.element);
      }
      if (entry.child_count != 0) children(entry.children());
    }
  }

  // The most frequent case by far: checks the remaining room only once.
  void field(uint8_t head, std::string_view name, std::string_view before) {
    if (name.size() > kMaxTableText) {
      byte(head);
      return text(name);
    }
    room(1 + kMaxVarint + kMaxTableText);
    const uint32_t number = names_.find_or_add(name);
    if (number < kMaxNames) {
      buffer_[used_++] = static_cast<char>(head);
      const uint32_t n = number << 1;
      if (n < 0x80) {
        buffer_[used_++] = static_cast<char>(n);
      } else {
        buffer_[used_++] = static_cast<char>(n | 0x80);
        buffer_[used_++] = static_cast<char>(n >> 7);
      }
      return;
    }
    if constexpr (layout == FieldsV2Layout::CodedNames) {
      const EncodedName how = encode_name_after(before, name);
      buffer_[used_++] = static_cast<char>(how.shared != 0 ? head | kSharesPrefix : head);
      if (how.shared != 0) varint(how.shared);
      spelled(how.rest, name.substr(how.shared));
    } else {
      buffer_[used_++] = static_cast<char>(head);
      varint(uint64_t{name.size()} << 1 | 1);
      if (!name.empty()) std::memcpy(buffer_ + used_, name.data(), name.size());
      used_ += name.size();
    }
  }

  void nodes_plain(FieldSet set) {
    for (const SetEntry& entry : set.entries()) {
      byte(type_of(entry.element));
      if (entry.element.is_field()) {
        text(entry.element.name());
      } else {
        std::string inner;
        Writer(inner).only_payload(entry.element);
        varint(inner.size());
        bytes(inner);
      }
      const bool self = entry.member && entry.child_count != 0;
      varint(entry.child_count + (self ? 1 : 0));
      if (self) byte(kSelf);
      nodes_plain(entry.children());
    }
  }
  void only_payload(const PathElement& element) {
    payload(element);
    out_.append(buffer_, used_);
  }

  std::string& out_;
  NameTable& names_;
  size_t used_ = 0;
  char buffer_[1024];
};

// --- Reading --------------------------------------------------------------------------------------------------------

// The bytes, numbers and texts of a set, in order. After a failure, all reads return nothing.
class Input {
 public:
  // Texts that are not verbatim in `bytes` are allocated in `texts`.
  Input(std::string_view bytes, Arena& texts)
      : start_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()), texts_(texts) {}

 protected:
  void fail(const char* what) {
    if (error_ != nullptr) return;
    error_ = what;
    error_at_ = at_;
    at_ = end_;  // Further reads find nothing.
  }

  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint8_t byte() {
    if (at_ == end_) [[unlikely]] {
      fail("truncated");
      return 0;
    }
    return static_cast<uint8_t>(*at_++);
  }

  uint64_t varint() {
    uint64_t n = byte();
    if (n < 0x80) [[likely]]
      return n;
    n &= 0x7f;
    for (int shift = 7; shift < 64; shift += 7) {
      const uint64_t b = byte();
      if (shift == 63 && b > 1) break;
      n |= (b & 0x7f) << shift;
      if (b < 0x80) {
        if (b == 0) fail("a number with needless bytes");
        return n;
      }
    }
    fail("a number is too large");
    return 0;
  }
  int64_t zigzag() {
    const uint64_t n = varint();
    return static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
  }
  std::string_view bytes(uint64_t count) {
    if (count > left()) {
      fail("a length beyond the end");
      return {};
    }
    const std::string_view result(at_, count);
    at_ += count;
    return result;
  }
  // A count of items that take at least `each` bytes.
  uint64_t count(uint64_t n, uint64_t each) {
    if (n > left() / each) {
      fail("a count beyond the end");
      return 0;
    }
    return n;
  }

  // A text that is written out. FieldsV1 cannot represent invalid UTF-8.
  std::string_view literal(uint64_t length) {
    const std::string_view result = bytes(length);
    unsigned char high = 0;
    for (char c : result) high |= static_cast<unsigned char>(c);
    if (high >= 0x80) [[unlikely]] {
      for (size_t at = 0; at < result.size();) {
        const Rune rune = decode_rune(result, at);
        if (rune.value == 0xfffd && rune.length == 1) {
          fail("a text that is not UTF-8");
          return {};
        }
        at += rune.length;
      }
    }
    return result;
  }

  template <FieldsV2Layout layout>
  std::string_view text() {
    const uint64_t n = varint();
    if constexpr (layout == FieldsV2Layout::Plain) return literal(n);
    if ((n & 1) == 0) {
      const uint64_t number = n >> 1;
      if (number < kFixedNames) return kFieldsV2Names[number];
      if (number - kFixedNames < name_count_) return names_[number - kFixedNames];
      fail("a name that is not in the table");
      return {};
    }
    return with_number(layout == FieldsV2Layout::CodedNames ? spelled(n) : literal(n >> 1));
  }
  // A value's text is never coded: values differ between objects, and compressing many objects works better if they
  // start on a byte boundary.
  template <FieldsV2Layout layout>
  std::string_view value_text() {
    return text<layout == FieldsV2Layout::CodedNames ? FieldsV2Layout::NameTable : layout>();
  }

  // A field name that shares a prefix with `before`.
  std::string_view continued(std::string_view before) {
    const uint64_t shared = varint();
    const uint64_t head = varint();
    if (shared > before.size() || (head & 1) == 0) {
      fail("a name that continues nothing");
      return {};
    }
    const std::string_view rest = spelled(head);
    if (error_ != nullptr) return {};
    char* const name = texts_.allocate_array<char>(shared + rest.size());
    if (shared != 0) std::memcpy(name, before.data(), shared);
    if (!rest.empty()) std::memcpy(name + shared, rest.data(), rest.size());
    return with_number({name, shared + rest.size()});
  }

  std::string_view with_number(std::string_view text) {
    if (written_ != nullptr && text.size() <= kMaxTableText && written_->find_or_add(text) < kMaxNames)
      fail("a text that has a number");
    if (text.size() <= kMaxTableText && kFixedNames + name_count_ < kMaxNames) {
      if (name_count_ == name_capacity_) [[unlikely]]
        grow_names();
      names_[name_count_++] = text;
    }
    return text;
  }

  // A text of CodedNames, after its head.
  std::string_view spelled(uint64_t head) {
    const std::string_view text = spelled_so(head);
    if (written_ != nullptr && spell(text).head != head) fail("a text that could be shorter");
    return text;
  }
  std::string_view spelled_so(uint64_t head) {
    if ((head & 2) == 0) return decoded(TextCode::Words, head >> 2);
    switch (head >> 2 & 3) {
      case kPlainText:
        return literal(head >> 4);
      case kInHex:
        return decoded(TextCode::Hex, head >> 4);
      case kInAlphabet:
        return decoded(TextCode::Alphabet, head >> 4);
      default:
        fail("an unknown spelling of a text");
        return {};
    }
  }

  std::string_view decoded(TextCode code, uint64_t length) {
    if (length > kMaxCodedText) {
      fail("a coded text that is too long");
      return {};
    }
    const auto& table = text_codes().decoded[static_cast<size_t>(code)];
    char* const text = texts_.allocate_array<char>(length);
    uint64_t held = 0;
    unsigned bits = 0;
    const char* at = at_;
    for (uint64_t i = 0; i < length; ++i) {
      while (bits < kMaxCodeBits && at != end_) {
        held = held << 8 | static_cast<uint8_t>(*at++);
        bits += 8;
      }
      const uint64_t ahead = bits >= kMaxCodeBits ? held >> (bits - kMaxCodeBits) : held << (kMaxCodeBits - bits);
      const TextCodes::Decoded letter = table[ahead & ((1u << kMaxCodeBits) - 1)];
      if (letter.bits > bits) {
        fail("a length beyond the end");
        return {};
      }
      text[i] = letter.letter;
      bits -= letter.bits;
      held &= (uint64_t{1} << bits) - 1;
    }
    // Unread the whole bytes that were read ahead.
    at -= bits / 8;
    if ((held >> (bits / 8 * 8)) != 0) fail("bits after a text");
    if (error_ == nullptr) at_ = at;
    return {text, length};
  }
  void grow_names() {
    more_names_.resize(name_capacity_ * 2);
    if (names_ == few_names_) std::copy(few_names_, few_names_ + name_count_, more_names_.begin());
    names_ = more_names_.data();
    name_capacity_ = more_names_.size();
  }

  static constexpr size_t kFewNames = 128;
  const char* start_;
  const char* at_;
  const char* end_;
  const char* error_ = nullptr;
  const char* error_at_ = nullptr;
  std::string_view few_names_[kFewNames];
  std::string_view* names_ = few_names_;
  size_t name_count_ = 0, name_capacity_ = kFewNames;
  std::vector<std::string_view> more_names_;
  Arena& texts_;
  NameTable* written_ = nullptr;  // If set, texts must be encoded exactly as a Writer with this table does.
};

class Reader : protected Input {
 public:
  Reader(Arena& arena, std::string_view bytes) : Input(bytes, arena), arena_(arena) {}

  Result<FieldSet> set() {
    const uint8_t version = byte();
    FieldSet result;
    if (version == static_cast<uint8_t>(FieldsV2Layout::CodedNames)) {
      result = children<FieldsV2Layout::CodedNames>(0);
    } else if (version == static_cast<uint8_t>(FieldsV2Layout::NameTable)) {
      result = children<FieldsV2Layout::NameTable>(0);
    } else if (version == static_cast<uint8_t>(FieldsV2Layout::Plain)) {
      bool self = false;
      result = nodes_plain(varint(), 0, self);
      if (self) fail("the root cannot be a member");
    } else if (error_ == nullptr) {
      at_ = start_;
      fail("unknown version");
    }
    if (error_ == nullptr && at_ != end_) fail("bytes after the set");
    if (error_ != nullptr)
      return bad_request("FieldsV2: " + std::string(error_) + " at byte " + std::to_string(error_at_ - start_));
    return result;
  }

 protected:
  template <FieldsV2Layout layout>
  std::span<const Member> members(uint64_t n, int depth) {
    n = count(n, 2);
    Member* const list = arena_.allocate_array<Member>(n);
    for (uint64_t i = 0; i < n; ++i) {
      const std::string_view name = text<layout>();
      new (&list[i]) Member{name, value<layout>(depth)};
      if (error_ != nullptr) return {};
      if (i > 0 && list[i - 1].key >= name) {
        fail("names of a key out of order");
        return {};
      }
    }
    return {list, n};
  }

  template <FieldsV2Layout layout>
  Value value(int depth) {
    if (depth > kMaxDepth) {
      fail("nested too deeply");
      return {};
    }
    switch (byte()) {
      case kNull:
        return Value::null();
      case kFalse:
        return Value::boolean(false);
      case kTrue:
        return Value::boolean(true);
      case kInteger:
        return Value::integer(zigzag());
      case kDouble: {
        const std::string_view raw = bytes(8);
        if (raw.size() != 8) return {};
        uint64_t bits = 0;
        for (int i = 7; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>(raw[static_cast<size_t>(i)]);
        const double d = std::bit_cast<double>(bits);
        // FieldsV1 cannot represent these.
        if (!std::isfinite(d)) fail("a number that is not finite");
        return Value::number(d);
      }
      case kText:
        return Value::string(value_text<layout>());
      case kList: {
        const uint64_t n = count(varint(), 1);
        Value* const items = arena_.allocate_array<Value>(n);
        for (uint64_t i = 0; i < n; ++i) {
          new (&items[i]) Value(value<layout>(depth + 1));
          if (error_ != nullptr) return {};
        }
        return Value::list({items, n});
      }
      case kMap: {
        const std::span<const Member> list = members<layout>(varint(), depth + 1);
        return error_ != nullptr ? Value{} : Value::map(arena_, list);
      }
      default:
        if (error_ == nullptr) {
          --at_;
          fail("an unknown kind of value");
        }
        return {};
    }
  }

  template <FieldsV2Layout layout>
  PathElement element(uint8_t type) {
    switch (type) {
      case kField:
        return PathElement::field(text<layout>());
      case kKey:
        return PathElement::key(members<layout>(varint(), 0));
      case kValue:
        return PathElement::value(arena_.make<Value>(value<layout>(0)));
      case kIndex:
        return PathElement::index(zigzag());
      default:
        if (error_ == nullptr) {
          --at_;
          fail("an unknown type of element");
        }
        return PathElement::field({});
    }
  }

  static bool ascending(const PathElement& a, const PathElement& b) {
    if (a.is_field() && b.is_field()) return a.name() < b.name();
    return compare(a, b) < 0;
  }
  void check_order(const SetEntry* list, uint64_t i) {
    if (i > 0 && error_ == nullptr && !ascending(list[i - 1].element, list[i].element)) fail("elements out of order");
  }

  template <FieldsV2Layout layout>
  FieldSet children(int depth) {
    if (depth > kMaxDepth) {
      fail("nested too deeply");
      return {};
    }
    const uint64_t n = count(varint(), 2);
    if (n == 0 && depth > 0) fail("children announced, but none there");
    SetEntry* const list = arena_.allocate_array<SetEntry>(n);
    std::string_view before;
    for (uint64_t i = 0; i < n; ++i) {
      const uint8_t head = byte();
      const bool continues =
          layout == FieldsV2Layout::CodedNames && (head & (kTypeMask | kSharesPrefix)) == (kField | kSharesPrefix);
      if ((head & ~(kTypeMask | kHasChildren | kAlsoMember | (continues ? kSharesPrefix : 0))) != 0 ||
          (head & (kHasChildren | kAlsoMember)) == kAlsoMember)
        fail("an unknown type of element");
      const PathElement e = continues ? PathElement::field(continued(before)) : element<layout>(head & kTypeMask);
      if (e.is_field()) before = e.name();
      FieldSet below;
      if ((head & kHasChildren) != 0) below = children<layout>(depth + 1);
      if (error_ != nullptr) return {};
      new (&list[i]) SetEntry(e, (head & kHasChildren) == 0 || (head & kAlsoMember) != 0, below);
      check_order(list, i);
    }
    return error_ != nullptr ? FieldSet{} : FieldSet(std::span<const SetEntry>(list, n));
  }

  // `self` is set if the first node marks the parent as a member too.
  FieldSet nodes_plain(uint64_t claimed, int depth, bool& self) {
    if (depth > kMaxDepth) {
      fail("nested too deeply");
      return {};
    }
    uint64_t n = count(claimed, 1);
    if (n > 0 && at_ < end_ && static_cast<uint8_t>(*at_) == kSelf) {
      self = true;
      ++at_;
      if (--n == 0) fail("an element that is a member needs no mark without children");
    }
    if (n > left() / 2) fail("a count beyond the end");
    if (error_ != nullptr) return {};
    SetEntry* const list = arena_.allocate_array<SetEntry>(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint8_t type = byte();
      PathElement e = PathElement::field({});
      if (type == kField) {
        e = element<FieldsV2Layout::Plain>(type);
      } else {
        const uint64_t length = varint();
        const char* const before = at_;
        e = element<FieldsV2Layout::Plain>(type);
        if (error_ == nullptr && static_cast<uint64_t>(at_ - before) != length) fail("a length that does not fit");
      }
      const uint64_t below_count = varint();
      bool member = below_count == 0;
      const FieldSet below = below_count == 0 ? FieldSet{} : nodes_plain(below_count, depth + 1, member);
      if (error_ != nullptr) return {};
      new (&list[i]) SetEntry(e, member, below);
      check_order(list, i);
    }
    return error_ != nullptr ? FieldSet{} : FieldSet(std::span<const SetEntry>(list, n));
  }

  Arena& arena_;
};

// --- To FieldsV1, without an intermediate set -----------------------------------------------------------------------

// Whether a text needs no escaping in a JSON string, including HTML's characters.
bool is_plain_text(std::string_view text) {
  bool plain = true;
  for (char c : text) {
    plain &= static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\' && c != '&' && c != '<' && c != '>';
  }
  return plain;
}

// Computes the length of a set's FieldsV1 text if its bytes are exactly those that Writer produces. Like TextWriter,
// handles only what occurs in nearly every set and fails on anything else.
class Measurer : Reader {
 public:
  Measurer(Arena& arena, std::string_view bytes) : Reader(arena, bytes) {
    thread_local NameTable names;
    names.start();
    written_ = &names;
  }

  std::optional<size_t> measure() {
    if (byte() != static_cast<uint8_t>(kLayout)) return std::nullopt;
    const size_t length = level(0);
    return error_ == nullptr && at_ == end_ ? std::optional(length) : std::nullopt;
  }

 private:
  static constexpr auto kLayout = FieldsV2Layout::CodedNames;

  // The length of a level including its braces: {"f:a":{},"f:b":{".":{},"f:c":{}}}.
  size_t level(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    const uint64_t n = count(varint(), 2);
    if (n == 0 && depth > 0) fail("children announced, but none there");
    size_t length = std::string_view("{}").size() + (n > 1 ? n - 1 : 0);
    std::optional<PathElement> last;
    for (uint64_t i = 0; i < n && error_ == nullptr; ++i) {
      const uint8_t head = byte();
      const bool is_field = (head & kTypeMask) == kField;
      if ((head & ~(kTypeMask | kHasChildren | kAlsoMember | (is_field ? kSharesPrefix : 0))) != 0 ||
          (head & (kHasChildren | kAlsoMember)) == kAlsoMember)
        fail("an unknown type of element");
      const PathElement next = is_field ? field(head, last) : element<kLayout>(head & kTypeMask);
      if (error_ != nullptr || (last && !ascending(*last, next))) return fail("elements out of order"), 0;
      length += element_length(next);
      if ((head & kHasChildren) == 0) {
        length += std::string_view("{}").size();
      } else {
        if ((head & kAlsoMember) != 0) length += std::string_view("\".\":{},").size();
        length += level(depth + 1);
      }
      last = next;
    }
    return length;
  }

  PathElement field(uint8_t head, const std::optional<PathElement>& last) {
    const std::string_view before = last && last->is_field() ? last->name() : std::string_view{};
    const bool continues = (head & kSharesPrefix) != 0;
    const bool numbered = at_ != end_ && (static_cast<uint8_t>(*at_) & 1) == 0;
    const char* const start = at_;
    const std::string_view name = continues ? continued(before) : text<kLayout>();
    if (error_ == nullptr && (continues || !numbered)) {
      const EncodedName how = encode_name_after(before, name);
      if (name.size() > kMaxTableText || !is_plain_text(name) || (how.shared != 0) != continues ||
          (continues && how.shared != static_cast<uint8_t>(*start)))
        fail("an unusual name");
    }
    return PathElement::field(name);
  }

  size_t element_length(const PathElement& element) {
    constexpr size_t kAround = std::string_view("\"f:\":").size();
    switch (element.kind()) {
      case PathElement::Kind::Field:
        return kAround + element.name().size();
      case PathElement::Kind::Key: {
        size_t length = kAround + std::string_view("{}").size();
        for (const Member& member : element.key()) {
          length += text_length(member.key) + std::string_view(":").size() + value_length(member.value);
        }
        return length + (element.key().empty() ? 0 : element.key().size() - 1);
      }
      case PathElement::Kind::Value:
        return kAround + value_length(element.value());
      case PathElement::Kind::Index:
        break;
    }
    return fail("an unusual element"), 0;
  }

  // Its quotes are escaped, since it is inside a member name.
  size_t text_length(std::string_view text) {
    if (!is_plain_text(text)) fail("a text to escape");
    return text.size() + std::string_view("\\\"\\\"").size();
  }

  size_t value_length(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::Null:
        return std::string_view("null").size();
      case Value::Kind::Bool:
        return std::string_view(value.as_bool() ? "true" : "false").size();
      case Value::Kind::Int: {
        char digits[24];
        return static_cast<size_t>(std::to_chars(digits, std::end(digits), value.as_int()).ptr - digits);
      }
      case Value::Kind::String:
        return text_length(value.as_string());
      default:
        return fail("an unusual value"), 0;
    }
  }
};

// Handles what occurs in nearly every set: fields, and keys and values made of plain texts, integers, booleans and
// null. Fails on anything else.
class TextWriter : Input {
 public:
  TextWriter(std::string_view bytes, Arena& texts, codec::Sink& out) : Input(bytes, texts), out_(out) {}

  bool write() {
    if (byte() != static_cast<uint8_t>(kLayout)) return false;
    level(0, false);
    return error_ == nullptr && at_ == end_;
  }

 private:
  static constexpr auto kLayout = FieldsV2Layout::CodedNames;

  enum class Of : uint8_t { Name, Value };
  std::string_view plain_text(Of what) {
    const char* const before = at_;
    const std::string_view result = what == Of::Name ? text<kLayout>() : value_text<kLayout>();
    // Names of the fixed table are plain, and repeated names were checked on their first occurrence.
    const bool repeated = error_ == nullptr && (static_cast<unsigned char>(*before) & 1) == 0;
    if (!repeated && !is_plain_text(result)) fail("a text to escape");
    return result;
  }
  std::string_view plain_continued(std::string_view before) {
    const std::string_view result = continued(before);
    if (!is_plain_text(result)) fail("a text to escape");
    return result;
  }

  void put(char*& to, std::string_view bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  // A text inside a member name: its quotes are escaped.
  void quoted(std::string_view text) {
    char* to = out_.room(text.size() + 4);
    put(to, "\\\"");
    if (!text.empty()) put(to, text);
    put(to, "\\\"");
    out_.wrote(to);
  }
  void value() {
    switch (byte()) {
      case kNull:
        return out_.put("null");
      case kFalse:
        return out_.put("false");
      case kTrue:
        return out_.put("true");
      case kInteger: {
        constexpr size_t kMostDigits = 24;
        char* const to = out_.room(kMostDigits);
        return out_.wrote(std::to_chars(to, to + kMostDigits, zigzag()).ptr);
      }
      case kText:
        return quoted(plain_text(Of::Value));
      default:
        return fail("an unusual value");
    }
  }

  void field(std::string_view name) {
    char* to = out_.room(name.size() + 8);
    put(to, "\"f:");
    if (!name.empty()) put(to, name);
    put(to, "\":");
    out_.wrote(to);
  }

  void element(uint8_t type) {
    switch (type) {
      case kKey: {
        out_.put("\"k:{");
        const uint64_t n = count(varint(), 2);
        for (uint64_t i = 0; i < n && error_ == nullptr; ++i) {
          if (i > 0) out_.put(',');
          quoted(plain_text(Of::Name));
          out_.put(':');
          value();
        }
        return out_.put("}\":");
      }
      case kValue:
        out_.put("\"v:");
        value();
        return out_.put("\":");
      default:
        return fail("an unusual element");
    }
  }

  void level(int depth, bool self) {
    if (depth > kMaxDepth) return fail("nested too deeply");
    const uint64_t n = count(varint(), 2);
    out_.put('{');
    if (self) out_.put("\".\":{}");
    std::string_view before;
    for (uint64_t i = 0; i < n && error_ == nullptr; ++i) {
      if (i > 0 || self) out_.put(',');
      const uint8_t head = byte();
      if ((head & kTypeMask) == kField) {
        before = (head & kSharesPrefix) != 0 ? plain_continued(before) : plain_text(Of::Name);
        field(before);
      } else {
        element(head & kTypeMask);
      }
      if ((head & kHasChildren) != 0) {
        level(depth + 1, (head & kAlsoMember) != 0);
      } else {
        out_.put("{}");
      }
    }
    out_.put('}');
  }

  codec::Sink& out_;
};

}  // namespace

const TextCodes& text_codes() {
  static const TextCodes codes;
  return codes;
}

void append_fields_v2(std::string& out, FieldSet set, FieldsV2Layout layout) {
  switch (layout) {
    case FieldsV2Layout::Plain:
      return Writer<FieldsV2Layout::Plain>(out).set(set);
    case FieldsV2Layout::NameTable:
      return Writer<FieldsV2Layout::NameTable>(out).set(set);
    case FieldsV2Layout::CodedNames:
      return Writer<FieldsV2Layout::CodedNames>(out).set(set);
  }
}

std::string to_fields_v2(FieldSet set, FieldsV2Layout layout) {
  std::string out;
  append_fields_v2(out, set, layout);
  return out;
}

Result<FieldSet> parse_fields_v2(Arena& arena, std::string_view bytes) { return Reader(arena, bytes).set(); }

std::optional<size_t> measure_fields_v2(std::string_view bytes) {
  Arena arena;
  return Measurer(arena, bytes).measure();
}

void append_fields_v1_of(std::string_view fields_v2, std::string& out) {
  const size_t before = out.size();
  Arena arena;
  bool written;
  {
    codec::Sink sink(out);
    written = TextWriter(fields_v2, arena, sink).write();
  }
  if (written) return;
  out.resize(before);
  const Result<FieldSet> set = parse_fields_v2(arena, fields_v2);
  assert(set);
  append_fields_v1(out, *set);
}

}  // namespace holdfast::ownership
