// All uses of OpenSSL: contexts, certificates, and a TLS engine that works on memory. The engine reads from a view and
// writes to a string, so a round needs one recv and one send regardless of the number of records.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <span>

#include "net/net.h"

namespace holdfast::net::detail {

struct SslCtxFree {
  void operator()(SSL_CTX* ctx) const { SSL_CTX_free(ctx); }
};
struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct X509Free {
  void operator()(X509* x) const { X509_free(x); }
};
using ContextPtr = std::shared_ptr<SSL_CTX>;
using SslPtr = std::unique_ptr<SSL, SslFree>;
using X509Ptr = std::unique_ptr<X509, X509Free>;

// The latest OpenSSL error as text; clears the error queue.
std::string openssl_error();

// `named_identities`: used instead of `identity` for their host names.
Result<ContextPtr> server_context(const Identity& identity, std::span<const NamedIdentity> named_identities,
                                  const TlsOptions& options, std::string_view client_ca_pem);
Result<ContextPtr> client_context(const ClientOptions& options);
Result<std::vector<X509Ptr>> certificates_from_pem(std::string_view pem, std::string_view source);

struct CertificateData {
  X509Ptr leaf;
  std::vector<X509Ptr> intermediates;
  std::string common_name;
  std::vector<std::string> organizations;
  std::string uid;
  std::string der;
  std::string sha256_hex;
  std::chrono::system_clock::time_point not_after;  // The first moment at which it is no longer valid.
  // The cached result of one CaPool, and how long it is valid.
  struct Verdict {
    uint64_t pool = 0;
    std::chrono::system_clock::time_point until;
    std::optional<Error> error;
  };
  mutable std::vector<Verdict> verdicts;
};

// A TLS session over memory: feed() ciphertext, read() plaintext, write() plaintext. Outgoing ciphertext is appended to
// the string given to write_to().
class TlsEngine {
 public:
  enum class Status : uint8_t { Ok, WantInput, Closed, Failed };

  TlsEngine(const ContextPtr& context, bool server);
  void set_server_name(const std::string& name, bool verify);

  void feed(std::string_view ciphertext) { input_ = ciphertext; }
  std::string_view unread() const { return input_; }
  // read() has nothing to return before the next feed().
  bool exhausted() const { return input_.empty() && SSL_has_pending(ssl_.get()) == 0; }
  void write_to(std::string* output) { output_ = output; }

  Status handshake();
  Status read(char* to, size_t capacity, size_t& got);
  bool write(std::string_view plaintext);
  void close_notify();
  // Frees 33 KB of record buffers of an idle connection; doing so after each record would cost too much.
  void release_buffers() { SSL_free_buffers(ssl_.get()); }

  bool alpn_is_h2() const;
  std::unique_ptr<CertificateData> peer_certificate() const;
  long verify_result() const { return SSL_get_verify_result(ssl_.get()); }
  const std::string& failure() const { return failure_; }

 private:
  friend struct MemoryBio;
  Status status_of(int result);

  ContextPtr context_;  // The handshake looks up certificates for other names in it.
  SslPtr ssl_;
  std::string_view input_;
  std::string* output_ = nullptr;
  std::string failure_;
};

}  // namespace holdfast::net::detail
