// Shared by the commands that talk to a server: the connection, the selection of objects, and the display of errors.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
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
  std::string space;  // Empty for the namespace of the kubeconfig.
  bool insecure = false;
  std::string request_timeout = "0";
};
inline constexpr const char* kConnectionGroup = "Connection";
void add_connection_flags(CLI::App& command, ConnectionFlags& flags);

enum class ManagedFields : uint8_t {
  Dropped,  // The server is asked to omit them; if it does not, they are removed here.
  Kept,
};

// A server that a command talks to.
struct Session {
  client::Client client;
  std::string space;  // The namespace that commands work in.
  std::string url;
};
// Errors are actionable: they name the missing flag, variable or file.
Result<Session> open_session(const ConnectionFlags& flags, ManagedFields managed_fields = ManagedFields::Kept);

// --- Selecting objects

struct Target {
  client::Resource resource;
  std::string name;  // Empty for all objects of the resource.
};
// KIND, KIND NAME..., KIND/NAME..., KIND,KIND, or a category such as "all", as in kubectl.
Result<std::vector<Target>> find_targets(const Session& session, const std::vector<std::string>& arguments);

// The namespace for requests for a resource; empty for cluster-scoped kinds.
std::string space_for(const Session& session, const client::Resource& resource);

// Visits every object of a target, page by page: the named one, or all in `space` that the selector matches. Each has
// its apiVersion and kind, and is valid only during the call of `visit`. Stops at the first error, including one
// returned by `visit`.
using VisitObject = std::function<Result<Unit>(const Value& object)>;
Result<Unit> each_object(const Session& session, const Target& target, const std::string& space,
                         const std::string& label_selector, const VisitObject& visit);

// One version of every resource that the server serves and that has these verbs.
Result<std::vector<client::Resource>> resources_with(const Session& session,
                                                     std::initializer_list<std::string_view> verbs);

// The API for a manifest's object: its kind, in its own namespace or the session's. Errors begin with the manifest's
// position.
Result<client::Api<>> api_of(const Session& session, const Manifest& manifest);

// --- Writing manifests

// Flags common to all commands that write.
void add_write_flags(CLI::App& command, std::string& dry_run, std::string& validate);
// Maps --validate (true or strict, warn, false or ignore) to fieldValidation.
std::string field_validation(const std::string& validate);
// The field manager of a request: that of the flag; empty if the manifest declares one (metadata.options.fieldManager),
// because the server reads it there; else `otherwise`.
std::string manager_for(const Manifest& manifest, const std::string& flag, std::string_view otherwise);
// Prefixes the error with the manifest's position.
Error at(const Manifest& manifest, Error error);

// --- Display names and errors

// "deployments.apps/web" for messages and -o name: "deployment.apps/web".
std::string display_name(const client::Resource& resource, std::string_view name);

// As in kubectl: Error from server (NotFound): pods "web" not found. If the server cannot be reached, says what to do
// about it.
std::string error_text(const Session& session, const Error& error);
// Prints error_text() and returns the exit status.
int fail_with(const Session& session, const Error& error);

// Prints server warnings as kubectl does.
void print_warning(std::string_view text);

// Splits "a,b" and repeated flags alike.
std::vector<std::string> split_commas(const std::vector<std::string>& values);

// The schema of a custom resource as JSON, from its CustomResourceDefinition; empty for a built-in kind. nullopt if
// there is no definition, or if it cannot be read.
std::optional<std::string> schema_of(const Session& session, const client::Resource& resource);

}  // namespace holdfast::cli
