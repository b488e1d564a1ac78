// Transcodes Protobuf to CBOR without a tree.
#include "codec/cbor.h"
#include "codec/protobuf_read.h"
#include "codec/transcode_json.h"

namespace holdfast::codec {
namespace {

class CborOut : public MemoizingOut {
 public:
  using MemoizingOut::MemoizingOut;

  struct Mark {
    CborContainer container;
    uint64_t outer_count;
  };

  void key(std::string_view name) { map_key(name); }
  void map_key(std::string_view text) {
    ++count_;
    write_cbor_text(text, sink_);
  }
  void item() { ++count_; }

  void null() { write_cbor_null(sink_); }
  void set_null() { null(); }
  void boolean(bool b) { write_cbor_bool(b, sink_); }
  void integer(int64_t i) { write_cbor_int(i, sink_); }
  void number(double d) { write_cbor_double(d, sink_); }
  void string(std::string_view view) { write_cbor_text(view, sink_); }
  void text(std::string_view characters) { write_cbor_text(characters, sink_); }
  void base64(std::string_view bytes) { write_cbor_bytes(bytes, sink_); }
  void raw(std::string_view json) { write_json_as_cbor(json, sink_); }

  Mark begin_map() { return {CborContainer(sink_), std::exchange(count_, 0)}; }
  void end_map(Mark mark) { end(mark, CborMajor::Map); }
  Mark begin_list() { return begin_map(); }
  void end_list(Mark mark) { end(mark, CborMajor::List); }

 private:
  void end(Mark& mark, CborMajor major) {
    mark.container.add(count_);
    mark.container.finish(major, sink_);
    count_ = mark.outer_count;
  }

  uint64_t count_ = 0;  // Members or items of the innermost open container.
};

}  // namespace

Result<Unit> protobuf_to_cbor(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options,
                              const RenderAdditions& additions) {
  return render_protobuf<CborOut>(type, message, meta, shape, out, options, additions);
}

}  // namespace holdfast::codec
