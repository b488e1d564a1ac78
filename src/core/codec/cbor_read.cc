#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/repeated.h"

namespace holdfast::codec {
namespace {

// The names of the major types in Kubernetes' decoder.
constexpr std::string_view kTypeNames[] = {
    "positive integer", "negative integer", "byte string", "UTF-8 text string", "array", "map", "tag", "primitives"};
std::string type_name(CborMajor major) { return std::string(kTypeNames[static_cast<size_t>(major)]); }

struct Head {
  CborMajor major{};
  uint8_t info = 0;  // The low five bits of the first byte; 31 for indefinite length.
  uint64_t argument = 0;
  bool indefinite() const { return info == 31; }
};

constexpr uint8_t kBreak = 0xff;

double half_value(uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const int mantissa = half & 0x3ff;
  const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                           : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                            : std::ldexp(mantissa + 1024, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

double float_value(const Head& head) {
  if (head.info == 25) return half_value(static_cast<uint16_t>(head.argument));
  if (head.info == 26) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(head.argument)));
  return std::bit_cast<double>(head.argument);
}

std::string not_accepted(CborMajor major, std::string_view what) {
  return "cbor: data item of cbor type " + type_name(major) + " is not accepted by protocol: " + std::string(what);
}

// First pass: checks that there is one well-formed item, so that the second pass needs no bounds checks. Neither pass
// recurses: ten thousand levels are allowed, and a thread's stack is small.
class Checker {
 public:
  explicit Checker(std::string_view source) : source_(source) {}

  bool item();
  size_t at() const { return at_; }
  bool incomplete() const { return incomplete_; }
  const std::string& message() const { return message_; }

 private:
  struct Open {
    bool map;
    bool indefinite;
    uint64_t left;  // Items left, counting keys and values separately; for indefinite lengths, items read so far.
    size_t depth;
  };

  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }
  bool cut_short() {
    incomplete_ = true;
    return fail("unexpected EOF");
  }
  bool more() const { return at_ < source_.size(); }
  uint8_t peek() const { return static_cast<uint8_t>(source_[at_]); }
  bool head(Head& head);
  bool open(const Head& head, size_t depth);
  bool text(const Head& head);
  bool chunks(CborMajor major);
  // Skips tags up to the head of the tagged item.
  bool tags(Head& head, size_t& depth);
  bool too_deep() { return fail("cbor: exceeded max nested level " + std::to_string(kMaxDepth)); }
  bool too_many_pairs() {
    return fail("cbor: exceeded max number of key-value pairs " + std::to_string(limits::kCborMembers) +
                " for CBOR map");
  }

  std::string_view source_;
  size_t at_ = 0;
  bool incomplete_ = false;
  std::string message_;
  std::vector<Open> open_;
};

bool Checker::head(Head& head) {
  if (!more()) return cut_short();
  head.major = static_cast<CborMajor>(peek() >> 5);
  head.info = peek() & 0x1f;
  head.argument = head.info;
  ++at_;
  if (head.info < 24) return true;
  if (head.info <= 27) {
    const size_t bytes = size_t{1} << (head.info - 24);
    if (source_.size() - at_ < bytes) return cut_short();
    head.argument = 0;
    for (size_t i = 0; i < bytes; ++i) head.argument = head.argument << 8 | static_cast<uint8_t>(source_[at_ + i]);
    at_ += bytes;
    if (head.major != CborMajor::Simple) return true;
    if (head.info == 24) {
      if (head.argument >= 32) return true;
      return fail("cbor: invalid simple value " + std::to_string(head.argument) + " for type primitives");
    }
    const double number = float_value(head);
    if (std::isnan(number)) return fail(not_accepted(head.major, "floating-point NaN"));
    if (std::isinf(number)) return fail(not_accepted(head.major, "floating-point infinity"));
    return true;
  }
  if (head.info == 31) {
    if (head.major == CborMajor::Simple) return fail("cbor: unexpected \"break\" code");
    if (head.major >= CborMajor::Bytes && head.major <= CborMajor::Map) return true;
  }
  return fail("cbor: invalid additional information " + std::to_string(head.info) + " for type " +
              type_name(head.major));
}

bool Checker::item() {
  if (source_.empty()) return fail("EOF");
  for (;;) {
    size_t depth = open_.empty() ? 0 : open_.back().depth;
    Head h;
    if (!head(h)) return false;
    if (h.major == CborMajor::Tag && !tags(h, depth)) return false;
    if (h.major == CborMajor::Bytes || h.major == CborMajor::Text) {
      if (!text(h)) return false;
    } else if (h.major == CborMajor::List || h.major == CborMajor::Map) {
      if (!open(h, depth + 1)) return false;
    }
    // Containers that end here.
    for (;;) {
      if (open_.empty()) return true;
      Open& top = open_.back();
      if (!top.indefinite) {
        if (top.left-- > 0) break;
      } else {
        if (top.map && top.left % 2 == 0 && top.left / 2 > limits::kCborMembers) return too_many_pairs();
        if (!more()) return cut_short();
        if (peek() != kBreak) {
          ++top.left;
          break;
        }
        ++at_;
        if (top.map && top.left % 2 == 1) return fail("cbor: unexpected \"break\" code");
      }
      open_.pop_back();
    }
  }
}

bool Checker::open(const Head& head, size_t depth) {
  if (depth > kMaxDepth) return too_deep();
  const bool map = head.major == CborMajor::Map;
  if (head.indefinite()) {
    open_.push_back({map, true, 0, depth});
    return true;
  }
  if (head.argument > INT64_MAX) {
    return fail("cbor: " + type_name(head.major) + " length " + std::to_string(head.argument) +
                " is too large, it would cause integer overflow");
  }
  if (map && head.argument > limits::kCborMembers) return too_many_pairs();
  if (!map && head.argument > limits::kCborItems) {
    return fail("cbor: exceeded max number of elements " + std::to_string(limits::kCborItems) + " for CBOR array");
  }
  open_.push_back({map, false, head.argument * (map ? 2 : 1), depth});
  return true;
}

bool Checker::text(const Head& head) {
  if (head.indefinite()) return chunks(head.major);
  if (head.argument > INT64_MAX) {
    return fail("cbor: " + type_name(head.major) + " length " + std::to_string(head.argument) +
                " is too large, causing integer overflow");
  }
  if (source_.size() - at_ < head.argument) return cut_short();
  at_ += head.argument;
  return true;
}

bool Checker::chunks(CborMajor major) {
  for (;;) {
    if (!more()) return cut_short();
    if (peek() == kBreak) {
      ++at_;
      return true;
    }
    const auto next = static_cast<CborMajor>(peek() >> 5);
    if (next != major) {
      return fail("cbor: wrong element type " + type_name(next) + " for indefinite-length " + type_name(major));
    }
    if ((peek() & 0x1f) == 31) {
      return fail("cbor: indefinite-length " + type_name(major) + " chunk is not definite-length");
    }
    Head chunk;
    if (!head(chunk) || !text(chunk)) return false;
  }
}

bool Checker::tags(Head& h, size_t& depth) {
  for (;;) {
    if (!more()) return cut_short();
    if (h.argument == 2 || h.argument == 3) return fail(not_accepted(CborMajor::Tag, "bignum"));
    if (!head(h)) return false;
    if (h.major != CborMajor::Tag) return true;
    if (++depth > kMaxDepth) return too_deep();
  }
}

// time.Time.MarshalText of a time parsed from an RFC 3339 text: trailing zeros of the fraction are removed, and a zero
// offset becomes Z.
std::string normal_time_text(std::string_view text) {
  std::string out(text.substr(0, 19));
  size_t zone = 19;
  if (zone < text.size() && (text[zone] == '.' || text[zone] == ',')) {
    ++zone;
    const size_t start = zone;
    while (zone < text.size() && is_digit(text[zone])) ++zone;
    std::string_view fraction = text.substr(start, std::min<size_t>(zone - start, 9));
    while (fraction.ends_with('0')) fraction.remove_suffix(1);
    if (!fraction.empty()) out += '.' + std::string(fraction);
  }
  const std::string_view offset = text.substr(zone);
  return out + std::string(offset == "+00:00" || offset == "-00:00" ? "Z" : offset);
}

// Second pass, over bytes known to be well-formed.
class Reader {
 public:
  Reader(Arena& arena, std::string_view source) : arena_(arena), source_(source) {}

  Value read();
  const std::string& message() const { return message_; }
  size_t error_offset() const { return error_offset_; }

 private:
  static constexpr uint64_t kRfc3339 = 0;
  static constexpr uint64_t kEpoch = 1;
  static constexpr uint64_t kBase64Url = 21;
  static constexpr uint64_t kBase64 = 22;
  static constexpr uint64_t kBase16 = 23;

  struct Frame {
    bool map;
    bool indefinite;
    uint64_t left;      // Members or items left.
    uint64_t encoding;  // The tag that applies to byte strings inside.
    size_t start;       // Of its members or items on their stack.
    size_t offset;      // Of its first key in the source.
    bool bad_key;       // The current member has an invalid key: its value is dropped.
  };

  Head head() {
    const auto first = static_cast<uint8_t>(source_[at_++]);
    Head h{static_cast<CborMajor>(first >> 5), static_cast<uint8_t>(first & 0x1f), static_cast<uint64_t>(first & 0x1f)};
    if (h.info < 24 || h.info == 31) return h;
    h.argument = 0;
    for (size_t bytes = size_t{1} << (h.info - 24); bytes > 0; --bytes) {
      h.argument = h.argument << 8 | static_cast<uint8_t>(source_[at_++]);
    }
    return h;
  }
  CborMajor next() const { return static_cast<CborMajor>(static_cast<uint8_t>(source_[at_]) >> 5); }
  bool at_break() {
    if (static_cast<uint8_t>(source_[at_]) != kBreak) return false;
    ++at_;
    return true;
  }

  // Only the first error is reported; reading continues to the end, like upstream's decoder.
  Value fail(size_t offset, std::string message) {
    if (message_.empty()) {
      message_ = std::move(message);
      error_offset_ = offset;
    }
    return Value::null();
  }

  std::string_view text(const Head& h) {
    if (!h.indefinite()) {
      const std::string_view all = source_.substr(at_, h.argument);
      at_ += h.argument;
      return all;
    }
    std::string joined;
    while (!at_break()) {
      const Head chunk = head();
      joined.append(source_.substr(at_, chunk.argument));
      at_ += chunk.argument;
    }
    return arena_.copy(joined);
  }
  std::string_view encoded(std::string_view bytes, uint64_t encoding);
  void skip() {
    Checker checker(source_.substr(at_));
    checker.item();
    at_ += checker.at();
  }

  Value integer(const Head& h, size_t offset, std::string_view go_type = "int64");
  Value scalar(const Head& h, size_t offset, uint64_t encoding);
  Value time(uint64_t tag);
  bool tags(Head& h, size_t start, uint64_t& encoding, Value& value);
  std::string_view key(uint64_t encoding, bool& good);
  bool another(Frame& frame);
  void add(Value value);
  Value close(const Frame& frame);

  Arena& arena_;
  std::string_view source_;
  size_t at_ = 0;
  std::string message_;
  size_t error_offset_ = 0;
  std::vector<Frame> frames_;
  std::vector<Value> items_;
  std::vector<Member> members_;
  std::vector<uint32_t> scratch_;
};

std::string_view Reader::encoded(std::string_view bytes, uint64_t encoding) {
  if (encoding == kBase64) return arena_.copy(base64_encode(bytes));
  if (encoding == kBase16) return arena_.copy(to_hex(bytes));
  return encoding == kBase64Url ? arena_.copy(base64url_encode(bytes)) : bytes;
}

Value Reader::integer(const Head& h, size_t offset, std::string_view go_type) {
  if (h.argument <= INT64_MAX) {
    const auto number = static_cast<int64_t>(h.argument);
    return Value::integer(h.major == CborMajor::Unsigned ? number : ~number);
  }
  // -1 - argument may not fit into uint64.
  const std::string digits = h.major == CborMajor::Unsigned ? std::to_string(h.argument)
                             : h.argument == UINT64_MAX     ? "-18446744073709551616"
                                                            : "-" + std::to_string(h.argument + 1);
  return fail(offset, "cbor: cannot unmarshal " + type_name(h.major) + " into Go value of type " +
                          std::string(go_type) + " (" + digits + " overflows Go's int64)");
}

Value Reader::scalar(const Head& h, size_t offset, uint64_t encoding) {
  switch (h.major) {
    case CborMajor::Unsigned:
    case CborMajor::Negative:
      return integer(h, offset);
    case CborMajor::Bytes:
      return Value::string(encoded(text(h), encoding));
    case CborMajor::Text: {
      const std::string_view all = text(h);
      if (!is_valid_utf8(all)) return fail(offset, "cbor: invalid UTF-8 string");
      return Value::string(all);
    }
    default:
      if (h.info == 20 || h.info == 21) return Value::boolean(h.info == 21);
      if (h.info == 22) return Value::null();
      if (h.info >= 25) return Value::number(float_value(h));
      return fail(offset, not_accepted(h.major, "simple value " + std::to_string(h.argument) + " is not recognized"));
  }
}

// Skips tags up to the head of the tagged item; false if a tag already determined the value.
bool Reader::tags(Head& h, size_t start, uint64_t& encoding, Value& value) {
  while (h.major == CborMajor::Tag) {
    const uint64_t tag = h.argument;
    const auto content = static_cast<uint8_t>(source_[at_]);
    const CborMajor got = next();
    if (tag == kRfc3339 && got != CborMajor::Text) {
      skip();
      value = fail(start, "cbor: tag number 0 must be followed by text string, got " + type_name(got));
      return false;
    }
    if (tag == kEpoch && got != CborMajor::Unsigned && got != CborMajor::Negative &&
        (content < 0xf9 || content > 0xfb)) {
      skip();
      value =
          fail(start, "cbor: tag number 1 must be followed by integer or floating-point number, got " + type_name(got));
      return false;
    }
    if (tag == kRfc3339 || tag == kEpoch) {
      value = time(tag);
      return false;
    }
    if (tag >= kBase64Url && tag <= kBase16) encoding = tag;
    h = head();
  }
  return true;
}

Value Reader::read() {
  for (;;) {
    uint64_t encoding = frames_.empty() ? 0 : frames_.back().encoding;
    const size_t start = at_;
    Head h = head();
    Value value;
    if (tags(h, start, encoding, value)) {
      if (h.major == CborMajor::List || h.major == CborMajor::Map) {
        const bool map = h.major == CborMajor::Map;
        frames_.push_back(
            {map, h.indefinite(), h.argument, encoding, map ? members_.size() : items_.size(), at_, false});
      } else {
        value = scalar(h, start, encoding);
        if (frames_.empty()) return value;
        add(value);
      }
    } else {
      if (frames_.empty()) return value;
      add(value);
    }
    while (!another(frames_.back())) {
      const Frame frame = frames_.back();
      frames_.pop_back();
      const Value container = close(frame);
      if (frames_.empty()) return container;
      add(container);
    }
  }
}

// Whether the container has another value; in a map, its key has then been read.
bool Reader::another(Frame& frame) {
  if (frame.indefinite ? at_break() : frame.left-- == 0) return false;
  if (frame.map) {
    bool good = false;
    const std::string_view name = key(frame.encoding, good);
    frame.bad_key = !good;
    members_.push_back({name, Value()});
  }
  return true;
}

void Reader::add(Value value) {
  const Frame& frame = frames_.back();
  if (!frame.map) {
    items_.push_back(value);
  } else if (frame.bad_key) {
    members_.pop_back();
  } else {
    members_.back().value = value;
  }
}

Value Reader::close(const Frame& frame) {
  if (!frame.map) {
    const std::span<const Value> items(items_.data() + frame.start, items_.size() - frame.start);
    const Value list = Value::list(arena_.copy(items));
    items_.resize(frame.start);
    return list;
  }
  const std::span<const Member> members(members_.data() + frame.start, members_.size() - frame.start);
  if (const size_t again = first_repeated(members, scratch_); again != kNoneRepeated) {
    fail(frame.offset, "cbor: found duplicate map key " + go_quote(members[again].key) + " at map element index " +
                           std::to_string(again));
  }
  // After an error the tree is discarded; with duplicate keys it must not even be built.
  const Value map = members.empty() || !message_.empty() ? Value::empty_map() : Value::map(arena_, members);
  members_.resize(frame.start);
  return map;
}

// Keys must be texts.
std::string_view Reader::key(uint64_t encoding, bool& good) {
  const size_t start = at_;
  Head h = head();
  while (h.major == CborMajor::Tag) {
    if (h.argument >= kBase64Url && h.argument <= kBase16) encoding = h.argument;
    h = head();
  }
  good = true;
  if (h.major == CborMajor::Bytes) return encoded(text(h), encoding);
  if (h.major == CborMajor::Text) {
    const std::string_view all = text(h);
    if (is_valid_utf8(all)) return all;
    fail(start, "cbor: invalid UTF-8 string");
  } else {
    at_ = start;
    skip();
    fail(start, "cbor: cannot unmarshal " + type_name(h.major) + " into Go value of type string");
  }
  good = false;
  return {};
}

Value Reader::time(uint64_t tag) {
  const size_t start = at_;
  const Head h = head();
  if (tag == kRfc3339) {
    const std::string_view all = text(h);
    if (!is_valid_utf8(all)) return fail(start, "cbor: invalid UTF-8 string");
    if (!parse_rfc3339(all)) {
      return fail(start, "cbor: cannot set " + std::string(all) + " for time.Time: parsing time " + go_quote(all) +
                             " as \"2006-01-02T15:04:05Z07:00\": cannot parse " + go_quote(all) + " as \"2006\"");
    }
    return Value::string(arena_, normal_time_text(all));
  }
  UnixTime when;
  if (h.major == CborMajor::Simple) {
    const double number = float_value(h);
    double seconds = 0;
    const double part = std::modf(number, &seconds);
    constexpr double kMaxEpochSeconds = 1e15;  // Well beyond the year 9999, well within int64.
    when.seconds = static_cast<int64_t>(std::clamp(seconds, -kMaxEpochSeconds, kMaxEpochSeconds));
    when.nanos = static_cast<int32_t>(part * 1e9);
    if (when.nanos < 0) {
      when.nanos += 1000000000;
      --when.seconds;
    }
  } else {
    const Value seconds = integer(h, start, "time.Time");
    if (seconds.is_null()) return seconds;
    when.seconds = seconds.as_int();
  }
  constexpr int64_t kYear0 = -62167219200;
  constexpr int64_t kYear10000 = 253402300800;
  if (when.seconds < kYear0 || when.seconds >= kYear10000) {
    return fail(start,
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
                "Time.MarshalText: year outside of range [0,9999]");
  }
  std::string all = format_rfc3339({when.seconds, 0});
  if (when.nanos != 0) {
    std::string fraction = std::to_string(1000000000 + when.nanos).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    all.insert(all.size() - 1, "." + fraction);
  }
  return Value::string(arena_, all);
}

Error refuse(const CborOptions& options, size_t offset, std::string message) {
  if (options.error_offset != nullptr) *options.error_offset = offset;
  return bad_request(std::move(message));
}

}  // namespace

Result<Value> decode_cbor(Arena& arena, std::string_view source, const CborOptions& options) {
  if (source.size() > UINT32_MAX) return refuse(options, 0, "CBOR of more than 4 GiB");
  Checker checker(source);
  if (!checker.item()) return refuse(options, checker.at(), checker.message());
  if (checker.at() != source.size()) {
    return refuse(options, checker.at(),
                  "cbor: " + std::to_string(source.size() - checker.at()) +
                      " bytes of extraneous data starting at index " + std::to_string(checker.at()));
  }
  Reader reader(arena, source);
  const Value root = reader.read();
  if (!reader.message().empty()) return refuse(options, reader.error_offset(), reader.message());
  return root;
}

Result<Document> parse_cbor(std::string source, const CborOptions& options) {
  Document document(std::move(source));
  Result<Value> root = decode_cbor(document.arena(), document.source(), options);
  if (!root) return root.take_error();
  document.set_root(*root);
  return document;
}

Result<size_t> first_cbor_item(std::string_view bytes) {
  if (bytes.empty()) return size_t{0};
  Checker checker(bytes);
  if (checker.item()) return checker.at();
  if (checker.incomplete()) return size_t{0};
  return bad_request(checker.message());
}

}  // namespace holdfast::codec
