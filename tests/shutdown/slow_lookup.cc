// Preloaded into a server: lookups of names that end with ".test" do not return until the file SLOW_LOOKUP_UNTIL
// exists, like those of a name server that does not respond.
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (node != nullptr && !numeric && std::string_view(node).ends_with(".test")) {
    const char* const until = std::getenv("SLOW_LOOKUP_UNTIL");
    while (until != nullptr && access(until, F_OK) != 0) usleep(10'000);
  }
  return real(node, service, hints, found);
}
