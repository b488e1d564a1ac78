#!/usr/bin/env python3
"""external_signer_test.py HOLDFAST MOCK_SIGNER: --service-account-signing-endpoint with a signer that the gRPC library serves."""
import base64
import concurrent.futures
import hashlib
import hmac
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from serve import Server

HOLDFAST, MOCK = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ALGORITHMS = {"rsa": "RS256", "p256": "ES256", "p384": "ES384", "p521": "ES512"}


def encode(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Signer:
    """A process that signs; tell() sends it a command of mock_signer.cc and returns the answer."""

    def __init__(self, path, *commands):
        self.path = path
        self.process = subprocess.Popen([MOCK, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the signer does not start")
        for command in commands:
            self.tell(command)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def count(self, method):
        return int(self.tell("count " + method))

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Case(unittest.TestCase):
    """Tests start the signers and servers that they need."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-signer-")
        self.addCleanup(folder.cleanup)
        self.socket = os.path.join(folder.name, "s")

    def start_signer(self, *commands):
        signer = Signer(self.socket, *commands)
        self.addCleanup(signer.stop)
        return signer

    def start_server(self, *flags):
        server = Server(HOLDFAST, flags=["--service-account-signing-endpoint", self.socket, *flags])
        self.addCleanup(server.__exit__)
        server.json("POST", ACCOUNTS, {"metadata": {"name": "a"}}, want=201)
        return server

    def why_not_started(self, *flags):
        server = Server.__new__(Server)
        with self.assertRaises(RuntimeError) as failed:
            server.__init__(HOLDFAST, flags=list(flags))
        server.__exit__()
        return str(failed.exception)

    def ask(self, server, seconds=600, **spec):
        """-> (code, answer, warnings)"""
        code, headers, body = server.request("POST", ACCOUNTS + "/a/token", {"spec": {"expirationSeconds": seconds, **spec}})
        return code, json.loads(body), headers.get_all("Warning") or []

    def token(self, server):
        code, answer, _ = self.ask(server)
        self.assertEqual(code, 201, answer)
        return answer["status"]["token"]

    def refusal(self, server):
        code, answer, _ = self.ask(server)
        self.assertEqual((code, answer.get("reason")), (500, "InternalError"), answer)
        prefix = "Internal error occurred: failed to generate token: "
        self.assertTrue(answer["message"].startswith(prefix), answer)
        return answer["message"][len(prefix):]

    def review(self, server, token):
        return server.json("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}}, want=201)["status"]

    def as_bearer(self, server, token):
        """-> (code, the name of the user): a request with nothing but the token."""
        tls = ssl.create_default_context(cafile=server.data_dir / "pki" / "ca.crt")
        tls.check_hostname = False
        connection = http.client.HTTPSConnection(server.host, context=tls, timeout=60)
        connection.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}",
                           {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body.get("status", {}).get("userInfo", {}).get("username") if answer.status == 201 else None

    def assert_accepted(self, server, token):
        status = self.review(server, token)
        self.assertTrue(status.get("authenticated"), status)
        self.assertEqual(status["user"]["username"], "system:serviceaccount:default:a")
        self.assertEqual(self.as_bearer(server, token), (201, "system:serviceaccount:default:a"))

    def assert_refused(self, server, token):
        self.assertFalse(self.review(server, token).get("authenticated"), token)
        self.assertEqual(self.as_bearer(server, token), (401, None))

    def key_ids(self, server):
        return sorted(key["kid"] for key in server.json("GET", "/openid/v1/jwks")["keys"])

    def metric(self, server, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", server.request("GET", "/metrics")[2].decode(), re.M)
        return found and float(found.group(1))


class Tokens(Case):
    def setUp(self):
        super().setUp()
        self.signer = self.start_signer()
        self.server = self.start_server()

    def test_are_signed_with_every_kind_of_key_and_accepted(self):
        self.signer.tell("keys " + " ".join(f"{key}={key}" for key in ALGORITHMS))
        for key, algorithm in ALGORITHMS.items():
            with self.subTest(key):
                self.signer.tell(f"sign {key} {key} {algorithm}")
                token = self.token(self.server)
                self.assertEqual(decode(token.split(".")[0]), {"alg": algorithm, "kid": key, "typ": "JWT"})
                self.assertEqual(decode(token.split(".")[1])["iss"], "https://kubernetes.default.svc.cluster.local")
                self.assert_accepted(self.server, token)
        configuration = self.server.json("GET", "/.well-known/openid-configuration")
        self.assertEqual(configuration["id_token_signing_alg_values_supported"], ["ES256", "ES384", "ES512", "RS256"])
        self.assertEqual(self.key_ids(self.server), sorted(ALGORITHMS))

    def test_live_no_longer_than_the_signer_supports(self):
        code, answer, warnings = self.ask(self.server, 7200)
        self.assertEqual(code, 201)
        self.assertEqual(warnings, ['299 - "requested expiration of 7200 seconds shortened to 600 seconds"'])
        claims = decode(answer["status"]["token"].split(".")[1])
        self.assertEqual((answer["spec"]["expirationSeconds"], claims["exp"] - claims["iat"]), (600, 600))

    def test_with_a_header_that_is_not_allowed_are_not_given_out(self):
        raw = lambda text: "header " + encode(text.encode())
        for command, why in (
                ("sign rsa kid-1 ABC", 'while validating header: bad signing algorithm "ABC"'),
                ("sign rsa kid-1 none", 'while validating header: bad signing algorithm "none"'),
                ("sign rsa kid-1 HS256", 'while validating header: bad signing algorithm "HS256"'),
                ("sign rsa kid-1 RS256 ABC", "while validating header: bad type"),
                ("sign rsa " + "k" * 1025 + " RS256", "while validating header: key id longer than 1 kb"),
                (raw('{"alg":"RS256","typ":"JWT"}'), "while validating header: key id missing"),
                (raw('{"alg":"RS256","kid":"kid-1","typ":"JWT","jku":"https://x"}'),
                 'while validating header: while parsing header JSON: json: unknown field "jku"'),
                (raw("{"), "while validating header: while parsing header JSON: unexpected end of JSON input"),
                ("header a+b", "while validating header: while unwrapping header: illegal base64 data at input byte 1"),
                ("fail Sign no", "while signing jwt: rpc error: code = PermissionDenied desc = no")):
            with self.subTest(command):
                self.signer.tell(command)
                self.assertEqual(self.refusal(self.server), why)
                for undo in ("sign rsa kid-1 RS256", "header", "fail Sign"):
                    self.signer.tell(undo)
        self.assert_accepted(self.server, self.token(self.server))
        count = lambda code: self.metric(self.server, f'apiserver_externaljwt_sign_request_total{{code="{code}"}}')
        self.assertEqual([count(code) for code in ("unknown-non-grpc", "PermissionDenied", "OK")], [9, 1, 1])
        self.assertEqual(self.metric(self.server, "apiserver_externaljwt_request_duration_seconds_count"
                                                  '{method="/v1.ExternalJWTSigner/Sign",code="PermissionDenied"}'), 1)

    def test_of_keys_that_are_not_for_signing_are_accepted_and_their_key_is_not_shown(self):
        self.signer.tell("sign p256 old ES256")
        token = self.token(self.server)
        self.assert_refused(self.server, token)
        self.signer.tell("keys kid-1=rsa old=p256:unlisted")
        self.assert_accepted(self.server, token)
        self.assertEqual(self.key_ids(self.server), ["kid-1"])
        self.assertEqual(self.server.json("GET", "/.well-known/openid-configuration")["id_token_signing_alg_values_supported"], ["RS256"])
        self.assertEqual(self.refusal(self.server), "while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs")

    def test_of_a_new_key_are_accepted_at_once_and_of_a_replaced_one_until_the_keys_are_fetched(self):
        first = self.token(self.server)
        self.signer.tell("keys kid-2=rsa2")
        self.signer.tell("sign rsa2 kid-2 RS256")
        self.assert_accepted(self.server, first)
        second = self.token(self.server)
        self.assert_accepted(self.server, second)
        self.assertEqual(self.key_ids(self.server), ["kid-2"])
        self.assert_refused(self.server, first)
        # A key of the same name that is another one.
        self.signer.tell("sign rsa kid-2 RS256")
        self.assert_refused(self.server, self.token(self.server))

    def test_that_nobody_signed_are_refused(self):
        good = self.token(self.server)
        header, claims, signature = good.split(".")
        public = base64.urlsafe_b64decode(self.server.json("GET", "/openid/v1/jwks")["keys"][0]["n"] + "==")
        changed = encode({**decode(claims), "sub": "system:serviceaccount:kube-system:x"})

        def with_secret(secret):
            text = encode({"alg": "HS256", "kid": "kid-1", "typ": "JWT"}) + "." + claims
            return text + "." + encode(hmac.new(secret, text.encode(), hashlib.sha256).digest())

        for name, token in (("no signature", f"{encode({'alg': 'none', 'typ': 'JWT'})}.{claims}."),
                            ("no signature, a key id", f"{encode({'alg': 'none', 'kid': 'kid-1', 'typ': 'JWT'})}.{claims}."),
                            ("no signature, an algorithm", f"{header}.{claims}."),
                            ("other claims", f"{header}.{changed}.{signature}"),
                            ("the public key as a secret", with_secret(public)),
                            ("another algorithm for the key", f"{encode({'alg': 'ES256', 'kid': 'kid-1', 'typ': 'JWT'})}.{claims}.{signature}"),
                            ("an unknown key", f"{encode({'alg': 'RS256', 'kid': 'kid-9', 'typ': 'JWT'})}.{claims}.{signature}"),
                            ("a key in the header", f"{encode({'alg': 'RS256', 'jwk': {'kty': 'RSA'}, 'typ': 'JWT'})}.{changed}.{signature}"),
                            ("four parts", good + "." + signature)):
            with self.subTest(name):
                self.assert_refused(self.server, token)
        self.assert_accepted(self.server, good)

    def test_of_an_unknown_key_are_refused_in_the_words_of_kube_apiserver(self):
        header, claims, signature = self.token(self.server).split(".")
        unknown = encode({**decode(header), "kid": "kid-9"})
        self.assertEqual(self.review(self.server, f"{unknown}.{claims}.{signature}"),
                         {"user": {}, "error": "[invalid bearer token, invalid signature, no keys found]"})

    def test_of_other_issuers_do_not_make_the_server_ask_for_keys(self):
        header, claims, signature = self.token(self.server).split(".")
        unknown = encode({"alg": "RS256", "kid": "kid-9", "typ": "JWT"})
        before = self.signer.count("FetchKeys")
        self.assert_refused(self.server, f"{unknown}.{encode({**decode(claims), 'iss': 'https://other'})}.{signature}")
        self.assertEqual(self.signer.count("FetchKeys"), before)
        self.assert_refused(self.server, f"{unknown}.{claims}.{signature}")
        self.assertEqual(self.signer.count("FetchKeys"), before + 2)

    def test_outlive_the_signer_and_a_reload(self):
        token = self.token(self.server)
        self.server.process.send_signal(signal.SIGHUP)
        while "certificates and tokens reloaded" not in self.server.text():
            time.sleep(0.01)
        self.assert_accepted(self.server, token)
        self.signer.stop()
        self.assert_accepted(self.server, token)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(self.token, self.server)
            while "the external signer cannot be reached" not in self.server.text():
                time.sleep(0.01)
            os.unlink(self.socket)
            self.start_signer()  # With other keys.
            self.assertTrue(waiting.result())


class Keys(Case):
    def test_are_fetched_again_when_the_signer_says(self):
        signer = self.start_signer("hint 1")
        server = self.start_server()
        signer.tell("keys")  # Refused: the previous ones stay.
        asked = signer.count("FetchKeys")
        while signer.count("FetchKeys") == asked:
            time.sleep(0.01)
        self.assert_accepted(server, self.token(server))
        fetched = self.metric(server, "apiserver_externaljwt_fetch_keys_data_timestamp")
        self.assertAlmostEqual(fetched, time.time(), delta=120)
        while "found no keys" not in server.text():
            time.sleep(0.01)
        self.assertGreaterEqual(self.metric(server, 'apiserver_externaljwt_fetch_keys_request_total{code="unknown-non-grpc"}'), 1)

    def test_may_be_kept_by_others_until_then(self):
        self.start_signer("hint 1000")
        server = self.start_server()
        for path in ("/openid/v1/jwks", "/.well-known/openid-configuration"):
            found = re.fullmatch(r"public, max-age=(\d+)", server.request("GET", path)[1]["Cache-Control"])
            self.assertTrue(0 < int(found.group(1)) <= 1000, found.group(0))


class Hanging(Case):
    def test_signer_fails_only_the_requests_that_need_it_and_in_time(self):
        signer = self.start_signer()
        server = self.start_server("--request-timeout=3s")
        good = self.token(server)
        signer.tell("hang Sign")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = [pool.submit(self.refusal, server) for _ in range(4)]
            while signer.count("Sign") < 5:
                time.sleep(0.01)
            self.assert_accepted(server, good)
            for one in waiting:
                # The signer's own library may be the first to notice.
                self.assertRegex(one.result(), r"^while signing jwt: rpc error: code = DeadlineExceeded desc = (context deadline exceeded|Deadline Exceeded)$")
        signer.tell("hang FetchKeys")
        _, claims, signature = good.split(".")
        unknown = encode({"alg": "RS256", "kid": "kid-9", "typ": "JWT"}) + f".{claims}.{signature}"
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(self.as_bearer, server, unknown)
            self.assert_accepted(server, good)
            self.assertEqual(waiting.result(), (504, None))


class Start(Case):
    def test_waits_for_the_signer(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            server = Server.__new__(Server)
            starting = pool.submit(server.__init__, HOLDFAST, flags=["--service-account-signing-endpoint", self.socket])
            self.addCleanup(server.__exit__)
            while not (hasattr(server, "log_path") and server.log_path.exists() and "cannot be reached" in server.text()):
                time.sleep(0.01)
            self.start_signer()
            starting.result()
        server.json("POST", ACCOUNTS, {"metadata": {"name": "a"}}, want=201)
        self.assert_accepted(server, self.token(server))

    def test_can_be_given_up_while_waiting(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-signer-") as folder:
            process = subprocess.Popen([HOLDFAST, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0", "--service-account-signing-endpoint",
                                        self.socket], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if "cannot be reached" in line:
                    break
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            process.stderr.close()
            self.assertEqual(process.wait(60), 0)

    def test_tells_what_the_signer_said(self):
        flags = ["--service-account-signing-endpoint", self.socket]
        signer = self.start_signer("fail FetchKeys locked")
        self.assertIn("while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: while fetching "
                      "token verification keys: while getting externally supported jwt signing keys: rpc error: code = PermissionDenied desc = locked",
                      self.why_not_started(*flags))
        signer.tell("fail FetchKeys")
        signer.tell("fail Metadata locked")
        self.assertIn("while setting up external-jwt-signer: rpc error: code = PermissionDenied desc = locked", self.why_not_started(*flags))
        signer.tell("fail Metadata")
        signer.tell("max 599")
        self.assertIn("max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)", self.why_not_started(*flags))
        signer.tell("max 3600")
        self.assertIn("service-account-max-token-expiration cannot be set longer than the token expiration supported by "
                      "service-account-signing-endpoint: 2h0m0s > 1h0m0s", self.why_not_started(*flags, "--service-account-max-token-expiration=2h"))

    def test_refuses_flags_that_contradict_each_other(self):
        for flags, why in (
                (["--service-account-signing-key-file=/k"], "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive "
                                                            "and cannot be set at the same time"),
                (["--service-account-key-file=/k"], "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
                                                    "`--service-account-signing-endpoint` (They are mutually exclusive)"),
                (["--service-account-signing-endpoint=@a..b"], 'invalid value "@a..b" passed for `--service-account-signing-endpoint`, when prefixed '
                                                               "with @ must be a valid abstract socket name")):
            self.assertIn(why, self.why_not_started("--service-account-signing-endpoint=/s", *flags))

    def test_extends_tokens_of_pods_to_what_the_signer_supports(self):
        self.start_signer("max 7200")
        server = self.start_server()
        container = {"name": "c", "image": "i"}
        server.json("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "a", "containers": [container]}}, want=201)
        code, answer, _ = self.ask(server, 3607, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
        self.assertEqual(code, 201, answer)
        claims = decode(answer["status"]["token"].split(".")[1])
        self.assertEqual((claims["exp"] - claims["iat"], claims["kubernetes.io"]["warnafter"] - claims["iat"]), (7200, 3607))
        self.assertIn("tokens validity will be caped at the smaller of 31536000 seconds and maximum token lifetime supported by external-jwt-signer "
                      "(2h0m0s)", server.text())


if __name__ == "__main__":
    unittest.main()
