// Arbitrary bytes as the discovery and OpenAPI documents of an aggregated server: never crashes, and the result is a
// valid document.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "aggregate/aggregate.h"
#include "codec/codec.h"
#include "openapi/openapi.h"

using namespace holdfast;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  Arena arena;
  aggregate::RemoteApis remotes(1);
  remotes[0].name = "v1.a.example.com";
  remotes[0].group = "a.example.com";
  remotes[0].version = "v1";
  remotes[0].available = true;
  remotes[0].resources = std::make_shared<const std::string>(body);
  const Value shown = aggregate::with_remote_discovery(arena, Value::empty_map(), remotes);
  if (!codec::decode_json(arena, arena.copy(codec::encode_json(shown)))) std::abort();

  const Result<Value> document = codec::decode_json(arena, arena.copy(body));
  if (!document || !document->is_map()) return 0;
  const openapi::Remote others[] = {{"/apis/a.example.com/v1/", *document}};
  const std::string whole = openapi::v2_document({{}, Gates{}, others});
  if (!codec::decode_json(arena, arena.copy(whole))) std::abort();
  return 0;
}
