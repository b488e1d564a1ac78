#include "types/descriptions.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <iterator>
#include <mutex>

#include "base/packing.h"
#include "descriptions.inc"

namespace holdfast::types {

Descriptions::Descriptions() : plain_(kDescriptionsBytes, '\0') {
  const std::string_view packed(reinterpret_cast<const char*>(kDescriptions), sizeof kDescriptions);
  [[maybe_unused]] const bool unpacked = unpack_alone(packed, plain_.data(), plain_.size());
  assert(unpacked);
  for (std::string_view rest = plain_; !rest.empty();) {
    const size_t end = rest.find('\n');
    texts_.push_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  size_t text = 0;
  for (const Type* type : builtin_types()) {
    types_.push_back(text++);
    if (!type->fields.empty()) fields_.push_back({type->fields.data(), type->fields.size(), text});
    text += type->fields.size();
  }
  assert(text == texts_.size());
  std::ranges::sort(fields_, std::less<>(), &Fields::first);
}

std::string_view Descriptions::of(const Field& field) const {
  const auto after = std::ranges::upper_bound(fields_, &field, std::less<>(), &Fields::first);
  if (after == fields_.begin()) return {};
  const Fields& fields = *std::prev(after);
  const auto position = static_cast<size_t>(&field - fields.first);
  return position < fields.count ? texts_[fields.text + position] : std::string_view();
}

std::string_view Descriptions::of(const Type& type) const {
  const std::span<const Type* const> all = builtin_types();
  const auto found = std::ranges::lower_bound(all, type.name, {}, &Type::name);
  if (found == all.end() || *found != &type) return {};
  return texts_[types_[static_cast<size_t>(found - all.begin())]];
}

std::shared_ptr<const Descriptions> Descriptions::get() {
  static std::mutex mutex;
  static std::weak_ptr<const Descriptions> held;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Descriptions> all = held.lock();
  if (all == nullptr) held = all = std::make_shared<Descriptions>();
  return all;
}

std::string_view stated_default(std::string_view description) {
  constexpr std::string_view kDefault = "Default ";
  for (size_t at = description.find(kDefault); at != std::string_view::npos; at = description.find(kDefault, at)) {
    const bool starts_sentence = at == 0 || description.substr(0, at).ends_with(". ");
    at += kDefault.size();
    std::string_view rest = description.substr(at);
    if (!starts_sentence || rest.empty()) continue;
    if (rest[0] == '`') {
      const size_t end = rest.find('`', 1);
      if (end != std::string_view::npos && rest.substr(end + 1).starts_with('.')) return rest.substr(1, end - 1);
      continue;
    }
    // A word: digits and units, such as 0.5, 25% or 10s.
    size_t end = rest.find(' ');
    if (end == std::string_view::npos) end = rest.size();
    if (end > 1 && rest[end - 1] == '.') return rest.substr(0, end - 1);
  }
  return {};
}

}  // namespace holdfast::types
