// Warnings about pods and templates (api/pod/warnings.go).

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

std::string at_text(const Path& at, std::string_view message) { return at.text() + ": " + std::string(message); }

}  // namespace

std::string_view current_label(std::string_view key) {
  if (key == "beta.kubernetes.io/arch") return "kubernetes.io/arch";
  if (key == "beta.kubernetes.io/os") return "kubernetes.io/os";
  if (key == "failure-domain.beta.kubernetes.io/region") return "topology.kubernetes.io/region";
  if (key == "failure-domain.beta.kubernetes.io/zone") return "topology.kubernetes.io/zone";
  if (key == "beta.kubernetes.io/instance-type") return "node.kubernetes.io/instance-type";
  return {};
}

std::string_view deprecated_label(std::string_view key) {
  if (key == "beta.kubernetes.io/arch") return "deprecated since v1.14; use \"kubernetes.io/arch\" instead";
  if (key == "beta.kubernetes.io/os") return "deprecated since v1.14; use \"kubernetes.io/os\" instead";
  if (key == "failure-domain.beta.kubernetes.io/region") {
    return "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead";
  }
  if (key == "failure-domain.beta.kubernetes.io/zone") {
    return "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead";
  }
  if (key == "beta.kubernetes.io/instance-type") {
    return "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead";
  }
  if (key == "app.kubernetes.io/created-by") return "deprecated since v1.9";
  if (key == "scheduler.alpha.kubernetes.io/preferAvoidPods") {
    return "deprecated since v1.22; use Taints and Tolerations instead";
  }
  if (key == "node-role.kubernetes.io/master") return "use \"node-role.kubernetes.io/control-plane\" instead";
  return {};
}

void warn_about_node_term(const Value& term, LabelValues values, const Path& at, Warnings& texts) {
  const std::span<const Value> expressions = term.items_at("matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    const Path here = at.item("matchExpressions", i);
    const std::string_view key = expressions[i].text_at("key"), message = deprecated_label(key);
    if (!message.empty()) {
      texts.add(at_text(here.child("key"), std::string(key) + " is " + std::string(message)));
    }
    if (values == LabelValues::Ignored) continue;
    const std::span<const Value> listed = expressions[i].items_at("values");
    for (size_t j = 0; j < listed.size(); ++j) {
      for (const std::string& wrong : label_value_errors(listed[j].as_string())) {
        texts.add(at_text(here.item("values", j), std::string(listed[j].as_string()) + " is invalid, " + wrong));
      }
    }
  }
}

void warn_about_claim(const Value& spec, const Path& at, Warnings& texts) {
  const Path resources = at.child("resources");
  for (const std::string_view list : {"requests", "limits"}) {
    const Value* amount = spec.get("resources", list, "storage");
    if (amount == nullptr || quantity_of(amount).milli_value() % 1000 == 0) continue;
    const Path list_at = resources.child(list);
    texts.add(at_text(list_at.key("storage"),
                      "fractional byte value " + go_quote(amount->as_string()) + " is invalid, must be an integer"));
  }
}

namespace {

void warn_about_scheduling(const Value& spec, const Path& at, Warnings& texts) {
  const Path selector = at.child("nodeSelector");
  for (const Member& label : spec.members_at("nodeSelector")) {
    const std::string_view message = deprecated_label(label.key);
    if (!message.empty()) texts.add(at_text(selector.key(label.key), message));
  }
  const Path affinity = at.child("affinity.nodeAffinity");
  const Path required = affinity.child("requiredDuringSchedulingIgnoredDuringExecution");
  const Value& nodes = sub(spec, "affinity", "nodeAffinity");
  const std::span<const Value> terms =
      sub(nodes, "requiredDuringSchedulingIgnoredDuringExecution").items_at("nodeSelectorTerms");
  for (size_t i = 0; i < terms.size(); ++i) {
    warn_about_node_term(terms[i], LabelValues::Ignored, required.item("nodeSelectorTerms", i), texts);
  }
  const std::span<const Value> preferred = nodes.items_at("preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path here = affinity.item("preferredDuringSchedulingIgnoredDuringExecution", i);
    warn_about_node_term(sub(preferred[i], "preference"), LabelValues::Checked, here.child("preference"), texts);
  }
  const std::span<const Value> constraints = spec.items_at("topologySpreadConstraints");
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Path here = at.item("topologySpreadConstraints", i);
    const std::string_view key = constraints[i].text_at("topologyKey"), message = deprecated_label(key);
    if (!message.empty()) {
      texts.add(at_text(here.child("topologyKey"), std::string(key) + " is " + std::string(message)));
    }
    if (!is_set(constraints[i], "labelSelector")) {
      texts.add(at_text(here.child("labelSelector"), "a null labelSelector results in matching no pod"));
    }
  }
}

void warn_about_affinity(const Value& spec, const Path& at, Warnings& texts) {
  const Path affinity = at.child("affinity");
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& terms = sub(spec, "affinity", kind);
    const Path here = affinity.child(kind);
    const std::span<const Value> required = terms.items_at("requiredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < required.size(); ++i) {
      if (is_set(required[i], "labelSelector")) continue;
      const Path term = here.item("requiredDuringSchedulingIgnoredDuringExecution", i);
      texts.add(at_text(term.child("labelSelector"), "a null labelSelector results in matching no pod"));
    }
    const std::span<const Value> preferred = terms.items_at("preferredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < preferred.size(); ++i) {
      if (is_set(sub(preferred[i], "podAffinityTerm"), "labelSelector")) continue;
      const Path term = here.item("preferredDuringSchedulingIgnoredDuringExecution", i);
      texts.add(
          at_text(term.child("podAffinityTerm.labelSelector"), "a null labelSelector results in matching no pod"));
    }
  }
}

void warn_about_volumes(const Value& spec, const Path& at, Warnings& texts) {
  struct Old {
    std::string_view source, shown, message;
  };
  static constexpr Old kOld[] = {
      {"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
      {"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
      {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
      {"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
      {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
      {"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
      {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
      {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
      {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"},
  };
  const std::span<const Value> volumes = spec.items_at("volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Path here = at.item("volumes", i);
    if (const Value* claim = volumes[i].get("ephemeral", "volumeClaimTemplate", "spec"); claim != nullptr) {
      warn_about_claim(*claim, here.child("ephemeral.volumeClaimTemplate.spec"), texts);
    }
    for (const Old& old : kOld) {
      if (is_set(volumes[i], old.source)) texts.add(at_text(here.child(old.shown), old.message));
    }
  }
}

// The files of a volume, some of which may be in the place of others or inside of them: a pair of them gets a warning
// when the later one is added.
//
// The number of pairs is quadratic, but no more are looked at than have a warning of their own, of which there cannot
// be many until no further ones would be shown. Files are known by their number among the distinct ones, in order:
//
//   paths    a          a/b        a/b        c        all files, as added
//   number   0          1          1          2
//   at       a: {0}     a/b: {1}              c: {2}   the files with this path
//   under    a: {0, 1}  a/b: {1}              c: {2}   the same and those inside
//
// A file meets all in `at` of the paths above it and in `under` of its own, except those that it met before.
class Overlaps {
 public:
  Overlaps(std::string_view volume, std::string what, Warnings& texts)
      : start_("volume " + go_quote(volume) + " (" + what + "): overlapping paths: "), texts_(&texts) {}

  // The path must outlive this object.
  void add(std::string_view path, std::string_view source) {
    while (path.ends_with('/')) path.remove_suffix(1);
    if (!path.empty()) added_.push_back({path, sources_.emplace(source).first->c_str()});
  }
  void add_items(const Value& source, std::string_view what) {
    for (const Value& item : source.items_at("items")) add(item.text_at("path"), what);
  }

  void warn() {
    find_places();
    for (const File& file : added_) {
      if (texts_->full()) return;
      Place& own = places_.at(file.path);
      const auto [number_of, fresh] = own.numbers.try_emplace(file.source, distinct_.size());
      const size_t number = number_of->second;
      if (fresh) met_.push_back(0);
      meet(file, number, own);
      if (!fresh) continue;
      distinct_.push_back(file);
      own.at.push_back(number);
      for (Place* above = &own; above != nullptr; above = above->parent) above->under.push_back(number);
    }
  }

 private:
  struct File {
    std::string_view path;
    const char* source;  // In sources_: equal ones have the same address.
    std::string text() const { return go_quote(path) + (*source == 0 ? "" : " (" + std::string(source) + ")"); }
  };
  struct Place {
    Place* parent = nullptr;                          // The nearest path above it that also is a file.
    std::unordered_map<const char*, size_t> numbers;  // By source.
    std::vector<size_t> at, under;
  };

  void find_places() {
    std::vector<std::string_view> paths;
    for (const File& file : added_) {
      if (places_.try_emplace(file.path).second) paths.push_back(file.path);
    }
    // As if each ended with a slash: what is inside a path follows it.
    const auto before = [](std::string_view a, std::string_view b) {
      const size_t common = std::min(a.size(), b.size());
      if (const int order = a.substr(0, common).compare(b.substr(0, common)); order != 0) return order < 0;
      const auto next = [&](std::string_view text) {
        return text.size() == common ? '/' : static_cast<unsigned char>(text[common]);
      };
      return next(a) != next(b) ? next(a) < next(b) : a.size() < b.size();
    };
    std::sort(paths.begin(), paths.end(), before);
    std::vector<std::string_view> open;
    for (const std::string_view path : paths) {
      while (!open.empty() && !(path.starts_with(open.back()) && path[open.back().size()] == '/')) open.pop_back();
      if (!open.empty()) places_.at(path).parent = &places_.at(open.back());
      open.push_back(path);
    }
  }

  void meet(const File& file, size_t number, const Place& own) {
    std::vector<size_t> others;
    const auto take = [&](const std::vector<size_t>& from) {
      others.insert(others.end(), std::lower_bound(from.begin(), from.end(), met_[number]), from.end());
    };
    take(own.under);
    for (const Place* above = own.parent; above != nullptr; above = above->parent) take(above->at);
    met_[number] = distinct_.size();
    std::sort(others.begin(), others.end());
    for (const size_t other : others) {
      if (texts_->full()) return;
      texts_->add(start_ + file.text() + " with " + distinct_[other].text());
    }
  }

  const std::string start_;
  Warnings* const texts_;
  std::unordered_set<std::string, KeyHash> sources_;
  std::vector<File> added_, distinct_;
  std::vector<size_t> met_;  // By number: how many distinct files were there when it was last added.
  std::unordered_map<std::string_view, Place, KeyHash> places_;
};

std::string named(std::string_view kind, std::string_view name) { return std::string(kind) + " " + go_quote(name); }

void warn_about_items(const Value& source, Overlaps overlaps) {
  overlaps.add_items(source, "");
  overlaps.warn();
}

void warn_about_overlaps(const Value& volume, Warnings& texts) {
  const std::string_view name = volume.text_at("name");
  if (const Value& source = sub(volume, "configMap"); !source.is_null()) {
    warn_about_items(source, Overlaps(name, named("ConfigMap", source.text_at("name")), texts));
  }
  if (const Value& source = sub(volume, "secret"); !source.is_null()) {
    warn_about_items(source, Overlaps(name, named("Secret", source.text_at("secretName")), texts));
  }
  if (const Value& source = sub(volume, "downwardAPI"); !source.is_null()) {
    warn_about_items(source, Overlaps(name, "DownwardAPI", texts));
  }
  const std::span<const Value> sources = volume.items_at("projected", "sources");
  if (sources.empty()) return;
  Overlaps projected(name, "Projected", texts);
  for (const Value& source : sources) {
    if (source.count() == 0) texts.add("volume " + go_quote(name) + " (Projected) has no sources provided");
    if (const Value& one = sub(source, "configMap"); !is_empty(one, "items")) {
      projected.add_items(one, named("ConfigMap", one.text_at("name")));
    } else if (const Value& secret = sub(source, "secret"); !is_empty(secret, "items")) {
      projected.add_items(secret, named("Secret", secret.text_at("name")));
    } else if (const Value& fields = sub(source, "downwardAPI"); !is_empty(fields, "items")) {
      projected.add_items(fields, "DownwardAPI");
    } else if (const Value& token = sub(source, "serviceAccountToken"); !token.is_null()) {
      projected.add(token.text_at("path"), "ServiceAccountToken");
    } else if (const Value& bundle = sub(source, "clusterTrustBundle"); !bundle.is_null()) {
      projected.add(bundle.text_at("path"),
                    named("ClusterTrustBundle", bundle.text_at(is_set(bundle, "name") ? "name" : "signerName")));
    } else if (const Value& certificate = sub(source, "podCertificate"); !certificate.is_null()) {
      projected.add(certificate.text_at("certificateChainPath"), "PodCertificate chain");
      projected.add(certificate.text_at("keyPath"), "PodCertificate key");
      projected.add(certificate.text_at("credentialBundlePath"), "PodCertificate credential bundle");
    }
  }
  projected.warn();
}

void warn_about_repeats(const Value& spec, const Path& at, Warnings& texts) {
  for (const auto& [list, key, what] :
       {std::tuple<std::string_view, std::string_view, std::string_view>{"hostAliases", "ip", "ip"},
        {"imagePullSecrets", "name", "name"}}) {
    Names seen;
    const std::span<const Value> items = spec.items_at(list);
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string_view text = items[i].text_at(key);
      const Path here = at.item(list, i);
      if (contains(seen, text)) {
        texts.add(at_text(here.child(key), "duplicate " + std::string(what) + " " + go_quote(text)));
      }
      seen.push_back(text);
    }
  }
  const std::span<const Value> secrets = spec.items_at("imagePullSecrets");
  for (size_t i = 0; i < secrets.size(); ++i) {
    const Path here = at.item("imagePullSecrets", i);
    if (secrets[i].text_at("name").empty()) texts.add(at_text(here.child("name"), "invalid empty name \"\""));
  }
}

void warn_about_fraction(const Value* amount, const Path& at, Warnings& texts) {
  if (amount == nullptr || quantity_of(amount).milli_value() % 1000 == 0) return;
  texts.add(at_text(at, "fractional byte value " + go_quote(amount->as_string()) + " is invalid, must be an integer"));
}

void warn_about_environment(const Value& container, const Path& at, Warnings& texts) {
  Names names;
  const std::span<const Value> variables = container.items_at("env");
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::string_view name = variables[i].text_at("name"), value = variables[i].text_at("value");
    if (!contains(names, name)) {
      names.push_back(name);
      continue;
    }
    // PATH=$(PATH):/more refers to the earlier one; anything else hides it.
    const std::string reference = "$(" + std::string(name) + ")";
    const bool extends =
        !is_set(variables[i], "valueFrom") && value != reference && value.find(reference) != std::string_view::npos;
    if (extends) continue;
    texts.add(at_text(at.item("env", i),
                      "hides previous definition of " + go_quote(name) + ", which may be dropped when using apply"));
  }
}

struct NamedPort {
  const Value* port;
  std::string where;
};

// Conflicting ports of a pod. Finds conflicts by lookup and limits the number of warnings: clients are sent about 4 KB
// of them in total.
class PortClaims {
 public:
  explicit PortClaims(Warnings& texts) : texts_(texts) {}

  // Warns about conflicts between `port`, the next one in `all`, and earlier ones.
  void add(const Value& port, const Path& here, const std::vector<NamedPort>& all) {
    const int64_t number = port.int_at_or(0, "hostPort");
    const std::string_view ip = port.text_at("hostIP");
    Same& same = by_port_[std::to_string(port.int_at_or(0, "containerPort")) + std::string(port.text_at("protocol"))];
    OnHost& there = same.on_host[number];
    std::vector<std::pair<size_t, std::string_view>> met;
    const auto meets = [&](const std::vector<size_t>& others, std::string_view what) {
      const size_t most = std::min(others.size(), kMostWarnings - said_);
      for (size_t i = 0; i < most; ++i) met.emplace_back(others[i], what);
    };
    if (number == 0) {
      // The same port overlaps, on the host or not; if everything is equal, it is a duplicate.
      meets(same.all, "overlapping");
    } else {
      meets(there.by_ip[ip], "duplicate");
      if (ip.empty()) meets(there.with_ip, "dangerously ambiguous");
      if (!ip.empty()) meets(there.without_ip, "dangerously ambiguous");
      if (const auto none = same.on_host.find(0); none != same.on_host.end()) meets(none->second.all, "overlapping");
    }
    std::sort(met.begin(), met.end());
    for (auto [other, what] : met) {
      if (said_++ == kMostWarnings) break;
      const Value& before = *all[other].port;
      if (before.int_at_or(0, "hostPort") == number && before.text_at("hostIP") == ip) what = "duplicate";
      texts_.add(at_text(here, std::string(what) + " port definition with " + all[other].where));
    }
    said_ = std::min(said_, kMostWarnings);
    const size_t place = all.size();
    same.all.push_back(place);
    there.all.push_back(place);
    there.by_ip[ip].push_back(place);
    (ip.empty() ? there.without_ip : there.with_ip).push_back(place);
  }

 private:
  static constexpr size_t kMostWarnings = 200;
  // Positions in the list of all ports.
  struct OnHost {
    std::vector<size_t> all, with_ip, without_ip;
    std::unordered_map<std::string_view, std::vector<size_t>, KeyHash> by_ip;
  };
  struct Same {
    std::vector<size_t> all;
    std::unordered_map<int64_t, OnHost> on_host;
  };
  Warnings& texts_;
  std::unordered_map<std::string, Same, KeyHash> by_port_;
  size_t said_ = 0;
};

void warn_about_ports(const Value& container, const Path& at, std::vector<NamedPort>& all, PortClaims& claims,
                      Warnings& texts) {
  const std::span<const Value> ports = container.items_at("ports");
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports[i];
    const Path here = at.item("ports", i);
    const std::string_view ip = port.text_at("hostIP");
    if (!ip.empty() && port.int_at_or(0, "hostPort") == 0) {
      texts.add(at_text(here, "hostIP set without hostPort: {Name:" + std::string(port.text_at("name")) +
                                  " HostPort:0 ContainerPort:" + std::to_string(port.int_at_or(0, "containerPort")) +
                                  " Protocol:" + std::string(port.text_at("protocol")) + " HostIP:" + std::string(ip) +
                                  "}"));
    }
    claims.add(port, here, all);
    all.push_back({&port, here.text()});
  }
}

}  // namespace

void warn_about_pod(const Value& spec, const Value* metadata, const Path& spec_at, const Path& metadata_at,
                    Warnings& texts) {
  warn_about_scheduling(spec, spec_at, texts);
  const Path notes_at = metadata_at.child("annotations");
  const auto note = [&](std::string_view key, std::string_view message) {
    if (metadata != nullptr && metadata->get("annotations", key) != nullptr) {
      texts.add(at_text(notes_at.key(key), message));
    }
  };
  note("scheduler.alpha.kubernetes.io/critical-pod",
       "non-functional in v1.16+; use the \"priorityClassName\" field instead");
  note("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead");
  note("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead");
  warn_about_volumes(spec, spec_at, texts);
  for (const Value& volume : spec.items_at("volumes")) warn_about_overlaps(volume, texts);
  warn_about_repeats(spec, spec_at, texts);
  const Path overhead = spec_at.child("overhead");
  for (const std::string_view name : {"memory", "ephemeral-storage"}) {
    warn_about_fraction(spec.get("overhead", name), overhead.key(name), texts);
  }
  if (!is_set(sub(spec, "securityContext"), "seccompProfile")) {
    note("seccomp.security.alpha.kubernetes.io/pod",
         "non-functional in v1.27+; use the \"seccompProfile\" field instead");
  }
  const bool has_notes = metadata != nullptr && metadata->has("annotations");
  each_container(spec, spec_at, [&](const Value& container, const Path& at) {
    if (has_notes && !is_set(sub(container, "securityContext"), "seccompProfile")) {
      const std::string key =
          "container.seccomp.security.alpha.kubernetes.io/" + std::string(container.text_at("name"));
      note(key, "non-functional in v1.27+; use the \"seccompProfile\" field instead");
    }
    const Path limits = at.child("resources.limits"), requests = at.child("resources.requests");
    for (const std::string_view name : {"memory", "ephemeral-storage"}) {
      warn_about_fraction(container.get("resources", "limits", name), limits.key(name), texts);
      warn_about_fraction(container.get("resources", "requests", name), requests.key(name), texts);
    }
    warn_about_environment(container, at, texts);
  });
  std::vector<NamedPort> ports;
  PortClaims claims(texts);
  each_container(spec, spec_at, [&](const Value& container, const Path& at) {
    warn_about_ports(container, at, ports, claims, texts);
  });
  std::unordered_map<std::string_view, const NamedPort*, KeyHash> first_of;
  for (const NamedPort& port : ports) {
    const std::string_view name = port.port->text_at("name");
    if (name.empty()) continue;
    const auto [first, fresh] = first_of.try_emplace(name, &port);
    if (fresh) continue;
    texts.add(port.where + ": duplicate port name " + go_quote(name) + " with " + first->second->where +
              ", services and probes that select ports by name will use " + first->second->where);
  }
  if (spec.int_at_or(0, "terminationGracePeriodSeconds") < 0) {
    texts.add(at_text(spec_at.child("terminationGracePeriodSeconds"),
                      "must be >= 0; negative values are invalid and will be treated as 1"));
  }
  warn_about_affinity(spec, spec_at, texts);
  const std::span<const Value> servers = spec.items_at("dnsConfig", "nameservers"),
                               aliases = spec.items_at("hostAliases");
  const Path dns = spec_at.child("dnsConfig");
  for (size_t i = 0; i < servers.size(); ++i) warn_about_ip(servers[i].as_string(), dns.item("nameservers", i), texts);
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Path alias = spec_at.item("hostAliases", i);
    warn_about_ip(aliases[i].text_at("ip"), alias.child("ip"), texts);
  }
}

void warn_about_pod_template(const Value& pod_template, const Path& at, Warnings& texts) {
  const Path spec_at = at.child("spec"), metadata = at.child("metadata"), notes_at = metadata.child("annotations");
  const Value& spec = sub(pod_template, "spec");
  warn_about_pod(spec, pod_template.find("metadata"), spec_at, metadata, texts);
  const Value& annotations = sub(pod_template, "metadata", "annotations");
  if (!annotations.is_map()) return;
  each_container(spec, spec_at, [&](const Value& container, const Path&) {
    if (is_set(sub(container, "securityContext"), "appArmorProfile")) return;
    const std::string key = std::string(kAppArmorPrefix) + std::string(container.text_at("name"));
    const Value* text = annotations.find(key);
    if (text == nullptr) return;
    Arena arena;
    const Value profile = app_armor_of_annotation(arena, text->as_string());
    if (!profile.is_null() && equal(profile, sub(spec, "securityContext", "appArmorProfile"))) return;
    texts.add(at_text(notes_at.key(key), "deprecated since v1.30; use the \"appArmorProfile\" field instead"));
  });
}

void warn_about_name(const Value& object, const Value* old, std::string_view what, Warnings& texts) {
  if (old != nullptr) return;
  const Messages messages = dns_label_errors(object.text_at("metadata", "name"));
  if (messages.empty()) return;
  texts.add("metadata.name: " + std::string(what) +
            ", which can result in surprising behavior; a DNS label is recommended: [" + join(messages, " ") + "]");
}

}  // namespace holdfast::kinds
