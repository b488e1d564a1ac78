// Appends bytes to a std::string. Writers reserve room ahead and then write through a bare pointer without further
// checks. The string's previous content is kept.
//
//   Sink sink(out);
//   char* p = sink.room(32);     // at least 32 bytes; p stays valid until the next room()
//   *p++ = '{'; ...
//   sink.wrote(p);
//   sink.finish();               // truncates the string to what was written (so does the destructor)
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace holdfast::codec {

class Sink {
 public:
  explicit Sink(std::string& out) : out_(&out), cursor_(out.data() + out.size()), end_(cursor_) {}
  ~Sink() { finish(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  char* room(size_t bytes) {
    if (static_cast<size_t>(end_ - cursor_) < bytes) [[unlikely]]
      grow(bytes);
    return cursor_;
  }
  void wrote(char* p) { cursor_ = p; }

  void put(char c) {
    *room(1) = c;
    ++cursor_;
  }
  void put(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
    cursor_ += bytes.size();
  }

  // Bytes in the string so far, including its previous content. Offsets remain valid, pointers do not.
  size_t size() const { return static_cast<size_t>(cursor_ - out_->data()); }
  char* at(size_t offset) { return out_->data() + offset; }
  void truncate(size_t size) { cursor_ = out_->data() + size; }

  void finish() {
    out_->resize(size());
    cursor_ = end_ = out_->data() + out_->size();
  }

 private:
  void grow(size_t bytes);

  std::string* out_;
  char* cursor_;
  char* end_;
};

}  // namespace holdfast::codec
