// A signer of service account tokens for tests, by the gRPC library: `mock_signer SOCKET`. It has the keys rsa, rsa2,
// p256, p384 and p521, made when it starts. Commands come on standard input, one per line, each answered by a line:
//
//   sign KEY KID ALG [TYP]       how tokens are signed from now on; KEY, with what KID and ALG say about it
//   header TEXT                  the header of tokens instead, in base64url; "header" alone: as before
//   keys KID=KEY[:unlisted]...   what FetchKeys returns; "keys" alone: none
//   hint SECONDS                 refresh_hint_seconds
//   max SECONDS                  max_token_expiration_seconds
//   fail METHOD [MESSAGE]        the method answers with PERMISSION_DENIED; "fail METHOD" alone: no longer
//   hang METHOD                  the method does not answer any more before its caller gives up
//   count METHOD                 how often it was called
#include <grpcpp/grpcpp.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "base/base64.h"
#include "signer.grpc.pb.h"

namespace {

using holdfast::base64url_encode;

std::string public_part(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(key, &der);
  std::string bytes(reinterpret_cast<const char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  return bytes;
}

// In the form of JOSE. The hash is that of the key, whatever the header of the token says.
std::string signature_of(EVP_PKEY* key, const std::string& text) {
  const int bits = EVP_PKEY_bits(key);
  const bool ec = EVP_PKEY_base_id(key) == EVP_PKEY_EC;
  const EVP_MD* digest = !ec || bits == 256 ? EVP_sha256() : bits == 384 ? EVP_sha384() : EVP_sha512();
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  size_t length = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  EVP_DigestSignInit(context, nullptr, digest, nullptr, key);
  EVP_DigestSign(context, nullptr, &length, data, text.size());
  std::string signature(length, '\0');
  EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &length, data, text.size());
  EVP_MD_CTX_free(context);
  signature.resize(length);
  if (!ec) return signature;
  const int coordinate = (bits + 7) / 8;
  const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* pair = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(signature.size()));
  std::string raw(2 * static_cast<size_t>(coordinate), '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, coordinate);
  BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + coordinate, coordinate);
  ECDSA_SIG_free(pair);
  return raw;
}

class Signer final : public v1::ExternalJWTSigner::Service {
 public:
  std::string command(const std::string& line) {
    std::istringstream words(line);
    std::string verb, first, second, third, fourth;
    words >> verb;
    const std::lock_guard lock(mutex_);
    if (verb == "keys") {
      listed_.clear();
      while (words >> first) {
        const size_t equals = first.find('='), colon = first.find(':');
        listed_[first.substr(0, equals)] = {first.substr(equals + 1, colon - equals - 1), colon != std::string::npos};
      }
      return "done";
    }
    words >> first >> second >> third >> fourth;
    if (verb == "sign") {
      signing_key_ = first;
      header_ = base64url_encode("{\"alg\":\"" + third + "\",\"kid\":\"" + second + "\",\"typ\":\"" +
                                 (fourth.empty() ? "JWT" : fourth) + "\"}");
    } else if (verb == "header") {
      given_header_ = first;
    } else if (verb == "hint") {
      hint_ = std::stoll(first);
    } else if (verb == "max") {
      max_ = std::stoll(first);
    } else if (verb == "fail") {
      failures_[first] = second;
      hanging_[first] = false;
    } else if (verb == "hang") {
      hanging_[first] = true;
    } else if (verb == "count") {
      return std::to_string(counts_[first]);
    } else {
      return "unknown command";
    }
    return "done";
  }

  grpc::Status Sign(grpc::ServerContext* context, const v1::SignJWTRequest* request,
                    v1::SignJWTResponse* response) override {
    if (const grpc::Status status = enter(context, "Sign"); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    response->set_header(given_header_.empty() ? header_ : given_header_);
    response->set_signature(
        base64url_encode(signature_of(keys_.at(signing_key_), response->header() + "." + request->claims())));
    return grpc::Status::OK;
  }

  grpc::Status FetchKeys(grpc::ServerContext* context, const v1::FetchKeysRequest*,
                         v1::FetchKeysResponse* response) override {
    if (const grpc::Status status = enter(context, "FetchKeys"); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, listed] : listed_) {
      v1::Key* key = response->add_keys();
      key->set_key_id(id);
      key->set_key(public_part(keys_.at(listed.key)));
      key->set_exclude_from_oidc_discovery(listed.unlisted);
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
    response->mutable_data_timestamp()->set_seconds(seconds.count());
    response->mutable_data_timestamp()->set_nanos(
        static_cast<int32_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count()));
    response->set_refresh_hint_seconds(hint_);
    return grpc::Status::OK;
  }

  grpc::Status Metadata(grpc::ServerContext* context, const v1::MetadataRequest*,
                        v1::MetadataResponse* response) override {
    if (const grpc::Status status = enter(context, "Metadata"); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    response->set_max_token_expiration_seconds(max_);
    return grpc::Status::OK;
  }

 private:
  struct Listed {
    std::string key;
    bool unlisted = false;
  };

  grpc::Status enter(const grpc::ServerContext* context, const std::string& method) {
    {
      const std::lock_guard lock(mutex_);
      ++counts_[method];
      if (!hanging_[method]) {
        const std::string& failure = failures_[method];
        return failure.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::PERMISSION_DENIED, failure);
      }
    }
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  const std::map<std::string, EVP_PKEY*> keys_ = {{"rsa", EVP_RSA_gen(2048)},
                                                  {"rsa2", EVP_RSA_gen(2048)},
                                                  {"p256", EVP_EC_gen("P-256")},
                                                  {"p384", EVP_EC_gen("P-384")},
                                                  {"p521", EVP_EC_gen("P-521")}};
  std::mutex mutex_;  // Guards what follows.
  std::string signing_key_ = "rsa", header_, given_header_;
  std::map<std::string, Listed> listed_ = {{"kid-1", {"rsa", false}}};
  int64_t hint_ = 3600, max_ = 600;
  std::map<std::string, std::string> failures_;
  std::map<std::string, bool> hanging_;
  std::map<std::string, int> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  Signer signer;
  signer.command("sign rsa kid-1 RS256");
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + std::string(argv[1]), grpc::InsecureServerCredentials());
  builder.RegisterService(&signer);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) std::cout << signer.command(line) << std::endl;
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
