#include "admission/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace holdfast::admission {
namespace {

using testing::ElementsAre;

// Files by path.
using Files = std::map<std::string, std::string>;

Result<Configuration> load(const Files& files, const std::string& path = "/etc/k/admission.yaml") {
  return load_configuration(path, [&](const std::string& wanted) -> Result<std::string> {
    const auto found = files.find(wanted);
    if (found == files.end()) return Error{Reason::NotFound, "cannot read " + wanted + ": No such file or directory"};
    return found->second;
  });
}

std::string with_plugins(const std::string& plugins) {
  return "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" + plugins;
}

TEST(AdmissionConfiguration, DecodesInlinePluginConfigurations) {
  const Result<Configuration> read = load({{"/etc/k/admission.yaml", with_plugins(R"(
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - apiGroup: apps
      resource: deployments
      matchContains: [count/]
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [high, higher]}
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted, audit-version: latest}
    exemptions:
      usernames: [system:admin]
      runtimeClasses: [gvisor]
      namespaces: [kube-system, build]
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: /etc/k/hooks
- name: NamespaceLifecycle
)")}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->plugins, ElementsAre("ResourceQuota", "PodSecurity", "MutatingAdmissionWebhook"));
  ASSERT_EQ(read->limited_resources.size(), 2u);
  EXPECT_EQ(read->limited_resources[0].group, "apps");
  EXPECT_EQ(read->limited_resources[0].resource, "deployments");
  EXPECT_THAT(read->limited_resources[0].contains, ElementsAre("count/"));
  ASSERT_EQ(read->limited_resources[1].scopes.size(), 1u);
  EXPECT_EQ(read->limited_resources[1].scopes[0].name, "PriorityClass");
  EXPECT_EQ(read->limited_resources[1].scopes[0].op, "In");
  EXPECT_THAT(read->limited_resources[1].scopes[0].values, ElementsAre("high", "higher"));
  const PodSecurityPolicy& defaults = read->pod_security.defaults;
  EXPECT_EQ(defaults.enforce.text(), "baseline:v1.30");
  EXPECT_EQ(defaults.audit.text(), "privileged:latest");
  EXPECT_EQ(defaults.warn.text(), "restricted:latest");
  EXPECT_THAT(read->pod_security.exempt_users, ElementsAre("system:admin"));
  EXPECT_THAT(read->pod_security.exempt_runtime_classes, ElementsAre("gvisor"));
  EXPECT_THAT(read->pod_security.exempt_namespaces, ElementsAre("kube-system", "build"));
  EXPECT_EQ(read->mutating_webhook_kubeconfig, "/etc/k/hooks");
  EXPECT_EQ(read->validating_webhook_kubeconfig, "");
}

TEST(AdmissionConfiguration, FilePathsAreRelativeToTheConfiguration) {
  const std::string quota = R"({"apiVersion":"resourcequota.admission.k8s.io/v1beta1","kind":"Configuration",)"
                            R"("limitedResources":[{"resource":"pods","matchContains":["pods"]}]})";
  for (const char* path : {"sub/quota.json", "/etc/k/sub/quota.json"}) {
    const Result<Configuration> read =
        load({{"/etc/k/admission.yaml",
               "{apiVersion: apiserver.k8s.io/v1alpha1, kind: AdmissionConfiguration, plugins: [{name: ResourceQuota, "
               "path: " +
                   std::string(path) + "}]}"},
              {"/etc/k/sub/quota.json", quota}});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->limited_resources.size(), 1u);
  }
}

TEST(AdmissionConfiguration, InlineConfigurationTakesPrecedenceOverFile) {
  const Result<Configuration> read = load({{"/etc/k/admission.yaml", with_plugins(R"(
- name: PodSecurity
  path: not-there.yaml
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1beta1
    kind: PodSecurityConfiguration
    defaults: {enforce: restricted}
)")}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->pod_security.defaults.enforce.level, Level::Restricted);
}

struct Refused {
  const char* name;
  std::string file;  // Content of the AdmissionConfiguration.
  const char* want;  // The error after the path of the file.
};

std::string quota(const std::string& limited) {
  return with_plugins(
      "- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: "
      "ResourceQuotaConfiguration, limitedResources: [" +
      limited + "]}}");
}

std::string pod_security(const std::string& members) {
  return with_plugins(
      "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: "
      "PodSecurityConfiguration, " +
      members + "}}");
}

std::string webhook(const std::string& members) {
  return with_plugins(
      "- {name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: "
      "WebhookAdmissionConfiguration, " +
      members + "}}");
}

const Refused kRefused[] = {
    {"invalid YAML", "a: [", ": yaml: line 1: did not find expected node content"},
    {"missing kind", "plugins: []",
     ": apiVersion and kind must be set; supported: AdmissionConfiguration of apiserver.config.k8s.io/v1, "
     "AdmissionConfiguration of apiserver.k8s.io/v1alpha1"},
    {"unexpected kind", "{apiVersion: v1, kind: Config}",
     ": no kind \"Config\" is registered for version \"v1\"; supported: AdmissionConfiguration of "
     "apiserver.config.k8s.io/v1, AdmissionConfiguration of apiserver.k8s.io/v1alpha1"},
    {"unknown fields at any level", with_plugins("- {name: PodSecurity, pth: x}\nplugin: []"),
     ": strict decoding error: unknown field \"plugins[0].pth\", unknown field \"plugin\""},
    {"duplicate field", with_plugins("- {name: PodSecurity}\nplugins: []"),
     ": strict decoding error: line 5: key \"plugins\" already set in map"},
    {"string instead of a list", with_plugins(" all"), ": strict decoding error: plugins must be a list of objects"},
    {"unknown plugin", with_plugins("- {name: PodSecurityy}"),
     ": plugins[0] \"PodSecurityy\": unknown admission plugin"},
    {"unsupported plugin", with_plugins("- {name: ImagePolicyWebhook, path: images.yaml}"),
     ": plugins[0] \"ImagePolicyWebhook\": this plugin is not supported by Holdfast"},
    {"no limits of events",
     with_plugins("- name: EventRateLimit\n  configuration:\n    apiVersion: eventratelimit.admission.k8s.io/v1alpha1\n"
                  "    kind: Configuration\n"),
     ": plugins[0] \"EventRateLimit\": configuration: limits: Required value: must not be empty"},
    {"limits of events that limit nothing",
     with_plugins("- name: EventRateLimit\n  configuration:\n    apiVersion: eventratelimit.admission.k8s.io/v1alpha1\n"
                  "    kind: Configuration\n    limits: [{type: Pod, qps: 1, burst: 0}]\n"),
     ": plugins[0] \"EventRateLimit\": configuration: [limits[0].type: Unsupported value: \"Pod\": supported values: "
     "\"Server\", \"Namespace\", \"User\", \"SourceAndObject\", limits[0].burst: Invalid value: 0: must be positive]"},
    {"node selectors that are not texts",
     with_plugins("- name: PodNodeSelector\n  configuration: {podNodeSelectorPluginConfig: {dev: 5}}\n"),
     ": plugins[0] \"PodNodeSelector\": configuration: strict decoding error: podNodeSelectorPluginConfig.dev must be "
     "a "
     "string"},
    {"a toleration of everything without Exists",
     with_plugins("- name: PodTolerationRestriction\n  configuration:\n"
                  "    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\n    kind: Configuration\n"
                  "    whitelist: [{effect: NoSchedule}]\n"),
     ": plugins[0] \"PodTolerationRestriction\": configuration: podtolerationrestriction.whitelist[0].operator: "
     "Invalid "
     "value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\""},
    {"plugin that takes no configuration", with_plugins("- {name: LimitRanger, path: limits.yaml}"),
     ": plugins[0] \"LimitRanger\": this plugin takes no configuration in Holdfast"},
    {"duplicate plugin", with_plugins("- {name: PodSecurity}\n- {name: PodSecurity}"),
     ": plugins[1] \"PodSecurity\": the plugin is configured twice"},
    {"missing file", with_plugins("- {name: PodSecurity, path: pods.yaml}"),
     ": plugins[0] \"PodSecurity\": cannot read /etc/k/pods.yaml: No such file or directory"},
    {"configuration kind of another plugin",
     with_plugins("- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: "
                  "WebhookAdmissionConfiguration}}"),
     ": plugins[0] \"ResourceQuota\": configuration: no kind \"WebhookAdmissionConfiguration\" is registered for "
     "version \"apiserver.config.k8s.io/v1\"; supported: ResourceQuotaConfiguration of apiserver.config.k8s.io/v1, "
     "Configuration of resourcequota.admission.k8s.io/v1beta1, Configuration of "
     "resourcequota.admission.k8s.io/v1alpha1"},
    {"unknown field in a plugin's configuration", quota("{resource: pods, matchContain: [pods]}"),
     ": plugins[0] \"ResourceQuota\": configuration: strict decoding error: unknown field "
     "\"limitedResources[0].matchContain\""},
    {"limit without a resource", quota("{matchContains: [pods]}"),
     ": plugins[0] \"ResourceQuota\": configuration: limitedResources[0].resource: Required value"},
    {"unknown scope", quota("{resource: pods, matchScopes: [{scopeName: Fast, operator: Exists}]}"),
     ": plugins[0] \"ResourceQuota\": configuration: limitedResources[0].matchScopes[0].scopeName: Invalid value: "
     "\"Fast\": unsupported scope"},
    {"unknown operator",
     quota("{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: Is, values: [a]}]}"),
     ": plugins[0] \"ResourceQuota\": configuration: limitedResources[0].matchScopes[0].operator: Invalid value: "
     "\"Is\": not a valid selector operator"},
    {"operator without values", quota("{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In}]}"),
     ": plugins[0] \"ResourceQuota\": configuration: limitedResources[0].matchScopes[0].values: Required value: must "
     "be at least one value when `operator` is 'In' or 'NotIn' for scope selector"},
    {"unknown levels and versions", pod_security("defaults: {enforce: strict, warn-version: v2}"),
     ": plugins[0] \"PodSecurity\": configuration: [defaults.enforce: Invalid value: \"strict\": must be one of "
     "privileged, baseline, restricted, defaults.warn-version: Invalid value: \"v2\": must be \"latest\" or "
     "\"v1.x\"]"},
    {"invalid and duplicate exemptions",
     pod_security("exemptions: {namespaces: [a, a], usernames: [\"\"], runtimeClasses: [A]}"),
     ": plugins[0] \"PodSecurity\": configuration: [exemptions.namespaces[1]: Duplicate value: \"a\", "
     "exemptions.runtimeClasses[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case "
     "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
     "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), "
     "exemptions.usernames[0]: Invalid value: \"\": username must not be empty]"},
    {"relative kubeconfig path", webhook("kubeConfigFile: hooks"),
     ": plugins[0] \"ValidatingAdmissionWebhook\": configuration: kubeConfigFile: Invalid value: \"hooks\": must be an "
     "absolute file path"},
    {"static manifests", webhook("staticManifestsDir: /etc/manifests"),
     ": plugins[0] \"ValidatingAdmissionWebhook\": configuration: staticManifestsDir: Forbidden: staticManifestsDir "
     "requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"},
};

TEST(AdmissionConfiguration, RejectsSettingsWithoutEffect) {
  for (const Refused& row : kRefused) {
    const Result<Configuration> read = load({{"/etc/k/admission.yaml", row.file}});
    ASSERT_FALSE(read) << row.name;
    EXPECT_EQ(read.error().message, "/etc/k/admission.yaml" + std::string(row.want)) << row.name;
  }
}

TEST(AdmissionConfiguration, ErrorsNameTheInvalidFile) {
  EXPECT_EQ(load({}).error().message, "cannot read /etc/k/admission.yaml: No such file or directory");
  const Result<Configuration> read = load({{"/etc/k/admission.yaml", with_plugins("- {name: PodSecurity, path: p}")},
                                           {"/etc/k/p", "{apiVersion: v1, kind: Pod}"}});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message,
              testing::StartsWith("/etc/k/admission.yaml: plugins[0] \"PodSecurity\": /etc/k/p: no kind \"Pod\""));
}

}  // namespace
}  // namespace holdfast::admission
