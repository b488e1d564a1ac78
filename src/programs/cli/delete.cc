// `holdfast delete`
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/waiting.h"

namespace holdfast::cli {
namespace {

struct DeleteFlags {
  ConnectionFlags connection;
  ManifestFlags manifests;
  std::vector<std::string> arguments;
  std::string selector, cascade = "background", timeout = "0s", output, dry_run = "none";
  int64_t grace_period = -1;
  bool all = false, all_namespaces = false, force = false, now = false, ignore_not_found = false;
  bool wait = true;
};

struct Deleted {
  client::Api<> api;
  std::string name, space, uid;
};

class Deleter {
 public:
  Deleter(const DeleteFlags& flags, Session session) : flags_(flags), session_(std::move(session)) {
    if (flags.grace_period >= 0) options_.grace_period_seconds = flags.grace_period;
    if (flags.now) options_.grace_period_seconds = 1;
    if (flags.force && flags.grace_period < 0) options_.grace_period_seconds = 0;
    options_.propagation_policy = flags.cascade == "orphan"       ? "Orphan"
                                  : flags.cascade == "foreground" ? "Foreground"
                                                                  : "Background";
    options_.dry_run = flags.dry_run == "server";
  }

  int run() {
    Result<Unit> done = flags_.manifests.given() ? delete_of_files() : delete_named();
    if (!done) status_ = fail_with(session_, done.error());
    if (flags_.wait && flags_.dry_run == "none") wait_for_the_end();
    if (shown_ == 0 && status_ == 0 && !flags_.manifests.given() && !flags_.ignore_not_found)
      print("No resources found\n");
    return status_;
  }

 private:
  Result<Unit> delete_of_files() {
    Result<std::vector<Manifest>> manifests = read_manifests(flags_.manifests);
    if (!manifests) return manifests.take_error();
    for (const Manifest& manifest : *manifests) {
      Result<client::Api<>> api = api_of(session_, manifest);
      if (!api) return api.take_error();
      const std::string_view own = manifest.object.space();
      remove(*api, std::string(manifest.object.name()), own.empty() ? session_.space : std::string(own));
    }
    return Unit{};
  }

  Result<Unit> delete_named() {
    Result<std::vector<Target>> targets = find_targets(session_, flags_.arguments);
    if (!targets) return targets.take_error();
    for (const Target& target : *targets) {
      const std::string space = flags_.all_namespaces ? "" : space_for(session_, target.resource);
      const client::Api<> api = session_.client.api(target.resource, space);
      if (!target.name.empty()) {
        remove(api, target.name, space);
        continue;
      }
      if (!flags_.all && flags_.selector.empty()) {
        return bad_request("resource(s) were provided, but no name was specified; use --all or --selector");
      }
      Result<Unit> removed =
          each_object(session_, target, space, flags_.selector, [&](const Value& object) -> Result<Unit> {
            const std::string own(object.text_at("metadata", "namespace"));
            remove(session_.client.api(target.resource, own), std::string(object.text_at("metadata", "name")), own);
            return Unit{};
          });
      if (!removed) return removed;
    }
    return Unit{};
  }

  void remove(const client::Api<>& api, const std::string& name, const std::string& space) {
    if (flags_.dry_run == "client") return show(api.resource(), name, space);
    Result<client::Object> answer = api.remove(name, options_).wait();
    if (!answer) {
      if (answer.error().reason == Reason::NotFound && flags_.ignore_not_found) return;
      status_ = fail_with(session_, answer.error());
      return;
    }
    show(api.resource(), name, space);
    // The response is the object if it still exists, else a Status that names the deleted object.
    const std::string_view uid = answer->root().text_at("details", "uid");
    deleted_.push_back({api, name, space, std::string(uid.empty() ? answer->uid() : uid)});
  }

  void show(const client::Resource& resource, const std::string& name, const std::string& space) {
    ++shown_;
    if (flags_.output == "name") {
      print(display_name(resource, name), "\n");
    } else {
      std::string kind = to_lower(resource.kind);
      if (!resource.group.empty()) kind += "." + resource.group;
      print(kind, " \"", name, "\" ", flags_.force ? "force " : "", "deleted",
            resource.namespaced ? (" from " + space + " namespace") : "",
            flags_.dry_run == "server"   ? " (server dry run)"
            : flags_.dry_run == "client" ? " (dry run)"
                                         : "",
            "\n");
    }
    fflush(stdout);
  }

  void wait_for_the_end() {
    Result<std::chrono::nanoseconds> timeout = parse_timeout(flags_.timeout == "0s" ? "-1s" : flags_.timeout);
    if (!timeout) {
      status_ = fail(("--timeout: " + timeout.error().message).c_str());
      return;
    }
    const auto until = std::chrono::steady_clock::now() + *timeout;
    for (const Deleted& one : deleted_) {
      const auto left = std::max(std::chrono::nanoseconds(0), until - std::chrono::steady_clock::now());
      Result<Unit> gone = wait_until(one.api, one.name, left, [&](const Value* object) -> Result<bool> {
        // A new object with the same name counts as gone.
        return object == nullptr || object->text_at("metadata", "uid") != one.uid;
      });
      if (gone || gone.error().code == 403 || gone.error().code == 405) continue;  // We may delete but not read.
      if (gone.error().reason == Reason::Timeout && gone.error().code == 0) {
        print_error("error: timed out waiting for the condition on ", one.api.resource().plural, "/", one.name, "\n");
        status_ = 1;
      } else {
        status_ = fail_with(session_, gone.error());
      }
    }
  }

  const DeleteFlags& flags_;
  Session session_;
  client::DeleteOptions options_;
  std::vector<Deleted> deleted_;
  int status_ = 0;
  size_t shown_ = 0;
};

}  // namespace

Command add_delete(CLI::App& app) {
  auto flags = std::make_shared<DeleteFlags>();
  CLI::App* c = app.add_subcommand("delete", "Delete objects");
  c->add_option("KIND/NAME", flags->arguments, "Objects: KIND NAME... or KIND/NAME...");
  add_manifest_flags(*c, flags->manifests, "that name the objects");
  c->add_option("-l,--selector", flags->selector, "Label selector for objects of a kind");
  c->add_flag("--all", flags->all, "All objects of the kind in the namespace");
  c->add_flag("-A,--all-namespaces", flags->all_namespaces, "Objects of all namespaces");
  c->add_option("--cascade", flags->cascade, "How to delete dependents: background, foreground or orphan")
      ->capture_default_str()
      ->check(CLI::IsMember({"background", "foreground", "orphan"}));
  c->add_option("--grace-period", flags->grace_period,
                "Grace period in seconds; a negative value means the object's own")
      ->capture_default_str();
  c->add_flag("--now", flags->now, "Same as --grace-period=1");
  c->add_flag("--force", flags->force, "Delete immediately, without graceful termination");
  c->add_flag("--ignore-not-found", flags->ignore_not_found, "Treat objects that do not exist as success");
  c->add_flag("--wait,!--no-wait", flags->wait, "Wait until the objects are gone (default)");
  c->add_option("--timeout", flags->timeout, "How long to wait; 0s means no limit")->capture_default_str();
  c->add_option("-o,--output", flags->output, "Output format: name")->check(CLI::IsMember({"", "name"}));
  c->add_option("--dry-run", flags->dry_run, "server: submit without deleting; client: only show what would be deleted")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "server", "client"}));
  add_connection_flags(*c, flags->connection);
  c->footer(
      "\nExamples:\n  holdfast delete pod web\n  holdfast delete -f manifests/\n  holdfast delete pods -l app=web");
  return [flags] {
    Result<Session> session = open_session(flags->connection, ManagedFields::Dropped);
    if (!session) return fail(session.error().message.c_str());
    return Deleter(*flags, std::move(*session)).run();
  };
}

}  // namespace holdfast::cli
