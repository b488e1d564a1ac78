#include "codec/protobuf_read.h"
#include "codec/text.h"

namespace holdfast::codec {

Error ProtobufReaderBase::error() const {
  std::string path;
  for (size_t i = path_.size(); i-- > 0;) {
    if (!path.empty() && !path_[i].starts_with('[')) path += '.';
    path += path_[i];
  }
  std::string message = what_;
  if (!path.empty()) message += " in " + path;
  // Messages assembled from pieces are not in the source and have no offset.
  const auto offset = reinterpret_cast<uintptr_t>(fail_at_) - reinterpret_cast<uintptr_t>(source_.data());
  if (fail_at_ != nullptr && offset <= source_.size()) message += " at byte " + std::to_string(offset);
  return bad_request(std::move(message));
}

bool ProtobufReaderBase::merge(Slot& slot, std::string_view more) {
  // A message given in pieces is the concatenation of the pieces. Each further piece copies all previous ones, so their
  // number is limited.
  constexpr int kMostPieces = 64;
  if (++pieces_ > kMostPieces) return fail(more.data(), "messages are given in too many pieces");
  const std::string_view first{slot.data, slot.size};
  auto* both = arena_.allocate_array<char>(first.size() + more.size());
  std::copy(first.begin(), first.end(), both);
  std::copy(more.begin(), more.end(), both + first.size());
  slot.data = both;
  slot.size = static_cast<uint32_t>(first.size() + more.size());
  return true;
}

bool ProtobufReaderBase::wrong_field(const char* at, uint64_t tag, const Field& field, bool cut_off) {
  if (cut_off) {
    truncated(at);
  } else {
    fail(at, "wrong wire type " + std::to_string(tag & 7));
  }
  return in_field(field.name);
}

bool ProtobufReaderBase::index(const Type& type, std::string_view message, Slots& slots) {
  using Plan = types::FieldPlan;
  assert(type.fields.size() <= kMaxFields);
  const uint8_t* const numbers = type.field_at_number.data();
  const size_t number_count = type.field_at_number.size();
  const Plan* const plans = type.plan.data();
  uint64_t seen = 0, shown = 0;
  const char* p = message.data();
  const char* const end = p + message.size();
  while (p != end) {
    const char* const tag_at = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return truncated(tag_at);
    const uint64_t number = tag >> 3;
    const size_t found = number < number_count ? numbers[number] : 0;
    const uint64_t bit = found == 0 ? 0 : uint64_t{1} << (found - 1);
    if (found == 0 || ((type.gated_fields & bit) != 0 && !is_there(type.fields[found - 1]))) {
      if (number == 0) return fail(tag_at, "illegal tag 0");
      p = wire::skip_value(p, end, tag);
      if (p == nullptr) return truncated(tag_at);
      continue;
    }
    const size_t position = found - 1;
    const Plan plan = plans[position];
    Slot& slot = slots.at[position];
    const auto wire_type = static_cast<uint8_t>(tag & 7);
    bool empty = false;
    switch (plan.how) {
      case Plan::kText:
      case Plan::kMessage: {
        if (wire_type != wire::kBytes) return wrong_field(tag_at, tag, type.fields[position], false);
        std::string_view bytes;
        p = wire::read_bytes(p, end, bytes);
        if (p == nullptr) return wrong_field(tag_at, tag, type.fields[position], true);
        if ((seen & bit) != 0 && plan.how == Plan::kMessage) {
          if (!merge(slot, bytes)) return in_field(type.fields[position].name);
        } else {
          slot.data = bytes.data();
          slot.size = static_cast<uint32_t>(bytes.size());
        }
        empty = slot.size == 0;
        break;
      }
      case Plan::kVarint:
      case Plan::kVarint32: {
        if (wire_type != wire::kVarint) return wrong_field(tag_at, tag, type.fields[position], false);
        uint64_t bits = 0;
        p = wire::read_varint(p, end, bits);
        if (p == nullptr) return wrong_field(tag_at, tag, type.fields[position], true);
        if (plan.how == Plan::kVarint32) bits = static_cast<uint32_t>(bits);
        slot.bits = bits;
        empty = bits == 0;
        break;
      }
      case Plan::kFixed64:
        if (wire_type != wire::kFixed64) return wrong_field(tag_at, tag, type.fields[position], false);
        if (end - p < 8) return wrong_field(tag_at, tag, type.fields[position], true);
        slot.bits = wire::load64(p);
        empty = slot.bits << 1 == 0;  // Minus zero is also zero.
        p += 8;
        break;
      case Plan::kRepeated:
      case Plan::kRepeatedVarint:
      case Plan::kRepeatedFixed64: {
        const bool fits = wire_type == wire::kBytes ||
                          (plan.how == Plan::kRepeatedVarint && wire_type == wire::kVarint) ||
                          (plan.how == Plan::kRepeatedFixed64 && wire_type == wire::kFixed64);
        if (!fits) return wrong_field(tag_at, tag, type.fields[position], false);
        if ((seen & bit) == 0) {
          slot.data = tag_at;
          slot.size = static_cast<uint32_t>(end - tag_at);
          slot.count = 0;
        }
        ++slot.count;
        p = wire::skip_value(p, end, tag);
        if (p == nullptr) return wrong_field(tag_at, tag, type.fields[position], true);
        break;
      }
      case Plan::kNone:
        p = wire::skip_value(p, end, tag);
        if (p == nullptr) return truncated(tag_at);
        continue;
    }
    seen |= bit;
    if (empty && plan.omit == Plan::kWhenEmpty) {
      shown &= ~bit;
    } else {
      shown |= bit;
    }
  }
  slots.seen = seen;
  slots.shown = shown | type.shown_fields;
  return true;
}

bool ProtobufReaderBase::small_message(std::string_view message, SmallMessage& parts) {
  const char* const bad = wire::each_field(message, [&](uint64_t tag, const char* p, const char* end) {
    const uint64_t number = tag >> 3;
    if ((tag & 7) == wire::kVarint && number > 0 && number < 4) {
      return wire::read_varint(p, end, parts.varints[number]);
    }
    if ((tag & 7) == wire::kBytes && (number == 1 || number == 3)) {
      parts.has_bytes = true;
      return wire::read_bytes(p, end, parts.bytes);
    }
    return wire::skip_value(p, end, tag);
  });
  return bad == nullptr || truncated(bad);
}

bool ProtobufReaderBase::read_time(const Type& type, std::string_view message, UnixTime& time, bool& zero) {
  zero = true;
  if (message.empty()) return true;
  SmallMessage parts;
  if (!small_message(message, parts)) return false;
  time.seconds = static_cast<int64_t>(parts.varints[1]);
  if (type.shape == Kind::MicroTime) {
    // Nanoseconds beyond a second carry over into the seconds, like in Go's time.Unix.
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

std::string_view ProtobufReaderBase::as_utf8(std::string_view text) {
  return is_valid_utf8(text) ? text : arena_.copy(replace_invalid_utf8(text));
}

}  // namespace holdfast::codec
