#include "base/packing.h"

#include <algorithm>
#include <cassert>
#include <vector>

#define ZSTD_STATIC_LINKING_ONLY  // Frames without magic number.
#include <zdict.h>
#include <zstd.h>

namespace holdfast {
namespace {

// Switching a context to another dictionary takes longer than decompressing a small text. Readers of many objects
// alternate between two dictionaries, one for bodies and one for owners, so there are two contexts.
class Unpackers {
 public:
  ~Unpackers() {
    for (Unpacker& each : each_) ZSTD_freeDCtx(each.context);
  }

  ZSTD_DCtx* with(const ZSTD_DDict* dictionary) {
    if (each_[latest_].context == nullptr || each_[latest_].dictionary != dictionary) {
      latest_ ^= 1;
      Unpacker& other = each_[latest_];
      if (other.context == nullptr) {
        other.context = ZSTD_createDCtx();
        assert(other.context != nullptr);
        ZSTD_DCtx_setParameter(other.context, ZSTD_d_format, ZSTD_f_zstd1_magicless);
      }
      other.dictionary = dictionary;
    }
    // Always set: a new dictionary may have the address of a destroyed one.
    ZSTD_DCtx_refDDict(each_[latest_].context, dictionary);
    return each_[latest_].context;
  }

 private:
  struct Unpacker {
    ZSTD_DCtx* context = nullptr;
    const ZSTD_DDict* dictionary = nullptr;
  };
  Unpacker each_[2];
  size_t latest_ = 0;
};

struct Contexts {
  ZSTD_CCtx* compress = ZSTD_createCCtx();
  Unpackers unpackers;
  std::string packed;

  Contexts() {
    assert(compress != nullptr);
    ZSTD_CCtx_setParameter(compress, ZSTD_c_format, ZSTD_f_zstd1_magicless);
    ZSTD_CCtx_setParameter(compress, ZSTD_c_contentSizeFlag, 1);  // Single segment: no window descriptor.
    ZSTD_CCtx_setParameter(compress, ZSTD_c_checksumFlag, 0);
    ZSTD_CCtx_setParameter(compress, ZSTD_c_dictIDFlag, 0);
    // By default zstd copies the dictionary's tables for inputs above 8 KB, which costs more than packing an object.
    ZSTD_CCtx_setParameter(compress, ZSTD_c_forceAttachDict, ZSTD_dictForceAttach);
  }
  ~Contexts() { ZSTD_freeCCtx(compress); }
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
};

Contexts& contexts() {
  thread_local Contexts mine;
  return mine;
}

std::string_view pack_with(const ZSTD_CDict* dictionary, std::string_view plain, int level) {
  Contexts& c = contexts();
  const size_t bound = ZSTD_compressBound(plain.size());
  if (c.packed.size() < bound) c.packed.resize(bound);
  ZSTD_CCtx_refCDict(c.compress, dictionary);
  if (dictionary == nullptr) ZSTD_CCtx_setParameter(c.compress, ZSTD_c_compressionLevel, level);
  const size_t size = ZSTD_compress2(c.compress, c.packed.data(), c.packed.size(), plain.data(), plain.size());
  if (ZSTD_isError(size) || size >= plain.size()) return {};
  return std::string_view(c.packed).substr(0, size);
}

bool unpack_with(const ZSTD_DDict* dictionary, std::string_view packed, char* out, size_t plain_bytes) {
  ZSTD_DCtx* const context = contexts().unpackers.with(dictionary);
  return ZSTD_decompressDCtx(context, out, plain_bytes, packed.data(), packed.size()) == plain_bytes;
}

using CompressTables = std::unique_ptr<ZSTD_CDict, decltype([](ZSTD_CDict* d) { ZSTD_freeCDict(d); })>;
using DecompressTables = std::unique_ptr<ZSTD_DDict, decltype([](ZSTD_DDict* d) { ZSTD_freeDDict(d); })>;

// Every fourth sample is excluded from training, so that the ratio measured on it is representative of unseen texts.
constexpr size_t kEnoughToHoldBack = 8;
bool held_back(size_t i, size_t count) { return count >= kEnoughToHoldBack && i % 4 == 3; }

CompressTables compress_tables(std::string_view content, int level) {
  return CompressTables(ZSTD_createCDict(content.data(), content.size(), level));
}

}  // namespace

struct Dictionary::Tables {
  CompressTables compress;
  DecompressTables decompress;
};

Dictionary::Dictionary(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
Dictionary::~Dictionary() = default;

std::shared_ptr<const Dictionary> Dictionary::train(std::span<const std::string_view> samples, size_t max_bytes,
                                                    int level) {
  // A sample is worth adding if, compressed with the samples selected so far, it is larger than this fraction.
  constexpr double kNew = 0.15;
  std::string picked;
  CompressTables so_far;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string_view sample = samples[i];
    if (held_back(i, samples.size())) continue;
    if (sample.empty() || picked.size() + sample.size() > max_bytes) continue;
    if (so_far != nullptr) {
      const std::string_view packed = pack_with(so_far.get(), sample, level);
      const size_t left = packed.empty() ? sample.size() : packed.size();
      if (static_cast<double>(left) < kNew * static_cast<double>(sample.size())) continue;
    }
    // Text at the end of the dictionary has the smallest offsets, which are cheapest to encode.
    picked.insert(0, sample);
    so_far = compress_tables(picked, level);
  }
  if (picked.empty()) return nullptr;

  std::string joined;
  std::vector<size_t> sizes;
  for (std::string_view sample : samples) {
    joined += sample;
    sizes.push_back(sample.size());
  }
  ZDICT_params_t params = {};
  params.compressionLevel = level;
  params.dictID = 1;
  std::string content(picked.size() + (16 << 10), '\0');
  const size_t size =
      ZDICT_finalizeDictionary(content.data(), content.size(), picked.data(), picked.size(), joined.data(),
                               sizes.data(), static_cast<unsigned>(sizes.size()), params);
  // Too few samples to fit entropy tables: the selected text alone still helps.
  if (ZDICT_isError(size)) {
    content = std::move(picked);
  } else {
    content.resize(size);
  }

  auto tables = std::make_unique<Tables>();
  tables->compress = compress_tables(content, level);
  tables->decompress.reset(ZSTD_createDDict(content.data(), content.size()));
  if (tables->compress == nullptr || tables->decompress == nullptr) return nullptr;
  std::shared_ptr<Dictionary> result(new Dictionary(std::move(tables)));
  size_t plain = 0, packed = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples.size() >= kEnoughToHoldBack && !held_back(i, samples.size())) continue;
    plain += samples[i].size();
    packed += result->packed_bytes(samples[i]);
  }
  result->expected_ratio_ = static_cast<double>(packed) / static_cast<double>(std::max<size_t>(plain, 1));
  return result;
}

size_t Dictionary::packed_bytes(std::string_view plain) const {
  const std::string_view packed = pack(plain);
  return packed.empty() ? plain.size() : packed.size();
}

std::string_view Dictionary::pack(std::string_view plain) const { return pack_with(tables_->compress.get(), plain, 0); }

bool Dictionary::unpack(std::string_view packed, char* out, size_t plain_bytes) const {
  return unpack_with(tables_->decompress.get(), packed, out, plain_bytes);
}

size_t Dictionary::bytes() const {
  return ZSTD_sizeof_CDict(tables_->compress.get()) + ZSTD_sizeof_DDict(tables_->decompress.get());
}

std::string_view pack_without_dictionary(std::string_view plain, int level) { return pack_with(nullptr, plain, level); }
bool unpack_alone(std::string_view packed, char* out, size_t plain_bytes) {
  return unpack_with(nullptr, packed, out, plain_bytes);
}

}  // namespace holdfast
