// What the commands for running servers share: where the server is, which objects are meant, and how errors are shown.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/manifests.h"
#include "client/client.h"

namespace CLI {
class App;
}

namespace holdfast::cli {

// kubectl's flags for the connection. They may also precede the name of the command.
struct ConnectionFlags {
  std::string kubeconfig, context, cluster, user, server;
  std::string ca_file, tls_server_name;
  std::string certificate_file, key_file, token, username, password;
  std::string as, as_uid;
  std::vector<std::string> as_groups;
  std::string space;  // Empty: that of the kubeconfig.
  bool insecure = false;
  std::string request_timeout = "0";
};
inline constexpr const char* kConnectionGroup = "Connection";
void add_connection_flags(CLI::App& command, ConnectionFlags& flags);

enum class ManagedFields : uint8_t {
  Dropped,  // The server is asked to leave them out; where it does not, they are removed here.
  Kept,
};

// A server that a command talks to.
struct Session {
  client::Client client;
  std::string space;  // The namespace that commands work in.
  std::string url;
};
// Errors say what to do: which flag, variable or file is missing.
Result<Session> open_session(const ConnectionFlags& flags, ManagedFields managed_fields = ManagedFields::Kept);

// --- Which objects

struct Target {
  client::Resource resource;
  std::string name;  // Empty: all there are.
};
// KIND, KIND NAME..., KIND/NAME..., KIND,KIND, or a category such as "all", as kubectl takes them.
Result<std::vector<Target>> find_targets(const Session& session, const std::vector<std::string>& arguments);

// The namespace to ask in for a resource: none for cluster-wide kinds.
std::string space_for(const Session& session, const client::Resource& resource);

// Every object that a target means, page by page: the named one, or all in `space` that the selector matches. Each has
// its apiVersion and kind, and lives as long as the call of `visit`. Stops at the first error, also of `visit`.
using VisitObject = std::function<Result<Unit>(const Value& object)>;
Result<Unit> each_object(const Session& session, const Target& target, const std::string& space,
                         const std::string& label_selector, const VisitObject& visit);

// One version of every resource that the server serves and that has these verbs.
Result<std::vector<client::Resource>> resources_with(const Session& session,
                                                     std::initializer_list<std::string_view> verbs);

// Where a manifest's object lives: its kind, and its own namespace or the session's. The error begins with where the
// manifest is.
Result<client::Api<>> api_of(const Session& session, const Manifest& manifest);

// --- Writing manifests

// Flags that all writes have.
void add_write_flags(CLI::App& command, std::string& dry_run, std::string& validate);
// fieldValidation for --validate: true and strict, warn, false and ignore.
std::string field_validation(const std::string& validate);
// The owner to name in a request: the flag's; nothing where the manifest declares one (metadata.options.fieldManager),
// for the server reads it there; else `otherwise`.
std::string manager_for(const Manifest& manifest, const std::string& flag, std::string_view otherwise);
// The error with where the manifest is in front.
Error at(const Manifest& manifest, Error error);

// --- How things are named and errors shown

// "deployments.apps/web" for messages and -o name: "deployment.apps/web".
std::string display_name(const client::Resource& resource, std::string_view name);

// As kubectl words it: Error from server (NotFound): pods "web" not found. A server that cannot be reached: with what
// to do about it.
std::string error_text(const Session& session, const Error& error);
// Prints it and returns the exit status.
int fail_with(const Session& session, const Error& error);

// Prints server warnings as kubectl does.
void print_warning(std::string_view text);

// Splits "a,b" and repeated flags alike.
std::vector<std::string> split_commas(const std::vector<std::string>& values);

}  // namespace holdfast::cli
