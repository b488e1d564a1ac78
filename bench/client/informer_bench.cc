// informer_bench ENCODING DROP: an informer over all pods; prints CPU seconds, resident MB and peak MB once it is
// synced.
//
// ENCODING: json, cbor, protobuf. DROP: keep, drop. Compared with go/main.go, which does the same with client-go.
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/process.h"
#include "client/client.h"

using namespace holdfast;
using namespace holdfast::client;

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const std::string_view encoding = arguments[1];
  Options options;
  options.encoding = encoding == "json" ? Encoding::Json : encoding == "cbor" ? Encoding::Cbor : Encoding::Protobuf;
  if (std::string_view(arguments[2]) == "drop") options.drop_fields = {std::string(kManagedFields)};
  Result<Client> client = Client::connect(std::move(options));
  if (!client) return fprintf(stderr, "%s\n", client.error().message.c_str()), 1;
  const auto start = std::chrono::steady_clock::now();
  const double before = cpu_seconds();
  std::shared_ptr<Informer> informer = Informer::follow(*client, builtin("v1", "Pod"));
  Result<Unit> synced = informer->wait_synced().wait();
  if (!synced) return fprintf(stderr, "%s\n", synced.error().message.c_str()), 1;
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu = cpu_seconds() - before;
  malloc_trim(0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  printf("%zu %.2f %.2f %.0f %.0f\n", informer->status().objects, took, cpu,
         static_cast<double>(resident_bytes()) / 1e6, static_cast<double>(usage.ru_maxrss) * 1024 / 1e6);
}
