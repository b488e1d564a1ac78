#!/usr/bin/env python3
"""The server does what the catalog's descriptions say: behaviour_test.py HOLDFAST

Each object of objects.yaml is created (as a dry run) as it is, and with one field changed at a time:
- a field with a stated default ("Default 1.") that the object leaves out has that value in the response;
- a field with a closed set ("One of `A` or `B`.") takes each of these values, and no other one;
- a limit ("at most 8", "from 1 to 30") is accepted, and what is just beyond is not;
- a field that is "Required." cannot be left out, and one that "Cannot be changed." cannot; others can be changed;
- a field that "Excludes `a`." is refused together with it;
- a field that this server drops is not returned, and all others are;
- where the server warns that a field or value is deprecated, the description says so.
Every description of these forms must be among them, or in one of the lists below with the reason why it is not."""
import base64
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from catalog import closed_set, load, members_of, stated_default, struct_of  # noqa: E402
from serve import Server, check, finish  # noqa: E402

OBJECTS = pathlib.Path(__file__).resolve().parent / "objects.yaml"
PACKAGES, TYPES, ORDER, DESCRIBED = load()
RESOURCES = {(f"{group}/{version}".lstrip("/"), resource.kind): resource for group, version, package in ORDER for resource in package.resources}

# Descriptions whose statement this test cannot examine, and why.
EXEMPT = {
    "limit apiextensions/v1.CustomResourceDefinitionVersion.selectableFields": "equal fields count once",
    "limit core/v1.PodCertificateProjection.maxExpirationSeconds": "the server drops these volumes",
    "limit meta/v1.Condition.type": "each part has a limit of its own",
    "fixed core/v1.PodStatus.qosClass": "a status is written through another path",
    "dropped core/v1.NodeStatus.config": "a status is written through another path",
    "dropped core/v1.VolumeMountStatus.volumeStatus": "a status is written through another path",
    "dropped authorization/v1.SelfSubjectRulesReviewSpec.namespace": "the response has no spec",
    "excludes authorization/v1.SubjectAccessReviewStatus.denied allowed": "the server writes both",
    "excludes core/v1.ClusterTrustBundleProjection.name labelSelector": "the server drops these volumes",
    "excludes core/v1.ClusterTrustBundleProjection.name signerName": "the server drops these volumes",
    "excludes core/v1.ClusterTrustBundleProjection.signerName name": "the server drops these volumes",
    "excludes core/v1.PodLogOptions.sinceSeconds sinceTime": "a query parameter of a request to kubelets",
    "excludes core/v1.PodLogOptions.sinceTime sinceSeconds": "a query parameter of a request to kubelets",
    "excludes core/v1.PodSpec.hostUsers volumeDevices": "a field of the containers",
    "excludes meta/v1.DeleteOptions.propagationPolicy orphanDependents": "the body of another request",
}
# The names that errors use for some fields: those of Kubernetes' internal types, or of the wrong field, as in Kubernetes.
INTERNAL_NAMES = {"events/v1.Event.note": "message", "apiextensions/v1.WebhookConversion.clientConfig": "webhookClientConfig",
                  "admissionregistration/v1.ServiceReference.namespace": "name", "admissionregistration/v1.ServiceReference.name": "namespace",
                  "apiextensions/v1.ServiceReference.namespace": "name", "apiextensions/v1.ServiceReference.name": "namespace"}


class Place:
    """A field at one place of an object: what it holds, and how to change it."""

    def __init__(self, struct, field, path, keys, around=()):
        self.parent = path.rpartition(".")[0]
        self.texts = (*around, field.description)  # Its own, and those of the structs and fields that it is in.
        self.what, self.field, self.path, self.keys = f"{struct.full}.{field.name}", field, path, keys

    def inside(self, value):
        for key in self.keys:
            value = value[key] if isinstance(value, list) else (value or {}).get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def is_in(self, value):
        """Whether what contains the field exists."""
        for key in self.keys:
            if isinstance(value, list) and key >= len(value) or not isinstance(value, list) and key not in value:
                return False
            value = value[key]
        return True

    def get(self, value):
        return self.inside(value).get(self.field.name)

    def changed(self, body, value):
        """A copy of the body with another value in the field; None removes it."""
        body = copy.deepcopy(body)
        if value is None:
            self.inside(body).pop(self.field.name, None)
        else:
            self.inside(body)[self.field.name] = value
        return body


def places(struct, value, path="", keys=(), around=()):
    """All fields, set or not, of the structs that the value has."""
    around = (*around, *(one.description for one in chain_of(struct)))
    for field in members_of(TYPES, struct):
        here = f"{path}.{field.name}".lstrip(".")
        owner = next(one for one in chain_of(struct) if field in one.fields)
        place = Place(owner, field, here, keys, around)
        yield place
        inner = value.get(field.name)
        inside = struct_of(TYPES, owner.package, field.type)
        if inside is None or inside.shape != "Struct":
            continue
        if isinstance(inner, dict) and field.type.startswith("map["):
            for key, item in inner.items():
                if isinstance(item, dict):
                    yield from places(inside, item, f"{here}[{key}]", (*keys, field.name, key), place.texts)
        elif isinstance(inner, dict):
            yield from places(inside, inner, here, (*keys, field.name), place.texts)
        elif isinstance(inner, list):
            for i, item in enumerate(inner):
                if isinstance(item, dict):
                    yield from places(inside, item, f"{here}[{i}]", (*keys, field.name, i), place.texts)


def chain_of(struct):
    """The struct and those inlined in it."""
    yield struct
    for field in struct.fields:
        if field.inlined:
            yield from chain_of(struct_of(TYPES, struct.package, field.type))


class Case:
    """An object, and the request that it is sent with."""

    def __init__(self, server, struct, body, method, path):
        self.server, self.struct, self.body, self.method, self.path = server, struct, body, method, path
        self.name = f"{struct.name} {body['metadata'].get('name', '')}"

    def send(self, body):
        code, headers, data = self.server.request(self.method, self.path + "?dryRun=All", json.dumps(body))
        # What the last response warned about: 299 - "TEXT".
        self.deprecated = {json.loads(text[len("299 - "):]) for text in headers.get_all("Warning", ()) if re.search(r"deprecated|non-functional", text)}
        return code, json.loads(data)

    def problems(self, place, value):
        """What the server says against this value of the field: messages without the value itself."""
        code, answer = self.send(place.changed(self.body, value))
        if code < 300:
            return set()
        causes = answer.get("details", {}).get("causes", [])
        name = re.escape(INTERNAL_NAMES.get(place.what, place.field.name))
        found = set()
        for cause in causes:
            field = cause.get("field", "")
            # The path of the fields of a single version of a custom resource is that of all versions.
            if field.startswith(place.path) or re.search(rf"(^|\.){name}(\[[^\]]*\])*$", field) or (
                    field in (place.parent, re.sub(r"\[\d+\]$", "", place.parent)) and re.match("Unsupported|Required|Invalid", cause["message"])):
                message = re.sub(r"(Invalid|Unsupported|Duplicate) value: (\"(\\.|[^\"])*\"|\{.*?\}|[^:]*):", r"\1:", cause["message"])
                found.add(re.sub(r"Too many: \d+:", "Too many:", message))
        return found if causes else {answer["message"]}


def cases(server):
    def create(kind_path, body):
        code, answer = server.request("POST", kind_path, json.dumps(body))[0::2]
        check(code in (201, 409), f"{body['kind']} is created: {answer!r:.300}")
        return json.loads(answer)

    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        csr = subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", "/CN=a"], capture_output=True, check=True).stdout
    bodies = list(yaml.safe_load_all(OBJECTS.read_text().replace("CSR}", base64.b64encode(csr).decode() + "}")))
    core = "/api/v1/namespaces/default/"
    create(core + "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    for body in bodies:
        version, kind = body["apiVersion"], body["kind"]
        if kind == "TokenRequest":
            yield Case(server, TYPES["authentication/v1.TokenRequest"], body, "POST", core + "serviceaccounts/default/token")
            continue
        resource = RESOURCES[version, kind]
        path = ("/api/" if "/" not in version else "/apis/") + version + ("/namespaces/default" if resource.namespaced else "") + "/" + resource.plural
        package = next(package for group, v, package in ORDER if f"{group}/{v}".lstrip("/") == version)
        if "status" in body:
            status = body.pop("status")
            live = create(path, body)
            live["status"] = status
            yield Case(server, TYPES[f"{package.name}.{kind}"], live, "PUT", f"{path}/{live['metadata']['name']}/status")
            continue
        yield Case(server, TYPES[f"{package.name}.{kind}"], body, "POST", path)
    # Subresources of stored objects.
    pod = create(core + "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debugged"}, "spec": {"containers": [{"name": "a", "image": "b"}]}})
    pod["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "busybox"}]
    yield Case(server, TYPES["core/v1.Pod"], pod, "PUT", core + "pods/debugged/ephemeralcontainers")
    web = next(body for body in bodies if body["kind"] == "Deployment")
    create("/apis/apps/v1/namespaces/default/deployments", web)
    exempt = server.json("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt")
    exempt["spec"]["exempt"] = {}
    yield Case(server, TYPES["flowcontrol/v1.PriorityLevelConfiguration"], exempt, "PUT", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt")
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "default"}, "spec": {}}
    yield Case(server, TYPES["autoscaling/v1.Scale"], scale, "PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale")


def sample_values():
    """A value of each field that objects.yaml has."""
    found = {}
    for body in yaml.safe_load_all(OBJECTS.read_text()):
        package = next(package for group, version, package in ORDER if f"{group}/{version}".lstrip("/") == body["apiVersion"])
        for place in places(TYPES[f"{package.name}.{body['kind']}"], body):
            if (value := place.get(body)) not in (None, [], {}):
                found[place.what] = value
    return found


def limits_of(field):
    """[(value that is allowed, value that is not)] for the limits that the description names."""
    text, kind = field.description, field.type
    low = high = None
    if kind in ("int32", "int64"):
        if found := re.search(r"\b(\d+) to (\d+)\b(?! or)", text):
            octal = found[2].startswith("0") and found[2] != "0"
            low, high = int(found[1]), int(found[2], 8 if octal else 10)
        if found := re.search(r"\b[Aa]t least (\d+)\b", text):
            low = int(found[1])
        if found := re.search(r"\b(?:greater than|more than) (\d+|zero)\b", text):
            low = 1 + int(found[1].replace("zero", "0"))
        if found := re.search(r"\b[Aa]t most (\d+)\b", text):
            high = int(found[1])
        below = None if low is None else -1 if low == 1 and not field.pointer else low - 1  # 0 is the same as absent.
        return [pair for pair in ((low, below) if low is not None else None, (high, high + 1) if high is not None else None) if pair]
    if kind.startswith("[]") and (found := re.search(r"\b(?:at most|1 to) (\d+)\b(?! (?:characters|for each|one))", text)):
        return [("items", int(found[1]))]
    if kind.startswith("map[") and (found := re.search(r"\bat most (\d+)\b(?! (?:characters|\w+iB))", text)):
        return [("entries", int(found[1]))]
    if kind == "string" and (found := re.search(r"\bat most (\d+) (?:characters|bytes)\b", text)):
        return [("a" * int(found[1]), "a" * (int(found[1]) + 1))]
    return []


def is_required(field):
    return re.search(r"(^|\. )Required\.( |$)", field.description) is not None


def is_fixed(what, field):
    return re.search(r"(?:\. C|^C|; c)annot be changed\.", field.description) is not None and not what.startswith("meta/")


def excluded_by(field):
    """The fields named in "Excludes `a` and `b`."."""
    found = re.search(r"\b[Ee]xcludes ((?:`[\w-]+`(?:, | and )?)+)[.;]", field.description)
    return [] if found is None else re.findall(r"`([\w-]+)`", found[1])


def default_agrees(stated, got):
    if got is None:
        return stated in ("0", "false", '""', "")
    shown = json.dumps(got) if isinstance(got, bool) else '""' if got == "" else str(got)
    return shown == stated


def examine_excluded(case, place, samples, seen):
    """Both fields together are refused for a reason that neither has alone."""
    for other in excluded_by(place.field):
        name, what = f"{place.what} {other}", f"{place.what.rpartition('.')[0]}.{other}"
        field = next((one for one in TYPES[what.rpartition(".")[0]].fields if one.name == other), None)
        if field is None or (field.type != "bool" and what not in samples) or is_good(seen["excludes"], name):
            continue
        second = Place(TYPES[what.rpartition(".")[0]], field, f"{place.parent}.{other}".lstrip("."), place.keys)
        both = case.send(second.changed(case.body, samples.get(what, True)))
        alone = case.send(second.changed(place.changed(case.body, None), samples.get(what, True)))
        messages = [{cause["message"] for cause in answer.get("details", {}).get("causes", [])} if code >= 300 else set() for code, answer in (both, alone)]
        seen["excludes"][name] = [(bool(messages[0] - messages[1]), f"{case.name}: {place.path} with {other}: {both[0]}, without: {alone[0]} {messages[1]}")]


def examine_kept(case, answer, seen):
    """Fields that the request sets and the response lacks."""
    for place in places(case.struct, case.body):
        value = place.get(case.body)
        if case.method != "POST" or value in (None, "", 0, False, [], {}) or not place.is_in(answer):
            continue
        dropped, stated = place.get(answer) is None, re.search(r"server drops|dropped from new|never returned", " ".join(place.texts)) is not None
        seen["dropped"].setdefault(place.what, []).append((dropped == stated, f"{case.name}: {place.path} is {'dropped' if dropped else 'kept'}"))


def examine_deprecated(case, answer, seen):
    for text in case.deprecated:
        path = re.match(r"([\w.\[\]]+)(?::| is) ", text)
        for place in places(case.struct, answer) if path else ():
            if place.path == path[1]:
                said = re.search(r"[Dd]eprecated|[Nn]o longer", place.field.description) is not None
                seen["deprecated"][place.what] = [(said, f"{case.name}: {text}")]


def examine(case, samples, seen):
    code, answer = case.send(case.body)
    check(code in (200, 201), f"{case.name} is accepted: {answer.get('message')}")
    if code not in (200, 201):
        return
    always = set(case.deprecated)
    examine_deprecated(case, answer, seen)
    examine_kept(case, answer, seen)
    for place in places(case.struct, answer):
        default, got = stated_default(place.field.description), place.get(answer)
        # The Jobs of a CronJob get their defaults when they are created.
        later = place.what.startswith("batch/v1.JobSpec.") and ".jobTemplate." in place.path
        if default is not None and place.get(case.body) is None and not later:
            seen["default"].setdefault(place.what, []).append((default_agrees(default, got), f"{case.name}: {place.path} is {got!r}, not {default}"))
    for place in places(case.struct, case.body):
        text, value = place.field.description, place.get(case.body)
        values = closed_set(text)
        if values is not None and not is_good(seen["values"], place.what):
            bogus = case.problems(place, "Bogus")
            listed = [re.findall(r'"([^"]*)"', message.split("supported values:")[1]) for message in bogus if "supported values:" in message]
            wrong = []
            for one in values:
                if bogus and bogus <= case.problems(place, one):
                    wrong.append(f"takes {one!r} not")
                elif case.deprecated - always and "eprecated" not in text:
                    wrong.append(f"warns about {one!r}: {case.deprecated}")
            if not bogus:
                wrong.append("takes any value")
            if listed and set(listed[0]) - {""} != set(values) - {""}:
                wrong.append(f"takes {listed[0]}")
            seen["values"][place.what] = [(not wrong, f"{case.name}: {place.path} {', '.join(wrong)}")]
        if not is_good(seen["limit"], place.what) and (value is not None or place.field.type in ("string", "int32", "int64")):
            seen["limit"].pop(place.what, None)
            for allowed, beyond in limits_of(place.field):
                if allowed == "items":
                    allowed, beyond = [value[0]] * beyond, [value[0]] * (beyond + 1)
                elif allowed == "entries":
                    allowed, beyond = ({f"a{i}": next(iter(value.values())) for i in range(count)} for count in (beyond, beyond + 1))
                good, bad = case.problems(place, allowed), case.problems(place, beyond)
                shown = f"{str(allowed)[:30]} {sorted(good)!r:.150}, {str(beyond)[:30]} {sorted(bad)!r:.150}"
                seen["limit"].setdefault(place.what, []).append((bool(bad - good), f"{case.name}: {place.path}: {shown}"))
        if value is not None and excluded_by(place.field):
            examine_excluded(case, place, samples, seen)
        if value is not None and is_required(place.field) and place.what not in seen["required"]:
            seen["required"][place.what] = [(bool(case.problems(place, None)), f"{case.name}: {place.path} may be left out")]


def is_simple(value):
    """Whether it is a value of a field without fields."""
    if isinstance(value, (list, dict)):
        return bool(value) and all(isinstance(one, (str, int)) for one in (value if isinstance(value, list) else value.values()))
    return isinstance(value, (str, int)) and value != ""


def another(value, values=None):
    """A value of the same form: in a list or map, one item or member is another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [another(value[0]), *value[1:]]
    if isinstance(value, dict):
        key = next(key for key, member in reversed(value.items()) if member not in ([], {}))
        return {**value, key: another(value[key])}
    return next((one for one in values or () if one != value), value + "x")


def examine_fixed(case, live, seen):
    """Fields that cannot be changed, on the object as it was stored."""
    stored = Case(case.server, case.struct, live, "PUT", f"{case.path}/{live['metadata']['name']}")

    def code_of(change):
        while True:
            code, _ = stored.send(change(case.server.json("GET", stored.path)))
            if code != 409:  # The server itself changes the status of some.
                return code

    for place in places(case.struct, live):
        value, text = place.get(live), place.field.description
        if is_fixed(place.what, place.field) and value not in (None, [], {}) and not place.path.startswith("status.") and place.what not in seen["fixed"]:
            new = another(value, closed_set(text))
            same, code = code_of(lambda body: body), code_of(lambda body, place=place, new=new: place.changed(body, new))
            # A change of some is ignored.
            kept = code in (403, 422) or place.get(case.server.json("GET", stored.path)) == value
            seen["fixed"][place.what] = [(same == 200 and kept, f"{case.name}: {place.path} {value!r:.200}: {same}, {new!r:.200}: {code}")]
        elif is_simple(value) and not re.search(r"can(?:not|) be (?:changed|removed|unset|replaced)|cannot be set|can grow|[Oo]nly", " ".join(place.texts), re.I) \
                and re.match(r"(?!metadata|status|apiVersion|kind)", place.path) and place.what not in seen["changeable"]:
            problems = stored.problems(place, another(value, closed_set(text)))
            fixed = [one for one in problems if re.search(r"immutable|cannot be changed|may not be changed|updates to", one)]
            seen["changeable"][place.what] = [(not fixed, f"{case.name}: {place.path}: {fixed}")]


def is_good(seen, what):
    return what in seen and all(good for good, _ in seen[what])


def examine_query(server, seen):
    """Closed sets and limits of query parameters."""
    path, body = "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "queried"}}
    server.json("POST", path, body, 201)
    requests = {"CreateOptions": ("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}, "application/json"),
                "UpdateOptions": ("PUT", path + "/queried", body, "application/json"),
                "PatchOptions": ("PATCH", path + "/queried", {}, "application/merge-patch+json"),
                "ListOptions": ("GET", path, None, "application/json")}
    for what, thing in DESCRIBED:
        options = what.removeprefix("meta/v1.").split(".")[0]
        if options not in requests or not hasattr(thing, "omit_empty"):
            continue
        method, at, sent, kind = requests[options]
        more = "&resourceVersion=1" if options == "ListOptions" else "&dryRun=All"

        def code(value):
            return server.request(method, f"{at}?{thing.name}={value}{more}", None if sent is None else json.dumps(sent), content_type=kind)[0]

        for value in closed_set(thing.description) or ():
            seen["values"].setdefault(what, []).append((code(value) in (200, 201, 410), f"takes {value!r} not"))
        if closed_set(thing.description):
            seen["values"][what].append((code("Bogus") in (400, 422), "takes any value"))
        for allowed, beyond in limits_of(thing):
            seen["limit"].setdefault(what, []).append((code(allowed) < 300 <= code(beyond), f"{allowed}: {code(allowed)}, {beyond}: {code(beyond)}"))


def main():
    seen = {kind: {} for kind in ("default", "values", "limit", "required", "fixed", "changeable", "excludes", "dropped", "deprecated")}
    with Server(sys.argv[1], flags=["--runtime-config=admissionregistration.k8s.io/v1beta1=true"]) as server:
        new, samples = [], sample_values()
        for case in cases(server):
            examine(case, samples, seen)
            if case.method == "POST" and "Review" not in case.struct.name and case.struct.name != "TokenRequest":
                new.append(case)
        examine_query(server, seen)
        for case in new:
            code, _, answer = server.request("POST", case.path, json.dumps(case.body))
            if code == 201:
                live = json.loads(answer)
                examine_fixed(case, live, seen)
                server.request("DELETE", f"{case.path}/{live['metadata']['name']}?gracePeriodSeconds=0")
    for kind, found in seen.items():
        for what, results in found.items():
            for good, message in results:
                if f"{kind} {what}" not in EXEMPT:
                    check(good, f"{kind} of {what}: {message}")
    for what, thing in DESCRIBED:
        if hasattr(thing, "omit_empty"):
            for kind, stated in (("default", stated_default(thing.description)), ("values", closed_set(thing.description)),
                                 ("limit", limits_of(thing) or None), ("required", is_required(thing)), ("fixed", is_fixed(what, thing))):
                if stated and what not in seen[kind]:
                    check(f"{kind} {what}" in EXEMPT, f"{kind} of {what} is examined")
            for other in excluded_by(thing):
                name = f"{what} {other}"
                back = f"{what.rpartition('.')[0]}.{other} {thing.name}"
                check(name in seen["excludes"] or back in seen["excludes"] or f"excludes {name}" in EXEMPT, f"that {name} exclude each other is examined")
            if re.search(r"this server drops it|dropped from new objects", thing.description):
                check(what in seen["dropped"] or f"dropped {what}" in EXEMPT, f"that {what} is dropped is examined")
    print({kind: len(found) for kind, found in seen.items()})
    finish()


if __name__ == "__main__":
    main()
