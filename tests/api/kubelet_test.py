#!/usr/bin/env python3
"""kubelet_test.py HOLDFAST: logs, exec, attach, port-forward and the proxy, with a kubelet that is part of this test."""
import http.client, ipaddress, json, os, pathlib, signal, socket, struct, subprocess, sys, tempfile, time, unittest, zlib

from fake_kubelet import FakeKubelet, WebSocket, make_certificates, read_head
from serve import Server, wait_until
import needs

BINARY = os.path.abspath(sys.argv.pop(1))
PODS = "/api/v1/namespaces/default/pods"
CONTAINERS = ["main", "slow", "dies", "endless", "silent", "redirect", "code-400", "code-403", "code-404", "code-500", "code-503",
              "echo", "torrent", "forbids", "ordinary", "hangs-up", "flood", "killed"]
folder = server = kubelet = address = web = None


def own_address():
    """An address of this machine that is neither loopback nor link-local, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # Sends nothing.
            found = s.getsockname()[0]
        except OSError:
            return None
    ip = ipaddress.ip_address(found)
    return None if ip.is_loopback or ip.is_link_local or ip.is_unspecified else found


def flags():
    return [f"--kubelet-client-certificate={folder}/client.crt", f"--kubelet-client-key={folder}/client.key",
            f"--kubelet-certificate-authority={folder}/ca.crt", "--kubelet-preferred-address-types=InternalIP,Hostname"]


def node(name, address, port, features=()):
    made = server.json("POST", "/api/v1/nodes", {"metadata": {"name": name}}, want=201)
    made["status"] = {"addresses": [{"type": "InternalIP", "address": address}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    if features:
        made["status"]["declaredFeatures"] = list(features)
    server.json("PUT", f"/api/v1/nodes/{name}/status", made, want=200)


def pod(name, node=None, containers=("main",), ip=None, ports=None, labels=None):
    made = {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [{"name": c, "image": "i"} for c in containers]}}
    if ports:
        made["spec"]["containers"][0]["ports"] = ports
    if node:
        made["spec"]["nodeName"] = node
    server.json("POST", PODS, made, want=201)
    status = {"phase": "Running" if node else "Pending"}
    if ip:
        status.update(podIP=ip, podIPs=[{"ip": ip}])
    server.json("PATCH", f"{PODS}/{name}/status", {"status": status}, want=200, content_type="application/merge-patch+json")


def setUpModule():
    global folder, server, kubelet, address, web
    folder = tempfile.mkdtemp(prefix="holdfast-kubelet-")
    address = own_address()
    make_certificates(folder, address or "127.0.0.1")
    kubelet = FakeKubelet(folder)
    server = Server(BINARY, flags=flags())
    node("n", "127.0.0.1", kubelet.port)
    node("features", "127.0.0.1", kubelet.port, ["ExtendWebSocketsToKubelet"])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        node("down", "127.0.0.1", s.getsockname()[1])
    server.json("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}}, want=201)
    pod("p", "n", CONTAINERS)
    pod("one", "n")
    for name in ("features", "down", "bare", "missing"):
        pod("on-" + name, name)
    pod("waiting")
    if address:
        web = FakeKubelet(folder, address, plain=True)
        pod("web", "n", ip=address, ports=[{"containerPort": web.port, "name": "http"}])


def tearDownModule():
    server.stop()
    server.folder.cleanup()


def get(path, **more):
    code, headers, data = server.request("GET", path, **more)
    return code, data.decode()


def message(path, method="GET", **more):
    """-> (code, reason, message) of a refusal"""
    code, _, data = server.request(method, path, **more)
    status = json.loads(data)
    return code, status.get("reason"), status["message"]


def tcp():
    host, port = server.host.rsplit(":", 1)
    return server.tls.wrap_socket(socket.create_connection((host, int(port)), timeout=60))


def upgrade(path, protocol="SPDY/3.1", headers="", method="POST"):
    """-> (code, socket, first bytes after the head)"""
    sock = tcp()
    sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: {server.host}\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nContent-Length: 0\r\n{headers}\r\n".encode())
    lines, rest = read_head(sock)
    return int(lines[0].split()[1]), sock, rest, "\r\n".join(lines)


def text_of(sock, rest, want):
    """What is received, at least until it contains the text; everything if it never does."""
    while want not in rest.decode():
        got = sock.recv(65536)
        if not got:
            break
        rest += got
    sock.close()
    return rest.decode()


def resident():
    """Bytes of memory of the server."""
    for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


class Logs(unittest.TestCase):
    def test_the_log_is_the_kubelet_s(self):
        code, headers, data = server.request("GET", f"{PODS}/one/log")
        self.assertEqual((code, headers["Content-Type"], data), (200, "text/plain", b"line 1\nline 2\n"))
        seen = kubelet.last()
        self.assertEqual(seen["raw"], "/containerLogs/default/one/main")
        self.assertIn((("commonName", "client"),), seen["certificate"]["subject"])
        self.assertNotIn("Authorization", seen["headers"])

    def test_options_reach_the_kubelet_as_go_writes_them(self):
        get(f"{PODS}/p/log?container=main&previous=true&timestamps=1&tailLines=5&limitBytes=10&sinceTime=2026-01-02T03:04:05%2B01:00&follow=false&pretty=true")
        self.assertEqual(kubelet.last()["raw"], "/containerLogs/default/p/main?limitBytes=10&previous=true&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=5&timestamps=true")
        get(f"{PODS}/one/log?sinceSeconds=7")
        self.assertEqual(kubelet.last()["raw"], "/containerLogs/default/one/main?sinceSeconds=7")

    def test_invalid_options_are_refused(self):
        invalid = 'PodLogOptions "one" is invalid: '
        for query, want in {
                "tailLines=-1": (422, "Invalid", invalid + "tailLines: Invalid value: -1: must be greater than or equal to 0"),
                "sinceSeconds=0": (422, "Invalid", invalid + "sinceSeconds: Invalid value: 0: must be greater than 0"),
                "limitBytes=0": (422, "Invalid", invalid + "limitBytes: Invalid value: 0: must be greater than 0"),
                "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z": (422, "Invalid", invalid + ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"),
                "stream=Stdout": (422, "Invalid", invalid + "stream: Forbidden: may not be specified"),
                "tailLines=x": (400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),
                "sinceTime=x": (400, "BadRequest", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
                "container=zz": (400, "BadRequest", "container zz is not valid for pod one")}.items():
            self.assertEqual(message(f"{PODS}/one/log?{query}"), want, query)
        self.assertEqual(message(f"{PODS}/p/log")[2], f"a container name must be specified for pod p, choose one of: [{' '.join(CONTAINERS)}]")
        self.assertEqual(message(f"{PODS}/none/log"), (404, "NotFound", 'pods "none" not found'))

    def test_without_a_kubelet_the_error_names_the_cause(self):
        self.assertEqual(server.request("GET", f"{PODS}/waiting/log")[0], 204)
        self.assertEqual(message(f"{PODS}/on-missing/log"), (404, "NotFound", 'pods "missing" not found'))
        self.assertEqual(message(f"{PODS}/on-bare/log"), (500, None, "no preferred addresses found; known addresses: []"))
        code, reason, text = message(f"{PODS}/on-down/log")
        self.assertEqual((code, reason), (500, None))
        self.assertRegex(text, r'^Get "https://127.0.0.1:\d+/containerLogs/default/on-down/main": dial tcp 127.0.0.1:\d+: connect: connection refused$')

    def test_the_kubelet_s_errors_are_passed_on(self):
        for code, want in {
                400: (400, "BadRequest", "the kubelet's words"),
                403: (403, "Forbidden", "the kubelet's words ( pods/log p)"),
                404: (404, "NotFound", "the server could not find the requested resource ( pods/log p)"),
                500: (500, "InternalError", "Internal error occurred: the kubelet's words"),
                503: (503, "ServiceUnavailable", "the server is currently unable to handle the request ( pods/log p)")}.items():
            self.assertEqual(message(f"{PODS}/p/log?container=code-{code}"), want)

    def test_a_redirect_is_not_followed(self):
        self.assertEqual(message(f"{PODS}/p/log?container=redirect"), (500, None, 'Get "http://169.254.169.254/latest/meta-data": redirects forbidden'))

    def test_a_followed_log_arrives_as_it_is_written(self):
        connection = server.connect()
        connection.request("GET", f"{PODS}/p/log?container=main&follow=true")
        answer = connection.getresponse()
        self.assertEqual([answer.readline() for _ in range(3)], [b"line 0\n", b"line 1\n", b"line 2\n"])
        kubelet.ended.clear()
        answer.close()
        connection.close()
        wait_until("the kubelet's stream ends with its client", lambda: "main" in kubelet.ended)

    def test_a_log_that_ends_early_is_not_complete(self):
        with self.assertRaises(http.client.IncompleteRead) as ended:
            server.request("GET", f"{PODS}/p/log?container=dies")
        self.assertEqual(ended.exception.partial, b"half of a line")

    def test_a_client_that_gives_up_waiting_ends_the_call(self):
        before = len(kubelet.seen)
        sock = tcp()
        sock.sendall(f"GET {PODS}/p/log?container=silent HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until("the kubelet is asked", lambda: len(kubelet.seen) > before)
        self.assertIn("silent", kubelet.last()["path"])
        sock.close()
        wait_until("nothing is under way", lambda: b'apiserver_longrunning_requests{verb="CONNECT",group="",version="v1",resource="pods",subresource="log",scope="namespace",component="apiserver"} 1'
                   not in server.request("GET", "/metrics")[2])

    def test_a_log_over_a_websocket(self):
        sock = tcp()
        socket_ = WebSocket(sock, server.host, f"{PODS}/one/log", ["binary.k8s.io"])
        self.assertEqual((socket_.code, socket_.headers.get("sec-websocket-protocol")), (101, "binary.k8s.io"))
        self.assertEqual(b"".join(socket_.messages()), b"line 1\nline 2\n")
        socket_ = WebSocket(tcp(), server.host, f"{PODS}/one/log", ["base64.binary.k8s.io"])
        self.assertEqual(b"".join(socket_.messages()), b"bGluZSAxCmxpbmUgMgo=")

    def test_a_reader_that_does_not_read_costs_only_buffers(self):
        before, sent = resident(), kubelet.sent
        socks = []
        for _ in range(20):
            socks.append(tcp())
            socks[-1].sendall(f"GET {PODS}/p/log?container=endless HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        end = time.monotonic() + 5
        last = -1
        while kubelet.sent != last and time.monotonic() < end:  # Until the kubelet is blocked.
            last = kubelet.sent
            time.sleep(0.5)
        self.assertGreater(kubelet.sent, sent)
        self.assertLess(resident() - before, 100 << 20)
        for sock in socks:
            sock.close()


class Trust(unittest.TestCase):
    def test_a_kubelet_that_cannot_be_verified_is_not_used(self):
        other = Server(BINARY, flags=[f"--kubelet-certificate-authority={folder}/other.crt", "--kubelet-preferred-address-types=InternalIP"])
        global server
        mine, server = server, other
        try:
            node("n", "127.0.0.1", kubelet.port)
            pod("one", "n")
            code, reason, text = message(f"{PODS}/one/log")
            self.assertEqual((code, reason), (500, None))
            self.assertRegex(text, "tls: failed to verify certificate: x509: certificate signed by unknown authority$")
            # Verification can be skipped, but this kubelet wants a certificate.
            self.assertEqual(message(f"{PODS}/one/log?insecureSkipTLSVerifyBackend=true")[0], 500)
            code, sock, rest, head = upgrade(f"{PODS}/one/exec?command=x&stdout=1")
            self.assertEqual(code, 500)
            want = "error dialing backend: tls: failed to verify"
            self.assertIn(want, text_of(sock, rest, want))
        finally:
            other.stop()
            server = mine

    def test_a_kubelet_that_does_not_answer_is_not_waited_for(self):
        global server
        mine, server = server, Server(BINARY, flags=["--kubelet-timeout=500ms", "--kubelet-preferred-address-types=InternalIP"])
        try:
            with socket.socket() as mute:
                mute.bind(("127.0.0.1", 0))
                mute.listen()
                node("mute", "127.0.0.1", mute.getsockname()[1])
                pod("on-mute", "mute")
                self.assertRegex(message(f"{PODS}/on-mute/log")[2], r'^Get "https://[^"]*": dial tcp 127.0.0.1:\d+: i/o timeout$')
                code, sock, rest, _ = upgrade(f"{PODS}/on-mute/exec?command=x")
                self.assertEqual(code, 500)
                self.assertRegex(text_of(sock, rest, "timeout"), r"error dialing backend: dial tcp 127.0.0.1:\d+: i/o timeout")
        finally:
            server.stop()
            server = mine

    def test_flags_that_cannot_be_used_end_the_start(self):
        for given, want in ((["--kubelet-client-certificate=/x"], "must be given together"),
                            ([f"--kubelet-client-certificate={folder}/client.crt", f"--kubelet-client-key={folder}/server.key"], "kubelets cannot be used"),
                            ([f"--kubelet-certificate-authority={folder}/client.key"], "kubelets cannot be used")):
            with tempfile.TemporaryDirectory() as data:
                done = subprocess.run([BINARY, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", *given], capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(want, done.stderr + done.stdout)

    def test_a_renewed_certificate_is_used_without_a_restart(self):
        with tempfile.TemporaryDirectory() as renewed:
            make_certificates(renewed)
            fresh = FakeKubelet(renewed)  # Trusts, and is trusted by, the new certificates only.
            node("fresh", "127.0.0.1", fresh.port)
            pod("on-fresh", "fresh")
            self.assertEqual(message(f"{PODS}/on-fresh/log")[0], 500)
            kept = {name: pathlib.Path(folder, name).read_bytes() for name in ("client.crt", "client.key", "ca.crt")}
            try:
                for name in kept:
                    pathlib.Path(folder, name).write_bytes(pathlib.Path(renewed, name).read_bytes())
                wait_until("the new certificate is used", lambda: get(f"{PODS}/on-fresh/log")[0] == 200)
            finally:
                for name, data in kept.items():
                    pathlib.Path(folder, name).write_bytes(data)
            wait_until("the old certificate is used again", lambda: get(f"{PODS}/one/log")[0] == 200)


class Streams(unittest.TestCase):
    def test_spdy_is_passed_through(self):
        for how, query, want in (("exec", "command=a%20b&command=c%26d&stdin=true&stdout=true&tty=true&container=echo", "/exec/default/p/echo?command=a+b&command=c%26d&input=1&output=1&tty=1"),
                                 ("attach", "stdout=true&stderr=true&container=echo", "/attach/default/p/echo?error=1&output=1")):
            code, sock, rest, head = upgrade(f"{PODS}/p/{how}?{query}", headers="X-Stream-Protocol-Version: v4.channel.k8s.io\r\nAuthorization: Bearer secret\r\nX-Remote-User: root\r\n")
            self.assertEqual(code, 101, head)
            self.assertIn("X-Stream-Protocol-Version: v4.channel.k8s.io", head)
            seen = kubelet.last()
            self.assertEqual(seen["raw"].replace("%20", "+"), want)
            self.assertEqual(seen["method"], "POST")
            self.assertNotIn("Authorization", seen["headers"])
            self.assertNotIn("X-Remote-User", seen["headers"])
            self.assertEqual(seen["headers"]["X-Forwarded-For"], "127.0.0.1")
            sock.sendall(b"\x00\xffhello")
            got = rest
            while len(got) < 7:
                got += sock.recv(100)
            self.assertEqual(got, b"\x00\xffhello")
            kubelet.ended.clear()
            sock.close()
            wait_until("the kubelet's stream ends with its client", lambda: "echo" in kubelet.ended)

    def test_other_websockets_are_passed_through(self):
        for path, protocol in ((f"{PODS}/p/exec?command=x&stdout=1&container=echo", "v4.channel.k8s.io"),
                               (f"{PODS}/on-features/exec?command=x&stdout=1", "v5.channel.k8s.io")):
            client = WebSocket(tcp(), server.host, path, [protocol, "base64url.bearer.authorization.k8s.io.c2VjcmV0"])
            self.assertEqual(client.code, 101, path)
            seen = kubelet.last()
            self.assertEqual((seen["headers"]["Upgrade"], seen["headers"]["Sec-WebSocket-Protocol"]), ("websocket", protocol))
            client.send(b"\0abc")
            self.assertEqual(client.read(10), b"\x82\x84\0\0\0\0\0abc")  # Echoed as it was sent, with the mask.

    def test_what_is_no_upgrade_is_refused(self):
        for how in ("exec", "attach", "portforward"):
            self.assertEqual(message(f"{PODS}/waiting/{how}?command=x"), (400, "BadRequest", "pod waiting does not have a host assigned"))
            self.assertEqual(message(f"{PODS}/one/{how}?command=x"), (400, "BadRequest", "Upgrade request required"))
            self.assertEqual(message(f"{PODS}/none/{how}?command=x"), (404, "NotFound", 'pods "none" not found'))
        self.assertEqual(message(f"{PODS}/one/exec?container=zz"), (400, "BadRequest", "container zz is not valid for pod one"))

    def test_the_kubelet_s_refusals_are_passed_on(self):
        code, sock, rest, head = upgrade(f"{PODS}/p/exec?command=x&container=forbids")
        self.assertEqual(code, 403)
        self.assertIn("not allowed here", text_of(sock, rest, "not allowed here"))
        for container, want in {"ordinary": "invalid upgrade response: status code 200", "hangs-up": "unexpected EOF"}.items():
            code, sock, rest, head = upgrade(f"{PODS}/p/exec?command=x&container={container}")
            self.assertEqual(code, 500, container)
            self.assertIn(want, text_of(sock, rest, want))
        code, sock, rest, head = upgrade(f"{PODS}/on-down/exec?command=x")
        self.assertEqual(code, 500)
        self.assertRegex(text_of(sock, rest, "refused"), r"error dialing backend: dial tcp 127.0.0.1:\d+: connect: connection refused")

    def test_a_client_that_does_not_read_costs_only_buffers(self):
        before = resident()
        socks = [upgrade(f"{PODS}/p/exec?command=x&stdout=1&container=torrent")[1] for _ in range(20)]
        last = -1
        while kubelet.sent != last:
            last = kubelet.sent
            time.sleep(0.5)
        self.assertLess(resident() - before, 100 << 20)
        for sock in socks:
            sock.close()

    def test_create_is_needed_however_it_is_asked(self):
        rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec", "pods/log"], "verbs": ["get"]}]
        server.json("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"metadata": {"name": "reader"}, "rules": rules}, want=201)
        server.json("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
                    {"metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                     "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "reader"}]}, want=201)
        wait_until("the role counts", lambda: server.request("GET", f"{PODS}/one/log", headers={"Impersonate-User": "reader"})[0] == 200)
        code, sock, rest, head = upgrade(f"{PODS}/one/exec?command=x&stdout=1", "websocket", "Impersonate-User: reader\r\nSec-WebSocket-Key: eA==\r\n", "GET")
        self.assertEqual(code, 403)
        self.assertIn('pods \\"one\\" is forbidden', text_of(sock, rest, "is forbidden"))

    def test_policies_change_the_options(self):
        policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
        if server.request("GET", policies)[0] != 200:
            policies = policies.replace("/v1/", "/v1beta1/")
        spec = {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/attach"]}]},
                "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/container", value: "echo"}]'}}]}
        made = server.json("POST", policies, {"metadata": {"name": "choose"}, "spec": spec})
        if made.get("kind") != "MutatingAdmissionPolicy":
            self.skipTest("no mutating policies: " + made.get("message", ""))
        server.json("POST", policies.replace("policies", "policybindings"), {"metadata": {"name": "choose"}, "spec": {"policyName": "choose"}}, want=201)

        def chosen():
            code, sock, _, _ = upgrade(f"{PODS}/p/attach?stdout=1&container=forbids")
            sock.close()
            return code == 101 and kubelet.last()["path"] == "/attach/default/p/echo"
        wait_until("the policy chooses the container", chosen)
        server.json("DELETE", policies + "/choose", want=200)


class Translation(unittest.TestCase):
    """WebSockets of clients become SPDY for kubelets that know nothing else."""

    def exec(self, query, pod="one"):
        client = WebSocket(tcp(), server.host, f"{PODS}/{pod}/exec?{query}", ["v5.channel.k8s.io"])
        self.assertEqual((client.code, client.headers.get("sec-websocket-protocol")), (101, "v5.channel.k8s.io"))
        return client

    def test_a_command_with_its_streams(self):
        client = self.exec("command=cat&stdin=1&stdout=1&stderr=1")
        client.send(b"\0hello ")
        client.send(b"", 0x89)  # A ping.
        client.send(b"\0world\n")
        client.send(b"\xff\0")  # The end of standard input.
        messages = client.messages()
        self.assertEqual(messages[0], b"\1")
        channels = {n: b"".join(m[1:] for m in messages if m[:1] == bytes([n])) for n in (1, 2, 3)}
        self.assertEqual((channels[1], channels[2]), (b"HELLO WORLD\n", b"warning"))
        self.assertEqual(json.loads(channels[3]), {"metadata": {}, "status": "Success"})
        self.assertIn(b"", messages)  # The pong.
        seen = kubelet.last()
        self.assertEqual((seen["method"], seen["raw"], seen["headers"]["Upgrade"]), ("POST", "/exec/default/one/main?command=cat&error=1&input=1&output=1", "SPDY/3.1"))
        self.assertNotIn("Sec-WebSocket-Key", seen["headers"])

    def test_a_terminal_and_its_size(self):
        client = self.exec("command=sh&stdin=1&stdout=1&stderr=1&tty=1")
        client.send(b'\4{"Width":80,"Height":24}')
        client.send(b"\0exit\n")
        output = b"".join(m[1:] for m in client.messages() if m[:1] == b"\1")
        self.assertIn(b'size {"Width":80,"Height":24}', output)

    def test_how_a_command_ends(self):
        status = lambda messages: json.loads([m for m in messages if m[:1] == b"\3" and len(m) > 1][-1][1:])
        self.assertEqual(status(self.exec("command=exit&command=7&stdout=1").messages()), {
            "metadata": {}, "status": "Failure", "message": "command terminated with non-zero exit code: command terminated with exit code 7",
            "reason": "NonZeroExitCode", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}})
        self.assertEqual(status(self.exec("command=missing&stdout=1").messages()), {
            "metadata": {}, "status": "Failure", "message": "Internal error occurred: no such container", "reason": "InternalError",
            "details": {"causes": [{"message": "no such container"}]}, "code": 500})
        killed = self.exec("command=x&stdout=1&container=killed", "p").messages()
        self.assertIn(b"\1so far", killed)
        self.assertRegex(status(killed)["message"], "error reading from error stream")
        down = status(self.exec("command=x&stdout=1", "on-down").messages())
        self.assertRegex(down["message"], r'^Internal error occurred: error sending request: Post "https://127.0.0.1:\d+/exec/default/on-down/main\?command=x&output=1": dial tcp')
        refused = status(self.exec("command=x&stdout=1&container=forbids", "p").messages())
        self.assertEqual(refused["message"], "Internal error occurred: unable to upgrade connection: not allowed here")

    def test_a_client_that_does_not_read_costs_only_buffers(self):
        before = resident()
        clients = [self.exec("command=x&stdout=1&container=flood", "p") for _ in range(20)]
        last = -1
        while kubelet.sent != last:
            last = kubelet.sent
            time.sleep(0.5)
        self.assertLess(resident() - before, 100 << 20)
        for client in clients:
            client.socket.close()

    def test_what_violates_the_protocol_ends_the_command(self):
        for frames in ((b"\x82\x01x",), (b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"\0\0\0\0",)):
            client = self.exec("command=cat&stdin=1&stdout=1")
            kubelet.ended.clear()
            for frame in frames:
                client.socket.sendall(frame)
            client.messages()
            wait_until("the command ends", lambda: "main" in kubelet.ended)
        self.assertEqual(get(f"{PODS}/one/log")[0], 200)

    def test_a_port_forward_in_a_tunnel(self):
        client = WebSocket(tcp(), server.host, f"{PODS}/one/portforward?ports=80", ["SPDY/3.1+portforward.k8s.io"])
        self.assertEqual((client.code, client.headers.get("sec-websocket-protocol")), (101, "SPDY/3.1+portforward.k8s.io"))
        self.assertEqual(kubelet.last()["raw"], "/portForward/default/one?port=80")
        syn = lambda stream, kind: (b"\x80\x03\x00\x01\x00", struct.pack(">IIH", stream, 0, 0) + block(kind))

        compressor = zlib.compressobj()

        def block(kind):
            text = struct.pack(">I", 3)
            for word in ("streamtype", kind, "port", "80", "requestid", "0"):
                text += struct.pack(">I", len(word)) + word.encode()
            return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)
        for stream, kind in ((1, "error"), (3, "data")):
            head, payload = syn(stream, kind)
            client.send(head + len(payload).to_bytes(3, "big") + payload)
        client.send(b"\0\0\0\3\1" + (5).to_bytes(3, "big") + b"hello")
        got = b""
        while b"80: hello" not in got:
            opcode, payload = client.receive()
            self.assertEqual(opcode, 2)
            got += payload
        client.send(b"\x03\xe8", 0x88)


@unittest.skipUnless(own_address(), "this machine has no address but loopback")
class Proxy(unittest.TestCase):
    def fetch(self, path, method="GET", body=None, headers=None):
        code, got, data = server.request(method, path, body, headers=headers, accept="*/*")
        return code, got, data

    def test_a_pod_gets_the_request_as_it_is(self):
        for name in ("web", f"web:{web.port}", f"http:web:{web.port}"):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                code, _, data = self.fetch(f"{PODS}/{name}/proxy/a%20b/c//d/../e/?x=1&y=%2F", method, body="body" if method in ("POST", "PUT", "PATCH") else None,
                                           headers={"Authorization": "Bearer admin-secret", "X-Custom": "yes", "X-Remote-User": "root", "X-Forwarded-For": "203.0.113.9"})
                if method == "GET" and code == 401:
                    self.fail("the credentials of the client were used")
                seen = json.loads(data)
                self.assertEqual((code, seen["method"], seen["raw"]), (200, method, "/a%20b/c/e/?x=1&y=%2F"))
                got = seen["headers"]
                self.assertNotIn("authorization", got)
                self.assertNotIn("x-remote-user", got)
                self.assertEqual((got["x-custom"], got["x-forwarded-for"], got["host"]), ("yes", "203.0.113.9, 127.0.0.1", server.host))
                self.assertEqual(got["x-forwarded-uri"], f"{PODS}/{name}/proxy/a%20b/c/e/")
        code, headers, data = self.fetch(f"{PODS}/web/proxy/x", "HEAD")
        self.assertEqual((code, data), (200, b""))

    def test_the_root_has_a_slash(self):
        code, headers, _ = self.fetch(f"{PODS}/web/proxy?x=1")
        self.assertEqual((code, headers["Location"]), (301, f"{PODS}/web/proxy/?x=1"))
        self.assertEqual(json.loads(self.fetch(f"{PODS}/web/proxy/")[2])["raw"], "/")
        self.assertEqual(json.loads(self.fetch(f"{PODS}/web/proxy", "POST", "b")[2])["raw"], "/")

    def test_redirects_and_links_lead_through_the_proxy(self):
        code, headers, _ = self.fetch(f"{PODS}/web/proxy/redirect")
        self.assertEqual((code, headers["Location"]), (302, f"{PODS}/web/proxy/elsewhere?x=1"))
        code, headers, _ = self.fetch(f"{PODS}/web/proxy/metadata")
        self.assertEqual((code, headers["Location"]), (302, "http://169.254.169.254/latest/meta-data"))  # For the client, not for us.
        code, headers, data = self.fetch(f"{PODS}/web/proxy/x.html")
        self.assertEqual((code, data.decode()), (200, f'<a href="{PODS}/web/proxy/top">t</a><a href="near">n</a><script>"<a href=/raw>"</script>'))
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_addresses_that_must_not_be_reached_are_refused(self):
        for at, bad in enumerate(("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "224.0.0.1")):
            pod(f"bad{at}", "n", ip=bad)
            self.assertEqual(message(f"{PODS}/bad{at}/proxy/x"), (400, "BadRequest", "address not allowed"), bad)
            node(f"bad{at}", bad, 10250)
            self.assertEqual(message(f"/api/v1/nodes/bad{at}/proxy/x"), (400, "BadRequest", "address not allowed"), bad)
        node("by-name", "localhost", 10250)
        self.assertEqual(message("/api/v1/nodes/by-name/proxy/x"), (400, "BadRequest", "address not allowed"))
        self.assertEqual(message(f"{PODS}/waiting/proxy/x"), (400, "BadRequest", "address not allowed"))
        self.assertEqual(message(f"{PODS}/a:b:c:d/proxy/x"), (400, "BadRequest", 'invalid pod request "a:b:c:d"'))
        self.assertEqual(message(f"{PODS}/ftp:web:80/proxy/x")[2], 'invalid pod request "ftp:web:80"')

    def test_a_server_that_cannot_be_reached(self):
        with socket.socket() as s:
            s.bind((address, 0))
            port = s.getsockname()[1]
        self.assertEqual(message(f"{PODS}/web:{port}/proxy/x"),
                         (503, "ServiceUnavailable", f"error trying to reach service: dial tcp {address}:{port}: connect: connection refused"))
        self.assertEqual(message(f"{PODS}/web:99999/proxy/x")[2], "error trying to reach service: dial tcp: address 99999: invalid port")
        with self.assertRaises(http.client.IncompleteRead):
            self.fetch(f"{PODS}/web/proxy/dies")

    def test_a_node_s_kubelet_and_its_other_ports(self):
        secure = FakeKubelet(folder, address)
        node("proxied", address, secure.port)
        for name in ("proxied", f"proxied:{secure.port}", f"https:proxied:{secure.port}"):
            code, _, data = self.fetch(f"/api/v1/nodes/{name}/proxy/stats/summary")
            self.assertEqual((code, json.loads(data)["raw"]), (200, "/stats/summary"))
            self.assertIn((("commonName", "client"),), secure.last()["certificate"]["subject"])
        code, _, data = self.fetch(f"/api/v1/nodes/proxied:{web.port}/proxy/x")
        self.assertEqual((code, json.loads(data)["raw"]), (200, "/x"))
        self.assertEqual(message("/api/v1/nodes/nosuch/proxy/x"), (404, "NotFound", 'nodes "nosuch" not found'))
        self.assertEqual(message("/api/v1/nodes/bare/proxy/x"), (500, None, "no preferred addresses found; known addresses: []"))

    def test_a_service_leads_to_a_pod_behind_it(self):
        services, endpoints = "/api/v1/namespaces/default/services", "/api/v1/namespaces/default/endpoints"
        server.json("POST", services, {"metadata": {"name": "sv"}, "spec": {"ports": [{"name": "http", "port": 80, "targetPort": web.port}]}}, want=201)
        self.assertEqual(message(f"{services}/sv:http/proxy/x"), (404, "NotFound", 'services "sv" not found'))
        self.assertEqual(message(f"{services}/sv:1/proxy/x"), (503, "ServiceUnavailable", 'no service port 1 found for service "sv"'))
        self.assertEqual(message(f"{services}/a:b:c:d/proxy/x"), (400, "BadRequest", 'invalid service request "a:b:c:d"'))
        made = server.json("POST", endpoints, {"metadata": {"name": "sv"}}, want=201)
        self.assertEqual(message(f"{services}/sv:http/proxy/x"), (503, "ServiceUnavailable", 'no endpoints available for service "sv"'))
        target = {"kind": "Pod", "name": "web", "namespace": "default"}
        made["subsets"] = [{"addresses": [{"ip": address}, {"ip": "203.0.113.1", "targetRef": target}], "ports": [{"name": "http", "port": web.port}]}]
        made = server.json("PUT", f"{endpoints}/sv", made, want=200)
        self.assertEqual(message(f"{services}/sv:http/proxy/x")[2], 'no endpoints available for service "sv:http"')  # None is a pod's.
        made["subsets"][0]["addresses"].append({"ip": address, "targetRef": dict(target)})
        made["subsets"][0]["addresses"][0]["targetRef"] = target
        made["subsets"][0]["addresses"] = made["subsets"][0]["addresses"][:2]
        server.json("PUT", f"{endpoints}/sv", made, want=200)
        for name in ("sv:http", "sv:80", "http:sv:http"):
            code, _, data = self.fetch(f"{services}/{name}/proxy/x?y=z")
            self.assertEqual((code, json.loads(data)["raw"]), (200, "/x?y=z"), name)
        self.assertEqual(message(f"{services}/sv/proxy/x")[2], 'no endpoints available for service "sv"')

    def test_an_upgrade_is_passed_on(self):
        code, sock, rest, head = upgrade(f"{PODS}/web/proxy/echo?q=1", "my-protocol", method="GET")
        self.assertEqual((code, web.last()["raw"], web.last()["headers"]["Upgrade"]), (101, "/echo?q=1", "my-protocol"))
        sock.sendall(b"ping")
        self.assertEqual(rest or sock.recv(100), b"ping")
        sock.close()

    def test_a_body_of_any_size_passes_but_not_through_memory(self):
        before = resident()
        connection = server.connect()
        connection.request("GET", f"{PODS}/web/proxy/endless")
        answer = connection.getresponse()
        got = 0
        while got < 100 << 20:
            got += len(answer.read(1 << 20))
        self.assertLess(resident() - before, 50 << 20)
        connection.close()


class Shutdown(unittest.TestCase):
    def test_sigterm_ends_what_streams(self):
        global server
        own = Server(BINARY, flags=flags() + ["--shutdown-grace-seconds=20"])
        mine, server = server, own
        try:
            node("n", "127.0.0.1", kubelet.port)
            pod("p", "n", ["slow", "silent", "echo", "flood"])
            follow = own.connect()
            follow.request("GET", f"{PODS}/p/log?container=slow")
            lines = follow.getresponse()
            lines.readline()
            waiting = tcp()
            waiting.sendall(f"GET {PODS}/p/log?container=silent HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            tunnel = upgrade(f"{PODS}/p/exec?command=x&container=echo")[1]
            stuck = WebSocket(tcp(), own.host, f"{PODS}/p/exec?command=x&stdout=1&container=flood", ["v5.channel.k8s.io"])
            self.assertEqual(stuck.code, 101)
            began = time.monotonic()
            own.process.send_signal(signal.SIGTERM)
            self.assertEqual(own.process.wait(60), 0)
            self.assertLess(time.monotonic() - began, 15)
            with self.assertRaises((http.client.IncompleteRead, OSError)):
                while lines.read(1000):
                    pass
            tunnel.close()
            waiting.close()
        finally:
            own.stop()
            server = mine


class Kubectl(unittest.TestCase):
    @unittest.skipUnless(needs.kubectl(), needs.NO_KUBECTL)
    def test_kubectl_reads_logs_and_runs_commands(self):
        def kubectl(*arguments, stdin=b"", code=0, **environment):
            done = subprocess.run([needs.kubectl(), "--kubeconfig", str(server.kubeconfig), *arguments], input=stdin, capture_output=True, timeout=60,
                                  env={**os.environ, **environment}, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stdout
        self.assertEqual(kubectl("logs", "one"), b"line 1\nline 2\n")
        for websockets in ("true", "false"):
            chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets, "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
            self.assertEqual(kubectl("exec", "-i", "one", "--", "cat", stdin=b"to the container", **chosen), b"TO THE CONTAINER")
            kubectl("exec", "one", "--", "exit", "7", code=7, **chosen)
            with tempfile.TemporaryDirectory() as copies:
                kubectl("cp", "one:/etc/file", copies + "/copy", **chosen)
                self.assertEqual(pathlib.Path(copies, "copy").read_bytes(), b"copied" * 100000)
            forward = subprocess.Popen([needs.kubectl(), "--kubeconfig", str(server.kubeconfig), "port-forward", "pod/one", ":80"], stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, **chosen})
            try:
                port = int(forward.stdout.readline().split("127.0.0.1:")[1].split()[0])
                with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
                    s.sendall(b"hello")
                    self.assertEqual(s.recv(100), b"80: hello")
            finally:
                forward.kill()
                forward.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")  # Sockets that are closed by forgetting them.
