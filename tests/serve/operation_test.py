#!/usr/bin/env python3
"""Operating a server: its configuration, what it tells service managers and operators, its keys, and how it stops.

operation_test.py PATH/TO/holdfast
"""
import concurrent.futures, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'clients'), os.path.join(HERE, '..', 'store')]
from etcd import Etcd, program as etcd_program
from server import Connection, Server, wait_until
import needs  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'build/release/bin/holdfast'


def run(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-operation-')
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, 'w') as f:
                f.write(text)
        return path

    def server(self, name, *flags, **environment):
        os.makedirs(self.path(name), mode=0o700, exist_ok=True)
        server = Server(BINARY, *flags, data_dir=self.path(name), environment={**os.environ, **environment})
        self.addCleanup(server.stop)
        return server

    def started(self, name, *flags, **environment):
        server = self.server(name, *flags, **environment)
        server.start()
        return server

    def etcd(self):
        if not os.access(etcd_program(), os.X_OK):
            self.skipTest('etcd is not installed')
        etcd = Etcd()
        self.addCleanup(etcd.stop)
        return etcd


class Configuration(Case):
    def check(self, *flags, **environment):
        return run('serve', '--check-config', '--data-dir', self.path('data'), *flags, **environment)

    def test_a_valid_configuration_is_checked_without_a_start(self):
        done = self.check('--config', self.path('config', 'listen = 127.0.0.1:0\n'))
        self.assertEqual((done.returncode, done.stdout), (0, 'The configuration is valid\n'), done.stderr)
        self.assertFalse(os.path.exists(self.path('data')), 'nothing is written')

    def test_files_that_are_named_are_read(self):
        for flag, text, want in (('--audit-policy-file', 'kind: Nope\n', 'is not a Policy'), ('--token-auth-file', 'a,b\n', 'bad'),
                                 ('--client-ca-file', 'junk', 'holds no certificate'), ('--etcd-cafile', None, 'cannot read'),
                                 ('--authorization-config', 'junk', 'AuthorizationConfiguration')):
            with self.subTest(flag=flag):
                done = self.check(flag, self.path('bad', text) if text else self.path('missing'))
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(want, done.stderr)
        self.assertIn('--goaway-chance can not be less than 0 or greater than 0.02', self.check('--goaway-chance=0.5').stderr)
        self.assertIn('--cors-allowed-origins has an invalid value', self.check('--cors-allowed-origins=example.com').stderr)

    def test_flags_of_the_environment_precede_the_file_and_follow_the_command_line(self):
        config = self.path('config', 'service-node-port-range = 1\nevent-ttl = 5x\n')
        done = self.check('--config', config)
        self.assertIn('--event-ttl', done.stderr)
        self.assertEqual(self.check('--config', config, HOLDFAST_SERVE_EVENT_TTL='1h').returncode, 0)
        self.assertIn('--event-ttl', self.check(HOLDFAST_SERVE_EVENT_TTL='6x').stderr)
        self.assertEqual(self.check('--event-ttl=1h', HOLDFAST_SERVE_EVENT_TTL='6x').returncode, 0)

    def test_the_version_lists_what_it_consists_of(self):
        version = json.loads(run('version', '-o', 'json').stdout)
        self.assertEqual(run('version').stdout, f'holdfast {version["version"]} (Kubernetes {version["kubernetesVersion"]})\n')
        self.assertRegex(version['libraries']['openssl'], r'^\d+\.')
        self.assertIn('ManagedFieldsOptOut', version['features'])


class Serving(Case):
    def test_a_service_manager_hears_about_readiness_health_and_the_end(self):
        address = self.path('notify')
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(address)
        manager.settimeout(60)
        server = self.started('data', NOTIFY_SOCKET=address, WATCHDOG_USEC='40000')
        heard = ''
        while 'READY=1' not in heard or 'WATCHDOG=1' not in heard:
            heard += manager.recv(4096).decode() + '\n'
        self.assertIn('STATUS=Serving on https://127.0.0.1:', heard)
        server.process.send_signal(signal.SIGTERM)
        while 'STOPPING=1' not in heard:
            heard += manager.recv(4096).decode() + '\n'
        self.assertEqual(server.process.wait(60), 0)

    def test_two_first_starts_in_one_directory_make_one_set_of_keys(self):
        etcd = self.etcd()
        servers = [self.server(name, '--etcd-servers', etcd.url, '--cert-dir', self.path('pki')) for name in ('a', 'b')]
        with concurrent.futures.ThreadPoolExecutor() as together:
            for started in [together.submit(server.start) for server in servers]:
                started.result()
        authorities = {re.search('certificate-authority-data: (.*)', server.kubeconfig.read_text()).group(1) for server in servers}
        self.assertEqual(len(authorities), 1)
        for server in servers:
            with Connection(server) as connection:
                self.assertEqual(connection.text('GET', '/readyz')[0], 200)

    def test_origins_that_are_allowed_get_cors_headers(self):
        server = self.started('data', '--cors-allowed-origins', r'^https://good\.example$', '--external-hostname', 'api.example')
        with Connection(server) as connection:
            def headers(method, origin):
                connection.connection.request(method, '/version', headers={'Origin': origin})
                answer = connection.connection.getresponse()
                answer.read()
                return answer.status, answer.getheader('access-control-allow-origin')
            self.assertEqual(headers('OPTIONS', 'https://good.example'), (204, 'https://good.example'))
            self.assertEqual(headers('GET', 'https://good.example'), (200, 'https://good.example'))
            self.assertEqual(headers('GET', 'https://good.example.evil')[1], None)
            openid = connection.done('GET', '/.well-known/openid-configuration')
            self.assertRegex(openid['jwks_uri'], r'^https://api\.example:\d+/openid/v1/jwks$')
            self.assertRegex(connection.done('GET', '/api')['serverAddressByClientCIDRs'][0]['serverAddress'], r'^api\.example:\d+$')

    def test_the_delay_of_a_shutdown_serves_as_before_but_is_not_ready(self):
        server = self.started('data', '--shutdown-delay-duration=1h')
        with Connection(server) as connection:
            self.assertEqual(connection.text('GET', '/readyz')[0], 200)
            server.process.send_signal(signal.SIGTERM)
            wait_until('not ready', lambda: connection.text('GET', '/readyz')[0] == 500)
            self.assertEqual(connection.text('GET', '/livez')[0], 200)
            self.assertEqual(connection.text('GET', '/api/v1/namespaces/default')[0], 200)
        server.process.kill()

    def test_requests_that_arrive_while_others_end_are_told_to_retry(self):
        server = self.started('data', '--shutdown-send-retry-after=true', '--shutdown-grace-seconds=600')
        with Connection(server) as slow, Connection(server) as other:
            # A request that is under way until its body ends.
            slow.connection.putrequest('POST', '/api/v1/namespaces/default/configmaps')
            slow.connection.putheader('content-type', 'application/json')
            body = json.dumps({'metadata': {'name': 'late'}}).encode()
            slow.connection.putheader('content-length', str(len(body)))
            slow.connection.endheaders(body[:5])
            wait_until('the request is under way', lambda: re.search(
                r'apiserver_current_inflight_requests\{request_kind="mutating"\} 1', other.text('GET', '/metrics')[1]))
            server.process.send_signal(signal.SIGTERM)
            wait_until('turned away', lambda: other.text('GET', '/api/v1/namespaces')[0] == 429)
            slow.connection.send(body[5:])
            self.assertEqual(slow.connection.getresponse().status, 201)
        self.assertEqual(server.process.wait(60), 0)


class Etcds(Case):
    def test_a_start_waits_for_etcd(self):
        etcd = self.etcd()
        etcd.kill()
        server = self.server('data', '--etcd-servers', etcd.url)
        starting = threading.Thread(target=server.start)
        starting.start()
        wait_until('waits', lambda: server.log_path.exists() and 'WARN waiting for etcd' in server.text())
        etcd.start()
        starting.join()
        self.assertIn('INFO etcd responds', server.text())
        self.assertEqual(server.text().count('waiting for etcd'), 1)

    def test_a_start_that_waits_can_be_stopped(self):
        etcd = self.etcd()
        etcd.kill()
        server = self.server('data', '--etcd-servers', etcd.url)
        with open(server.log_path, 'w') as log:
            process = subprocess.Popen([BINARY, 'serve', '--data-dir', self.path('data'), '--listen=127.0.0.1:0', '--etcd-servers', etcd.url],
                                       stdout=log, stderr=log)
        wait_until('waits', lambda: 'waiting for etcd' in server.text())
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    def test_an_etcd_that_does_not_respond_is_logged_once_and_clients_do_not_learn_its_address(self):
        etcd = self.etcd()
        server = self.started('data', '--etcd-servers', etcd.url)
        with Connection(server) as connection:
            etcd.process.send_signal(signal.SIGSTOP)
            wait_until('logged', lambda: 'ERROR the store does not respond' in server.text())
            self.assertIn('todo=', server.text())
            self.assertEqual(connection.text('GET', '/readyz')[0], 500)
            etcd.process.send_signal(signal.SIGCONT)
            wait_until('logged', lambda: 'INFO the store responds again' in server.text())
            wait_until('ready', lambda: connection.text('GET', '/readyz')[0] == 200)
            etcd.kill()
            code, answer = connection.call('PUT', '/api/v1/namespaces/default', connection_object())
            self.assertGreaterEqual(code, 500)
            self.assertNotIn(str(etcd.port), json.dumps(answer))
        self.assertEqual(server.text().count('the store responds again'), 1)

    def test_servers_with_other_keys_on_one_etcd_are_reported(self):
        etcd = self.etcd()
        first = self.started('a', '--etcd-servers', etcd.url)
        with Connection(first) as connection:
            def lease():
                found = connection.done('GET', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases')['items']
                return any('holdfast/service-account-signing-key' in item['metadata'].get('annotations', {}) for item in found)
            wait_until('the first server names its key', lease)
        same = self.server('b', '--etcd-servers', etcd.url, '--cert-dir', self.path('a/pki'))
        same.start()
        other = self.started('c', '--etcd-servers', etcd.url)
        message = 'service account tokens of another server on this etcd are not accepted here'
        wait_until('the other server reports it', lambda: message in other.text())
        self.assertNotIn(message, same.text().split('\n')[0])


def connection_object():
    return {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'default', 'labels': {'a': 'b'}}}


class Backups(Case):
    def store(self, *words, code=0):
        done = run('store', *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_restored_server_has_the_keys_of_the_first(self):
        first = self.started('a')
        with Connection(first) as connection:
            connection.done('POST', '/api/v1/namespaces/default/serviceaccounts', {'metadata': {'name': 'robot'}})
            token = connection.done('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', {'spec': {}})['status']['token']
        kubeconfig = re.search('certificate-authority-data: (.*)', first.kubeconfig.read_text()).group(1)
        passphrase, backup = self.path('passphrase', 'open sesame\n'), self.path('backup')
        self.assertIn('--without-keys', self.store('backup', '--data-dir', self.path('a'), backup, code=1))
        self.assertFalse(os.path.exists(backup))
        self.assertIn('keys and certificates, encrypted', self.store('backup', '--data-dir', self.path('a'), '--passphrase-file', passphrase, backup))
        with open(backup, 'rb') as f, open(self.path('a/pki/sa.key'), 'rb') as key:
            self.assertNotIn(key.read().split(b'\n')[1], f.read())
        first.stop()
        self.assertIn('nothing is damaged', self.store('check', backup))
        self.assertIn('--passphrase-file', self.store('restore', '--data-dir', self.path('b'), backup, code=1))
        wrong = self.path('wrong', 'open barley')
        self.assertIn('the passphrase is not the one', self.store('restore', '--data-dir', self.path('b'), '--passphrase-file', wrong, backup, code=1))
        self.assertFalse(os.path.exists(self.path('b')))
        self.store('restore', '--data-dir', self.path('b'), '--passphrase-file', passphrase, backup)
        self.assertEqual(os.stat(self.path('b/pki/ca.key')).st_mode & 0o777, 0o600)
        second = self.started('b')
        self.assertEqual(re.search('certificate-authority-data: (.*)', second.kubeconfig.read_text()).group(1), kubeconfig)
        with Connection(second) as connection:
            connection.connection.request('GET', '/api', headers={'Authorization': 'Bearer ' + token})
            self.assertEqual(connection.connection.getresponse().status, 200)
        self.store('restore', '--data-dir', self.path('c'), '--without-keys', backup)
        self.assertFalse(os.path.exists(self.path('c/pki')))


if __name__ == '__main__':
    unittest.main(verbosity=2)
