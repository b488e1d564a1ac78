#!/usr/bin/env python3
"""Runs a server under faults and checks everything observed by its clients: see `./dev torture`.

torture.py HOLDFAST FAULTS_LIBRARY [--seconds N] [--round N] [--seed N] [--only embedded|etcd] [--follow CLIENT_FOLLOW]
           [--play FAULT,...] [--flag=FLAG_OF_HOLDFAST]...

A run is a series of rounds. Each starts a server on its own empty store, or two servers on one etcd with three members;
clients write, apply, read and list, and watchers follow, while faults are injected one after the other. Then the faults end,
and checks.py checks the history. The faults depend only on the seed; timing also depends on the machine.
"""
import argparse
import errno
import http.client
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients"), str(HERE.parent / "store")]
import checks  # noqa: E402
import etcd  # noqa: E402
from server import Server, free_port  # noqa: E402

CLIENTS = 6
DAY = 86400 * 10**9  # In nanoseconds.
APPLIERS, UPDATERS = ("git", "helm", "operator"), ("kubectl", "controller")
FIELDS = "xyz"
GROUP = "torture.example.com"
RESOURCES = {"configmaps": ("v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"),
             "things": (GROUP + "/v1", "Thing", f"/apis/{GROUP}/v1/namespaces/default/things")}
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things." + GROUP}, "spec": {
    "group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "data": {"type": "object", "additionalProperties": {"type": "string"}}}}}}]}}


class Node(Server):
    """A server with a controllable disk and clock, at a fixed address."""

    def __init__(self, holdfast, library, folder, name, *flags):
        self.home = folder / name
        self.home.mkdir()
        control = self.home / "control"
        control.write_bytes(bytes(64))
        with open(control, "r+b") as f:
            self.control = mmap.mmap(f.fileno(), 64)
        self.synced = self.home / "synced"
        environment = dict(os.environ, TORTURE_CONTROL=str(control), TORTURE_SYNCED=str(self.synced), TORTURE_FOLDER=str(self.home / "data"))
        if library:
            environment["LD_PRELOAD"] = library
        self.port = free_port()
        super().__init__(holdfast, "--controllers=none", "--disable-admission-plugins=ServiceAccount,Priority", *flags, data_dir=self.home / "data",
                         log_path=self.home / "log", environment=environment, listen=f"127.0.0.1:{self.port}")
        (self.home / "data").mkdir(mode=0o700)
        # Certificates are issued two days in the past, so that the clock can be set back without invalidating them.
        self.play(clock_ns=-2 * DAY)
        self.start()
        self.stop()
        self.play(clock_ns=0)
        self.start()
        pki = self.data_dir / "pki"
        self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def play(self, write_error=0, sync_error=0, delay_ms=0, clock_ns=None):
        clock = struct.unpack_from("<q", self.control, 16)[0] if clock_ns is None else clock_ns
        struct.pack_into("<iiiiq", self.control, 0, write_error, sync_error, delay_ms, 0, clock)

    def lose_power(self):
        """Kills the server and discards what it had not synced of its log."""
        self.stop(signal.SIGKILL)
        synced = {}
        if self.synced.exists():
            for line in self.synced.read_text().splitlines():
                inode, size = line.split()
                synced[int(inode)] = int(size)
        for file in (self.data_dir / "store").glob("*.log"):
            status = file.stat()
            if status.st_size > synced.get(status.st_ino, 0):
                os.truncate(file, synced.get(status.st_ino, 0))

    def connect(self, timeout=10):
        return http.client.HTTPSConnection(f"127.0.0.1:{self.port}", context=self.tls, timeout=timeout)

    def call(self, method, path, body=None, kind="application/json"):
        """-> (code, response as an object)"""
        connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def ready(self, seconds=60):
        """Waits until a list succeeds."""
        end = time.monotonic() + seconds
        while True:
            try:
                code, answer = self.call("GET", RESOURCES["configmaps"][2])
                if code == 200:
                    return
            except (OSError, http.client.HTTPException, ValueError) as problem:
                answer = repr(problem)
            if time.monotonic() > end:
                raise RuntimeError(f"the server does not serve {seconds} s after the last fault: {answer}")
            time.sleep(0.1)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))


class Cluster:
    """An etcd with three members."""

    def __init__(self, folder):
        self.folder = folder
        ports = [(free_port(), free_port()) for _ in range(3)]
        self.urls = [f"http://127.0.0.1:{client}" for client, _ in ports]
        self.peers = [f"http://127.0.0.1:{peer}" for _, peer in ports]
        self.members = [None] * 3

    def start_all(self):
        for i in range(3):
            self.start(i)
        self.wait()

    def start(self, i):
        with open(self.folder / f"etcd{i}.log", "ab") as log:
            self.members[i] = subprocess.Popen(
                [etcd.program(), "--name", f"m{i}", "--data-dir", str(self.folder / f"etcd{i}"), "--listen-client-urls", self.urls[i],
                 "--advertise-client-urls", self.urls[i], "--listen-peer-urls", self.peers[i], "--initial-advertise-peer-urls", self.peers[i],
                 "--initial-cluster", ",".join(f"m{n}={peer}" for n, peer in enumerate(self.peers))], stdout=log, stderr=log)

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while not any(self.healthy(i) for i in range(3)):
            if time.monotonic() > end:
                raise RuntimeError("etcd has no leader")
            time.sleep(0.1)

    def healthy(self, i):
        try:
            self.ask(i, "kv/range", key=etcd.Etcd.text(b"x"))
            return True
        except OSError:
            return False

    def ask(self, i, path, **members):
        request = urllib.request.Request(self.urls[i] + "/v3/" + path, json.dumps(members).encode())
        with urllib.request.urlopen(request, timeout=2) as answer:
            return json.load(answer)

    def compact(self):
        try:
            revision = int(self.ask(0, "kv/range", key=etcd.Etcd.text(b"x"))["header"]["revision"])
            self.ask(0, "kv/compaction", revision=str(revision))
        except (OSError, KeyError):
            pass  # That member is down.

    def kill(self, i):
        self.members[i].kill()
        self.members[i].wait()

    def stop(self):
        for member in filter(None, self.members):
            member.kill()
            member.wait()


def version_of(resource, value):
    """The state of an object as used by the checks."""
    metadata = value["metadata"]
    owners = {}
    for entry in metadata.get("managedFields", []):
        keys = {field[2:] for field in entry.get("fieldsV1", {}).get("f:data", {}) if field.startswith("f:")}
        owners.setdefault((entry["manager"], entry["operation"]), set()).update(keys)
    return checks.Version(metadata["name"], int(metadata["resourceVersion"]), metadata["uid"], checks.State.of(value.get("data") or {}, owners))


class Round:
    def __init__(self, arguments, folder, seed, with_etcd):
        self.arguments, self.folder, self.seed, self.random = arguments, folder, seed, random.Random(seed)
        self.histories = {resource: checks.History() for resource in RESOURCES}
        self.stopping, self.done = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.number, self.faults, self.unexpected = 0, [], []
        self.begin = time.monotonic()
        self.cluster = Cluster(folder) if with_etcd else None
        self.nodes = []

    def start(self):
        flags = list(self.arguments.flag)
        if self.cluster:
            self.cluster.start_all()
            flags.append("--etcd-servers=" + ",".join(self.cluster.urls))
        for i in range(2 if self.cluster else 1):
            self.nodes.append(Node(self.arguments.holdfast, self.arguments.faults, self.folder, f"server{i}", *flags))

    def now(self):
        return time.monotonic() - self.begin

    # Clients.

    def new_op(self, verb, key, **more):
        with self.lock:
            self.number += 1
            return checks.Op(self.number, verb, key, self.now(), **more)

    def client(self, number):
        choice = random.Random(f"{self.seed} client {number}")
        node, connection = None, None
        last = {}  # The latest version seen by this client.
        while not self.stopping.is_set():
            if connection is None or choice.random() < 0.02:
                if connection:
                    connection.close()
                node = choice.choice(self.nodes)
                connection = node.connect()
            resource = choice.choice(list(RESOURCES))
            op, method, path, body, kind = self.next_request(choice, resource, last)
            if not self.perform(connection, resource, op, method, path, body, kind):
                connection.close()
                connection = None
                time.sleep(0.02)
            elif op.seen is not None:
                last[resource, op.key] = op.seen
            time.sleep(choice.random() * 0.02)
        if connection:
            connection.close()

    def next_request(self, choice, resource, last):
        """One operation and its request. Keys are created and deleted, to keep histories short; some stay."""
        version, kind, base = RESOURCES[resource]
        key = f"stays{choice.randrange(2)}" if choice.random() < 0.2 else f"k{int(self.now() // 3)}-{choice.randrange(4)}"
        known = last.get((resource, key))
        data = {}
        for field in choice.sample(FIELDS, choice.randrange(1, 3)):
            old = dict(known.state.data).get(field) if known and known.state else None
            data[field] = old if old and choice.random() < 0.4 else f"{choice.getrandbits(48):x}"
        verb = choice.choices(("get", "list", "create", "apply", "patch", "put", "delete"), (20, 4, 12, 34, 16, 9, 5))[0]
        item = f"{base}/{key}"
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": key}, "data": data}
        if verb == "put" and not known:
            verb = "get"
        if verb == "get":
            return self.new_op("get", key), "GET", item, None, None
        if verb == "list":
            return self.new_op("list", ""), "GET", base + choice.choice(("", "", "?limit=7")), None, None
        if verb == "delete":
            return self.new_op("delete", key), "DELETE", item, None, None
        if verb == "apply":
            force = choice.random() < 0.5
            op = self.new_op("apply", key, manager=choice.choice(APPLIERS), data=data, force=force)
            return op, "PATCH", f"{item}?fieldManager={op.manager}&force={str(force).lower()}", body, "application/apply-patch+yaml"
        manager = choice.choice(UPDATERS)
        if verb == "create":
            return self.new_op("create", key, manager=manager, data=data), "POST", f"{base}?fieldManager={manager}", body, "application/json"
        if verb == "patch":
            # Never the last one: an object without owners is not tracked until the next apply, which the model does not
            # cover.
            if choice.random() < 0.3:
                data[choice.choice([field for field in FIELDS if field not in data])] = None
            return self.new_op("patch", key, manager=manager, data=data), "PATCH", f"{item}?fieldManager={manager}", {"data": data}, "application/merge-patch+json"
        body["metadata"]["resourceVersion"] = str(known.revision)
        op = self.new_op("put", key, manager=manager, data=data, expected=known.revision)
        return op, "PUT", f"{item}?fieldManager={manager}", body, "application/json"

    def perform(self, connection, resource, op, method, path, body, kind):
        """Sends the request and records the outcome. -> whether the connection can be reused"""
        try:
            if connection.sock is None:
                connection.connect()
        except OSError:
            return False  # It was never sent.
        usable = True
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            text = answer.read()
            value = json.loads(text)
            if op.verb == "list" and answer.status == 200:
                token = value["metadata"].get("continue")
                while token:
                    connection.request("GET", path + "&continue=" + token)
                    answer = connection.getresponse()
                    page = json.loads(answer.read())
                    if answer.status != 200:
                        return True  # Compacted in the meantime.
                    value["items"] += page["items"]
                    token = page["metadata"].get("continue")
            op.code = answer.status
        except (OSError, http.client.HTTPException, ValueError):
            usable = False
        end = self.now()
        if op.code == 429:
            return True
        if usable and op.code < 500:
            op.end = end
            if op.code in (200, 201):
                op.outcome = "ok"
                if op.verb == "list":
                    op.revision = int(value["metadata"]["resourceVersion"])
                    op.items = {item["metadata"]["name"]: version_of(resource, item) for item in value["items"]}
                elif op.verb == "delete":
                    op.uid = value["details"]["uid"]
                else:
                    op.seen = version_of(resource, value)
            elif op.code in (404, 409):
                op.outcome, op.message = "refused", value.get("message", "")
            else:
                self.unexpected.append(f"{op}: {text[:500]!r}")
        with self.lock:
            self.histories[resource].ops.append(op)
        return usable

    # Watchers.

    def follow(self, node, resource, log, view, number):
        """An informer: lists, watches, resumes, and lists again when required."""
        choice = random.Random(f"{self.seed} watcher {number}")
        base = RESOURCES[resource][2]
        while not self.done.is_set():
            connection = node.connect(timeout=25)
            try:
                if not log or log[-1][0] == "gone":
                    connection.request("GET", base)
                    answer = connection.getresponse()
                    value = json.loads(answer.read())
                    if answer.status != 200:
                        time.sleep(0.1)
                        continue
                    items = {item["metadata"]["name"]: version_of(resource, item) for item in value["items"]}
                    log.append(("list", int(value["metadata"]["resourceVersion"]), items))
                    view.clear()
                    view.update(items)
                revision = log[-1][2].revision if log[-1][0] == "event" else log[-1][1]
                connection.request("GET", f"{base}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={choice.randrange(2, 15)}")
                answer = connection.getresponse()
                if answer.status != 200:
                    if answer.status == 410:
                        log.append(("gone",))
                    time.sleep(0.1)
                    continue
                self.read_events(answer, resource, log, view)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)
            finally:
                connection.close()

    def read_events(self, answer, resource, log, view):
        """Until the watch ends."""
        while not self.done.is_set():
            line = answer.readline()
            if not line.endswith(b"\n"):
                return
            event = json.loads(line)
            if event["type"] == "ERROR":
                if event["object"].get("code") == 410:
                    log.append(("gone",))
                return
            if event["type"] == "BOOKMARK":
                log.append(("bookmark", int(event["object"]["metadata"]["resourceVersion"])))
                continue
            version = version_of(resource, event["object"])
            if event["type"] == "DELETED":
                version.state = None
                view.pop(version.key, None)
            else:
                view[version.key] = version
            log.append(("event", event["type"], version))

    # Faults. Each lasts for some time and has ended when it returns.

    def wait(self, shortest, longest):
        time.sleep(self.random.uniform(shortest, longest))

    def kill_server(self, node):
        node.stop(signal.SIGKILL)
        self.wait(0, 0.5)
        node.start()

    def power_loss(self, node):
        node.lose_power()
        node.start()

    def restart_server(self, node):
        node.stop(signal.SIGTERM)
        node.start()

    def pause_server(self, node):
        node.process.send_signal(signal.SIGSTOP)
        self.wait(0.2, 3)
        node.process.send_signal(signal.SIGCONT)

    def full_disk(self, node):
        node.play(write_error=errno.ENOSPC)
        self.wait(0.1, 2)
        node.play()

    def failing_disk(self, node):
        node.play(sync_error=errno.EIO, write_error=self.random.choice((0, errno.EIO)))
        self.wait(0.1, 2)
        node.play()

    def failing_disk_and_power_loss(self, node):
        node.play(sync_error=errno.EIO)
        self.wait(0.1, 1)
        node.lose_power()
        node.play()
        node.start()

    def slow_disk(self, node):
        node.play(delay_ms=self.random.choice((20, 200, 1000)))
        self.wait(0.5, 3)
        node.play()

    def set_clock(self, node):
        node.play(clock_ns=int(self.random.choice((-1, -1 / 24, -1 / 2880, 0, 1 / 2880, 1 / 24, 1)) * DAY))
        self.wait(0.2, 1)

    def vanishing_clients(self, node):
        """Requests that stop midway, and responses that are not read to the end."""
        base = RESOURCES["configmaps"][2]
        for _ in range(30):
            try:
                with socket.create_connection(("127.0.0.1", node.port), timeout=2) as plain, node.tls.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                    head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{\"kind\":"
                    connection.sendall(self.random.choice((f"GET {base}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n", f"GET {base} HTTP/1.1\r\nHost: x\r\n\r\n", f"POST {base} HTTP/1.1\r\n{head}",
                                                           f"POST {base} HTTP/1.1\r\nHos")).encode())
                    if self.random.random() < 0.5:
                        connection.settimeout(0.1)
                        connection.recv(100)
            except OSError:
                pass

    def slow_readers(self, node):
        """Watches and lists whose responses are not read, or read byte by byte."""
        base, held = RESOURCES["configmaps"][2], []
        for i in range(20):
            try:
                connection = node.connect(timeout=5)
                connection.request("GET", base + ("?watch=1" if i % 2 else ""))
                held.append(connection)
            except OSError:
                pass
        end = time.monotonic() + self.random.uniform(0.5, 3)
        while time.monotonic() < end:
            for connection in held[::4]:
                try:
                    connection.sock.recv(1)
                except (OSError, AttributeError):
                    pass
            time.sleep(0.05)
        for connection in held:
            connection.close()

    def flood(self, node):
        """Silent connections."""
        held = []
        for _ in range(400):
            try:
                held.append(socket.create_connection(("127.0.0.1", node.port), timeout=1))
            except OSError:
                break
        self.wait(0.2, 1)
        for connection in held:
            connection.close()

    def kill_member(self, _):
        member = self.random.randrange(3)
        self.cluster.kill(member)
        self.wait(0.5, 3)
        self.cluster.start(member)

    def pause_member(self, _):
        member = self.random.choice(self.cluster.members)
        member.send_signal(signal.SIGSTOP)
        self.wait(0.5, 4)
        member.send_signal(signal.SIGCONT)

    def lose_quorum(self, _):
        members = self.random.sample(range(3), self.random.choice((2, 3)))
        for member in members:
            self.cluster.kill(member)
        self.wait(0.5, 4)
        for member in members:
            self.cluster.start(member)
        self.cluster.wait()

    def compact(self, _):
        self.cluster.compact()

    def kill_both(self, _):
        """All servers and all etcd members at once."""
        for node in self.nodes:
            node.process.kill()
        for member in range(3):
            self.cluster.kill(member)
        for member in range(3):
            self.cluster.start(member)
        self.cluster.wait()
        for node in self.nodes:
            node.stop()
            node.start()

    def possible_faults(self):
        everywhere = [self.kill_server, self.restart_server, self.pause_server, self.vanishing_clients, self.slow_readers, self.flood]
        if self.arguments.faults:
            everywhere.append(self.set_clock)
        if self.cluster:
            everywhere += [self.kill_member, self.pause_member, self.lose_quorum, self.compact, self.compact, self.kill_both]
        elif self.arguments.faults:
            everywhere += [self.power_loss, self.full_disk, self.failing_disk, self.failing_disk_and_power_loss, self.slow_disk]
        return [fault for fault in everywhere if not self.arguments.play or fault.__name__ in self.arguments.play.split(",")]

    # The round.

    def run(self, seconds):
        """-> problems, as text"""
        code, answer = self.nodes[0].call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        assert code == 201, answer
        for node in self.nodes:
            end = time.monotonic() + 30
            while node.call("GET", RESOURCES["things"][2])[0] != 200:
                assert time.monotonic() < end, "the custom resource is not served"
                time.sleep(0.02)
        before = [node.descriptors() for node in self.nodes]
        followers, views = [], []
        for node in self.nodes:
            for resource, history in self.histories.items():
                for _ in range(2):
                    log, view = [], {}
                    history.watchers.append(log)
                    views.append((node, resource, view))
                    followers.append(threading.Thread(target=self.follow, args=(node, resource, log, view, len(followers)), daemon=True))
        for thread in followers:
            thread.start()
        while not all(log for history in self.histories.values() for log in history.watchers):
            time.sleep(0.01)
        informer = Informer(self.arguments.follow, self.nodes[0]) if self.arguments.follow else None
        clients = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(CLIENTS)]
        for thread in clients:
            thread.start()
        end = time.monotonic() + seconds
        self.wait(0.5, 1)
        while time.monotonic() < end:
            fault, node = self.random.choice(self.possible_faults()), self.random.choice(self.nodes)
            began = self.now()
            fault(node)
            self.faults.append(f"{began:8.3f} {self.now():8.3f} {fault.__name__} {node.home.name}")
            self.wait(0.1, 2)
        for node in self.nodes:
            node.play()
            node.ready()
        self.stopping.set()
        for thread in clients:
            thread.join()
        problems = self.converge(views, informer)
        self.done.set()
        for thread in followers:
            thread.join()
        if informer:
            informer.close()
        for resource, history in self.histories.items():
            problems += [f"{resource}: {problem}" for problem in history.problems()]
        problems += ["unexpected answer: " + text for text in self.unexpected]
        return problems + self.resources_return(before)

    def converge(self, views, informer):
        """After all clients have stopped, every watcher agrees with a list, and all servers list the same."""
        wanted = {}
        for resource, history in self.histories.items():
            for node in self.nodes:
                op = self.new_op("list", "")
                connection = node.connect()
                if not self.perform(connection, resource, op, "GET", RESOURCES[resource][2], None, None) or op.outcome != "ok":
                    return [f"{resource} cannot be listed after the faults: {op}"]
                connection.close()
                found = {key: version.revision for key, version in op.items.items()}
                if wanted.setdefault(resource, found) != found:
                    return [f"the servers list other {resource}: {wanted[resource]} and {found}"]
            texts = {key: dict(version.state.data).get("x", "") for key, version in op.items.items()}
            if resource == "configmaps" and informer:
                texts_wanted = {"default/" + key: text for key, text in texts.items()}
        end = time.monotonic() + 60
        while True:
            late = [(node.home.name, resource, behind(view, wanted[resource])) for node, resource, view in views
                    if behind(view, wanted[resource])]
            if informer and informer.objects() != texts_wanted:
                late.append("the informer of the C++ client")
            if not late:
                return []
            if time.monotonic() > end:
                return [f"60 s after the last write, watchers do not have what a list shows: {late}"]
            time.sleep(0.1)

    def resources_return(self, before):
        """Without connections, descriptors are released, and memory is close to that of a fresh start with the same data."""
        problems = []
        for node, fewest in zip(self.nodes, before):
            end = time.monotonic() + 30
            while node.descriptors() > fewest + 6 and time.monotonic() < end:
                time.sleep(0.1)
            if node.descriptors() > fewest + 6:
                problems.append(f"{node.home.name} has {node.descriptors()} descriptors open, {fewest} before")
            grown = node.memory()
            self.restart_server(node)
            node.ready()
            if grown > 2 * node.memory() + 64:
                problems.append(f"{node.home.name} has {grown:.0f} MB, {node.memory():.0f} MB after a restart")
        return problems

    def close(self):
        self.stopping.set()
        self.done.set()
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
            node.stop(signal.SIGKILL)
        if self.cluster:
            self.cluster.stop()

    def summary(self):
        ops = [op for history in self.histories.values() for op in history.ops]
        counts = {outcome: sum(op.outcome == outcome for op in ops) for outcome in ("ok", "refused", "unknown")}
        events = sum(entry[0] == "event" for history in self.histories.values() for log in history.watchers for entry in log)
        return (f"{len(self.faults)} faults, {counts['ok']} operations acknowledged, {counts['refused']} refused, {counts['unknown']} unknown, "
                f"{events} events watched")


def behind(view, wanted):
    """{key: (revision of the watcher, latest revision)} where they differ"""
    has = {key: version.revision for key, version in list(view.items())}
    return {key: (has.get(key), wanted.get(key)) for key in sorted(set(has) | set(wanted)) if has.get(key) != wanted.get(key)}


class Informer:
    """The C++ client's informer of ConfigMaps, in a separate process."""

    def __init__(self, program, node):
        environment = dict(os.environ, KUBECONFIG=str(node.kubeconfig))
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def objects(self):
        """{namespace/name: data.x}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["objects"]

    def close(self):
        self.process.kill()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("faults", nargs="?", help="the library built from faults.cc; without it, disk and clock faults are not injected")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--round", type=float, default=30, help="seconds of faults per round")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=("embedded", "etcd"))
    parser.add_argument("--play", default="", help="faults to choose from")
    parser.add_argument("--flag", action="append", default=[], help="for the server")
    parser.add_argument("--follow", help="path of the program client_follow")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    end, rounds, failed = time.monotonic() + arguments.seconds, 0, 0
    while rounds == 0 or time.monotonic() < end:
        with_etcd = arguments.only == "etcd" or (arguments.only is None and rounds % 2 == 1)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-torture-"))
        this = Round(arguments, folder, seed + rounds, with_etcd)
        try:
            this.start()
            problems = this.run(arguments.round)
        except (RuntimeError, AssertionError, OSError) as problem:
            problems = [repr(problem)]
        this.close()
        name = "two servers on etcd" if with_etcd else "embedded store"
        print(f"{'FAIL' if problems else 'ok  '} seed {seed + rounds}, {name}: {this.summary()}", flush=True)
        if problems:
            failed += 1
            print("\n".join(problems[:20]))
            print("faults:\n" + "\n".join(this.faults))
            print(f"logs: {folder}\nagain: ./dev torture --seconds 1 --round {arguments.round:g} --seed {seed + rounds} --only {'etcd' if with_etcd else 'embedded'}", flush=True)
        else:
            shutil.rmtree(folder)
        rounds += 1
    print(f"{rounds - failed} of {rounds} rounds passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
