#include "admission/configuration.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "admission/plugin.h"
#include "admission/pod_security.h"
#include "admission/strict_map.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "kinds/kinds.h"

namespace holdfast::admission {
namespace {

using kinds::FieldErrors;
using kinds::Path;

struct Kind {
  std::string_view api_version, kind;
};
// The current version comes first.
constexpr Kind kAdmission[] = {{"apiserver.config.k8s.io/v1", "AdmissionConfiguration"},
                               {"apiserver.k8s.io/v1alpha1", "AdmissionConfiguration"}};
constexpr Kind kQuota[] = {{"apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"},
                           {"resourcequota.admission.k8s.io/v1beta1", "Configuration"},
                           {"resourcequota.admission.k8s.io/v1alpha1", "Configuration"}};
constexpr Kind kPodSecurityKinds[] = {{"pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration"},
                                      {"pod-security.admission.config.k8s.io/v1beta1", "PodSecurityConfiguration"},
                                      {"pod-security.admission.config.k8s.io/v1alpha1", "PodSecurityConfiguration"}};
constexpr Kind kTolerations[] = {{"podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration"}};
constexpr Kind kEventLimits[] = {{"eventratelimit.admission.k8s.io/v1alpha1", "Configuration"}};
constexpr Kind kWebhook[] = {{"apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"}};

constexpr std::string_view kClassScopes[] = {"PriorityClass", "VolumeAttributesClass"};
constexpr std::string_view kOtherScopes[] = {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort",
                                             "CrossNamespacePodAffinity"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(std::vector<std::string> problems) {
  return problems.size() == 1 ? problems[0] : "[" + join(problems, ", ") + "]";
}

Result<Unit> check_fields(const FieldErrors& errors) {
  if (errors.empty()) return Unit{};
  std::vector<std::string> texts;
  for (const Cause& cause : errors.all()) texts.push_back(cause.field + ": " + cause.message);
  return bad_request(listed(std::move(texts)));
}

// A document of one of the accepted kinds (without any: of no kind), with its strict decoding errors.
class Reader {
 public:
  static Result<Reader> open(std::string text, std::span<const Kind> accepted) {
    Reader reader;
    Result<codec::Document> document = codec::parse_yaml(std::move(text), {.duplicates = &reader.problems_});
    if (!document) return document.take_error();
    const Value root = document->root();
    reader.document_ = std::move(*document);
    return with_kind(std::move(reader), root, accepted);
  }
  // For a document embedded in another one, which must outlive it.
  static Result<Reader> open(const Value& tree, std::span<const Kind> accepted) {
    return with_kind(Reader(), tree, accepted);
  }

  StrictMap root() {
    StrictMap map(root_, "", problems_);
    (void)map.text("apiVersion");
    (void)map.text("kind");
    return map;
  }
  Result<Unit> check() const {
    if (problems_.empty()) return Unit{};
    return bad_request("strict decoding error: " + join(problems_, ", "));
  }

 private:
  static Result<Reader> with_kind(Reader reader, const Value& root, std::span<const Kind> accepted) {
    reader.root_ = root;
    const std::string_view version = root.is_map() ? root.text_at("apiVersion") : "";
    const std::string_view kind = root.is_map() ? root.text_at("kind") : "";
    if (accepted.empty()) return reader;
    const bool known = std::any_of(accepted.begin(), accepted.end(),
                                   [&](const Kind& one) { return one.api_version == version && one.kind == kind; });
    if (known) return reader;
    std::string want;
    for (const Kind& one : accepted) {
      want.append(want.empty() ? "" : ", ").append(one.kind).append(" of ").append(one.api_version);
    }
    if (kind.empty() || version.empty()) return bad_request("apiVersion and kind must be set; supported: " + want);
    return bad_request("no kind " + go_quote(kind) + " is registered for version " + go_quote(version) +
                       "; supported: " + want);
  }

  codec::Document document_;
  Value root_;
  std::vector<std::string> problems_;
};

// --- ResourceQuota ---

// Kubernetes checks operators only when an object is written, and skips all quotas if one is invalid.
void check_scope(const quota::Scope& scope, const Path& at, FieldErrors& errors) {
  if (is_one_of(kOtherScopes, scope.name)) return;
  if (!is_one_of(kClassScopes, scope.name)) {
    errors.invalid(at.child("scopeName"), scope.name, "unsupported scope");
    return;
  }
  if (scope.op == "In" || scope.op == "NotIn") {
    if (scope.values.empty()) {
      errors.required(at.child("values"),
                      "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    }
  } else if (scope.op == "Exists" || scope.op == "DoesNotExist") {
    if (!scope.values.empty()) {
      errors.invalid(at.child("values"), join(scope.values, ","),
                     "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
    }
  } else {
    errors.invalid(at.child("operator"), scope.op, "not a valid selector operator");
  }
}

Result<Unit> read_quota(Reader& reader, Configuration& into) {
  StrictMap root = reader.root();
  for (StrictMap& item : root.maps("limitedResources")) {
    quota::LimitedResource& limited = into.limited_resources.emplace_back();
    limited.group = item.text("apiGroup");
    limited.resource = item.text("resource");
    limited.contains = item.texts("matchContains");
    for (StrictMap& scope : item.maps("matchScopes")) {
      limited.scopes.push_back(
          {.name = scope.text("scopeName"), .op = scope.text("operator"), .values = scope.texts("values")});
      scope.finish();
    }
    item.finish();
  }
  root.finish();
  if (Result<Unit> strict = reader.check(); !strict) return strict;
  FieldErrors errors;
  const Path at("limitedResources");
  for (size_t i = 0; i < into.limited_resources.size(); ++i) {
    const quota::LimitedResource& limited = into.limited_resources[i];
    const Path item = at.index(i);
    if (limited.resource.empty()) errors.required(item.child("resource"));
    for (size_t k = 0; k < limited.scopes.size(); ++k) {
      check_scope(limited.scopes[k], item.item("matchScopes", k), errors);
    }
  }
  return check_fields(errors);
}

// --- PodSecurity ---

LevelVersion read_level(StrictMap& defaults, const std::string& mode, const Path& at, FieldErrors& errors) {
  LevelVersion read;
  const std::string level = defaults.text(mode), version = defaults.text(mode + "-version");
  if (!level.empty()) {
    const std::optional<Level> known = parse_level(level);
    if (!known) errors.invalid(at.child(mode), level, kLevelRule);
    read.level = known.value_or(Level::Restricted);
  }
  if (!version.empty()) {
    const std::optional<int32_t> known = parse_version(version);
    if (!known) errors.invalid(at.child(mode + "-version"), version, kVersionRule);
    read.minor = known.value_or(-1);
  }
  return read;
}

template <class Check>
void check_exempt(const std::vector<std::string>& names, std::string_view field, FieldErrors& errors, Check check) {
  const Path exemptions("exemptions");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<std::string> wrong = check(names[i]);
    if (!wrong.empty()) {
      errors.invalid(exemptions.item(field, i), names[i], join(wrong, ", "));
    } else if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
               names.begin() + static_cast<ptrdiff_t>(i)) {
      errors.duplicate(exemptions.item(field, i), names[i]);
    }
  }
}

Result<Unit> read_pod_security(Reader& reader, Configuration& into) {
  StrictMap root = reader.root(), defaults = root.map("defaults"), exemptions = root.map("exemptions");
  PodSecurityConfiguration& read = into.pod_security;
  FieldErrors errors;
  const Path at("defaults");
  read.defaults.enforce = read_level(defaults, "enforce", at, errors);
  read.defaults.warn = read_level(defaults, "warn", at, errors);
  read.defaults.audit = read_level(defaults, "audit", at, errors);
  read.exempt_namespaces = exemptions.texts("namespaces");
  read.exempt_runtime_classes = exemptions.texts("runtimeClasses");
  read.exempt_users = exemptions.texts("usernames");
  defaults.finish();
  exemptions.finish();
  root.finish();
  if (Result<Unit> strict = reader.check(); !strict) return strict;
  check_exempt(read.exempt_namespaces, "namespaces", errors, kinds::dns_label_errors);
  check_exempt(read.exempt_runtime_classes, "runtimeClasses", errors, kinds::dns_subdomain_errors);
  check_exempt(read.exempt_users, "usernames", errors, [](const std::string& name) {
    return name.empty() ? std::vector<std::string>{"username must not be empty"} : std::vector<std::string>{};
  });
  return check_fields(errors);
}

// --- Webhooks ---

Result<Unit> read_webhook(Reader& reader, std::string& kubeconfig) {
  StrictMap root = reader.root();
  kubeconfig = root.text("kubeConfigFile");
  const std::string manifests = root.text("staticManifestsDir");
  root.finish();
  if (Result<Unit> strict = reader.check(); !strict) return strict;
  FieldErrors errors;
  if (!kubeconfig.empty() && !kubeconfig.starts_with('/')) {
    errors.invalid(Path("kubeConfigFile"), kubeconfig, "must be an absolute file path");
  }
  if (!manifests.empty()) {
    errors.forbidden(Path("staticManifestsDir"),
                     "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled");
  }
  return check_fields(errors);
}

// --- PodNodeSelector ---

Result<Unit> read_node_selectors(Reader& reader, Configuration& into) {
  StrictMap root = reader.root();
  into.node_selectors = root.texts_by_name("podNodeSelectorPluginConfig");
  root.finish();
  return reader.check();
}

// --- PodTolerationRestriction ---

std::vector<Toleration> read_tolerations(StrictMap& root, std::string_view list, FieldErrors& errors) {
  constexpr std::string_view kOperators[] = {"Equal", "Exists", "Gt", "Lt"};
  constexpr std::string_view kEffects[] = {"NoExecute", "NoSchedule", "PreferNoSchedule"};
  std::vector<Toleration> tolerations;
  const Path whole("podtolerationrestriction");
  for (StrictMap& item : root.maps(list)) {
    const Path at = whole.item(list, tolerations.size());
    Toleration& one = tolerations.emplace_back();
    one.key = item.text("key");
    one.op = item.text("operator");
    one.value = item.text("value");
    one.effect = item.text("effect");
    one.seconds = item.number("tolerationSeconds");
    item.finish();
    if (one.key.empty() && one.op != "Exists") {
      errors.invalid(at.child("operator"), one.op,
                     "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    }
    if (!one.op.empty() && !is_one_of(kOperators, one.op))
      errors.not_supported(at.child("operator"), one.op, kOperators);
    if (one.op == "Exists" && !one.value.empty()) {
      errors.invalid(at.child("operator"), one.op, "value must be empty when `operator` is 'Exists'");
    }
    if (!one.effect.empty() && !is_one_of(kEffects, one.effect)) {
      errors.not_supported(at.child("effect"), one.effect, kEffects);
    }
    if (one.seconds && one.effect != "NoExecute") {
      errors.invalid(at.child("effect"), one.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
  }
  return tolerations;
}

Result<Unit> read_pod_tolerations(Reader& reader, Configuration& into) {
  StrictMap root = reader.root();
  FieldErrors errors;
  into.pod_tolerations.defaults = read_tolerations(root, "default", errors);
  into.pod_tolerations.allowed = read_tolerations(root, "whitelist", errors);
  root.finish();
  if (Result<Unit> strict = reader.check(); !strict) return strict;
  return check_fields(errors);
}

// --- EventRateLimit ---

// Also bounds the memory of the buckets.
constexpr int64_t kMostBuckets = 1 << 20;

Result<Unit> read_event_limits(Reader& reader, Configuration& into) {
  constexpr std::string_view kTypes[] = {"Server", "Namespace", "User", "SourceAndObject"};
  StrictMap root = reader.root();
  FieldErrors errors;
  const Path limits("limits");
  for (StrictMap& item : root.maps("limits")) {
    const Path at = limits.index(into.event_limits.size());
    EventLimit& limit = into.event_limits.emplace_back();
    const std::string type = item.text("type");
    const auto* known = std::find(std::begin(kTypes), std::end(kTypes), type);
    if (known == std::end(kTypes)) {
      errors.not_supported(at.child("type"), type, kTypes);
    } else {
      limit.per = static_cast<EventLimit::Per>(known - std::begin(kTypes));
    }
    limit.per_second = item.number("qps").value_or(0);
    limit.burst = item.number("burst").value_or(0);
    const int64_t size = item.number("cacheSize").value_or(0);
    if (size > 0) limit.cache_size = size;
    item.finish();
    if (limit.burst <= 0) errors.invalid(at.child("burst"), limit.burst, "must be positive");
    if (limit.per_second <= 0) errors.invalid(at.child("qps"), limit.per_second, "must be positive");
    if (size < 0) errors.invalid(at.child("cacheSize"), size, "must not be negative");
    if (size > kMostBuckets) {
      errors.invalid(at.child("cacheSize"), size, "must not be more than " + std::to_string(kMostBuckets));
    }
  }
  root.finish();
  if (Result<Unit> strict = reader.check(); !strict) return strict;
  if (into.event_limits.empty()) errors.required(limits, "must not be empty");
  return check_fields(errors);
}

// --- Plugins ---

struct Configurable {
  std::string_view plugin;
  std::span<const Kind> kinds;
  Result<Unit> (*read)(Reader& reader, Configuration& into);
};
constexpr Configurable kConfigurable[] = {
    {"ResourceQuota", kQuota, read_quota},
    {"PodSecurity", kPodSecurityKinds, read_pod_security},
    {"PodNodeSelector", {}, read_node_selectors},
    {"PodTolerationRestriction", kTolerations, read_pod_tolerations},
    {"EventRateLimit", kEventLimits, read_event_limits},
    {"MutatingAdmissionWebhook", kWebhook,
     [](Reader& reader, Configuration& into) { return read_webhook(reader, into.mutating_webhook_kubeconfig); }},
    {"ValidatingAdmissionWebhook", kWebhook,
     [](Reader& reader, Configuration& into) { return read_webhook(reader, into.validating_webhook_kubeconfig); }},
};

struct Entry {
  std::string name, path;
  const Value* configuration = nullptr;  // Null if it is in the file `path`, or not given.
};

Result<Unit> read_entry(const Entry& entry, const std::filesystem::path& folder, const FileReader& read_file,
                        Configuration& into) {
  if (entry.configuration == nullptr && entry.path.empty()) return Unit{};
  const auto* found = std::find_if(std::begin(kConfigurable), std::end(kConfigurable),
                                   [&](const Configurable& one) { return one.plugin == entry.name; });
  if (found == std::end(kConfigurable)) return bad_request("this plugin takes no configuration in Holdfast");
  into.plugins.push_back(entry.name);
  if (entry.configuration != nullptr) {
    Result<Reader> reader = Reader::open(*entry.configuration, found->kinds);
    Result<Unit> done = reader ? found->read(*reader, into) : Result<Unit>(reader.take_error());
    if (!done) return bad_request("configuration: " + done.error().message);
    return done;
  }
  const std::string path = (folder / entry.path).string();
  Result<std::string> text = read_file(path);
  if (!text) return text.take_error();
  Result<Reader> reader = Reader::open(std::move(*text), found->kinds);
  Result<Unit> done = reader ? found->read(*reader, into) : Result<Unit>(reader.take_error());
  if (!done) return bad_request(path + ": " + done.error().message);
  return done;
}

Result<Configuration> read_all(std::string text, const std::filesystem::path& folder, const FileReader& read_file) {
  Result<Reader> reader = Reader::open(std::move(text), kAdmission);
  if (!reader) return reader.take_error();
  StrictMap root = reader->root();
  std::vector<Entry> entries;
  for (StrictMap& item : root.maps("plugins")) {
    entries.push_back({item.text("name"), item.text("path"), item.any("configuration")});
    item.finish();
  }
  root.finish();
  if (Result<Unit> strict = reader->check(); !strict) return strict.take_error();
  Configuration configuration;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const auto before = entries.begin() + static_cast<ptrdiff_t>(i);
    const bool repeated =
        std::any_of(entries.begin(), before, [&](const Entry& other) { return other.name == entry.name; });
    Result<Unit> read = check_available(entry.name);
    if (read && repeated) read = bad_request("the plugin is configured twice");
    if (read) read = read_entry(entry, folder, read_file, configuration);
    if (!read) {
      return bad_request("plugins[" + std::to_string(i) + "] " + go_quote(entry.name) + ": " + read.error().message);
    }
  }
  return configuration;
}

}  // namespace

Result<Configuration> load_configuration(const std::string& path, const FileReader& read) {
  Result<std::string> text = read(path);
  if (!text) return text.take_error();
  Result<Configuration> configuration = read_all(std::move(*text), std::filesystem::path(path).parent_path(), read);
  if (!configuration) return bad_request(path + ": " + configuration.error().message);
  return configuration;
}

}  // namespace holdfast::admission
