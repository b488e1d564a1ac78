// Deployments, sets, jobs and autoscalers.

#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

constexpr Case kWorkloads[] = {
    {.name = "deployment without a selector",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" TEMPLATE "}}",
     .error =
         R"([spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does )"
         R"(not match template `labels`])"},
    {.name = "unknown deployment strategy",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{"strategy":{"type":"Foo"},)" SELECTED "}}",
     .error = R"(spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported values: "Recreate", )"
              R"("RollingUpdate")"},
    {.name = "rolling update that cannot progress",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}},)" SELECTED "}}",
     .error = "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
    {.name = "deployment pods must restart always",
     .group = "apps",
     .plural = "deployments",
     .object =
         R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
         R"("spec":{"restartPolicy":"Never","activeDeadlineSeconds":1,"containers":[{"name":"c","image":"i"}]}}}})",
     .error =
         R"([spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always", )"
         R"(spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported])"},
    {.name = "deployment annotations increment generation",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"annotations":{"a":"b"}}})",
     .want = R"({"metadata":{"generation":2},"spec":{"replicas":1}})"},
    {.name = "deployment labels do not increment generation",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"labels":{"a":"b"}}})",
     .want = R"({"metadata":{"generation":1}})"},
    {.name = "deployment status endpoint keeps labels",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"status":{"replicas":2}})",
     .endpoint = Endpoint::Status,
     .want = R"({"metadata":{"labels":null,"annotations":{"c":"d"}},"status":{"replicas":2}})"},
    {.name = "ready replicas above replicas",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"status":{"readyReplicas":2,"replicas":1}})",
     .endpoint = Endpoint::Status,
     .error = "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"},
    {.name = "most of a StatefulSet spec is immutable",
     .group = "apps",
     .plural = "statefulsets",
     .object = R"({"spec":{"serviceName":"s",)" SELECTED "}}",
     .update = R"({"spec":{"serviceName":"t"}})",
     .error = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
              "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
              "are forbidden"},
    {.name = "DaemonSet counts template changes",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2"}]}}}})",
     .want = R"({"metadata":{"generation":2,"annotations":{"deprecated.daemonset.template.generation":"2"}}})"},
    {.name = "DaemonSet with both maxSurge and maxUnavailable",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":1}},)" SELECTED "}}",
     .error = "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
              "non-zero"},
    {.name = "DaemonSet status cannot change the template counter",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"annotations":{"deprecated.daemonset.template.generation":"7"}}})",
     .endpoint = Endpoint::Status,
     .want = R"({"metadata":{"annotations":{"deprecated.daemonset.template.generation":"1"}}})"},
    {.name = "invalid success policy of a job",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"completionMode":"Indexed","completions":4,"successPolicy":{"rules":[{},)"
               R"({"succeededIndexes":"0,3-2"},{"succeededIndexes":"1-2","succeededCount":3}]},)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error =
         R"([spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be )"
         R"(specified, spec.successPolicy.rules[1].succeededIndexes: Invalid value: "0,3-2": error parsing )"
         R"(succeededIndexes: non-increasing order, previous: 3, current: 2, )"
         R"(spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number )"
         R"(of indexes in the specified succeededIndexes field)])"},
    {.name = "job generates its selector",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .want =
         R"({"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u-1"}},"template":{"metadata":)"
         R"({"labels":{"job-name":"x","batch.kubernetes.io/job-name":"x","controller-uid":"u-1"}}}}})"},
    {.name = "job pods must not restart always",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{)" POD_SPEC "}}}",
     .error = R"(spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never")"},
    {.name = "finished job requires start and completion time",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .update = R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})",
     .endpoint = Endpoint::Status,
     .error =
         R"([status.completionTime: Required value: completionTime is required for Complete jobs, status.conditions: )"
         R"(Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition, )"
         R"(status.startTime: Required value: startTime is required for finished job])"},
    {.name = "cron schedule with one field",
     .group = "batch",
     .plural = "cronjobs",
     .object = R"({"spec":{"schedule":"x","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",)"
               R"("containers":[{"name":"c","image":"i"}]}}}}}})",
     .error = R"(spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x])"},
    {.name = "cron schedule out of range",
     .group = "batch",
     .plural = "cronjobs",
     .object =
         R"({"spec":{"schedule":"61 * * * *","concurrencyPolicy":"Maybe","jobTemplate":{"spec":{"template":{"spec":)"
         R"({"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})",
     .error = R"([spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61, )"
              R"(spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"])"},
    {.name = "autoscaler without a target",
     .group = "autoscaling",
     .plural = "horizontalpodautoscalers",
     .object = R"({"spec":{"maxReplicas":0,"minReplicas":0,"scaleTargetRef":{"kind":"","name":"d","apiVersion":""}}})",
     .error =
         R"([spec.minReplicas: Invalid value: 0: must be greater than or equal to 1, spec.maxReplicas: Required )"
         R"(value: must be set and greater than 0, spec.scaleTargetRef.kind: Required value, )"
         R"(spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group, spec.metrics: Forbidden: must )"
         R"(specify at least one Object or External metric to support scaling to zero replicas])"},
    {.name = "disruption budget with both bounds",
     .group = "policy",
     .plural = "poddisruptionbudgets",
     .object = R"({"spec":{"minAvailable":1,"maxUnavailable":"50%"}})",
     .error = R"(spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"50%",)"
              R"("UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set)"},
    {.name = "job without labels shares those of its template",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":)"
               R"([{"name":"c","image":"i"}]}}}})",
     .want = R"({"metadata":{"labels":{"a":"b","job-name":"x","controller-uid":"u-1"}}})"},
    {.name = "job with labels keeps them",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"metadata":{"labels":{"a":"b"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}},)"
               R"("spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .want = R"({"metadata":{"labels":{"a":"b","job-name":null}}})"},
    {.name = "invalid job selector is not compared",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]},)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error = R"(spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator)"},
    {.name = "invalid indexes in a job status",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"completionMode":"Indexed","completions":4,"backoffLimitPerIndex":1,)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .update = R"({"status":{"completedIndexes":"0,x,2-3","failedIndexes":"3,1",)"
               R"("uncountedTerminatedPods":{"succeeded":["p","p"],"failed":["","p"]}}})",
     .endpoint = Endpoint::Status,
     .error = R"([status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "p", )"
              R"(status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty, )"
              R"(status.uncountedTerminatedPods.failed[1]: Duplicate value: "p", status.completedIndexes: Invalid )"
              R"(value: "0,x,2-3": error parsing completedIndexes: cannot convert string to integer for index: "x", )"
              R"(status.failedIndexes: Invalid value: "3,1": error parsing failedIndexes: non-increasing order, )"
              R"(previous: 3, current: 1, status.failedIndexes: Invalid value: "3,1": failedIndexes and )"
              R"(completedIndexes overlap at index: 3])"},
    {.name = "StatefulSet with an invalid selector must restart always",
     .group = "apps",
     .plural = "statefulsets",
     .object = R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]},"template":{"spec":)"
               R"({"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error = R"([spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator, )"
              R"(spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Foo"}]}, )"
              R"(spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"])"},
};

INSTANTIATE_TEST_SUITE_P(Workloads, KindTest, testing::ValuesIn(kWorkloads), test_name);

}  // namespace
}  // namespace holdfast::kinds
