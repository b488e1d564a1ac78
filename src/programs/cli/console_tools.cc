#include "cli/console.h"

#include "base/clock.h"
#include "cli/conflicts.h"
#include "cli/field_owners.h"
#include "cli/manifests.h"
#include "codec/codec.h"

namespace holdfast::cli {

namespace {

std::string text_json(std::string_view text) { return codec::encode_json_string(text); }

Result<std::string> read_manifest(std::string_view body) {
  Result<std::vector<Manifest>> manifests = parse_manifests(std::string(body), "manifest");
  if (!manifests) return manifests.take_error();
  std::string out = "{\"objects\":[";
  for (const Manifest& manifest : *manifests) {
    if (out.back() != '[') out += ',';
    out += "{\"where\":" + text_json(manifest.where()) + ",\"object\":";
    codec::encode_json(manifest.object.root(), out);
    out += '}';
  }
  return out + "]}";
}

// The members of the body, which must be maps.
Result<Unit> require_maps(const Value& body, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Value* value = body.get(name);
    if (value == nullptr || !value->is_map())
      return bad_request("the request needs a map \"" + std::string(name) + "\"");
  }
  return Unit{};
}

Error error_of(const Value& status) {
  Error error{Reason::Conflict, std::string(status.text_at("message"))};
  for (const Value& cause : status.items_at("details", "causes")) {
    error.causes.push_back({std::string(cause.text_at("reason")), std::string(cause.text_at("message")),
                            std::string(cause.text_at("field"))});
  }
  return error;
}

Result<std::string> explain_conflicts(std::string_view text) {
  Arena arena;
  Result<Value> body = codec::decode_json(arena, text);
  if (!body) return body.take_error();
  if (Result<Unit> good = require_maps(*body, {"config", "live", "status"}); !good) return good.take_error();
  std::string out = "{\"conflicts\":[";
  for (const FieldConflict& conflict : read_conflicts(error_of(*body->get("status")), *body->get("config"),
                                                      *body->get("live"), body->text_at("manager"))) {
    if (out.back() != '[') out += ',';
    out += "{\"path\":" + text_json(conflict.path) + ",\"ours\":" + text_json(conflict.ours) +
           ",\"live\":" + text_json(conflict.live) + ",\"owners\":[";
    for (const FieldConflict::Owner& owner : conflict.owners) {
      if (out.back() != '[') out += ',';
      out += "{\"manager\":" + text_json(owner.manager) + ",\"operation\":" + text_json(owner.operation) +
             ",\"subresource\":" + text_json(owner.subresource);
      if (owner.since) out += ",\"time\":" + text_json(format_rfc3339(UnixTime{*owner.since, 0}));
      out += '}';
    }
    out += "]}";
  }
  return out + "]}";
}

Result<std::string> resolve_conflicts(std::string_view text) {
  Arena arena;
  Result<Value> body = codec::decode_json(arena, text);
  if (!body) return body.take_error();
  if (Result<Unit> good = require_maps(*body, {"config", "live"}); !good) return good.take_error();
  std::vector<FieldConflict> conflicts;
  for (const Value& one : body->items_at("decisions")) {
    FieldConflict conflict;
    conflict.path = std::string(one.text_at("path"));
    const std::string_view decision = one.text_at("decision");
    conflict.resolution = decision == "take"    ? Resolution::Take
                          : decision == "share" ? Resolution::Share
                          : decision == "yield" ? Resolution::Yield
                                                : Resolution::Open;
    if (conflict.resolution == Resolution::Open) return bad_request(conflict.path + ": decide take, share or yield");
    conflicts.push_back(std::move(conflict));
  }
  return codec::encode_json(resolved(arena, *body->get("config"), *body->get("live"), conflicts));
}

Result<std::string> owned_manifest(std::string_view text) {
  Arena arena;
  Result<Value> body = codec::decode_json(arena, text);
  if (!body) return body.take_error();
  if (Result<Unit> good = require_maps(*body, {"object"}); !good) return good.take_error();
  Result<Value> part = owned_part(arena, *body->get("object"), body->text_at("manager"));
  if (!part) return part.take_error();
  std::string yaml;
  if (Result<Unit> written = codec::encode_yaml(*part, yaml); !written) return written.take_error();
  return "{\"yaml\":" + text_json(yaml) + "}";
}

}  // namespace

std::map<std::string, console::Tool, std::less<>> console_tools() {
  return {{"manifest", read_manifest},
          {"conflicts", explain_conflicts},
          {"resolve", resolve_conflicts},
          {"owned", owned_manifest}};
}

}  // namespace holdfast::cli
