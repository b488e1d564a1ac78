// Small texts that resemble each other, compressed one by one against a shared dictionary (zstd).
//
// A frame carries nothing but its blocks: whoever keeps it also keeps the plain size and which dictionary it was packed
// with. Frames are for memory, never for disk or wire.
//
// Threading: a Dictionary is immutable; contexts are one a thread.
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
  // Picks, from the samples, those that the ones picked before do not help to compress, up to `max_bytes`, and fits
  // the entropy tables to all of them. Milliseconds for a megabyte of samples. Null: nothing to learn from.
  static std::shared_ptr<const Dictionary> train(std::span<const std::string_view> samples, size_t max_bytes,
                                                 int level = 1);
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  // The packed form; empty when packing does not make it smaller. Valid until this thread packs again.
  std::string_view pack(std::string_view plain) const;
  // Fills out[0, plain_bytes). False: not a frame that was packed with this dictionary.
  bool unpack(std::string_view packed, char* out, size_t plain_bytes) const;

  // What it takes in memory.
  size_t bytes() const;
  // What keeping `plain` takes: packed, or plain where that does not help.
  size_t packed_bytes(std::string_view plain) const;
  // Packed / plain over samples that it did not learn from: what to expect while it fits.
  double expected_ratio() const { return expected_ratio_; }

 private:
  struct Tables;
  explicit Dictionary(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
  double expected_ratio_ = 1;
};

// Without a dictionary, for measurements and for what resembles nothing. The same rules.
std::string_view pack_alone(std::string_view plain, int level = 1);
bool unpack_alone(std::string_view packed, char* out, size_t plain_bytes);

}  // namespace holdfast
