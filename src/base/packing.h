// Compression of small, similar strings, each on its own against a shared dictionary (zstd).
//
// A frame contains nothing but its blocks: its owner also keeps the plain size and the dictionary it was packed with.
// Frames are for memory, never for disk or wire.
//
// Threading: a Dictionary is immutable; contexts are per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

class Dictionary {
 public:
  // Selects samples that the ones selected before do not help to compress, up to `max_bytes`, and fits the entropy
  // tables to all of them. Takes milliseconds per megabyte of samples. Null: nothing to learn from.
  static std::shared_ptr<const Dictionary> train(std::span<const std::string_view> samples, size_t max_bytes,
                                                 int level = 1);
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  // The packed form; empty when packing does not make it smaller. Valid until this thread packs again.
  std::string_view pack(std::string_view plain) const;
  // Fills out[0, plain_bytes). False: not a frame that was packed with this dictionary.
  bool unpack(std::string_view packed, char* out, size_t plain_bytes) const;

  // Memory usage.
  size_t bytes() const;
  // Bytes needed to keep `plain`: packed, or plain if packing does not help.
  size_t packed_bytes(std::string_view plain) const;
  // Packed / plain ratio over samples that were not used for training: the expected ratio while it fits.
  double expected_ratio() const { return expected_ratio_; }

 private:
  struct Tables;
  explicit Dictionary(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
  double expected_ratio_ = 1;
};

// Without a dictionary, for measurements and for dissimilar strings. The same rules apply.
std::string_view pack_alone(std::string_view plain, int level = 1);
bool unpack_alone(std::string_view packed, char* out, size_t plain_bytes);

}  // namespace holdfast
