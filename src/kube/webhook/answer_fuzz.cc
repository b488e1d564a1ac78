// Arbitrary bytes as a webhook's response or configuration must not crash.
#include <cstdint>
#include <string_view>

#include "codec/codec.h"
#include "webhook/webhook.h"

using namespace holdfast;           // NOLINT
using namespace holdfast::webhook;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  Arena arena;
  for (const ReviewVersion version : {ReviewVersion::V1, ReviewVersion::V1beta1}) {
    Result<AdmissionReviewResponse> answer = parse_admission_response(arena, body, "uid", (data[0] & 1) != 0, version);
    if (answer && !answer->allowed) (void)denied_by("hook", answer->status);
  }
  if (const Result<Value> configuration = codec::decode_json(arena, body); configuration && configuration->is_map()) {
    for (const Hook& hook : hooks_of(*configuration)) {
      (void)selects_object(hook.object_selector, *configuration, Value::null());
      (void)selects_namespace(hook.namespace_selector, configuration->find("labels"));
    }
  }
  return 0;
}
