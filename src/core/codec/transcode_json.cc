#include "codec/transcode_json.h"

#include <vector>

#include "codec/cbor.h"
#include "codec/json_error.h"
#include "codec/json_parse.h"
#include "codec/json_write.h"

namespace holdfast::codec {
namespace {

constexpr std::string_view kPartialKind = "PartialObjectMetadata";
constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";

// Tracks the position in the source and decides which members to keep.
class Shaper {
 public:
  explicit Shaper(const Shape& shape) : shape_(shape) {}

  bool wants(const JsonText& text) {
    if (shape_.metadata_only && depth_ == 1 && text.raw != "metadata") return false;
    if (shape_.drop == nullptr) return true;
    const FieldPaths::Node above = nodes_.back();
    if (above == FieldPaths::kNone) return true;
    below_ = shape_.drop->child(above, text.escaped ? unescape_json(text, scratch_) : text.raw);
    return !shape_.drop->ends_at(below_);
  }
  void open() {
    ++depth_;
    if (shape_.drop != nullptr) nodes_.push_back(below_);
  }
  // List items have the position of the list; for map members, wants() determines it.
  void open_map() {
    open();
    if (shape_.drop != nullptr) below_ = FieldPaths::kNone;
  }
  void close() {
    --depth_;
    if (shape_.drop == nullptr) return;
    nodes_.pop_back();
    below_ = nodes_.empty() ? FieldPaths::kRoot : nodes_.back();
  }
  bool starts_partial() const { return shape_.metadata_only && depth_ == 1; }

 private:
  const Shape& shape_;
  size_t depth_ = 0;
  FieldPaths::Node below_ = FieldPaths::kRoot;
  std::vector<FieldPaths::Node> nodes_;
  std::string scratch_;
};

template <bool pretty>
class JsonHandler : public JsonTokenWriter<pretty> {
  using Base = JsonTokenWriter<pretty>;

 public:
  JsonHandler(const Shape& shape, Sink& sink) : Base(sink), shaper_(shape) {}

  JsonTake key(const JsonText& text) {
    if (!shaper_.wants(text)) return JsonTake::Skip;
    member(text.raw);
    return JsonTake::Value;
  }
  void string(const JsonText& text) { quoted(text.raw); }
  void begin_map() {
    Base::begin_map();
    shaper_.open_map();
    if (shaper_.starts_partial()) {
      member("kind");
      quoted(kPartialKind);
      member("apiVersion");
      quoted(kMetaVersion);
    }
  }
  void end_map() {
    shaper_.close();
    Base::end_map();
  }
  void begin_list() {
    Base::begin_list();
    shaper_.open();
  }
  void end_list() {
    shaper_.close();
    Base::end_list();
  }

 private:
  void member(std::string_view key) {
    quoted(key);
    Base::colon();
  }
  void quoted(std::string_view text) {
    Base::separate();
    char* to = Base::sink_.room(text.size() + 2);
    *to++ = '"';
    std::memcpy(to, text.data(), text.size());
    to += text.size();
    *to++ = '"';
    Base::sink_.wrote(to);
  }

  Shaper shaper_;
};

class CborHandler {
 public:
  CborHandler(const Shape& shape, Sink& sink) : shaper_(shape), sink_(sink) {}

  JsonTake key(const JsonText& text) {
    if (!shaper_.wants(text)) return JsonTake::Skip;
    open_.back().size.add();
    put(text);
    return JsonTake::Value;
  }
  void string(const JsonText& text) {
    count();
    put(text);
  }
  void integer(int64_t number, std::string_view) {
    count();
    write_cbor_int(number, sink_);
  }
  bool number(std::string_view text) {
    count();
    const std::optional<double> parsed = parse_float(text);
    if (!parsed) return false;
    write_cbor_double(*parsed, sink_);
    return true;
  }
  void boolean(bool b) {
    count();
    write_cbor_bool(b, sink_);
  }
  void null() {
    count();
    write_cbor_null(sink_);
  }
  void raw(std::string_view) {}
  void begin_map() {
    count();
    open_.push_back({CborContainer(sink_), false});
    shaper_.open_map();
    if (shaper_.starts_partial()) {
      for (const std::string_view text :
           {std::string_view("kind"), kPartialKind, std::string_view("apiVersion"), kMetaVersion}) {
        write_cbor_text(text, sink_);
      }
      open_.back().size.add();
      open_.back().size.add();
    }
  }
  void end_map() { close(CborMajor::Map); }
  void begin_list() {
    count();
    open_.push_back({CborContainer(sink_), true});
    shaper_.open();
  }
  void end_list() { close(CborMajor::List); }

 private:
  struct Open {
    CborContainer size;
    bool list;
  };
  void count() {
    if (!open_.empty() && open_.back().list) open_.back().size.add();
  }
  void put(const JsonText& text) {
    write_cbor_text(text.escaped || !text.ascii ? unescape_json(text, scratch_) : text.raw, sink_);
  }
  void close(CborMajor major) {
    shaper_.close();
    open_.back().size.finish(major, sink_);
    open_.pop_back();
  }

  Shaper shaper_;
  Sink& sink_;
  std::vector<Open> open_;
  std::string scratch_;
};

template <class Handler>
Result<Unit> run(std::string_view source, Handler& handler, Sink& sink, size_t before) {
  JsonParser parser(source, handler);
  if (parser.parse_document()) return Unit{};
  sink.truncate(before);
  JsonError error = find_json_error(source);
  return bad_request(error.message.empty() ? "json: number out of the range of float64" : std::move(error.message));
}

template <bool pretty>
Result<Unit> to_json(std::string_view source, const Shape& shape, std::string& out) {
  const size_t before = out.size();
  Sink sink(out);
  JsonHandler<pretty> handler(shape, sink);
  return run(source, handler, sink, before);
}

}  // namespace

Result<Unit> json_to_json(std::string_view source, const Shape& shape, std::string& out) {
  return to_json<false>(source, shape, out);
}

Result<Unit> json_to_pretty_json(std::string_view source, const Shape& shape, std::string& out) {
  return to_json<true>(source, shape, out);
}

Result<Unit> json_to_cbor(std::string_view source, const Shape& shape, std::string& out) {
  const size_t before = out.size();
  Sink sink(out);
  sink.put(kCborSelfDescribed);
  CborHandler handler(shape, sink);
  return run(source, handler, sink, before);
}

void write_json_as_cbor(std::string_view source, Sink& sink) {
  const size_t before = sink.size();
  const Shape whole;
  CborHandler handler(whole, sink);
  if (!run(source, handler, sink, before)) write_cbor_null(sink);
}

}  // namespace holdfast::codec
