#!/usr/bin/env python3
"""The descriptions of the catalog as texts: complete, short, distinct, and about things that exist."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from catalog import FOLDER, closed_set, element_of, load, struct_of

PACKAGES, TYPES, _, DESCRIBED = load()
SOURCES = FOLDER.parent / "src"

# Values that are neither in an enum of the catalog nor in the server's code: those of kubelets, controllers and drivers.
VALUES_OF_OTHERS = set("""
    AbleToScale BackoffLimitExceeded Block Completed Current Dangling DeploymentRollback DiskPressure DisruptionAllowed
    ECDSAP256 ED25519 Error Ephemeral Evicted Failure FieldManagerConflict FileSystemResizePending G Gi HugePages-SIZE
    ImagePullBackOff IfPossible Ki M MemoryPressure Mi MountOption OOMKilled PIDPressure PodResizeInProgress PodResizePending
    PodScheduled ProgressDeadlineExceeded Recursive ReplicaFailure ScalingActive ScalingLimited Stale ThickProvisioned
    ThinProvisioned Unhealthy VIP RequestEntityTooLarge NamespaceContentRemaining OldestEmulationVersion
    PreferSameNode PreferSameZone FailureTarget SuccessCriteriaMet RestartAllContainers Hostname Persistent
    ReadWriteOnceWithFSType Progressing AverageValue Resizing Memory HugePages Stdout Stderr""".split())
# Words in backquotes that are not field names: variables of expressions, resources, units, values in lower case.
WORDS = set("""
    admin all app=web,tier!=cache approval array atomic authorizer binding boolean byte cpu date date-time default-scheduler
    ephemeral-storage ephemeralcontainers eviction ext4 finalize granular includeObject int32 int64 integer k kubernetes
    limits.cpu m map memory metadata.name=web n namespaceObject number object oldObject oldSelf params pods/log pods/status self set
    spec.containers{web} string tls.crt tls.key token u v1 v1beta1 variables.NAME windows linux xfs x-kubernetes-embedded-resource create default deletecollection ndots request ro rbac.authorization.k8s.io storage requests.storage""".split())
# Fields of other kinds that a text is about.
ELSEWHERE = set("""
    paramKind failurePolicy runtimeClassName priorityClassName volumeAttributesClassName spec.nodeName emptyDir fieldManager fsGroup replicas user""".split())


FILLERS = set("a an the of in for to and or is are be it that this one its as by on at with whether".split())


def stems_of(text):
    """The words of a text or a name, without the s of the plural."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)}


def words_of(name):
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def related(one, other):
    """Whether two things may have the same text: things of one name ("lastTransitionTime" of conditions; "CephFSVolumeSource" and
    "CephFSPersistentVolumeSource"), or a field and the struct in it."""
    names = [what.rsplit(".", 1)[1] for what, _ in (one, other)]
    if words_of(names[0]) <= words_of(names[1]) or words_of(names[1]) <= words_of(names[0]):
        return True
    if names[0][-len("OnExitCodesOperator"):] == names[1][-len("OnExitCodesOperator"):]:
        return True
    for (_, field), (what, named) in ((one, other), (other, one)):
        if hasattr(field, "omit_empty") and hasattr(named, "keyword") and field.type.endswith(what.rsplit(".", 1)[1]):
            return True
    return False


def below(named, depth=6):
    """All structs in a struct, itself included."""
    found, level = {named.full: named}, [named]
    for _ in range(depth):
        inner = [struct_of(TYPES, one.package, field.type) for one in level for field in one.fields]
        level = [one for one in inner if one is not None and one.full not in found]
        found.update({one.full: one for one in level})
    return found


class Texts(unittest.TestCase):
    def test_the_compiler_refuses_a_catalog_without_one(self):
        for line, what in (("    > Number of pods to keep running. Default 1.\n", "replicas has no description"),
                           ("  > What a ReplicaSet runs.\n", "ReplicaSetSpec has no description"),
                           ("    > Pods that are ready.\n", "column Ready of replicasets has no description"),
                           (None, "401 characters")):
            with tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / "catalog"
                shutil.copytree(FOLDER, copy)
                file = copy / "apps-v1.types"
                text = file.read_text()
                if line is None:
                    text = text.replace("> What a ReplicaSet runs.", "> " + "x" * 401)
                else:
                    self.assertIn(line, text)
                    text = text.replace(line, "")
                file.write_text(text)
                done = subprocess.run([sys.executable, copy / "compile.py", folder], capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(what, done.stderr)

    def test_none_is_empty_or_too_long(self):
        for what, thing in DESCRIBED:
            with self.subTest(what):
                self.assertTrue(1 < len(thing.description) <= 400)

    def test_each_is_made_of_sentences(self):
        for what, thing in DESCRIBED:
            with self.subTest(what):
                self.assertRegex(thing.description, r"^([A-Z`0-9$*]|vSphere |gRPC )")
                self.assertTrue(thing.description.endswith("."))
                self.assertEqual(thing.description.count("`") % 2, 0)
                self.assertNotRegex(thing.description, r"  |\bthe the\b|\ba a\b|\bof of\b|\bis is\b|\bto to\b|\(s\)|\bTODO\b")

    def test_none_merely_repeats_a_name(self):
        for what, thing in DESCRIBED:
            if what.startswith("column ") or what.endswith("List"):
                continue  # "A list of pods." says it all.
            repeated = stems_of(" ".join(what.rsplit("/", 1)[-1].split(".")[1:]))
            with self.subTest(what):
                self.assertTrue(stems_of(thing.description) - repeated - FILLERS, thing.description)

    def test_unrelated_fields_have_different_texts(self):
        by_text = collections.defaultdict(list)
        for what, thing in DESCRIBED:
            if not what.startswith("column "):
                by_text[thing.description].append((what, thing))
        for text, things in by_text.items():
            for i, one in enumerate(things):
                for other in things[:i]:
                    with self.subTest(text):
                        self.assertTrue(related(one, other), f"{one[0]} and {other[0]}")

    def test_names_in_them_exist(self):
        fields = {field.name for named in TYPES.values() for field in named.fields}
        self.assertTrue({part for name in ELSEWHERE for part in name.split(".")} <= fields)
        enums = {value for named in TYPES.values() for field in named.fields for value in field.enum or ()}
        code = "\n".join(file.read_text() for file in SOURCES.rglob("*.cc"))
        resources = {word for package in PACKAGES.values() for r in package.resources for word in (r.plural, *(sub[0] for sub in r.subresources))}
        near = {}  # Full name -> the names of the fields of what contains the struct, and of what is in it.
        for named in TYPES.values():
            inner = below(named)
            names = {field.name for one in inner.values() for field in one.fields}
            for full in inner:
                near.setdefault(full, set()).update(names)
        for what, thing in DESCRIBED:
            owner = what.rsplit(".", 1)[0] if hasattr(thing, "omit_empty") else what
            for quoted in re.findall(r"`([^`]*)`", thing.description):
                with self.subTest(f"{what}: `{quoted}`"):
                    parts = quoted.split(".")
                    if quoted in WORDS | resources | ELSEWHERE or not re.fullmatch(r"[A-Za-z$][\w$-]*(\.[a-z]\w*)*", quoted) or len(quoted) == 1:
                        continue
                    if quoted[0].isupper():
                        self.assertTrue(quoted in enums or quoted in VALUES_OF_OTHERS or f'"{quoted}"' in code or quoted in {n.name for n in TYPES.values()},
                                        "no such value")
                    else:
                        for part in parts:
                            self.assertTrue(part in fields, "no such field")
                        self.assertTrue(parts[-1] in near.get(owner, fields), "no such field around it")

    def test_closed_sets_are_those_of_the_catalog(self):
        for what, thing in DESCRIBED:
            values = closed_set(thing.description)
            self.assertEqual("One of `" in thing.description, values is not None, f"{what}: {thing.description}")
            if values is not None and getattr(thing, "enum", None):
                self.assertLessEqual(set(values), set(thing.enum), what)  # behaviour_test.py asks the server.

    def test_values_are_listed_in_the_order_of_their_type(self):
        # A reader takes the first value for the first meaning that the text gives.
        compared = 0
        for what, thing in DESCRIBED:
            if not hasattr(thing, "omit_empty"):
                continue
            name = element_of(thing.type)
            named = TYPES.get(name if "." in name else f"{TYPES[what.rsplit('.', 1)[0]].package.name}.{name}")
            order = re.findall(r"`([^`]*)`", named.description) if named is not None and named.keyword == "string" else []
            for listed in re.findall(r"(?:`[^`]*`(?:, | or | and )?){2,}", thing.description):
                values = re.findall(r"`([^`]*)`", listed)
                if set(values) <= set(order):
                    compared += 1
                    self.assertEqual(values, sorted(values, key=order.index), what)
        self.assertGreater(compared, 60)

    def test_declared_defaults_are_stated(self):
        for what, thing in DESCRIBED:
            default = getattr(thing, "default", None)
            if default in (None, {}, "", 0, False):
                continue
            self.assertIn(str(default), thing.description, what)

    def test_merging_is_stated(self):
        for what, thing in DESCRIBED:
            keys = getattr(thing, "list_keys", None)
            if getattr(thing, "list_kind", None) == "Keyed" and not thing.description.startswith("Not allowed"):
                for key in keys:
                    self.assertIn(f"`{key}`", thing.description, what)

    def test_lists_and_maps_that_apply_replaces_say_so(self):
        # Those of discovery, options, tables and reviews, which nobody applies.
        unapplied = re.compile(r"meta/v1\.(API|\w+Options|Status|Table|FieldSelector)|\.Conversion(Request|Response)|\.PodExecOptions|\.managedFields$")
        stated = 0
        for what, thing in DESCRIBED:
            if "Atomic" not in (getattr(thing, "list_kind", None), getattr(thing, "map_kind", None)) or unapplied.search(what) or re.search(r"^Not allowed|drops it|in base64", thing.description):
                continue
            stated += 1
            self.assertRegex(thing.description, "Replaced as a whole|Apply (?:replaces|treats) (?:it|the map)", what)
        self.assertGreater(stated, 200)

    def test_deprecated_fields_name_a_replacement(self):
        for what, thing in DESCRIBED:
            if re.search(r"[Dd]eprecated|[Nn]o longer (?:used|set|supported)", thing.description) and "deprecated`" not in thing.description:
                self.assertRegex(thing.description, r"[Uu]se |request them |emptied|Whether|[Ww]arning", what)

    def test_fields_of_holdfast_name_their_gate(self):
        gated = 0
        for what, thing in DESCRIBED:
            if getattr(thing, "gate", None):
                gated += 1
                self.assertIn(thing.gate, thing.description, what)
        self.assertGreaterEqual(gated, 2)

    def test_metadata_has_the_words_of_the_interface(self):
        for what, thing in DESCRIBED:
            if what.endswith(".metadata") and thing.type == "meta/v1.ObjectMeta" and any(
                    resource.kind == what.rsplit(".", 2)[1].split(".")[-1] for package in PACKAGES.values() for resource in package.resources):
                if "create" in next(r.verbs for p in PACKAGES.values() for r in p.resources if r.kind == what.rsplit(".", 2)[1]) and \
                        "get" in next(r.verbs for p in PACKAGES.values() for r in p.resources if r.kind == what.rsplit(".", 2)[1]):
                    self.assertTrue(thing.description.startswith("Standard object's metadata"), what)


if __name__ == "__main__":
    unittest.main()
