#include "codec/sink.h"

#include <algorithm>

namespace holdfast::codec {

void Sink::grow(size_t bytes) {
  constexpr size_t kLeast = 1024;
  const size_t used = size();
  // resize() clears what it adds. Doubling keeps that, and the copying, a small share of the writing.
  out_->resize(used + std::max({bytes, used, kLeast}));
  cursor_ = out_->data() + used;
  end_ = out_->data() + out_->size();
}

}  // namespace holdfast::codec
