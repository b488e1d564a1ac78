#include "signer/messages.h"

#include "base/text.h"
#include "base/varint.h"

namespace holdfast::signer {
namespace {

constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

struct Field {
  uint64_t number = 0;
  uint64_t varint = 0;
  std::string_view bytes;
  bool is_varint = false, is_bytes = false;
};

// Calls `take` with every field; false if the bytes are not a message. `take` skips fields of unexpected types, like
// unknown ones.
template <class Take>
bool read_fields(std::string_view message, Take take) {
  ByteReader reader(message);
  while (!reader.rest().empty()) {
    const uint64_t tag = reader.varint();
    Field field{.number = tag >> 3};
    switch (tag & 7) {
      case kVarint:
        field.varint = reader.varint();
        field.is_varint = true;
        break;
      case kFixed64:
        reader.bytes(8);
        break;
      case kBytes:
        field.bytes = reader.bytes(reader.varint());
        field.is_bytes = true;
        break;
      case kFixed32:
        reader.bytes(4);
        break;
      default:
        return false;
    }
    if (!reader.ok() || field.number == 0) return false;
    if (!take(field)) return false;
  }
  return true;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (!rune.valid) return false;
    at += rune.length;
  }
  return true;
}

bool set_text(std::string& to, const Field& field) {
  to = field.bytes;
  return is_utf8(field.bytes);
}

Failure not_a_message() {
  return rpc_failure(Code::Internal,
                     "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data");
}

bool read_key(std::string_view message, tokens::PublicKey& key) {
  return read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.is_bytes) return set_text(key.id, field);
    if (field.number == 2 && field.is_bytes) key.der = field.bytes;
    if (field.number == 3 && field.is_varint) key.is_unlisted = field.varint != 0;
    return true;
  });
}

bool read_timestamp(std::string_view message, UnixTime& time) {
  return read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.is_varint) time.seconds = static_cast<int64_t>(field.varint);
    if (field.number == 2 && field.is_varint) time.nanos = static_cast<int32_t>(field.varint);
    return true;
  });
}

// As CheckValid of google.golang.org/protobuf/types/known/timestamppb.
std::string timestamp_problem(const std::optional<UnixTime>& time) {
  constexpr int64_t kYear1 = -62135596800, kYear9999 = 253402300799;
  if (!time) return "proto: invalid nil Timestamp";
  const std::string shown =
      "proto: timestamp (seconds:" + std::to_string(time->seconds) + " nanos:" + std::to_string(time->nanos) + ") ";
  if (time->seconds < kYear1) return shown + "before 0001-01-01";
  if (time->seconds > kYear9999) return shown + "after 9999-12-31";
  if (time->nanos < 0 || time->nanos >= 1'000'000'000) return shown + "has out-of-range nanos";
  return "";
}

}  // namespace

std::string encode_sign_request(std::string_view claims) {
  std::string message;
  put_varint(message, 1 << 3 | kBytes);
  put_varint(message, claims.size());
  message += claims;
  return message;
}

Outcome<SignedParts> decode_signed_parts(std::string_view message) {
  SignedParts parts;
  const bool read = read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.is_bytes) return set_text(parts.header, field);
    if (field.number == 2 && field.is_bytes) return set_text(parts.signature, field);
    return true;
  });
  if (!read) return not_a_message();
  return parts;
}

Outcome<FetchedKeys> decode_fetched_keys(std::string_view message) {
  FetchedKeys fetched;
  const bool read = read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.is_bytes) return read_key(field.bytes, fetched.keys.emplace_back());
    if (field.number == 2 && field.is_bytes) {
      if (!fetched.data_timestamp) fetched.data_timestamp.emplace();
      return read_timestamp(field.bytes, *fetched.data_timestamp);
    }
    if (field.number == 3 && field.is_varint) fetched.refresh_hint_seconds = static_cast<int64_t>(field.varint);
    return true;
  });
  if (!read) return not_a_message();
  return fetched;
}

Outcome<int64_t> decode_metadata(std::string_view message) {
  int64_t seconds = 0;
  const bool read = read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.is_varint) seconds = static_cast<int64_t>(field.varint);
    return true;
  });
  if (!read) return not_a_message();
  return seconds;
}

Outcome<Unit> check_keys(const FetchedKeys& fetched) {
  if (fetched.refresh_hint_seconds <= 0) {
    return unacceptable("found invalid refresh hint (" + std::to_string(fetched.refresh_hint_seconds) + "s)");
  }
  if (fetched.keys.empty()) return unacceptable("found no keys");
  if (const std::string problem = timestamp_problem(fetched.data_timestamp); !problem.empty()) {
    return unacceptable("invalid data timestamp: " + problem);
  }
  for (const tokens::PublicKey& key : fetched.keys) {
    if (key.id.empty() || key.id.size() > kMaxKeyIdBytes) {
      return unacceptable("found invalid public key id " + go_quote(key.id));
    }
    if (key.der.empty()) return unacceptable("found empty public key");
  }
  return Unit{};
}

}  // namespace holdfast::signer
