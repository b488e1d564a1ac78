#include "cli/key_archive.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/varint.h"

namespace holdfast::cli {
namespace {

constexpr std::string_view kMagic = "holdfast-keys-1\n";
constexpr size_t kSaltBytes = 16, kNonceBytes = 12, kTagBytes = 16, kKeyBytes = 32;
constexpr size_t kHeaderBytes = kMagic.size() + kSaltBytes + kNonceBytes;
constexpr uint64_t kCost = 1 << 17, kBlock = 8, kParallel = 1, kMaxMemory = uint64_t{160} << 20;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// A cipher for what follows the header, which is authenticated. Null if OpenSSL fails, for lack of memory.
Cipher start(std::string_view header, std::string_view passphrase, bool encrypt) {
  const std::string_view salt = header.substr(kMagic.size(), kSaltBytes);
  const std::string_view nonce = header.substr(kMagic.size() + kSaltBytes);
  std::string key(kKeyBytes, '\0');
  int ignored = 0;
  Cipher cipher(EVP_CIPHER_CTX_new());
  const bool started =
      EVP_PBE_scrypt(passphrase.data(), passphrase.size(), bytes_of(salt), salt.size(), kCost, kBlock, kParallel,
                     kMaxMemory, bytes_of(key), key.size()) == 1 &&
      cipher &&
      EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce), encrypt ? 1 : 0) ==
          1 &&
      EVP_CipherUpdate(cipher.get(), nullptr, &ignored, bytes_of(header), static_cast<int>(header.size())) == 1;
  OPENSSL_cleanse(key.data(), key.size());
  return started ? std::move(cipher) : nullptr;
}

}  // namespace

Result<KeyFiles> read_key_files(const std::string& directory) {
  KeyFiles files;
  std::error_code failed;
  if (!std::filesystem::exists(directory, failed)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".new") continue;
    Result<std::string> content = read_file(entry.path());
    if (!content) return content.take_error();
    files.emplace_back(entry.path().filename(), std::move(*content));
  }
  if (failed) return internal_error("cannot read " + directory + ": " + failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<Unit> write_key_files(const std::string& directory, const KeyFiles& files) {
  if (Result<Unit> made = make_private_directory(directory); !made) return made;
  std::error_code failed;
  if (!std::filesystem::is_empty(directory, failed)) {
    return bad_request(directory + " is not empty: the keys in it are not overwritten; move it away first");
  }
  for (const auto& [name, content] : files) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
      return bad_request("the backup holds a file named " + name);
    }
    const Readers readers = name.ends_with(".crt") || name.ends_with(".pub") ? Readers::Everybody : Readers::Owner;
    if (Result<Unit> written = replace_file(directory + "/" + name, content, readers); !written) return written;
  }
  return Unit{};
}

Result<std::string> seal_keys(const KeyFiles& files, std::string_view passphrase) {
  std::string plain;
  for (const auto& [name, content] : files) {
    for (const std::string* text : {&name, &content}) {
      put_varint(plain, text->size());
      plain += *text;
    }
  }
  std::string sealed(kMagic);
  sealed.resize(kHeaderBytes);
  if (RAND_bytes(bytes_of(sealed) + kMagic.size(), kSaltBytes + kNonceBytes) != 1) {
    return internal_error("cannot encrypt the keys: no random numbers");
  }
  const Cipher cipher = start(sealed, passphrase, true);
  std::string encrypted(plain.size(), '\0'), tag(kTagBytes, '\0');
  int ignored = 0;
  const bool done = cipher &&
                    EVP_CipherUpdate(cipher.get(), bytes_of(encrypted), &ignored, bytes_of(plain),
                                     static_cast<int>(plain.size())) == 1 &&
                    EVP_CipherFinal_ex(cipher.get(), nullptr, &ignored) == 1 &&
                    EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  if (!done) return internal_error("cannot encrypt the keys: OpenSSL failed");
  return sealed + encrypted + tag;
}

Result<KeyFiles> open_keys(std::string_view sealed, std::string_view passphrase) {
  if (!sealed.starts_with(kMagic) || sealed.size() < kHeaderBytes + kTagBytes) {
    return bad_request("the backup holds no keys of a form that this version knows");
  }
  const std::string_view header = sealed.substr(0, kHeaderBytes);
  const std::string_view encrypted = sealed.substr(kHeaderBytes, sealed.size() - kHeaderBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  const Cipher cipher = start(header, passphrase, false);
  if (!cipher) return internal_error("cannot decrypt the keys: OpenSSL failed");
  std::string plain(encrypted.size(), '\0');
  int ignored = 0;
  const bool opened = EVP_CipherUpdate(cipher.get(), bytes_of(plain), &ignored, bytes_of(encrypted),
                                       static_cast<int>(encrypted.size())) == 1 &&
                      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
                      EVP_CipherFinal_ex(cipher.get(), nullptr, &ignored) == 1;
  if (!opened) return bad_request("the passphrase is not the one that the keys in the backup were encrypted with");
  KeyFiles files;
  ByteReader reader(plain);
  while (reader.ok() && !reader.rest().empty()) {
    std::string name(reader.bytes(reader.varint()));
    std::string content(reader.bytes(reader.varint()));
    files.emplace_back(std::move(name), std::move(content));
  }
  if (!reader.ok()) return bad_request("the keys in the backup cannot be read");
  return files;
}

}  // namespace holdfast::cli
