"""A kubelet that runs nothing: logs, commands and port-forwards of made-up containers, over TLS with client certificates.

What a container does depends on its name; see the methods of Handler. Standard library and openssl.
"""
import base64, hashlib, http.server, io, json, os, socket, ssl, struct, subprocess, tarfile, threading, time, zlib
from urllib.parse import parse_qs, urlsplit


def make_certificates(folder, address="127.0.0.1"):
    """ca.crt; server.crt and client.crt with their keys, signed by it; other.crt is a CA that signed nothing."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for ca in ("ca", "other"):
        openssl("req", "-x509", *curve, "-keyout", f"{ca}.key", "-out", f"{ca}.crt", "-days", "2", "-subj", f"/CN={ca}")
    for name, extension in (("server", f"subjectAltName=IP:127.0.0.1,IP:{address},DNS:localhost"), ("client", "extendedKeyUsage=clientAuth")):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}/O=system:masters")
        with open(os.path.join(folder, "extensions"), "w") as f:
            f.write(extension + "\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-out", f"{name}.crt", "-extfile", "extensions")


# What SPDY/3 compresses headers with (section 2.6.10.1 of the draft): words with their lengths, then text.
WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization
    cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type
    date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards
    pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
    www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin""".split()
TEXT = ("100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found"
        "500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
        "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,"
        "text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.replace("_", " ").encode() for word in WORDS) + TEXT.encode()


class Connection:
    """A socket that has switched protocols. `rest` was received and not read yet."""

    def __init__(self, sock, rest=b""):
        self.socket, self.rest = sock, rest

    def read(self, count):
        while len(self.rest) < count:
            got = self.socket.recv(65536)
            if not got:
                raise EOFError
            self.rest += got
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken


def read_head(sock):
    """-> (the lines of an HTTP response's head, the first bytes after it)"""
    head = b""
    while b"\r\n\r\n" not in head:
        got = sock.recv(65536)
        if not got:
            break
        head += got
    head, _, rest = head.partition(b"\r\n\r\n")
    return head.decode().split("\r\n"), rest


class Spdy(Connection):
    """The server's side of a SPDY/3.1 connection."""

    def __init__(self, sock, rest=b""):
        super().__init__(sock, rest)
        self.headers = zlib.decompressobj(zdict=DICTIONARY)
        self.own_headers = zlib.compressobj(zdict=DICTIONARY)
        self.lock = threading.Lock()

    def frame(self):
        """-> ("open", id, headers) or ("data", id, bytes, whether it is the last) or ("control", type, payload)"""
        head = self.read(8)
        payload = self.read(int.from_bytes(head[5:8], "big"))
        if not head[0] & 0x80:
            return "data", int.from_bytes(head[:4], "big"), payload, bool(head[4] & 1)
        kind = int.from_bytes(head[2:4], "big")
        if kind != 1:
            return "control", kind, payload
        assert payload.endswith(b"\0\0\xff\xff"), "flushed: Go's decoder would wait for more"
        block = self.headers.decompress(payload[10:])
        count, at, found = int.from_bytes(block[:4], "big"), 4, {}
        for _ in range(count):
            pair = []
            for _ in range(2):
                length = int.from_bytes(block[at:at + 4], "big")
                pair.append(block[at + 4:at + 4 + length].decode())
                at += 4 + length
            found[pair[0]] = pair[1]
        assert at == len(block), "nothing follows the headers"
        return "open", int.from_bytes(payload[:4], "big"), found

    def send(self, stream, data=b"", last=False):
        with self.lock:
            self.socket.sendall(struct.pack(">I", stream) + bytes([last]) + len(data).to_bytes(3, "big") + data)

    def reply(self, stream):
        with self.lock:
            none = self.own_headers.compress(struct.pack(">I", 0)) + self.own_headers.flush(zlib.Z_SYNC_FLUSH)
            self.socket.sendall(b"\x80\x03\x00\x02\x00" + (4 + len(none)).to_bytes(3, "big") + struct.pack(">I", stream) + none)

    def ping(self):
        with self.lock:
            self.socket.sendall(b"\x80\x03\x00\x06\x00" + (4).to_bytes(3, "big") + struct.pack(">I", 2))


class FakeKubelet:
    def __init__(self, folder, address="127.0.0.1", plain=False):
        self.seen, self.ended = [], []  # Requests; names of the streams whose client has gone.
        self.sent = 0  # Bytes that streams without end have sent.
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                certificate = self.connection.getpeercert() if hasattr(self.connection, "getpeercert") else None
                outer.seen.append({"method": self.command, "path": url.path, "query": parse_qs(url.query), "raw": self.path, "body": body,
                                   "headers": self.headers, "certificate": certificate})
                parts = url.path.strip("/").split("/")
                self.close_connection = True
                try:
                    if parts[0] == "containerLogs":
                        return self.log(parts[3], parse_qs(url.query))
                    if self.headers.get("Upgrade"):
                        return self.upgrade(parts, parse_qs(url.query))
                    self.page(url.path)
                except (OSError, EOFError):
                    outer.ended.append(parts[-1])

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = serve

            def answer(self, code, data=b"", **headers):
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def chunks(self):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()

            def chunk(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log(self, container, query):
                if container.startswith("code-"):
                    return self.answer(int(container[5:]), b"the kubelet's words")
                if container == "redirect":
                    return self.answer(302, Location="http://169.254.169.254/latest/meta-data")
                if container == "silent":
                    time.sleep(3600)
                self.chunks()
                if container == "dies":
                    self.chunk(b"half of a line")
                    return self.connection.shutdown(socket.SHUT_RDWR)
                if container == "endless":
                    while True:
                        self.chunk(b"x" * 65535 + b"\n")
                        outer.sent += 65536
                if container == "slow" or query.get("follow"):
                    for i in range(100000):
                        self.chunk(b"line %d\n" % i)
                        time.sleep(0.05)
                self.chunk(b"line 1\nline 2\n")
                self.chunk(b"")

            def switch(self, protocol, **headers):
                lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
                self.connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n{lines}\r\n".encode())

            def upgrade(self, parts, query):
                container = parts[-1]
                if container == "forbids":
                    return self.answer(403, b"not allowed here", Content_Type="text/plain")
                if container == "ordinary":
                    return self.answer(200, b"no upgrade")
                if container == "hangs-up":
                    return self.connection.shutdown(socket.SHUT_RDWR)
                offered = self.headers.get_all("X-Stream-Protocol-Version") or []
                wanted = self.headers["Upgrade"]
                if wanted.lower() != "spdy/3.1" or container == "echo":
                    chosen = {"X_Stream_Protocol_Version": offered[0]} if offered else {}
                    key = self.headers.get("Sec-WebSocket-Key")
                    if key:
                        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
                        chosen["Sec_WebSocket_Accept"] = base64.b64encode(digest).decode()
                    self.switch(wanted, **chosen)
                    return self.echo()
                if container == "torrent":
                    self.switch(wanted)
                    while True:
                        self.connection.sendall(b"x" * 65536)
                        outer.sent += 65536
                self.switch(wanted, X_Stream_Protocol_Version="v4.channel.k8s.io" if "v4.channel.k8s.io" in offered else offered[0])
                if parts[0] == "portForward":
                    return self.forward()
                self.command_of(container, query)

            def echo(self):
                while True:
                    data = self.connection.recv(65536)
                    if not data:
                        raise EOFError
                    self.connection.sendall(data)

            def command_of(self, container, query):
                """Copies standard input to standard output; the command is "exit N" or anything else."""
                spdy = Spdy(self.connection)
                streams = {}
                expected = {"error"} | {name for name, key in (("stdin", "input"), ("stdout", "output")) if key in query}
                if "error" in query and "tty" not in query:
                    expected.add("stderr")
                if "tty" in query:
                    expected.add("resize")
                while set(streams) != expected:
                    kind, stream, headers = spdy.frame()
                    assert kind == "open", kind
                    streams[headers["streamtype"]] = stream
                    spdy.reply(stream)
                spdy.ping()
                if container == "killed":
                    spdy.send(streams["stdout"], b"so far")
                    return self.connection.shutdown(socket.SHUT_RDWR)
                while container == "flood":
                    spdy.send(streams["stdout"], b"x" * 65536)
                    outer.sent += 65536
                if "stderr" in streams:
                    spdy.send(streams["stderr"], b"warning")
                if query.get("command", [""])[0] == "tar":
                    data, file = b"copied" * 100000, io.BytesIO()
                    with tarfile.open(fileobj=file, mode="w") as archive:
                        entry = tarfile.TarInfo("etc/file")
                        entry.size = len(data)
                        archive.addfile(entry, io.BytesIO(data))
                    for at in range(0, len(file.getvalue()), 10000):
                        spdy.send(streams["stdout"], file.getvalue()[at:at + 10000])
                while "stdin" in streams:
                    frame = spdy.frame()
                    if frame[0] != "data":
                        continue
                    _, stream, data, last = frame
                    if stream == streams.get("resize"):
                        spdy.send(streams["stdout"], b"size " + data)
                    elif data:
                        spdy.send(streams["stdout"], data.upper())
                    if last and stream == streams["stdin"] or data == b"exit\n":
                        break
                command = query.get("command", [""])
                status = {"metadata": {}, "status": "Success"}
                if command[0] == "exit":
                    status = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated with exit code " + command[1],
                              "details": {"causes": [{"reason": "ExitCode", "message": command[1]}]}}
                if command[0] == "missing":
                    status = {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": "no such container", "code": 500}
                for name in ("stdout", "stderr"):
                    if name in streams:
                        spdy.send(streams[name], last=True)
                spdy.send(streams["error"], json.dumps(status).encode(), last=True)
                self.connection.settimeout(60)
                while self.connection.recv(65536):
                    pass
                outer.ended.append(container)

            def forward(self):
                """Echoes the data of each connection, with the port in front."""
                spdy = Spdy(self.connection)
                ports = {}
                while True:
                    frame = spdy.frame()
                    if frame[0] == "open":
                        spdy.reply(frame[1])
                        if frame[2]["streamtype"] == "data":
                            ports[frame[1]] = frame[2]["port"]
                        else:
                            spdy.send(frame[1], last=True)
                    elif frame[0] == "data" and frame[1] in ports:
                        data = ports[frame[1]].encode() + b": " + frame[2] if frame[2] else b""
                        spdy.send(frame[1], data, last=frame[3])

            def page(self, path):
                if path.endswith("/redirect"):
                    return self.answer(302, Location="/elsewhere?x=1")
                if path.endswith("/metadata"):
                    return self.answer(302, Location="http://169.254.169.254/latest/meta-data")
                if path.endswith(".html"):
                    return self.answer(200, b'<a href="/top">t</a><a href="near">n</a><script>"<a href=/raw>"</script>',
                                       Content_Type="text/html; charset=utf-8", Access_Control_Allow_Origin="*")
                if path.endswith("/dies"):
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"half")
                    return self.connection.shutdown(socket.SHUT_RDWR)
                if path.endswith("/endless"):
                    self.chunks()
                    while True:
                        self.chunk(b"x" * 65536)
                        outer.sent += 65536
                seen = outer.seen[-1]
                self.answer(200, json.dumps({"method": seen["method"], "raw": seen["raw"], "body": seen["body"].decode(),
                                             "headers": {k.lower(): v for k, v in seen["headers"].items()}}).encode(), Content_Type="application/json")

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # Clients without a certificate, or that do not trust ours.

        self.server = Quiet((address, 0), Handler)
        if not plain:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(os.path.join(folder, "server.crt"), os.path.join(folder, "server.key"))
            tls.load_verify_locations(os.path.join(folder, "ca.crt"))
            tls.verify_mode = ssl.CERT_REQUIRED
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def last(self):
        return self.seen[-1]


class WebSocket(Connection):
    """A client of a WebSocket, on a connected socket."""

    def __init__(self, sock, host, path, protocols, method="GET"):
        offered = f"Sec-WebSocket-Protocol: {', '.join(protocols)}\r\n" if protocols else ""
        sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n{offered}\r\n".encode())
        lines, rest = read_head(sock)
        super().__init__(sock, rest)
        self.code = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}

    def receive(self):
        """-> (opcode, payload)"""
        first, length = self.read(2)
        if length in (126, 127):
            length = int.from_bytes(self.read(2 if length == 126 else 8), "big")
        return first & 15, self.read(length)

    def send(self, payload, first=0x82):
        length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        self.socket.sendall(bytes([first]) + length + b"\0\0\0\0" + payload)

    def messages(self):
        """Until the server closes the WebSocket."""
        found = []
        while True:
            try:
                opcode, payload = self.receive()
            except (EOFError, OSError):
                return found
            if opcode == 8:
                return found
            found.append(payload)
