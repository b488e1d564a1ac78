#!/usr/bin/env python3
"""`holdfast serve` as started by a user: flags, files, certificates, health, signals.

serve_test.py PATH/TO/holdfast
"""
import base64, http.client, json, os, re, shutil, signal, socket, ssl, subprocess, sys, tempfile, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'clients'))
import server  # noqa: E402
import needs  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'build/release/bin/holdfast'


def read(path):
    with open(path) as f:
        return f.read()


def write(path, text, mode='w'):
    with open(path, mode) as f:
        f.write(text)


class Server(server.Server):
    """A server started immediately on FOLDER/data, with requests by any identity."""

    def __init__(self, folder, *flags, env=None):
        self.base = folder
        super().__init__(BINARY, *flags, data_dir=os.path.join(folder, 'data'), log_path=os.path.join(folder, 'log'),
                         environment=env)
        self.start()
        text = self.kubeconfig.read_text()
        self.port = int(re.search(r'server: https://127.0.0.1:(\d+)', text).group(1))
        self.ca = base64.b64decode(re.search(r'certificate-authority-data: (\S+)', text).group(1)).decode()
        self.admin = self.identity(text, 'admin') if 'client-key-data' in text else None

    def identity(self, text, name):
        path = os.path.join(self.base, name + '.pem')
        with open(path, 'wb') as f:
            for member in ('client-certificate-data', 'client-key-data'):
                f.write(base64.b64decode(re.search(member + r': (\S+)', text).group(1)))
        return path

    def connect(self, identity=None):
        context = ssl.create_default_context(cadata=self.ca)
        if identity:
            context.load_cert_chain(identity)
        return http.client.HTTPSConnection('127.0.0.1', self.port, context=context, timeout=60)

    def get(self, path, identity=None, headers=None, method='GET', body=None):
        connection = self.connect(identity)
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body, answer.headers


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.stop(signal.SIGKILL)

    def start(self, *flags):
        server = Server(self.folder, *flags)
        self.servers.append(server)
        return server

    def test_first_start_creates_credentials_and_prints_instructions(self):
        s = self.start()
        end = time.time() + 60
        while f'export KUBECONFIG={s.kubeconfig}' not in s.text():  # Printed when the kubeconfig has been written.
            self.assertLess(time.time(), end, s.text())
        self.assertEqual(os.stat(s.kubeconfig).st_mode & 0o777, 0o600)
        first_ca = s.ca
        self.assertEqual(s.stop(), 0)
        s = self.start()
        self.assertEqual(s.ca, first_ca)
        self.assertEqual(s.get('/readyz', s.admin)[:2], (200, 'ok'))

    def test_only_health_and_version_are_public(self):
        s = self.start()
        for path in ('/healthz', '/livez', '/readyz', '/version'):
            self.assertEqual(s.get(path)[0], 200, path)
        status, body, headers = s.get('/apis')
        self.assertEqual(status, 403)
        self.assertEqual(json.loads(body), {
            'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure',
            'message': 'forbidden: User "system:anonymous" cannot get path "/apis"', 'reason': 'Forbidden',
            'details': {}, 'code': 403})
        self.assertEqual(headers['X-Content-Type-Options'], 'nosniff')
        status, body, _ = s.get('/api/v1/namespaces/default/pods/x/log')
        self.assertIn('pods \\"x\\" is forbidden: User \\"system:anonymous\\" cannot get resource \\"pods/log\\" in API '
                      'group \\"\\" in the namespace \\"default\\"', body)
        self.assertEqual(json.loads(s.get('/version')[1])['minor'], '36')

    def test_the_root_lists_the_served_paths(self):
        s = self.start()
        status, body, headers = s.get('/', s.admin)
        self.assertEqual((status, headers['Content-Type']), (200, 'application/json'))
        paths = json.loads(body)['paths']
        self.assertEqual(paths, sorted(paths))
        for path in ('/api/v1', '/apis/apps/v1', '/openid/v1/jwks', '/readyz/ping', '/openapi/v3'):
            self.assertIn(path, paths)
            self.assertEqual(s.get(path, s.admin)[0], 200, path)

    def test_openid_discovery_of_service_account_issuer(self):
        s = self.start('--service-account-issuer', 'https://issuer.example.com')
        status, body, headers = s.get('/.well-known/openid-configuration', s.admin)
        self.assertEqual((status, headers['Content-Type'], headers['Cache-Control']),
                         (200, 'application/json', 'public, max-age=3600'))
        configuration = json.loads(body)
        self.assertEqual(configuration['issuer'], 'https://issuer.example.com')
        self.assertEqual(configuration['jwks_uri'], f'https://127.0.0.1:{s.port}/openid/v1/jwks')
        status, body, headers = s.get('/openid/v1/jwks', s.admin)
        self.assertEqual((status, headers['Content-Type']), (200, 'application/jwk-set+json'))
        self.assertEqual([key['use'] for key in json.loads(body)['keys']], ['sig'])

    def test_tokens_of_every_issuer_are_accepted_and_the_first_signs(self):
        accounts, json_headers = '/api/v1/namespaces/default/serviceaccounts', {'Content-Type': 'application/json'}

        def token_of(server):
            status, body, _ = server.get(accounts + '/a/token', server.admin, json_headers, 'POST', '{"spec":{}}')
            self.assertEqual(status, 201, body)
            return json.loads(body)['status']['token']

        def answers(server, tokens):
            return [server.get('/api', headers={'Authorization': 'Bearer ' + token})[0] for token in tokens]

        s = self.start('--service-account-issuer', 'https://old.example.com')
        self.assertEqual(s.get(accounts, s.admin, json_headers, 'POST', '{"metadata":{"name":"a"}}')[0], 201)
        old = token_of(s)
        s.stop()
        s = self.start('--service-account-issuer=https://new.example.com', '--service-account-issuer=https://old.example.com')
        new = token_of(s)
        issuers = [json.loads(base64.urlsafe_b64decode(token.split('.')[1] + '=='))['iss'] for token in (old, new)]
        self.assertEqual(issuers, ['https://old.example.com', 'https://new.example.com'])
        self.assertEqual(answers(s, [old, new]), [200, 200])
        s.stop()
        s = self.start('--service-account-issuer=https://new.example.com', '--api-audiences=https://new.example.com,mine')
        self.assertEqual(answers(s, [old, new]), [401, 200])

    def test_the_server_holds_a_lease_unless_its_gate_is_off(self):
        leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver'
        s = self.start()
        end = time.time() + 120
        while not (found := json.loads(s.get(leases, s.admin)[1])['items']):
            self.assertLess(time.time(), end, 'there is no lease')
            time.sleep(0.05)
        lease, = found
        self.assertRegex(lease['metadata']['name'], '^apiserver-[a-z2-7]{26}$')
        self.assertEqual(lease['metadata']['labels']['kubernetes.io/hostname'], os.uname().nodename)
        self.assertRegex(lease['spec']['holderIdentity'], '^' + lease['metadata']['name'] + '_[0-9a-f-]{36}$')
        self.assertEqual(lease['spec']['leaseDurationSeconds'], 3600)
        s.stop()
        shutil.rmtree(os.path.join(self.folder, 'data'))
        off = self.start('--feature-gates=APIServerIdentity=false')
        time.sleep(1.3)  # After the time when it would have been created.
        self.assertEqual(json.loads(off.get(leases, off.admin)[1])['items'], [])

    def test_verbose_health_lists_checks(self):
        s = self.start()
        status, body, headers = s.get('/readyz?verbose', s.admin)
        self.assertEqual(status, 200)
        self.assertTrue(body.startswith('[+]ping ok\n[+]log ok\n[+]etcd ok\n'), body)
        self.assertTrue(body.endswith('[+]shutdown ok\nreadyz check passed\n'), body)
        self.assertEqual(headers['Content-Type'], 'text/plain; charset=utf-8')
        self.assertEqual(s.get('/readyz/etcd', s.admin)[:2], (200, 'ok'))
        self.assertEqual(s.get('/readyz/nosuch', s.admin)[:2], (404, '404 page not found\n'))

    def test_tokens_and_their_reload(self):
        tokens = os.path.join(self.folder, 'tokens.csv')
        write(tokens, 'secret,root,1,"system:masters"\n')
        s = self.start('--token-auth-file', tokens)
        self.assertEqual(s.get('/metrics', headers={'Authorization': 'Bearer secret'})[0], 200)
        status, body, _ = s.get('/healthz', headers={'Authorization': 'Bearer other'})
        self.assertEqual(status, 401)
        self.assertEqual(json.loads(body), {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure',
                                            'message': 'Unauthorized', 'reason': 'Unauthorized', 'code': 401})
        write(tokens, 'other,root,1,"system:masters"\n')
        s.process.send_signal(signal.SIGHUP)
        end = time.time() + 60
        while s.get('/healthz', headers={'Authorization': 'Bearer other'})[0] != 200:
            self.assertLess(time.time(), end)
        self.assertEqual(s.get('/healthz', headers={'Authorization': 'Bearer secret'})[0], 401)
        # An unreadable file changes nothing.
        write(tokens, 'too,short\n')
        s.process.send_signal(signal.SIGHUP)
        while 'not reloaded' not in s.text():
            self.assertLess(time.time(), end)
        self.assertEqual(s.get('/healthz', headers={'Authorization': 'Bearer other'})[0], 200)

    def authority(self, name):
        """A CA in NAME.crt; -> a function that signs the certificate of a subject and returns the path of a file with it and its key."""
        def openssl(*arguments):
            subprocess.run(['openssl', *arguments], check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
        openssl('req', '-x509', *curve, '-keyout', name + '.key', '-out', name + '.crt', '-days', '2', '-subj', '/CN=' + name)

        def sign(subject, use='clientAuth', file='client'):
            openssl('req', *curve, '-keyout', file + '.key', '-out', file + '.csr', '-subj', subject)
            write(os.path.join(self.folder, 'extensions'), 'extendedKeyUsage=' + use + '\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n')
            openssl('x509', '-req', '-in', file + '.csr', '-CA', name + '.crt', '-CAkey', name + '.key', '-CAcreateserial', '-days', '2',
                    '-out', file + '.crt', '-extfile', 'extensions')
            path = os.path.join(self.folder, file + '.pem')
            write(path, read(os.path.join(self.folder, file + '.crt')) + read(os.path.join(self.folder, file + '.key')))
            return path
        return sign

    def test_a_client_ca_of_the_operator_replaces_the_generated_one(self):
        s = self.start()
        old = s.admin
        self.assertEqual(s.get('/api/v1/nodes', old)[0], 200)
        self.assertEqual(s.stop(), 0)
        admin = self.authority('mine')('/O=system:masters/CN=me')
        s = self.start('--client-ca-file', os.path.join(self.folder, 'mine.crt'))
        self.assertEqual(s.get('/api/v1/nodes', admin)[0], 200)
        self.assertEqual(s.get('/api/v1/nodes', old)[0], 401, 'the generated CA is not trusted any more')
        pki = os.path.join(self.folder, 'data', 'pki')
        self.assertEqual([f for f in os.listdir(pki) if f.startswith('admin')], [], 'no administrator of the generated CA')
        self.assertIsNone(s.admin)
        bundle = json.loads(s.get('/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication', admin)[1])['data']
        self.assertEqual(bundle['client-ca-file'].count('BEGIN CERTIFICATE'), 2, 'what is published keeps what other servers published')
        result = subprocess.run([BINARY, 'kubeconfig', '--data-dir', os.path.join(self.folder, 'data'), '--user', 'x'],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn('--client-ca-file', result.stderr)

    def test_nothing_is_generated_that_the_operator_has_given(self):
        self.authority('mine')('/CN=kube-apiserver', 'serverAuth', 'serving')
        sign = self.authority('clients')
        s = self.start('--client-ca-file', os.path.join(self.folder, 'clients.crt'), '--tls-cert-file', os.path.join(self.folder, 'serving.crt'),
                       '--tls-private-key-file', os.path.join(self.folder, 'serving.key'), '--root-ca-file', os.path.join(self.folder, 'mine.crt'))
        pki = os.path.join(self.folder, 'data', 'pki')
        self.assertEqual([f for f in os.listdir(pki) if f.startswith(('ca.', 'admin', 'apiserver'))], [])
        self.assertEqual(s.ca, read(os.path.join(self.folder, 'mine.crt')), 'the kubeconfig names the root CA')
        admin = sign('/O=system:masters/CN=me')
        end = time.time() + 60
        while True:
            published = json.loads(s.get('/api/v1/namespaces/default/configmaps/kube-root-ca.crt', admin)[1])
            if 'data' in published:
                break
            self.assertLess(time.time(), end, published)
        self.assertEqual(published['data']['ca.crt'], s.ca)

    def test_the_end_of_a_chain_is_what_clients_verify(self):
        self.authority('mine')('/CN=kube-apiserver', 'serverAuth', 'serving')
        chain = os.path.join(self.folder, 'chain.crt')
        write(chain, read(os.path.join(self.folder, 'serving.crt')) + read(os.path.join(self.folder, 'mine.crt')))
        s = self.start('--tls-cert-file', chain, '--tls-private-key-file', os.path.join(self.folder, 'serving.key'))
        self.assertEqual(s.ca, read(os.path.join(self.folder, 'mine.crt')))
        self.assertEqual(s.get('/api/v1/nodes', s.admin)[0], 200)

    def test_files_that_change_are_read_again(self):
        tokens = os.path.join(self.folder, 'tokens.csv')
        write(tokens, 'secret,root,1,"system:masters"\n')
        sign = self.authority('mine')
        sign('/CN=first', 'serverAuth', 'serving')
        s = self.start('--token-auth-file', tokens, '--tls-cert-file', os.path.join(self.folder, 'serving.crt'), '--tls-private-key-file',
                       os.path.join(self.folder, 'serving.key'), '--root-ca-file', os.path.join(self.folder, 'mine.crt'))
        write(tokens + '.new', 'other,root,1,"system:masters"\n')
        os.rename(tokens + '.new', tokens)
        end = time.time() + 60
        while s.get('/healthz', headers={'Authorization': 'Bearer other'})[0] != 200:
            self.assertLess(time.time(), end)

        def served():
            with socket.create_connection(('127.0.0.1', s.port)) as raw:
                with ssl.create_default_context(cadata=s.ca).wrap_socket(raw, server_hostname='127.0.0.1') as tls:
                    return dict(pair[0] for pair in tls.getpeercert()['subject'])['commonName']
        self.assertEqual(served(), 'first')
        sign('/CN=second', 'serverAuth', 'serving')
        while served() != 'second':
            self.assertLess(time.time(), end)

    def test_signals_of_go_tools_do_not_end_it(self):
        s = self.start()
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            s.process.send_signal(number)
            self.assertEqual(s.get('/healthz', s.admin)[:2], (200, 'ok'))

    def test_a_renewed_certificate_is_in_the_kubeconfig(self):
        s = self.start()
        pki = os.path.join(self.folder, 'data', 'pki')
        before = s.kubeconfig.read_text()
        for file in ('admin.crt', 'admin.key'):
            os.remove(os.path.join(pki, file))
        s.process.send_signal(signal.SIGHUP)
        end = time.time() + 60
        while s.kubeconfig.read_text() == before:
            self.assertLess(time.time(), end)
        self.assertEqual(s.get('/api/v1/nodes', s.identity(s.kubeconfig.read_text(), 'renewed'))[0], 200)

    def test_a_reload_is_all_or_nothing(self):
        tokens = os.path.join(self.folder, 'tokens.csv')
        write(tokens, 'secret,root,1,"system:masters"\n')
        s = self.start('--token-auth-file', tokens)
        keys = lambda: s.get('/openid/v1/jwks', headers={'Authorization': 'Bearer secret'})[1]
        before = keys()
        # Another service account key, and an unreadable file.
        pki = os.path.join(self.folder, 'data', 'pki')
        subprocess.run(['openssl', 'ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', os.path.join(pki, 'sa.key')], check=True)
        subprocess.run(['openssl', 'ec', '-in', os.path.join(pki, 'sa.key'), '-pubout', '-out', os.path.join(pki, 'sa.pub')],
                       check=True, stderr=subprocess.DEVNULL)
        write(tokens, 'too,short\n')
        s.process.send_signal(signal.SIGHUP)
        end = time.time() + 60
        while 'certificates not reloaded' not in s.text():
            self.assertLess(time.time(), end)
        self.assertEqual(keys(), before)
        write(tokens, 'secret,root,1,"system:masters"\n')
        s.process.send_signal(signal.SIGHUP)
        while keys() == before:
            self.assertLess(time.time(), end)

    def test_a_start_that_fails_late_stops_everything_it_started(self):
        data = os.path.join(self.folder, 'data')
        os.makedirs(os.path.join(data, 'kubeconfig', 'in-the-way'))
        result = self.run_serve('--data-dir', data, '--listen', '127.0.0.1:0')
        self.assertEqual(result.returncode, 1, result)
        self.assertIn(os.path.join(data, 'kubeconfig'), result.stderr)
        self.assertNotIn('assert', result.stderr.lower())

    def test_cleartext_on_a_local_socket_in_addition_to_tls(self):
        tokens = os.path.join(self.folder, 'tokens.csv')
        write(tokens, 'secret,root,1,"system:masters"\n')
        path = os.path.join(self.folder, 'clear.sock')
        s = self.start('--token-auth-file', tokens, '--listen-cleartext', 'unix:' + path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

        def ask(line, *headers):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(60)
                client.connect(path)
                client.sendall('\r\n'.join([line + ' HTTP/1.1', 'host: x', 'connection: close', *headers, '', '']).encode())
                answer = b''
                while piece := client.recv(65536):
                    answer += piece
            return answer.decode()

        self.assertIn(' 200 ', ask('GET /api/v1/namespaces/default', 'authorization: Bearer secret').split('\r\n')[0])
        self.assertIn(' 403 ', ask('GET /api/v1/namespaces/default').split('\r\n')[0])
        with socket.socket(socket.AF_UNIX) as client:  # HTTP/2 with prior knowledge: the server's first frame is SETTINGS.
            client.settimeout(60)
            client.connect(path)
            client.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            self.assertEqual(client.recv(9)[3], 4)
        self.assertEqual(s.get('/readyz', s.admin)[:2], (200, 'ok'))
        self.assertEqual(s.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_additional_users_by_certificate(self):
        s = self.start()
        text = subprocess.check_output([BINARY, 'kubeconfig', '--data-dir', os.path.join(self.folder, 'data'), '--user',
                                        'bob', '--group', 'dev'], text=True)
        bob = s.identity(text, 'bob')
        status, body, _ = s.get('/metrics', bob)
        self.assertEqual(status, 403)
        self.assertIn('User \\"bob\\" cannot get path', body)
        text = subprocess.check_output([BINARY, 'kubeconfig', '--data-dir', os.path.join(self.folder, 'data'), '--user',
                                        'root', '--group', 'system:masters'], text=True)
        self.assertEqual(s.get('/metrics', s.identity(text, 'root'))[0], 200)

    def test_roles_grant_permissions(self):
        s = self.start()
        text = subprocess.check_output([BINARY, 'kubeconfig', '--data-dir', os.path.join(self.folder, 'data'), '--user',
                                        'bob'], text=True)
        bob = s.identity(text, 'bob')
        path = '/api/v1/namespaces/default/configmaps'
        self.assertEqual(s.get(path, bob)[0], 403)
        group = {'apiVersion': 'rbac.authorization.k8s.io/v1'}
        rules = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/'
        for kind, plural, members in (
                ('Role', 'roles', {'rules': [{'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['list']}]}),
                ('RoleBinding', 'rolebindings',
                 {'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Role', 'name': 'reader'},
                  'subjects': [{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'User', 'name': 'bob'}]})):
            body = json.dumps({**group, 'kind': kind, 'metadata': {'name': 'reader'}, **members})
            self.assertEqual(s.get(rules + plural, s.admin, {'Content-Type': 'application/json'}, 'POST', body)[0], 201)
        end = time.time() + 60
        while s.get(path, bob)[0] != 200:
            self.assertLess(time.time(), end)
        self.assertEqual(s.get('/api/v1/namespaces/kube-system/configmaps', bob)[0], 403)
        self.assertEqual(s.get(rules + 'rolebindings/reader', s.admin, method='DELETE')[0], 200)
        while s.get(path, bob)[0] != 403:
            self.assertLess(time.time(), end)

    def test_authorization_config_file(self):
        config = os.path.join(self.folder, 'authorization.yaml')

        def name(*types):
            lines = [f'- {{type: {type}, name: {type.lower()}}}' for type in types]
            write(config, '\n'.join(['apiVersion: apiserver.config.k8s.io/v1', 'kind: AuthorizationConfiguration', 'authorizers:', *lines]))

        flags = ('--data-dir', os.path.join(self.folder, 'other'), '--authorization-config', config)
        name('RBAC', 'ABAC')
        self.assertIn("authorization-mode ABAC's authorization policy file not passed", self.run_serve(*flags).stderr)
        self.assertIn('cannot specify --authorization-policy-file without mode ABAC',
                      self.run_serve(*flags[:2], '--authorization-policy-file', config).stderr)
        name('rbac')
        self.assertIn('authorizers[0].type: Unsupported value: "rbac"', self.run_serve(*flags).stderr)
        name('RBAC')
        self.assertIn('--authorization-config can not be specified when --authorization-mode',
                      self.run_serve(*flags, '--authorization-mode=RBAC').stderr)
        s = self.start('--authorization-config', config)
        self.assertEqual((s.get('/healthz')[0], s.get('/api/v1/nodes')[0]), (200, 403))
        self.assertEqual(s.stop(), 0)
        name('RBAC', 'AlwaysAllow')
        s = self.start('--authorization-config', config)
        self.assertEqual(s.get('/api/v1/nodes')[0], 200)

    def test_reads_bypass_a_disabled_watch_cache(self):
        s = self.start('--watch-cache=false')
        page = json.loads(s.get('/api/v1/namespaces?resourceVersion=0&limit=1', s.admin)[1])
        self.assertEqual((len(page['items']), page['metadata']['remainingItemCount']), (1, 3))

    def test_cbor_is_served_unless_its_gate_is_off(self):
        definition = {'metadata': {'name': 'foos.example.com'},
                      'spec': {'group': 'example.com', 'scope': 'Cluster', 'names': {'plural': 'foos', 'kind': 'Foo'},
                               'versions': [{'name': 'v1', 'served': True, 'storage': True,
                                             'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]}}
        foo = b'\xa3japiVersionnexample.com/v1dkindcFoohmetadata\xa1dnamea%d'
        foos, nodes = '/apis/example.com/v1/foos', '/api/v1/nodes'
        json_headers = {'Content-Type': 'application/json'}

        def codes(s, name):
            connection = s.connect(s.admin)
            found = []
            for method, path, body in (('POST', foos, foo % name), ('GET', foos, None), ('GET', nodes, None), ('GET', '/apis', None)):
                connection.request(method, path, body=body, headers={'Content-Type' if body else 'Accept': 'application/cbor'})
                answer = connection.getresponse()
                found.append((answer.status, answer.getheader('content-type')))
                answer.read()
            connection.close()
            return found

        s = self.start()
        self.assertEqual(s.get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', s.admin, json_headers, 'POST', json.dumps(definition))[0], 201)
        self.assertEqual(codes(s, 1)[:3], [(201, 'application/json'), (200, 'application/cbor'), (200, 'application/cbor')])
        self.assertEqual(s.stop(), 0)
        s = self.start('--feature-gates=CBORServingAndStorage=false')
        self.assertEqual([code for code, _ in codes(s, 2)], [415, 406, 406, 406])
        self.assertEqual({kind for _, kind in codes(s, 2)}, {'application/json'})

    def test_initial_objects_are_created_once(self):
        s = self.start()
        names = [n['metadata']['name'] for n in json.loads(s.get('/api/v1/namespaces', s.admin)[1])['items']]
        self.assertEqual(names, ['default', 'kube-node-lease', 'kube-public', 'kube-system'])
        service = json.loads(s.get('/api/v1/namespaces/default/services/kubernetes', s.admin)[1])
        self.assertEqual(service['spec']['clusterIP'], '10.0.0.1')
        self.assertEqual(s.stop(), 0)
        s = self.start()
        again = json.loads(s.get('/api/v1/namespaces/default/services/kubernetes', s.admin)[1])
        self.assertEqual(again['metadata']['uid'], service['metadata']['uid'])

    def test_a_beta_version_is_served_on_request(self):
        group = '/apis/admissionregistration.k8s.io/'
        service = '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.admissionregistration.k8s.io'
        policy = {'apiVersion': 'admissionregistration.k8s.io/v1beta1', 'kind': 'MutatingAdmissionPolicy', 'metadata': {'name': 'p'},
                  'spec': {'matchConstraints': {'resourceRules': [{'apiGroups': [''], 'apiVersions': ['v1'], 'operations': ['CREATE'], 'resources': ['configmaps']}]},
                           'reinvocationPolicy': 'Never',
                           'mutations': [{'patchType': 'JSONPatch', 'jsonPatch': {'expression': '[JSONPatch{op: "add", path: "/data", value: {"added": "yes"}}]'}}]}}
        binding = {'apiVersion': 'admissionregistration.k8s.io/v1beta1', 'kind': 'MutatingAdmissionPolicyBinding', 'metadata': {'name': 'p'},
                   'spec': {'policyName': 'p'}}

        def versions(s):
            return [v['version'] for v in json.loads(s.get(group.rstrip('/'), s.admin)[1])['versions']]

        def post(s, path, body):
            status, text, _ = s.get(path, s.admin, {'Content-Type': 'application/json'}, 'POST', json.dumps(body))
            return status, json.loads(text)

        s = self.start()
        self.assertEqual((versions(s), s.get(service, s.admin)[0]), (['v1'], 404))
        self.assertEqual(post(s, group + 'v1beta1/mutatingadmissionpolicies', policy)[0], 404)
        self.assertEqual(s.stop(), 0)
        s = self.start('--runtime-config=admissionregistration.k8s.io/v1beta1=true')
        self.assertEqual((versions(s), s.get(service, s.admin)[0]), (['v1', 'v1beta1'], 200))
        resources = json.loads(s.get(group + 'v1beta1', s.admin)[1])['resources']
        self.assertEqual([r['name'] for r in resources], ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'])
        for plural, body in (('mutatingadmissionpolicies', policy), ('mutatingadmissionpolicybindings', binding)):
            self.assertEqual(post(s, group + 'v1beta1/' + plural, body)[0], 201)
            beta, stable = (json.loads(s.get(f'{group}{version}/{plural}/p', s.admin)[1]) for version in ('v1beta1', 'v1'))
            self.assertEqual(beta.pop('apiVersion'), 'admissionregistration.k8s.io/v1beta1')
            self.assertEqual(stable.pop('apiVersion'), 'admissionregistration.k8s.io/v1')
            self.assertEqual(beta, stable)
        made = post(s, '/api/v1/namespaces/default/configmaps', {'metadata': {'name': 'c'}})
        self.assertEqual((made[0], made[1].get('data')), (201, {'added': 'yes'}))
        self.assertEqual(s.stop(), 0)
        # Without the flag the version is gone, but its objects are not.
        s = self.start()
        self.assertEqual((versions(s), s.get(service, s.admin)[0]), (['v1'], 404))
        kept = json.loads(s.get(group + 'v1/mutatingadmissionpolicies/p', s.admin)[1])
        self.assertEqual((kept['apiVersion'], kept['metadata']['managedFields'][0]['apiVersion']),
                         ('admissionregistration.k8s.io/v1', 'admissionregistration.k8s.io/v1beta1'))

    def test_disabled_versions_and_resources_are_not_served_and_lose_nothing(self):
        deployments, classes = '/apis/apps/v1/deployments', '/apis/scheduling.k8s.io/v1/priorityclasses'
        drivers = '/apis/storage.k8s.io/v1/csidrivers'
        service = '/apis/apiregistration.k8s.io/v1/apiservices/v1.apps'

        def groups(s):
            return [g['name'] for g in json.loads(s.get('/apis', s.admin)[1])['groups']]

        s = self.start()
        body = {'metadata': {'name': 'w'}, 'spec': {'selector': {'matchLabels': {'a': 'b'}}, 'template': {
            'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}
        status, made, _ = s.get('/apis/apps/v1/namespaces/default/deployments', s.admin, {'Content-Type': 'application/json'}, 'POST', json.dumps(body))
        self.assertEqual(status, 201)
        self.assertEqual(s.stop(), 0)
        s = self.start('--runtime-config=apps/v1=false,scheduling.k8s.io/v1=false,storage.k8s.io/v1/storageclasses=false')
        for path in (deployments, '/apis/apps/v1', '/apis/apps', classes):
            status, text, headers = s.get(path, s.admin)
            self.assertEqual((status, text, headers['Content-Type']), (404, '404 page not found\n', 'text/plain; charset=utf-8'), path)
        self.assertEqual([g for g in groups(s) if g in ('apps', 'batch', 'scheduling.k8s.io')], ['batch'])
        self.assertNotIn('apis/apps/v1', json.loads(s.get('/openapi/v3', s.admin)[1])['paths'])
        self.assertEqual(s.get(service, s.admin)[0], 404)
        self.assertEqual(s.get(drivers, s.admin)[0], 200)
        status, text, _ = s.get('/apis/storage.k8s.io/v1/storageclasses', s.admin)
        self.assertEqual((status, json.loads(text)['message']), (404, 'the server could not find the requested resource'))
        # Admission still uses what is not served.
        pod = {'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}], 'priorityClassName': 'system-cluster-critical'}}
        status, text, _ = s.get('/api/v1/namespaces/kube-system/pods?dryRun=All', s.admin, {'Content-Type': 'application/json'}, 'POST', json.dumps(pod))
        self.assertEqual((status, json.loads(text).get('spec', {}).get('priority')), (201, 2000000000), text)
        self.assertEqual(s.stop(), 0)
        s = self.start()
        self.assertEqual(s.get('/apis/apps/v1/namespaces/default/deployments/w', s.admin)[1], made)
        self.assertEqual(s.get(service, s.admin)[0], 200)

    def test_stopping_ends_watches(self):
        s = self.start()
        connection = s.connect(s.admin)
        self.addCleanup(connection.close)
        connection.request('GET', '/api/v1/namespaces?watch=true')
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        begin = time.time()
        self.assertEqual(s.stop(), 0)
        self.assertLess(time.time() - begin, 9)
        answer.read()  # Ends properly, not cut off.

    def test_certificates_of_an_unknown_ca_are_unauthorized(self):
        s = self.start()
        stranger = os.path.join(self.folder, 'stranger.pem')
        subprocess.check_call(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                               '-keyout', stranger + '.key', '-out', stranger, '-subj', '/O=system:masters/CN=me'],
                              stderr=subprocess.DEVNULL)
        write(stranger, read(stranger + '.key'), 'a')
        self.assertEqual(s.get('/healthz', stranger)[0], 401)

    def test_invalid_timeouts_are_reported(self):
        s = self.start()
        status, body, _ = s.get('/version?timeout=abc')
        self.assertEqual(status, 400)
        self.assertEqual(json.loads(body)['message'],
                         'invalid timeout specified in the request URL - time: invalid duration "abc"')
        for timeout in ('0s', '1h', '-5s', '10s'):
            self.assertEqual(s.get('/version?timeout=' + timeout)[0], 200)

    def test_audit_ids_are_echoed_or_generated(self):
        s = self.start()
        self.assertEqual(s.get('/healthz', headers={'Audit-ID': 'mine'})[2]['Audit-Id'], 'mine')
        self.assertRegex(s.get('/healthz')[2]['Audit-Id'], r'^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$')

    def test_metrics_count_requests(self):
        s = self.start()
        for _ in range(3):
            s.get('/healthz')
        body = s.get('/metrics', s.admin)[1]
        self.assertIn('apiserver_request_total{verb="GET",dry_run="",group="",version="",resource="",'
                      'subresource="/healthz",scope="",component="",code="200"} 3\n', body)
        self.assertRegex(body, r'\nprocess_resident_memory_bytes \d')

    def test_stopping_without_requests_is_immediate(self):
        s = self.start()
        idle = s.connect(s.admin)
        idle.request('GET', '/healthz')
        idle.getresponse().read()
        self.addCleanup(idle.close)
        begin = time.time()
        self.assertEqual(s.stop(), 0)
        self.assertLess(time.time() - begin, 9)  # Requests in flight would get ten seconds.

    def test_two_servers_cannot_share_a_data_dir(self):
        s = self.start()
        second = self.run_serve('--data-dir', os.path.join(self.folder, 'data'), '--listen', '127.0.0.1:0')
        self.assertEqual(second.returncode, 1)
        self.assertEqual(len(second.stderr.strip().split('\n')), 1, second.stderr)
        self.assertEqual(s.get('/healthz')[0], 200)
        self.assertTrue(os.path.exists(s.kubeconfig), 'the first one is still ready')

    def run_serve(self, *flags):
        return subprocess.run([BINARY, 'serve', *flags], capture_output=True, text=True, timeout=120)

    def test_mistakes_are_one_line_and_exit_1(self):
        data = os.path.join(self.folder, 'd')
        missing = os.path.join(self.folder, 'missing')
        junk = os.path.join(self.folder, 'junk')
        write(junk, 'junk')
        for flags, want in (
                (('--nope',), 'unknown flag --nope'),
                ((), '--data-dir is needed'),
                (('--data-dir', data, '--listen', 'nonsense'), 'cannot listen on "nonsense"'),
                (('--data-dir', data, '--listen', '127.0.0.1:99999'), 'the port must be a number from 0 to 65535'),
                (('--data-dir', data, '--listen-cleartext', '0.0.0.0:0'), 'only a loopback address'),
                (('--data-dir', data, '--feature-gates', 'Nope=true'), 'unknown feature gate Nope; known: ManagedFieldsOptOut'),
                (('--data-dir', data, '--feature-gates', 'DropAnyField=maybe'), 'DropAnyField'),
                (('--data-dir', data, '--token-auth-file', missing), 'cannot read ' + missing),
                (('--data-dir', data, '--client-ca-file', junk), junk + ' holds no certificate'),
                (('--data-dir', data, '--tls-cert-file', junk), 'must be given together'),
                (('--data-dir', data, '--tls-cert-file', junk, '--tls-private-key-file', junk), 'certificate'),
                (('--data-dir', data, '--authorization-mode', 'Nope'), '--authorization-mode Nope is not known'),
                (('--data-dir', data, '--enable-admission-plugins', 'Priority,Nope'),
                 'enable-admission-plugins plugin "Nope" is unknown'),
                (('--data-dir', data, '--disable-admission-plugins', 'Nope'),
                 'disable-admission-plugins plugin "Nope" is unknown'),
                (('--data-dir', data, '--request-timeout', '5'), '--request-timeout: time: missing unit'),
                (('--data-dir', data, '--service-node-port-range', '9-1'), '--service-node-port-range: "9-1" is not'),
                (('--data-dir', data, '--strict-transport-security-directives', 'always'),
                 '--strict-transport-security-directives invalid'),
                (('--data-dir', data, '--event-ttl', '5x'), '--event-ttl: time: unknown unit "x"'),
                (('--data-dir', junk), junk),
                (('--data-dir', data, '--advertise-address', 'here'), '--advertise-address "here" is not an IP address'),
                (('--data-dir', data, '--service-cluster-ip-range', '10.0.0.0'), '--service-cluster-ip-range'),
                (('--config', missing, '--data-dir', data), missing),
                (('--config', junk, '--data-dir', data), junk + ' line 1: a line must be name = value')):
            with self.subTest(flags=flags):
                result = self.run_serve(*flags)
                self.assertEqual(result.returncode, 1, result)
                self.assertIn(want, result.stderr)
                self.assertEqual(len(result.stderr.strip().split('\n')), 1, result.stderr)

    def test_request_flags_take_effect(self):
        s = self.start('--strict-transport-security-directives', 'max-age=1,preload', '--enable-admission-plugins',
                       'AlwaysPullImages', '--service-account-jwks-uri', 'https://keys.example/jwks',
                       '--service-node-port-range', '31000-31000', '--min-request-timeout', '1')
        connection = s.connect(s.admin)
        connection.request('GET', '/healthz')
        answer = connection.getresponse()
        self.assertEqual(answer.getheader('strict-transport-security'), 'max-age=1; preload')
        answer.read()
        self.assertEqual(json.loads(s.get('/.well-known/openid-configuration', s.admin)[1])['jwks_uri'],
                         'https://keys.example/jwks')
        container = {'name': 'c', 'image': 'i', 'imagePullPolicy': 'Never'}
        pod = {'metadata': {'name': 'p'}, 'spec': {'containers': [container], 'automountServiceAccountToken': False}}
        headers = {'content-type': 'application/json'}
        status, body = s.get('/api/v1/namespaces/default/pods', s.admin, headers, 'POST', json.dumps(pod))[:2]
        self.assertEqual(status, 201, body)
        self.assertEqual(json.loads(body)['spec']['containers'][0]['imagePullPolicy'], 'Always')
        service = {'metadata': {'name': 's'}, 'spec': {'type': 'NodePort', 'ports': [{'port': 80}]}}
        status, body = s.get('/api/v1/namespaces/default/services', s.admin, headers, 'POST', json.dumps(service))[:2]
        self.assertEqual(json.loads(body)['spec']['ports'][0]['nodePort'], 31000)
        # Ends on its own after a second or two.
        self.assertEqual(s.get('/api/v1/nodes?watch=1', s.admin)[0], 200)

    def test_flags_from_a_config_file(self):
        config = os.path.join(self.folder, 'config')
        write(config, '# who may\nauthorization-mode = "AlwaysAllow"\nlisten: nonsense\n')
        s = self.start('--config', config)  # Its --listen wins.
        # Not 403 as with RBAC: AlwaysAllow disables anonymous requests.
        self.assertEqual(s.get('/metrics')[0], 401)

    def test_help_lists_the_gates(self):
        result = subprocess.run([BINARY, 'serve', '--help'], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0)
        for word in ('--data-dir', '--etcd-servers', 'RetainAllManagers', 'Feature gates', 'SIGHUP'):
            self.assertIn(word, result.stdout)

    @unittest.skipUnless(needs.kubectl(), needs.NO_KUBECTL)
    def test_kubectl_reads_the_version(self):
        s = self.start()
        out = subprocess.check_output([needs.kubectl(), '--kubeconfig', s.kubeconfig, 'version', '-o', 'json'], text=True,
                                      stderr=subprocess.DEVNULL)
        self.assertTrue(json.loads(out)['serverVersion']['gitVersion'].startswith('v1.36.'))


if __name__ == '__main__':
    unittest.main(verbosity=2)
