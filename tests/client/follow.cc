// Runs an informer over the ConfigMaps of a server, for tests. Answers each line on standard input with its current
// state, as one line of JSON.
#include <cstdio>
#include <iostream>
#include <string>

#include "client/client.h"

using namespace holdfast;
using namespace holdfast::client;

int main(int count, char** arguments) {
  Options options = controller_options("follow");
  options.retry.max_delay = net::Millis(200);
  if (count > 1) options.encoding = std::string_view(arguments[1]) == "json" ? Encoding::Json : Encoding::Protobuf;
  Result<Client> client = Client::connect(std::move(options));
  if (!client) {
    fprintf(stderr, "%s\n", client.error().message.c_str());
    return 1;
  }
  std::shared_ptr<Informer> informer = Informer::follow(*client, builtin("v1", "ConfigMap"), {.space = "default"});
  for (std::string line; std::getline(std::cin, line);) {
    Arena arena;
    MapBuilder objects(arena);
    int64_t with_managed_fields = 0;
    for (const Stored& stored : informer->list()) {
      const Object object = stored.get();
      with_managed_fields += object.root().get("metadata", "managedFields") != nullptr ? 1 : 0;
      objects.add_copy(stored.key(), Value::string(arena, object.root().text_at("data", "x")));
    }
    const InformerStatus status = informer->status();
    MapBuilder answer(arena);
    answer.add("objects", objects.build());
    answer.add("withManagedFields", Value::integer(with_managed_fields));
    answer.add("synced", Value::boolean(status.synced));
    answer.add("connected", Value::boolean(status.connected));
    answer.add("lists", Value::integer(static_cast<int64_t>(status.lists)));
    answer.add("failures", Value::integer(static_cast<int64_t>(status.failures)));
    answer.add("lastError", Value::string(status.last_error));
    answer.add("sinceContact", Value::integer(status.since_contact.count()));
    puts(codec::encode_json(answer.build()).c_str());
    fflush(stdout);
  }
}
