// Transcodes Protobuf to JSON without a tree.
#include "base/base64.h"
#include "codec/json_write.h"
#include "codec/protobuf_read.h"

namespace holdfast::codec {
namespace {

class JsonOut : public MemoizingOut {
 public:
  using MemoizingOut::MemoizingOut;

  struct Mark {};

  // A comma is needed unless the last byte is an opening bracket, with which no value ends.
  void key(std::string_view name) {
    char* p = sink_.room(name.size() + 4);
    if (p[-1] != '{') *p++ = ',';
    *p++ = '"';
    std::memcpy(p, name.data(), name.size());
    p += name.size();
    *p++ = '"';
    *p++ = ':';
    sink_.wrote(p);
  }
  void map_key(std::string_view text) {
    separate('{');
    write_json_text(text, sink_);
    sink_.put(':');
  }
  void item() { separate('['); }

  void null() { sink_.put("null"); }
  void set_null() { null(); }
  void boolean(bool b) { sink_.put(b ? std::string_view("true") : std::string_view("false")); }
  void integer(int64_t i) { write_json_int(i, sink_); }
  void number(double d) { write_json_double(d, sink_); }
  void string(std::string_view view) { write_json_text(view, sink_); }
  void text(std::string_view characters) { write_json_text(characters, sink_); }
  void base64(std::string_view bytes) {
    char* p = sink_.room(base64_size(bytes.size()) + 2);
    *p++ = '"';
    p = base64_encode(bytes, p);
    *p++ = '"';
    sink_.wrote(p);
  }
  void raw(std::string_view json) { write_json_raw(json, sink_); }

  Mark begin_map() {
    sink_.put('{');
    return {};
  }
  void end_map(Mark) { sink_.put('}'); }
  Mark begin_list() {
    sink_.put('[');
    return {};
  }
  void end_list(Mark) { sink_.put(']'); }

 private:
  void separate(char opening) {
    char* p = sink_.room(1);
    if (p[-1] == opening) return;
    *p = ',';
    sink_.wrote(p + 1);
  }
};

}  // namespace

Result<Unit> protobuf_to_json(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options,
                              const RenderAdditions& additions) {
  return render_protobuf<JsonOut>(type, message, meta, shape, out, options, additions);
}

}  // namespace holdfast::codec
