"""An HTTPS server with configurable responses: webhooks, conversion, an aggregated API. Standard library and openssl."""
import http.server, itertools, json, os, ssl, subprocess, sys, threading, traceback


def make_certificate(folder, names="DNS:localhost,DNS:hook.default.svc,IP:127.0.0.1"):
    """ca.crt, and tls.crt and tls.key signed by it."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=hook-ca")
    openssl("req", *curve, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=hook")
    with open(os.path.join(folder, "extensions"), "w") as f:
        f.write(f"subjectAltName={names}\n")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", "tls.crt", "-extfile", "extensions")


class HookServer:
    """`hooks.on("/path", lambda review: answer)`; a handler returns a dict, (code, bytes) or (code, pieces). hooks.seen has
    the requests."""

    def __init__(self, folder, client_ca=None):
        make_certificate(folder)
        with open(os.path.join(folder, "ca.crt"), "rb") as f:
            self.ca = f.read()
        self.handlers, self.seen, self.connections = {}, [], 0
        self.upgrade = None  # Called for upgrade requests, with the request, the socket and its input stream.
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections += 1

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.split("?")[0]
                review = json.loads(body) if body else None
                certificate = self.connection.getpeercert()
                outer.seen.append({"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "all_headers": self.headers,
                                   "review": review, "certificate": certificate})
                if outer.upgrade and self.headers.get("Upgrade"):
                    self.close_connection = True
                    return outer.upgrade(outer.seen[-1], self.connection, self.rfile)
                handler = outer.handlers.get(path) or outer.handlers.get("*")
                answer = handler(review if handler is not outer.handlers.get("*") else outer.seen[-1]) if handler else (404, b"no such hook")
                code, data, *kind = answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())
                self.send_response(code)
                self.send_header("Content-Type", kind[0] if kind else "application/json" if code == 200 else "text/plain")
                if not isinstance(data, bytes):  # Chunks, as in a watch.
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for piece in itertools.chain(data, [b""]):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    return
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = serve

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                if not isinstance(sys.exc_info()[1], OSError):  # Clients that do not trust the certificate disconnect.
                    traceback.print_exc()

        self.server = Quiet(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key"))
        if client_ca:
            tls.load_verify_locations(client_ca)
            tls.verify_mode = ssl.CERT_OPTIONAL
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def on(self, path, handler):
        self.handlers[path] = handler

    def take(self):
        seen, self.seen = self.seen, []
        return seen

    def url(self, path):
        return f"https://127.0.0.1:{self.port}{path}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
