#include "render/cbor_answer.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/base64.h"

namespace holdfast::render {
namespace {

bool reaches_bytes(const types::Type& root) {
  std::unordered_set<const types::Type*> seen = {&root};
  std::vector<const types::Type*> left = {&root};
  const auto visit = [&](const types::Type* type) {
    if (type != nullptr && seen.insert(type).second) left.push_back(type);
  };
  while (!left.empty()) {
    const types::Type& type = *left.back();
    left.pop_back();
    if (type.shape == types::Shape::Bytes) return true;
    visit(type.element);
    for (const types::Field* member : type.members) visit(member->type);
  }
  return false;
}

const types::Type* member_type(const types::Type& type, std::string_view key) {
  if (type.shape == types::Shape::Map) return type.element;
  const types::Field* field = types::find_member(type, key);
  return field == nullptr ? nullptr : static_cast<const types::Type*>(field->type);
}

}  // namespace

bool holds_bytes(const types::Type& type) {
  static std::mutex mutex;
  static std::unordered_map<const types::Type*, bool> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(&type, false);
  if (is_new) found->second = reaches_bytes(type);
  return found->second;
}

void append_cbor(const types::Type* type, const Value& value, codec::Sink& sink) {
  // Types with byte fields are not recursive, so this recursion is shallow; everything else is encoded iteratively.
  if (type == nullptr || !holds_bytes(*type)) {
    const std::string whole = codec::encode_cbor(value);
    sink.put(std::string_view(whole).substr(codec::kCborSelfDescribed.size()));
    return;
  }
  if (type->shape == types::Shape::Bytes && value.is_string()) {
    if (const std::optional<std::string> bytes = base64_decode(value.as_string())) {
      return codec::write_cbor_bytes(*bytes, sink);
    }
  }
  if (value.is_map()) {
    codec::write_cbor_head(codec::CborMajor::Map, value.count(), sink);
    for (const Member& member : value.members()) {
      codec::write_cbor_text(member.key, sink);
      append_cbor(member_type(*type, member.key), member.value, sink);
    }
  } else if (value.is_list()) {
    codec::write_cbor_head(codec::CborMajor::List, value.count(), sink);
    for (const Value& item : value.items()) append_cbor(type->element, item, sink);
  } else {
    append_cbor(nullptr, value, sink);
  }
}

}  // namespace holdfast::render
