#ifdef HOLDFAST_STATIC
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#endif

#include "cli/cli.h"

#ifdef HOLDFAST_STATIC
// In glibc, but not in its headers for C++.
extern "C" int __nss_configure_lookup(const char* database, const char* services);

namespace {

// A program with its own glibc, on any distribution.
void adapt_to_system() {
  // Plugins for other services are libraries of the system, made for the system's glibc.
  __nss_configure_lookup("hosts", "files dns");
  for (const char* database : {"passwd", "group", "services", "protocols"}) __nss_configure_lookup(database, "files");
  // OpenSSL looks where Debian keeps the authorities that the system trusts.
  if (getenv("SSL_CERT_FILE") != nullptr || getenv("SSL_CERT_DIR") != nullptr) return;
  if (access("/usr/lib/ssl/certs", R_OK) == 0) return;
  for (const char* file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (access(file, R_OK) != 0) continue;
    setenv("SSL_CERT_FILE", file, 0);
    return;
  }
}

}  // namespace
#endif

int main(int argc, char** argv) {
#ifdef HOLDFAST_STATIC
  adapt_to_system();
#endif
  return holdfast::cli::run({argv, argv + argc});
}
