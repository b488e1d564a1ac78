// What a user of the library writes first: decode an object, look into it.
#include <cstdio>

#include "codec/codec.h"

int main() {
  holdfast::Arena arena;
  const auto pod = holdfast::codec::decode_json(arena, R"({"kind":"Pod","metadata":{"name":"web"}})");
  if (!pod || pod->text_at("metadata", "name") != "web") return 1;
  std::puts(holdfast::codec::encode_json(*pod).c_str());
}
