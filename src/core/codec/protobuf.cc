// The envelope, and decoding messages to trees.
#include "codec/protobuf.h"

#include "base/base64.h"
#include "base/varint.h"
#include "codec/protobuf_read.h"

namespace holdfast::codec {
namespace {

class TreeOut {
 public:
  explicit TreeOut(Arena& arena) : arena_(arena) { stack_.reserve(64); }

  struct Mark {
    size_t start;
    std::string_view key;
  };

  void key(std::string_view name) { key_ = name; }
  void map_key(std::string_view text) { key_ = text; }
  void item() { key_ = {}; }

  void null() { add(Value::null()); }
  void set_null() { add(Value::raw("null")); }
  void boolean(bool b) { add(Value::boolean(b)); }
  void integer(int64_t i) { add(Value::integer(i)); }
  void number(double d) { add(Value::number(d)); }
  void string(std::string_view view) { add(Value::string(view)); }
  void text(std::string_view characters) { add(Value::string(arena_, characters)); }
  void base64(std::string_view bytes) {
    auto* text = arena_.allocate_array<char>(base64_size(bytes.size()));
    char* const end = base64_encode(bytes, text);
    add(Value::string({text, static_cast<size_t>(end - text)}));
  }
  void raw(std::string_view json) { add(Value::raw(json)); }

  Mark begin_map() { return {stack_.size(), key_}; }
  void end_map(const Mark& mark) {
    const std::span<const Member> members(stack_.data() + mark.start, stack_.size() - mark.start);
    const Value map = members.empty() ? Value::empty_map() : Value::map(arena_, members);
    close(mark, map);
  }
  Mark begin_list() { return begin_map(); }
  void end_list(const Mark& mark) {
    const size_t count = stack_.size() - mark.start;
    auto* items = arena_.allocate_array<Value>(count);
    for (size_t i = 0; i < count; ++i) items[i] = stack_[mark.start + i].value;
    close(mark, Value::list({items, count}));
  }

  Value result() const { return stack_.empty() ? Value::null() : stack_.front().value; }

 private:
  void add(Value value) { stack_.push_back({key_, value}); }
  void close(const Mark& mark, Value value) {
    stack_.resize(mark.start);
    stack_.push_back({mark.key, value});
  }

  Arena& arena_;
  std::string_view key_;
  std::vector<Member> stack_;  // Members and items of the open containers.
};

}  // namespace

Result<Value> decode_protobuf(Arena& arena, const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const ProtobufOptions& options) {
  if (message.size() > UINT32_MAX) return bad_request("the message is too large");
  TreeOut out(arena);
  ProtobufReader<TreeOut> reader(out, arena, message, options.gates, nullptr);
  if (!reader.object(type, meta)) return reader.error();
  return out.result();
}

Result<ProtobufEnvelope> open_envelope(std::string_view bytes) {
  if (bytes.empty()) return bad_request("empty data");
  if (!is_protobuf(bytes)) {
    return bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  }
  if (bytes.size() == kProtobufMagic.size()) return bad_request("empty body");
  ProtobufEnvelope envelope;
  const char* p = bytes.data() + kProtobufMagic.size();
  const char* const end = bytes.data() + bytes.size();
  const auto truncated = [&](const char* at) {
    return bad_request("unexpected EOF in runtime.Unknown at byte " + std::to_string(at - bytes.data()));
  };
  while (p != end) {
    const char* const from = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return truncated(from);
    std::string_view type_meta;
    switch (tag) {
      case 1 << 3 | wire::kBytes:
        p = wire::read_bytes(p, end, type_meta);
        break;
      case 2 << 3 | wire::kBytes:
        p = wire::read_bytes(p, end, envelope.message);
        break;
      case 3 << 3 | wire::kBytes:
        p = wire::read_bytes(p, end, envelope.content_encoding);
        break;
      case 4 << 3 | wire::kBytes:
        p = wire::read_bytes(p, end, envelope.content_type);
        break;
      default:
        if (tag >> 3 <= 4) {
          return bad_request("wrong tag " + std::to_string(tag) + " in runtime.Unknown at byte " +
                             std::to_string(from - bytes.data()));
        }
        p = wire::skip_value(p, end, tag);
    }
    if (p == nullptr) return truncated(from);
    const char* const bad = wire::each_field(type_meta, [&](uint64_t inner, const char* at, const char* stop) {
      if (inner == (1 << 3 | wire::kBytes)) return wire::read_bytes(at, stop, envelope.type.api_version);
      if (inner == (2 << 3 | wire::kBytes)) return wire::read_bytes(at, stop, envelope.type.kind);
      return wire::skip_value(at, stop, inner);
    });
    if (bad != nullptr) return truncated(bad);
  }
  return envelope;
}

void write_envelope_head(const TypeMeta& type, size_t message_size, std::string& out) {
  const auto text_size = [](std::string_view text) { return 1 + varint_size(text.size()) + text.size(); };
  const auto put_text = [&](char tag, std::string_view text) {
    out += tag;
    put_varint(out, text.size());
    out += text;
  };
  out += kProtobufMagic;
  out += '\x0a';
  put_varint(out, text_size(type.api_version) + text_size(type.kind));
  put_text('\x0a', type.api_version);
  put_text('\x12', type.kind);
  out += '\x12';
  put_varint(out, message_size);
}

Result<Unit> encode_enveloped(const types::Type& type, const Value& value, std::string& out) {
  std::string message;
  Result<Unit> encoded = encode_protobuf(type, value, message);
  if (!encoded) return encoded;
  const TypeMeta meta{value.text_at("apiVersion"), value.text_at("kind")};
  constexpr size_t kEnvelope = 64;  // More than the rest of the envelope takes.
  out.reserve(out.size() + meta.api_version.size() + meta.kind.size() + message.size() + kEnvelope);
  write_envelope_head(meta, message.size(), out);
  out += message;
  out += kEnvelopeTail;
  return Unit{};
}

}  // namespace holdfast::codec
