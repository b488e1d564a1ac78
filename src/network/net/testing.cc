#include "net/testing.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace holdfast::net::testing {

Seen seen;

Task<void> handle(Request& request, Response& response) {
  ++seen.started;
  struct End {
    ~End() { ++seen.ended; }
  } end;
  response.add_header("content-type", "text/plain");
  const std::string_view path = request.path;
  if (path == "/echo") {
    Result<std::string> body = co_await request.read_body(1 << 20);
    if (body) {
      (void)response.send(200, Body(std::move(*body)));
    } else {
      (void)response.send(413, Body(body.error().message));
    }
  } else if (path == "/throw") {
    throw std::runtime_error("on purpose");
  } else if (path == "/throw-late") {
    (void)response.start(200);
    (void)co_await response.write(std::string("begun"));
    throw std::runtime_error("on purpose");
  } else if (path == "/stream" || path == "/gzip") {
    if (path == "/gzip") response.allow_gzip();
    (void)response.start(200);
    const int count = std::atoi(std::string(request.query).c_str());
    for (int i = 0; i < count; ++i) {
      if (!co_await response.write(std::string(1000, static_cast<char>('a' + i % 26)))) co_return;
      seen.written += 1000;
    }
    response.end();
  } else if (path == "/forever") {
    response.on_interrupt([](Interrupt why) { ++(why == Interrupt::PeerGone ? seen.peer_gone : seen.draining); });
    (void)response.start(200);
    (void)co_await response.write(std::string("hello\n"));
    while (!response.draining()) {
      if (!co_await response.sleep_for(10ms)) co_return;
    }
    (void)co_await response.write(std::string("bye\n"));
    response.end();
  } else if (path == "/websocket") {
    response.on_interrupt([](Interrupt why) { ++(why == Interrupt::PeerGone ? seen.peer_gone : seen.draining); });
    (void)response.start(101);
    (void)co_await response.write(std::string("\x81\x05hello"));
    while (request.query != "short" && !response.draining()) {
      if (!co_await response.sleep_for(10ms)) co_return;
    }
    response.end();
  } else if (path == "/tunnel") {
    response.set_deadline(10ms);
    response.set_header("upgrade", "shout");
    (void)response.start(101);
    while (true) {
      Result<std::string> piece = co_await request.read_some();
      if (!piece || piece->empty()) break;
      for (char& c : *piece) c = static_cast<char>(std::toupper(c));
      const bool over = piece->ends_with("BYE");
      if (!co_await response.write(std::move(*piece)) || over) break;
    }
    response.end();
  } else if (path == "/wait") {
    Result<Unit> slept = co_await response.sleep_for(200ms);
    if (slept) (void)response.send(200, Body(std::string("done")));
  } else if (path == "/late") {
    response.set_deadline(Millis(std::atoi(std::string(request.query).c_str())));
    Result<Unit> slept = co_await response.sleep_for(60s);
    response.add_header("x", "too late");
    EXPECT_FALSE(slept);
    EXPECT_FALSE(response.send(200, Body(std::string("nobody hears this"))));
  } else if (path == "/early") {
    (void)response.send(403, Body(std::string("no")));
  } else if (path == "/trusted") {
    response.trust_connection();
    (void)response.send(200, Body(std::string("trusted")));
  } else if (path == "/goaway") {
    response.close_connection_after();
    (void)response.send(200, Body(std::string("last")));
  } else if (path == "/who") {
    const auto& certificate = request.peer->certificate;
    (void)response.send(200, Body(certificate ? std::string(certificate->common_name()) : "nobody"));
  } else if (path != "/silent") {
    (void)response.send(200, Body("hello " + std::string(path) + "?" + std::string(request.query)));
  }
}

Socket::Socket(uint16_t port, int receive_buffer_bytes) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_buffer_bytes > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  timeval limit{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(n);
  }
}

std::string Socket::read_some() {
  if (!buffer_.empty()) return std::exchange(buffer_, {});
  char text[65536];
  const ssize_t n = recv(fd_, text, sizeof text, 0);
  return n > 0 ? std::string(text, n) : std::string();
}

std::string Socket::read_until(std::string_view end) {
  std::string all;
  while (true) {
    if (const size_t at = all.find(end); at != std::string::npos) {
      buffer_ = all.substr(at + end.size()) + buffer_;
      return all.substr(0, at + end.size());
    }
    std::string more = read_some();
    if (more.empty()) return all;
    all += more;
  }
}

std::string Socket::read_all() {
  std::string all;
  for (std::string more; !(more = read_some()).empty();) all += more;
  return all;
}

TestServer::TestServer(ServerOptions options) {
  options.housekeeping_interval = 20ms;
  options.on_deadline = [](const Request&, Response& response) { (void)response.send(504, Body(std::string("slow"))); };
  server = std::make_unique<Server>(loops, std::move(options), handle);
  Result<Unit> started = server->start();
  EXPECT_TRUE(started) << (started ? "" : started.error().message);
}

TestServer::~TestServer() { server->stop(5s); }

Identity TestPki::make(const std::string& name, const std::string& organization, const Identity* authority) {
  auto text = [](auto&& write) {
    BIO* bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long bytes = BIO_get_mem_data(bio, &data);
    std::string pem(data, bytes);
    BIO_free(bio);
    return pem;
  };
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x = X509_new();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), rand());
  X509_gmtime_adj(X509_getm_notBefore(x), -60);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, key);
  auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.data()), static_cast<int>(value.size()), -1,
                               0);
  };
  if (!organization.empty()) add("O", organization);
  add("CN", name);
  auto extension = [&](int nid, const char* value) {
    X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
  };
  EVP_PKEY* signer = key;
  X509* issuer = x;
  if (authority == nullptr) {
    extension(NID_basic_constraints, "critical,CA:TRUE");
  } else {
    extension(NID_ext_key_usage, "serverAuth,clientAuth");
    extension(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    BIO* bio = BIO_new_mem_buf(authority->certificate_pem.data(), -1);
    issuer = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    bio = BIO_new_mem_buf(authority->key_pem.data(), -1);
    signer = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
  }
  X509_set_issuer_name(x, X509_get_subject_name(issuer));
  X509_sign(x, signer, EVP_sha256());
  Identity identity{text([&](BIO* bio) { PEM_write_bio_X509(bio, x); }), text([&](BIO* bio) {
                      PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
                    })};
  if (authority != nullptr) {
    EVP_PKEY_free(signer);
    X509_free(issuer);
  }
  EVP_PKEY_free(key);
  X509_free(x);
  return identity;
}

const TestPki& TestPki::get() {
  static const TestPki kPki = [] {
    TestPki pki;
    pki.authority = make("test-ca", "", nullptr);
    pki.server = make("server", "", &pki.authority);
    pki.client = make("alice", "dev", &pki.authority);
    return pki;
  }();
  return kPki;
}

}  // namespace holdfast::net::testing
