#!/usr/bin/env python3
"""store_fuzz.py HOLDFAST [--objects N | --seconds N] [--seed N]: stored objects that no server would have written.

Objects of every kind, with all their fields, are written to etcd, each malformed in one place: a member of another type,
absent, or null. The server must serve what it can read, report the rest as unreadable, and not crash: during reads in every
form, writes, deletions, work of its own controllers, and a restart. The same objects are sent as requests. The seed
reproduces a run.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "store")]
import access_helper  # noqa: E402
import attacks  # noqa: E402
import bent_objects  # noqa: E402
from etcd import Etcd  # noqa: E402

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
MANY = 40  # Objects between two restarts.
# Consulted for every write, and blocking all of them while unreadable or unreachable.
JUDGES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
          "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "resourcequotas", "limitranges")


class Failed(Exception):
    pass


class Fuzzer:
    def __init__(self, binary, seed):
        self.dice = random.Random(seed)
        self.etcd = Etcd()
        self.server = access_helper.start(binary, "--etcd-servers", self.etcd.url)
        self.connect()
        self.users.made("/api/v1/namespaces", {"metadata": {"name": "mine"}})
        for preserve in (True, False):
            self.users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", attacks.definition(preserve))
        self.users.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bent_objects.definition())
        self.users.when(lambda: self.users.admin("GET", attacks.THINGS).code == 200)
        groups = {f"apis/{group}/v1" for group in (attacks.GROUP, bent_objects.GROUP)}
        self.users.when(lambda: groups <= set(self.users.admin("GET", "/openapi/v3").json["paths"]))
        self.objects = bent_objects.Objects(lambda path: self.users.admin("GET", path).json)
        self.kinds = self.objects.kinds
        self.custom = next(kind for kind in self.kinds if kind.group == bent_objects.GROUP)
        self.stored_at = bent_objects.stored_at()
        self.codes, self.what = {}, ""

    def connect(self):
        self.users = access_helper.Users(self.server)
        self.open = None

    def ask(self, method, path, body=None, **headers):
        """The code of the response; if there is none, checks whether the server is alive."""
        self.what = f"{method} {path} {headers} {'' if body is None else json.dumps(body)[:4000]}"
        sent = {"Authorization": "Bearer " + access_helper.ADMIN, "Content-Type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
        for again in (False, True):
            self.open = self.open or self.users.connect()
            try:
                self.open.request(method, path, None if body is None else json.dumps(body), sent)
                answer = self.open.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.open = None
                if self.server.process.poll() is not None or again:
                    raise Failed(f"the server {'exited' if self.server.process.poll() is not None else 'does not respond'}: {error}") from error
        if b"The server failed while serving this request" in text:
            raise Failed("the server failed")
        self.codes[answer.status] = self.codes.get(answer.status, 0) + 1
        return answer.status

    def bent_object(self, name):
        # A custom resource is only checked by its definition.
        kind = self.custom if self.dice.random() < 0.25 else self.dice.choice(self.kinds)
        whole = self.objects.full(kind, name)
        if kind.namespaced:
            whole["metadata"]["namespace"] = "mine"
        # There are few fields near the top, and all code inspects them.
        paths = list(bent_objects.places(whole))
        limit = self.dice.choice((2, 3, 4, 6, 99))
        path = self.dice.choice([path for path in paths if len(path) <= limit])
        if self.dice.random() < 0.2:
            return kind, bent_objects.without(whole, path)
        return kind, bent_objects.bent(whole, path, self.dice.choice(bent_objects.BENDS[:1] * 8 + bent_objects.BENDS))

    def send(self, kind, made):
        """Sends the object as a request, with every write verb."""
        name = made["metadata"].get("name", "x") if isinstance(made.get("metadata"), dict) else "x"
        code = self.ask("POST", kind.path() + "?fieldManager=m" + self.dice.choice(("", "&dryRun=All")), made)
        here = kind.path(name if code in (200, 201) else "absent")
        self.ask("PUT", here, made)
        self.ask("PATCH", here, made, Content_Type="application/merge-patch+json")
        self.ask("PATCH", here, made, Content_Type="application/strategic-merge-patch+json")
        self.ask("PATCH", here + "?fieldManager=n&force=true", made, Content_Type="application/apply-patch+yaml")
        self.ask("DELETE", here)

    def put(self, kind, made, name):
        self.what = f"stored {self.key(kind, name)} {json.dumps(made)[:4000]}"
        self.etcd.put(self.key(kind, name), json.dumps(made).encode())

    def key(self, kind, name):
        prefix = self.stored_at.get((kind.group, kind.plural), f"{kind.group}/{kind.plural}")
        return f"/registry/{prefix}/{'mine/' if kind.namespaced else ''}{name}"

    def remove(self, kind, name):
        self.etcd.call("kv/deleterange", key=self.etcd.text(self.key(kind, name).encode()))

    def serve(self, kind, name):
        here = kind.path(name)
        self.ask("GET", here)
        self.ask("GET", here, Accept=TABLE)
        self.ask("GET", here, Accept=PROTOBUF)
        self.ask("GET", here + "/status")
        self.ask("GET", here + "/scale")
        self.ask("PATCH", here + "/scale", {"spec": {"replicas": 3}}, Content_Type="application/merge-patch+json")
        self.ask("PATCH", here + "/status", {"status": {"replicas": 3}}, Content_Type="application/merge-patch+json")
        self.ask("PATCH", here, {"metadata": {"labels": {"a": "b"}}}, Content_Type="application/merge-patch+json")
        self.ask("PATCH", here + "?fieldManager=n", {"apiVersion": kind.group_version, "kind": kind.name, "metadata": {"name": name, "labels": {"b": "c"}}},
                 Content_Type="application/apply-patch+yaml")
        self.ask("GET", kind.path(), Accept=TABLE)

    def restart(self):
        self.server.stop()
        self.server.start()
        self.connect()
        self.users.when(lambda: self.users.admin("GET", "/readyz").code == 200, 60)

    def round(self, number):
        made = []
        for i in range(MANY):
            name = f"bent-{number}-{i}"
            kind, bent = self.bent_object(name)
            self.send(kind, bent)
            self.put(kind, bent, name)
            if kind.plural in JUDGES:
                self.serve(kind, name)
                self.remove(kind, name)
            else:
                made.append((kind, name))
        for kind, name in made:
            self.serve(kind, name)
        self.ask("GET", made[0][0].path() + "?watch=1&timeoutSeconds=1&resourceVersion=0")
        self.what = "restart"
        self.restart()
        for kind, name in made:
            if self.ask("GET", kind.path(name)) == 200:
                self.ask("DELETE", kind.path(name))
            if self.ask("DELETE", kind.path(name) + "?" + IGNORE) == 422:  # Readable, with a finalizer.
                self.ask("PATCH", kind.path(name), {"metadata": {"finalizers": None}}, Content_Type="application/merge-patch+json")
        for kind, name in made:  # Delete everything before the next round, even protected objects.
            self.remove(kind, name)
        if self.server.process.poll() is not None:
            raise Failed("the server exited")

    def close(self):
        self.server.stop()
        self.server.folder.cleanup()
        self.etcd.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--objects", type=int, default=400)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fuzzer = Fuzzer(os.path.abspath(options.binary), options.seed)
    end = time.monotonic() + options.seconds
    rounds = 0
    try:
        while (time.monotonic() < end) if options.seconds else (rounds * MANY < options.objects):
            fuzzer.round(rounds)
            rounds += 1
    except (Failed, RuntimeError, AssertionError) as error:
        print(f"round {rounds} (seed {options.seed}): {error}\nlast: {fuzzer.what}\n{fuzzer.server.text()[-5000:]}")
        return 1
    finally:
        fuzzer.close()
    print(f"{rounds * MANY} objects of {len(fuzzer.kinds)} kinds, answers: " + ", ".join(f"{code} x {count}" for code, count in sorted(fuzzer.codes.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
