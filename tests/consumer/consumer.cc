// A minimal user of the library: two managers apply a ConfigMap, and the second one gets a conflict.
#include <holdfast/codec/codec.h>
#include <holdfast/ownership/ownership.h>
#include <holdfast/types/types.h>

#include <cstdio>

using namespace holdfast;

int main() {
  const types::Resource* resource = types::find_resource("", "v1", "configmaps");
  const ownership::FieldManager manager({.api_version = "v1",
                                         .kind = "ConfigMap",
                                         .subresource = {},
                                         .versions = {{"v1", &ownership::builtin_merge_types().of(*resource->type)}},
                                         .convert = {},
                                         .zero_object = {},
                                         .declared_defaults = {}});
  Arena arena;
  const auto config = [&](const char* json) { return *codec::decode_json(arena, json); };
  const Value red = config(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"color":"red","size":"3"}})");
  const Value blue =
      config(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"color":"blue"}})");

  Result<ownership::ApplyResult> first = manager.apply(arena, {.config = red, .manager = "alice", .now = {}});
  if (!first) return 1;
  std::puts(codec::encode_json(first->object).c_str());

  ownership::ApplyRequest second{
      .live = &first->object, .live_managed = &first->managed, .config = blue, .manager = "bob", .now = {}};
  Result<ownership::ApplyResult> refused = manager.apply(arena, second);
  if (refused) return 1;
  std::puts(refused.error().message.c_str());

  second.force = true;
  Result<ownership::ApplyResult> forced = manager.apply(arena, second);
  if (!forced) return 1;
  std::puts(codec::encode_json(forced->object).c_str());
}
