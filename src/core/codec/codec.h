// Converts between bytes and values: JSON, YAML, CBOR and Protobuf as Kubernetes reads and writes them. Also transcodes
// bytes to bytes for the read path, without building a tree.
//
// All functions are stateless: bytes in, value or bytes out. Expected failures are BadRequest errors with the messages
// of Kubernetes' own decoders. No input crashes a decoder; memory usage is bounded by a small multiple of the input.
// Threading: may be shared freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "codec/cbor.h"
#include "codec/fields.h"
#include "codec/go_names.h"
#include "codec/json.h"
#include "codec/message_memo.h"
#include "codec/protobuf.h"
#include "codec/protobuf_metadata.h"
#include "codec/quantity.h"
#include "codec/sink.h"
#include "codec/text.h"
#include "codec/transcode_json.h"
#include "codec/typed.h"
#include "codec/yaml.h"
#include "value/value.h"

namespace holdfast::codec {

// A decoded body together with its memory. Views obtained from root() are valid as long as the Document.
class Document {
 public:
  explicit Document(std::string source = {}) : memory_(std::make_unique<Memory>(std::move(source))) {}

  const Value& root() const { return root_; }
  std::string_view source() const { return memory_->source; }
  // For data that must live as long as the tree.
  Arena& arena() { return memory_->arena; }
  void set_root(Value root) { root_ = root; }

 private:
  struct Memory {
    explicit Memory(std::string bytes) : source(std::move(bytes)) {}
    std::string source;
    Arena arena;
  };
  std::unique_ptr<Memory> memory_;
  Value root_;
};

Result<Document> parse_json(std::string source, const JsonOptions& options = {});
Result<Document> parse_yaml(std::string source, const YamlOptions& options = {});
Result<Document> parse_cbor(std::string source, const CborOptions& options = {});

}  // namespace holdfast::codec
