"""Three large CustomResourceDefinitions like those installed in practice: hundreds of fields, deeply nested, with keyed
lists, sets, atomic values, preserved unknown fields, defaults, and embedded resources."""

STRING, BOOLEAN, INTEGER = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "format": "int32"}
QUANTITY = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "pattern": r"^(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE])?$"}
PORT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def texts(*names):
    return {name: dict(STRING, description=f"The {name} of the thing that it is said of.") for name in names}


def numbers(*names):
    return {name: INTEGER for name in names}


def switches(*names):
    return {name: BOOLEAN for name in names}


def thing(properties, *required, **more):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


def plain_list(items, **more):
    return {"type": "array", "items": items, **more}


def keyed(items, *keys):
    return plain_list(items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def text_set():
    return plain_list(STRING, **{"x-kubernetes-list-type": "set"})


def mapping(values):
    return {"type": "object", "additionalProperties": values}


def label_selector():
    expression = thing({**texts("key", "operator"), "values": plain_list(STRING)}, "key", "operator")
    return thing({"matchLabels": mapping(STRING), "matchExpressions": plain_list(expression)}, **{"x-kubernetes-map-type": "atomic"})


def probe():
    return thing({
        "exec": thing({"command": plain_list(STRING)}),
        "httpGet": thing({**texts("host", "path", "scheme"), "port": PORT, "httpHeaders": plain_list(thing(texts("name", "value"), "name", "value"))}, "port"),
        "tcpSocket": thing({"host": STRING, "port": PORT}, "port"),
        "grpc": thing({"port": INTEGER, "service": dict(STRING, default="")}, "port"),
        **numbers("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds")})


def key_reference():
    return thing({**texts("name", "key"), "optional": BOOLEAN}, "key", **{"x-kubernetes-map-type": "atomic"})


def container():
    value_from = thing({"configMapKeyRef": key_reference(), "secretKeyRef": key_reference(),
                        "fieldRef": thing(texts("apiVersion", "fieldPath"), "fieldPath"),
                        "resourceFieldRef": thing({**texts("containerName", "resource"), "divisor": QUANTITY}, "resource")})
    return thing({
        **texts("name", "image", "imagePullPolicy", "workingDir", "terminationMessagePath", "terminationMessagePolicy"),
        **switches("stdin", "stdinOnce", "tty"),
        "command": plain_list(STRING), "args": plain_list(STRING),
        "env": keyed(thing({**texts("name", "value"), "valueFrom": value_from}, "name"), "name"),
        "ports": keyed(thing({**texts("name", "hostIP"), "protocol": dict(STRING, default="TCP"), **numbers("containerPort", "hostPort")}, "containerPort"),
                       "containerPort", "protocol"),
        "resources": thing({"limits": mapping(QUANTITY), "requests": mapping(QUANTITY)}),
        "volumeMounts": keyed(thing({**texts("name", "mountPath", "subPath", "mountPropagation"), "readOnly": BOOLEAN}, "name", "mountPath"), "mountPath"),
        "securityContext": thing({**switches("privileged", "readOnlyRootFilesystem", "runAsNonRoot", "allowPrivilegeEscalation"), **numbers("runAsUser", "runAsGroup"),
                                  "capabilities": thing({"add": plain_list(STRING), "drop": plain_list(STRING)})}),
        "livenessProbe": probe(), "readinessProbe": probe(), "startupProbe": probe()}, "name")


def pod_template():
    term = thing({"labelSelector": label_selector(), "namespaces": text_set(), "topologyKey": STRING}, "topologyKey")
    weighted = thing({"weight": INTEGER, "term": term}, "weight", "term")
    affinity = thing({"required": plain_list(term), "preferred": plain_list(weighted)})
    volume = thing({
        "name": STRING, "emptyDir": thing({"medium": STRING, "sizeLimit": QUANTITY}), "hostPath": thing(texts("path", "type"), "path"),
        "secret": thing({"secretName": STRING, "optional": BOOLEAN, "items": plain_list(thing({**texts("key", "path"), "mode": INTEGER}, "key", "path"))}),
        "configMap": thing({"name": STRING, "optional": BOOLEAN, "items": plain_list(thing({**texts("key", "path"), "mode": INTEGER}, "key", "path"))}),
        "persistentVolumeClaim": thing({"claimName": STRING, "readOnly": BOOLEAN}, "claimName"), "csi": ANYTHING}, "name")
    return thing({
        "metadata": thing({"labels": mapping(STRING), "annotations": mapping(STRING)}),
        "spec": thing({
            **texts("serviceAccountName", "nodeName", "hostname", "priorityClassName", "schedulerName", "dnsPolicy", "restartPolicy", "runtimeClassName"),
            **switches("hostNetwork", "hostPID", "hostIPC", "automountServiceAccountToken"), **numbers("terminationGracePeriodSeconds", "activeDeadlineSeconds", "priority"),
            "nodeSelector": dict(mapping(STRING), **{"x-kubernetes-map-type": "atomic"}),
            "containers": keyed(container(), "name"), "initContainers": keyed(container(), "name"), "volumes": keyed(volume, "name"),
            "imagePullSecrets": keyed(thing({"name": dict(STRING, default="")}), "name"),
            "affinity": thing({"pod": affinity, "antiPod": affinity}),
            "tolerations": plain_list(thing({**texts("key", "operator", "value", "effect"), "tolerationSeconds": INTEGER}), **{"x-kubernetes-list-type": "atomic"})})})


def conditions():
    return keyed(thing({**texts("type", "status", "reason", "message", "lastTransitionTime"), "observedGeneration": INTEGER}, "type", "status"), "type")


def definition(kind, plural, group, spec, status, **version):
    schema = thing({"apiVersion": STRING, "kind": STRING, "metadata": {"type": "object"}, "spec": spec, "status": status})
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}, **version}]}}


def database():
    """A clustered database: instances, storage, backups, users."""
    storage = thing({**texts("storageClass", "accessMode"), "size": QUANTITY, "resizeInUseVolumes": dict(BOOLEAN, default=True), "selector": label_selector()}, "size")
    schedule = thing({**texts("cron", "method", "target"), "retention": dict(STRING, default="30d"), **switches("suspend", "immediate")}, "cron")
    destination = thing({**texts("bucket", "prefix", "region", "endpoint"), "credentials": key_reference(), "compression": {"type": "string", "enum": ["none", "gzip", "zstd"], "default": "zstd"},
                         "extra": ANYTHING}, "bucket")
    spec = thing({
        "instances": dict(INTEGER, minimum=1, maximum=99, default=1), "image": STRING, "version": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)*$"},
        "parameters": mapping(STRING), "storage": storage, "walStorage": storage,
        "users": keyed(thing({"name": dict(STRING, maxLength=63), "password": key_reference(), "roles": text_set(), **switches("superuser", "login", "replication"),
                              "limits": thing(numbers("connections", "statementTimeoutSeconds"))}, "name"), "name"),
        "databases": keyed(thing({**texts("name", "owner", "encoding", "collation"), "extensions": keyed(thing({**texts("name", "version", "schema"), "config": ANYTHING}, "name"), "name")}, "name"), "name"),
        "backup": thing({"destinations": keyed(thing({"name": STRING, "target": destination}, "name"), "name"), "schedules": keyed(thing({"name": STRING, "rule": schedule}, "name"), "name")}),
        "pooler": thing({"enabled": dict(BOOLEAN, default=False), "mode": {"type": "string", "enum": ["session", "transaction"]}, "template": pod_template(), **numbers("minSize", "maxSize")}),
        "template": pod_template(),
        "monitoring": thing({**switches("enabled", "tls"), "interval": {"type": "string", "format": "duration"}, "queries": mapping(thing({**texts("query", "primaryKey"), "metrics": plain_list(ANYTHING)}))}),
    }, "storage")
    return definition("Database", "databases", "large.example.com", spec, thing({
        **numbers("readyInstances", "observedGeneration"), **texts("phase", "primary"), "conditions": conditions(), "instances": keyed(thing({**texts("name", "role"), "lagBytes": INTEGER}, "name"), "name")}),
        additionalPrinterColumns=[{"name": "Ready", "type": "integer", "jsonPath": ".status.readyInstances"}, {"name": "Phase", "type": "string", "jsonPath": ".status.phase"}])


def pipeline():
    """A workflow of steps, each a pod, with parameters and artifacts."""
    parameter = thing({**texts("name", "description", "type"), "default": {"x-kubernetes-preserve-unknown-fields": True}, "enum": text_set()}, "name")
    artifact = thing({**texts("name", "path", "archive"), "optional": BOOLEAN, "source": thing({"git": thing(texts("repo", "revision"), "repo"), "http": thing({"url": STRING, "headers": mapping(STRING)}, "url"), "raw": ANYTHING})}, "name")
    when = plain_list(thing({**texts("input", "operator"), "values": plain_list(STRING)}, "input", "operator"), **{"x-kubernetes-list-type": "atomic"})
    step = thing({
        "name": STRING, "after": text_set(), "when": when, "template": pod_template(), "resource": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "parameters": keyed(parameter, "name"), "artifacts": thing({"inputs": keyed(artifact, "name"), "outputs": keyed(artifact, "name")}),
        "retry": thing({**numbers("limit"), "policy": dict(STRING, default="OnFailure"), "backoff": thing({**texts("duration", "maxDuration"), "factor": dict(INTEGER, default=2)})}),
        "matrix": thing({"parameters": keyed(thing({"name": STRING, "values": plain_list(STRING)}, "name"), "name"), "include": plain_list(ANYTHING)}),
        "timeouts": thing(texts("queue", "run", "total"))}, "name")
    spec = thing({"parameters": keyed(parameter, "name"), "steps": keyed(step, "name"), "finally": keyed(step, "name"), "defaults": pod_template(),
                  "suspend": dict(BOOLEAN, default=False), "parallelism": INTEGER, "labels": mapping(STRING), "hooks": mapping(thing({"template": STRING, "expression": STRING}))}, "steps")
    return definition("Pipeline", "pipelines", "large.example.com", spec, thing({
        **texts("phase", "startTime", "completionTime", "message"), "conditions": conditions(), "steps": mapping(thing({**texts("phase", "pod", "message"), "outputs": ANYTHING})), "raw": ANYTHING}))


def gateway():
    """Routing: listeners, routes with matches and filters, backends, policies; nullable and int-or-string fields."""
    match = thing({**texts("method", "host"), "path": thing({"type": {"type": "string", "enum": ["Exact", "PathPrefix", "RegularExpression"], "default": "PathPrefix"}, "value": dict(STRING, default="/")}),
                   "headers": keyed(thing(texts("name", "value", "type"), "name", "value"), "name"), "query": keyed(thing(texts("name", "value"), "name", "value"), "name")})
    backend = thing({**texts("name", "namespace", "protocol"), "port": PORT, "weight": dict(INTEGER, default=1, minimum=0), "tls": thing({**texts("sni", "mode"), "ca": key_reference()}),
                     "health": probe(), "outlier": thing({**numbers("consecutiveErrors", "maxEjectionPercent"), **texts("interval", "baseEjectionTime")})}, "name")
    change = thing({"set": keyed(thing(texts("name", "value"), "name", "value"), "name"), "add": keyed(thing(texts("name", "value"), "name", "value"), "name"), "remove": text_set()})
    filters = plain_list(thing({"type": STRING, "request": change, "response": change, "rewrite": thing(texts("host", "path")), "redirect": thing({**texts("scheme", "host", "path"), "code": dict(INTEGER, enum=[301, 302, 307, 308])}),
                                "mirror": backend, "extension": ANYTHING}, "type"), **{"x-kubernetes-list-type": "atomic"})
    policy = thing({"timeout": dict(STRING, nullable=True), "retries": thing({**numbers("attempts"), "codes": plain_list(PORT), "perTry": STRING}),
                    "cors": thing({"origins": text_set(), "methods": text_set(), "headers": text_set(), "maxAge": STRING, "credentials": BOOLEAN}),
                    "rateLimit": thing({"rules": keyed(thing({"name": STRING, "limit": thing({"requests": INTEGER, "unit": STRING}, "requests"), "matches": plain_list(match)}, "name"), "name")}),
                    "auth": thing({"jwt": thing({"providers": keyed(thing({**texts("name", "issuer", "jwks"), "audiences": text_set(), "claims": mapping(STRING)}, "name"), "name")}), "basic": key_reference(), "external": backend})})
    route = thing({"name": STRING, "hosts": text_set(), "rules": keyed(thing({"name": STRING, "matches": plain_list(match), "filters": filters, "backends": keyed(backend, "name"), "policy": policy}, "name"), "name"), "policy": policy}, "name")
    listener = thing({**texts("name", "hostname"), "port": dict(INTEGER, minimum=1, maximum=65535), "protocol": dict(STRING, default="HTTP"),
                      "tls": thing({"mode": STRING, "certificates": plain_list(key_reference()), "options": mapping(STRING), "alpn": text_set()})}, "name", "port")
    spec = thing({"className": STRING, "addresses": text_set(), "listeners": keyed(listener, "name"), "routes": keyed(route, "name"), "policy": policy, "template": pod_template(), "providerConfig": ANYTHING}, "listeners")
    return definition("Gateway", "gateways", "large.example.com", spec, thing({"conditions": conditions(), "listeners": keyed(thing({"name": STRING, "attachedRoutes": INTEGER, "conditions": conditions()}, "name"), "name")}))


def count_fields(schema):
    """Counts named fields anywhere in a schema."""
    if not isinstance(schema, dict):
        return 0
    own = len(schema.get("properties", {}))
    below = list(schema.get("properties", {}).values()) + [schema.get("items"), schema.get("additionalProperties")]
    return own + sum(count_fields(child) for child in below)
