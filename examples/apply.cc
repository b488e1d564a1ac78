// Applies one object: a minimal program.
#include <cstdio>

#include "holdfast/apply/core_v1.h"
#include "holdfast/client/client.h"

using namespace holdfast;
using namespace holdfast::client;

int main() {
  Result<Client> client = Client::connect({.field_manager = "apply-example"});
  if (!client) return fprintf(stderr, "%s\n", client.error().message.c_str()), 1;
  core_v1::ConfigMap config = core_v1::ConfigMap("settings").with_data("color", "blue").unset_data_key("legacy");
  Result<Object> applied = client->api<core_v1::ConfigMap>(".").apply(config, {.force = true}).wait();
  if (!applied) return fprintf(stderr, "%s\n", applied.error().message.c_str()), 1;
  printf("applied %s at %s\n", applied->key().c_str(), std::string(applied->resource_version()).c_str());
}
