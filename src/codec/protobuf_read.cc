#include "codec/protobuf_read.h"

namespace holdfast::codec {

Error ProtobufReaderBase::error() const {
  std::string path;
  for (size_t i = path_.size(); i-- > 0;) {
    if (!path.empty() && !path_[i].starts_with('[')) path += '.';
    path += path_[i];
  }
  std::string message = what_;
  if (!path.empty()) message += " in " + path;
  // What was put together from pieces lies elsewhere and has no offset.
  const auto offset = reinterpret_cast<uintptr_t>(fail_at_) - reinterpret_cast<uintptr_t>(source_.data());
  if (fail_at_ != nullptr && offset <= source_.size()) message += " at byte " + std::to_string(offset);
  return bad_request(std::move(message));
}

bool ProtobufReaderBase::merge(Slot& slot, std::string_view more) {
  // A message given in pieces is the concatenation of the pieces. Each piece is copied again with every further one,
  // so an input made of nothing else is bounded.
  constexpr uint32_t kMostPieces = 64;
  if (slot.count > kMostPieces) return fail(more.data(), "a message is given in too many pieces");
  const std::string_view first{slot.data, slot.size};
  auto* both = arena_.allocate_array<char>(first.size() + more.size());
  std::copy(first.begin(), first.end(), both);
  std::copy(more.begin(), more.end(), both + first.size());
  slot.data = both;
  slot.size = static_cast<uint32_t>(first.size() + more.size());
  return true;
}

bool ProtobufReaderBase::index(const Type& type, std::string_view message, Slot* slots) {
  assert(type.fields.size() <= kMaxFields);
  std::memset(static_cast<void*>(slots), 0, type.fields.size() * sizeof(Slot));
  const auto numbers = type.field_at_number;
  const char* p = message.data();
  const char* const end = p + message.size();
  while (p != end) {
    const char* const tag_at = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return truncated(tag_at);
    const uint64_t number = tag >> 3;
    const size_t position = number < numbers.size() ? numbers[number] : 0;
    if (position == 0) {
      if (number == 0) return fail(tag_at, "illegal tag 0");
      p = wire::skip_value(p, end, tag);
      if (p == nullptr) return truncated(tag_at);
      continue;
    }
    const Field& field = type.fields[position - 1];
    if (field.gate != Gate::kCount && (!field.exists(gates_) || (field.root_only && !in_root_metadata_))) {
      p = wire::skip_value(p, end, tag);
      if (p == nullptr) return truncated(tag_at);
      continue;
    }
    Slot& slot = slots[position - 1];
    const Type& value = *field.type;
    const auto wire_type = static_cast<wire::Type>(tag & 7);
    if (is_repeated(value)) {
      const wire::Type expected = value.shape == Kind::Map ? wire::kBytes : wire_of(*value.element);
      if (wire_type != expected && wire_type != wire::kBytes) {
        fail(tag_at, "wrong wire type " + std::to_string(wire_type));
        return in_field(field.name);
      }
      if (slot.count++ == 0) {
        slot.data = tag_at;
        slot.size = static_cast<uint32_t>(end - tag_at);
      }
      p = wire::skip_value(p, end, tag);
      if (p == nullptr) {
        truncated(tag_at);
        return in_field(field.name);
      }
      continue;
    }
    if (wire_type != wire_of(value)) {
      fail(tag_at, "wrong wire type " + std::to_string(wire_type));
      return in_field(field.name);
    }
    if (wire_type == wire::kBytes) {
      std::string_view bytes;
      p = wire::read_bytes(p, end, bytes);
      if (p == nullptr) {
        truncated(tag_at);
        return in_field(field.name);
      }
      const bool is_message = value.shape != Kind::String && value.shape != Kind::Bytes;
      if (slot.count++ != 0 && is_message) {
        if (!merge(slot, bytes)) return in_field(field.name);
      } else {
        slot.data = bytes.data();
        slot.size = static_cast<uint32_t>(bytes.size());
      }
    } else {
      slot.count = 1;
      if (wire_type == wire::kVarint) {
        p = wire::read_varint(p, end, slot.bits);
      } else if (end - p >= 8) {
        slot.bits = wire::load64(p);
        p += 8;
      } else {
        p = nullptr;
      }
      if (p == nullptr) {
        truncated(tag_at);
        return in_field(field.name);
      }
      if (value.shape == Kind::Int32) slot.bits = static_cast<uint64_t>(int64_t{static_cast<int32_t>(slot.bits)});
    }
  }
  return true;
}

bool ProtobufReaderBase::small_message(std::string_view message, SmallMessage& parts) {
  const char* p = message.data();
  const char* const end = p + message.size();
  while (p != end) {
    const char* const tag_at = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return truncated(tag_at);
    const uint64_t number = tag >> 3;
    if ((tag & 7) == wire::kVarint && number > 0 && number < 4) {
      p = wire::read_varint(p, end, parts.varints[number]);
    } else if ((tag & 7) == wire::kBytes && (number == 1 || number == 3)) {
      p = wire::read_bytes(p, end, parts.bytes);
      parts.has_bytes = true;
    } else {
      p = wire::skip_value(p, end, tag);
    }
    if (p == nullptr) return truncated(tag_at);
  }
  return true;
}

bool ProtobufReaderBase::read_time(const Type& type, std::string_view message, UnixTime& time, bool& zero) {
  zero = true;
  if (message.empty()) return true;
  SmallMessage parts;
  if (!small_message(message, parts)) return false;
  time.seconds = static_cast<int64_t>(parts.varints[1]);
  if (type.shape == Kind::MicroTime) {
    // Nanoseconds that are no fraction of a second move the seconds, as Go's time.Unix does it.
    int32_t micros = static_cast<int32_t>(parts.varints[2]) / 1000;
    int64_t carry = micros / 1'000'000;
    micros %= 1'000'000;
    if (micros < 0) {
      micros += 1'000'000;
      --carry;
    }
    time.seconds = static_cast<int64_t>(parts.varints[1] + static_cast<uint64_t>(carry));
    time.nanos = micros * 1000;
  }
  zero = time.seconds == kZeroTimeSeconds && time.nanos == 0;
  return true;
}

}  // namespace holdfast::codec
