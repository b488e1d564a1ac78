#!/usr/bin/env python3
"""What `kubectl explain` and `holdfast explain` print for fields of every API group: explain_test.py HOLDFAST [--record]

The texts are in explain.txt, each below its command line. Plain texts are compared with those of kubectl too, if there is one
that prints in the same layout. --record writes what holdfast prints now."""
import os
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", part) for part in ("api", "")]
import needs  # noqa: E402
from serve import Server, check, finish, wait_until  # noqa: E402

TEXTS = pathlib.Path(__file__).resolve().parent / "explain.txt"
KUBECTL_MINOR = 30  # Older ones have no enums, or another layout.

# Also printed by kubectl.
PLAIN = """
pod
pod.metadata
pod.spec.containers
pod.spec.containers.ports
pod.spec.containers.securityContext.capabilities
pod.spec.volumes.configMap.items
pods.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm.labelSelector.matchExpressions.operator
service.spec
configmap.data
secret.type
node.spec.taints
persistentvolumeclaim.spec
namespace --recursive
resourcequota.spec
limitrange.spec.limits
deployment
deployment.spec
deployment.spec.replicas
statefulset.spec.updateStrategy.rollingUpdate
daemonset.spec
job.spec
cronjob.spec.concurrencyPolicy
hpa.spec.metrics
hpa.spec --api-version=autoscaling/v1
ingress.spec.rules.http.paths
networkpolicy.spec.ingress
poddisruptionbudget.spec
role.rules
rolebinding.roleRef
storageclass
csidriver.spec
priorityclass
runtimeclass --recursive
lease.spec
endpointslice.endpoints.conditions
events.series --api-version=events.k8s.io/v1
flowschema.spec.rules
prioritylevelconfiguration.spec.limited
validatingwebhookconfiguration.webhooks.clientConfig
validatingadmissionpolicy.spec
mutatingadmissionpolicy.spec.mutations
crd.spec.versions
apiservice.spec
csr.spec
resourceclaim.spec.devices.requests
tokenreview.spec
subjectaccessreview.spec.resourceAttributes
widgets
widgets.metadata
widgets.spec
widgets.spec.parts.size
""".split("\n")[1:-1]

# With the columns that kubectl does not have.
COLUMNS = """
deployment.spec
deployment.spec.replicas
deployment.spec.selector
service.spec.ports
configmap --recursive
role --recursive
widgets --recursive
""".split("\n")[1:-1]

WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
           "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{
               "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                   "type": "object", "description": "A widget, in the words of its author.", "properties": {
                       "spec": {"type": "object", "description": "What  it is\nmade of. Default 7.", "required": ["parts"], "properties": {
                           "colors": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                           "frame": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"depth": {"type": "integer"}}},
                           "labels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Default 1."},
                           "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                     "items": {"type": "object", "required": ["name"], "properties": {
                                         "name": {"type": "string"}, "size": {"type": "integer", "default": 3, "description": "In cm."}}}}}}}}}}]}}


def kubectl():
    found = needs.kubectl()
    if found is not None and needs.minor_of(found) >= KUBECTL_MINOR:
        return found
    needs.skip_part("comparison with kubectl", f"no kubectl 1.{KUBECTL_MINOR} or newer")
    return None


def main():
    holdfast = sys.argv[1]
    with Server(holdfast) as server:
        server.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS, 201)
        wait_until("widgets are served", lambda: server.request("GET", "/apis/example.com/v1/widgets")[0] == 200)
        explained = {}

        def explain(program, *arguments):
            done = subprocess.run([program, "--kubeconfig", str(server.kubeconfig), "explain", *arguments], capture_output=True, text=True)
            assert done.returncode == 0, f"{program} explain {arguments}: {done.stderr}"
            # kubectl ends some lines with blanks.
            return re.sub(r" +$", "", done.stdout, flags=re.M)

        for line in PLAIN:
            explained[line + " --output=plaintext"] = explain(holdfast, *line.split(), "--output=plaintext")
        for line in COLUMNS:
            explained[line] = explain(holdfast, *line.split())
        if sys.argv[2:] == ["--record"]:
            TEXTS.write_text("".join(f"$ explain {line}\n{text}" for line, text in explained.items()))
            return
        recorded = dict(zip(*[iter(re.split(r"^\$ explain (.*)\n", TEXTS.read_text(), flags=re.M)[1:])] * 2))
        check(list(recorded) == list(explained), "every command line has a text")
        for line, text in explained.items():
            check(text == recorded[line], f"explain {line}: {text if text != recorded[line] else ''}")
        program = kubectl()
        for line in PLAIN if program else []:
            theirs, ours = explain(program, *line.split()), recorded[line + " --output=plaintext"]
            check(theirs == ours, f"kubectl explain {line}: {theirs if theirs != ours else ''}")
    finish()


if __name__ == "__main__":
    main()
