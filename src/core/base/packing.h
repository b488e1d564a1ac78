// Compresses small, similar strings individually against a shared dictionary (zstd).
//
// A frame contains only its blocks: the owner also keeps the plain size and the dictionary it was packed with. Frames
// exist only in memory, never on disk or on the wire.
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
  // Selects samples that the ones already selected do not help to compress, up to `max_bytes`, and fits the entropy
  // tables to all samples. Takes milliseconds per megabyte of samples. Null if there is nothing to learn from.
  static std::shared_ptr<const Dictionary> train(std::span<const std::string_view> samples, size_t max_bytes,
                                                 int level = 1);
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  // The packed form; empty if packing does not make it smaller. Valid until this thread packs again.
  std::string_view pack(std::string_view plain) const;
  // Fills out[0, plain_bytes). False if `packed` is not a frame that was packed with this dictionary.
  bool unpack(std::string_view packed, char* out, size_t plain_bytes) const;

  // Memory usage.
  size_t bytes() const;
  // Bytes needed to store `plain`: packed, or plain if packing does not help.
  size_t packed_bytes(std::string_view plain) const;
  // Ratio of packed to plain size, measured on samples not used for training: what to expect for similar strings.
  double expected_ratio() const { return expected_ratio_; }

 private:
  struct Tables;
  explicit Dictionary(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
  double expected_ratio_ = 1;
};

// Without a dictionary, for measurements and for dissimilar strings. Same contract as Dictionary.
std::string_view pack_without_dictionary(std::string_view plain, int level = 1);
bool unpack_alone(std::string_view packed, char* out, size_t plain_bytes);

}  // namespace holdfast
