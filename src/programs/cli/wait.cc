// `holdfast wait`
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/waiting.h"

namespace holdfast::cli {
namespace {

struct WaitFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::vector<std::string> arguments;
  std::string condition, timeout = "30s", selector;
  bool all_namespaces = false, all = false;
};

// The condition given by --for.
struct Wanted {
  enum class Kind : uint8_t { Delete, Create, Condition, JsonPath } kind = Kind::Condition;
  std::string name, value;
  bool any_value = false;
  std::shared_ptr<const JsonPathTemplate> path;

  static Result<Wanted> parse(const std::string& text);
  Result<bool> met(const Value* object) const;
};

Result<Wanted> Wanted::parse(const std::string& text) {
  Wanted wanted;
  const std::string lower = to_lower(text);
  if (lower == "delete") {
    wanted.kind = Kind::Delete;
  } else if (lower == "create") {
    wanted.kind = Kind::Create;
  } else if (lower.starts_with("condition=")) {
    const std::string rest = text.substr(10);
    const size_t equals = rest.find('=');
    wanted.name = rest.substr(0, equals);
    wanted.value = equals == std::string::npos ? "true" : rest.substr(equals + 1);
  } else if (lower.starts_with("jsonpath=")) {
    std::string rest = text.substr(9);
    const size_t close = rest.rfind('}');
    const size_t equals = rest.find('=', close == std::string::npos ? 0 : close);
    wanted.kind = Kind::JsonPath;
    wanted.any_value = equals == std::string::npos;
    if (!wanted.any_value) wanted.value = rest.substr(equals + 1);
    for (const std::string_view quote : {"'", "\""}) {
      if (wanted.value.size() > 1 && wanted.value.starts_with(quote) && wanted.value.ends_with(quote)) {
        wanted.value = wanted.value.substr(1, wanted.value.size() - 2);
      }
    }
    Result<JsonPathTemplate> parsed = JsonPathTemplate::parse(rest.substr(0, equals));
    if (!parsed) return parsed.take_error();
    wanted.path = std::make_shared<JsonPathTemplate>(std::move(*parsed));
  } else {
    return bad_request("unrecognized condition: \"" + text +
                       "\"; use delete, create, condition=NAME[=VALUE] or jsonpath='{PATH}'[=VALUE]");
  }
  return wanted;
}

Result<bool> Wanted::met(const Value* object) const {
  switch (kind) {
    case Kind::Delete:
      return object == nullptr;
    case Kind::Create:
      return object != nullptr;
    case Kind::Condition: {
      if (object == nullptr) return false;
      for (const Value& condition : object->items_at("status", "conditions")) {
        if (to_lower(condition.text_at("type")) != to_lower(name)) continue;
        // A condition observed for an older generation does not count.
        const int64_t generation = object->int_at_or(0, "metadata", "generation");
        if (condition.int_at_or(generation, "observedGeneration") < generation) return false;
        return to_lower(condition.text_at("status")) == to_lower(value);
      }
      return false;
    }
    case Kind::JsonPath: {
      if (object == nullptr) return false;
      Result<std::string> text = path->print(*object);
      if (!text) return text.take_error();
      return any_value ? !text->empty() : *text == value;
    }
  }
  return false;
}

struct Waited {
  client::Api<> api;
  std::string name;
};

Result<std::vector<Waited>> find_waited(const Session& session, const WaitFlags& flags) {
  std::vector<Waited> found;
  if (flags.manifests.given()) {
    Result<std::vector<Manifest>> manifests = read_manifests(flags.manifests);
    if (!manifests) return manifests.take_error();
    for (const Manifest& manifest : *manifests) {
      Result<client::Api<>> api = api_of(session, manifest);
      if (!api) return api.take_error();
      found.push_back({*api, std::string(manifest.object.name())});
    }
    return found;
  }
  Result<std::vector<Target>> targets = find_targets(session, flags.arguments);
  if (!targets) return targets.take_error();
  for (const Target& target : *targets) {
    const std::string space = flags.all_namespaces ? "" : space_for(session, target.resource);
    if (!target.name.empty()) {
      found.push_back({session.client.api(target.resource, space), target.name});
      continue;
    }
    if (!flags.all && flags.selector.empty()) {
      return bad_request("resource(s) were provided, but no name was specified; use --all or --selector");
    }
    Result<Unit> listed = each_object(session, target, space, flags.selector, [&](const Value& object) -> Result<Unit> {
      found.push_back({session.client.api(target.resource, object.text_at("metadata", "namespace")),
                       std::string(object.text_at("metadata", "name"))});
      return Unit{};
    });
    if (!listed) return listed.take_error();
  }
  return found;
}

int wait(const WaitFlags& flags) {
  Result<Wanted> wanted = Wanted::parse(flags.condition);
  if (!wanted) return fail(wanted.error().message.c_str());
  Result<std::chrono::nanoseconds> timeout = parse_timeout(flags.timeout);
  if (!timeout) return fail(("--timeout: " + timeout.error().message).c_str());
  Result<Session> session = open_session(flags.connection, ManagedFields::Dropped);
  if (!session) return fail(session.error().message.c_str());
  Result<std::vector<Waited>> objects = find_waited(*session, flags);
  if (!objects) return fail_with(*session, objects.error());
  if (objects->empty() && wanted->kind != Wanted::Kind::Delete) {
    print_error("error: no matching resources found\n");
    return 1;
  }
  const auto until = std::chrono::steady_clock::now() + *timeout;
  int status = 0;
  for (const Waited& object : *objects) {
    const client::Resource& resource = object.api.resource();
    bool first = true, absent = false;
    const Done done = [&](const Value* value) -> Result<bool> {
      const bool exists_already = value != nullptr || !std::exchange(first, false);
      if (!exists_already && wanted->kind != Wanted::Kind::Create) {
        // Do not wait for the object itself: it must exist to begin with.
        if (wanted->kind == Wanted::Kind::Delete) {
          absent = true;
          return true;
        }
        const std::string type = resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
        return Error{Reason::NotFound, type + " \"" + object.name + "\" not found", {}, 0, ErrorDetails{}, 404};
      }
      return wanted->met(value);
    };
    const auto left = std::max(std::chrono::nanoseconds(0), until - std::chrono::steady_clock::now());
    Result<Unit> met = wait_until(object.api, object.name, left, done);
    if (met) {
      if (!absent) print(display_name(resource, object.name), " condition met\n");
      continue;
    }
    status = 1;
    if (met.error().reason == Reason::Timeout && met.error().code == 0) {
      print_error("error: ", met.error().message, " on ", resource.plural, "/", object.name, "\n");
    } else {
      fail_with(*session, met.error());
    }
  }
  return status;
}

}  // namespace

Command add_wait(CLI::App& app) {
  auto flags = std::make_shared<WaitFlags>();
  CLI::App* c = app.add_subcommand("wait", "Wait for a condition on one or more objects");
  c->add_option("KIND/NAME", flags->arguments, "Objects: KIND NAME... or KIND/NAME...");
  c->add_option("--for", flags->condition,
                "What to wait for: delete, create, condition=NAME[=VALUE] or jsonpath='{PATH}'[=VALUE]")
      ->required();
  c->add_option("--timeout", flags->timeout, "Total time to wait; 0 checks once, a negative value means a week")
      ->capture_default_str();
  add_manifest_flags(*c, flags->manifests, "that name the objects");
  c->add_option("-l,--selector", flags->selector, "Label selector for objects of a kind");
  c->add_flag("--all", flags->all, "All objects of the kind in the namespace");
  c->add_flag("-A,--all-namespaces", flags->all_namespaces, "Objects of all namespaces");
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nExamples:\n"
      "  holdfast wait --for=condition=Available deployment/web --timeout=60s\n"
      "  holdfast wait --for=jsonpath='{.status.phase}'=Running pod/web\n"
      "  holdfast wait --for=delete namespace/old");
  return [flags] { return wait(*flags); };
}

}  // namespace holdfast::cli
