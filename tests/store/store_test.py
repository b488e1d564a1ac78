#!/usr/bin/env python3
"""`holdfast store copy|check|backup|restore|list|delete` as used on the command line, between running servers and a real etcd.

store_test.py PATH/TO/holdfast
"""
import json, os, shutil, subprocess, sys, tempfile, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'clients')]
from etcd import Etcd
from server import Connection, Holdfast, Server

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'build/release/bin/holdfast'

OBJECTS = '''
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: b}
'''
WIDGET = '{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 1}}'


class StoreCommands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-store-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        path = os.path.join(self.folder, name)
        return path

    def store(self, *words, fails=False):
        done = subprocess.run([BINARY, 'store', *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1 if fails else 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def serve(self, name, *flags):
        data = self.path(name)
        os.makedirs(data, exist_ok=True)
        server = Server(BINARY, *flags, data_dir=data)
        self.addCleanup(server.stop)
        server.start()
        return server, Holdfast(server, self.path('cache-' + name))

    def etcd(self):
        etcd = Etcd()
        self.addCleanup(etcd.stop)
        return etcd

    def filled(self):
        """A running server with various objects."""
        server, client = self.serve('a', '--controllers=none')
        client.run('apply', '--server-side', '--field-manager=me', '-f', '-', stdin=OBJECTS)
        client.run('wait', '--for=condition=established', 'crd/widgets.example.com')
        client.run('create', '-f', '-', stdin=WIDGET)
        return server, client

    def everything(self, client, revisions=True):
        """The objects as seen by users, including ownership, except for the one to which every server adds its own
        certificates."""
        out = {}
        for kind in ('deployments', 'configmaps', 'namespaces', 'crds', 'clusterroles', 'services', 'widgets'):
            items = client.json('get', kind, '-A', '--show-managed-fields')['items']
            for item in items:
                if item['metadata']['name'] == 'extension-apiserver-authentication':
                    continue
                if not revisions:
                    item['metadata'].pop('resourceVersion')
                out[kind, item['metadata'].get('namespace'), item['metadata']['name']] = item
        return out

    def test_a_backup_of_a_running_server_is_restored_with_its_revisions(self):
        server, client = self.filled()
        want = self.everything(client)
        backup = self.path('backup')
        self.assertRegex(self.store('backup', '--data-dir', self.path('a'), '--without-keys', backup), r'backup: \d+ objects, .* at revision \d+\n$')
        self.assertIn('exists already', self.store('backup', '--data-dir', self.path('a'), '--without-keys', backup, fails=True))
        client.run('delete', 'configmap', 'one')
        self.assertIn('nothing is damaged', self.store('check', backup))
        self.assertIn('nothing is damaged', self.store('check', self.path('a')))
        self.assertIn('is not empty', self.store('restore', '--data-dir', self.path('a'), backup, fails=True))
        self.store('restore', '--data-dir', self.path('b'), backup)
        _, client = self.serve('b', '--controllers=none')
        self.assertEqual(self.everything(client), want)

    def listed(self, *words):
        """The sizes by key."""
        header, *lines = self.store('list', '--data-dir', self.path('a'), *words).splitlines()
        self.assertEqual(header.split(), ['REVISION', 'BYTES', 'KEY'])
        return {key: int(size) for _, size, key in (line.split(maxsplit=2) for line in lines)}

    def test_an_object_is_deleted_while_the_server_is_stopped(self):
        server, client = self.filled()
        with Connection(server) as connection:
            connection.done('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles',
                            {'metadata': {'name': 'a\x1b[31m\u202e"'}})
        key = '/registry/configmaps/default/one'
        for words in (('list',), ('delete', key)):
            self.assertIn('is in use by process', self.store(words[0], '--data-dir', self.path('a'), *words[1:], fails=True))
        before = client.json('get', 'configmap', 'one')['metadata']['resourceVersion']
        server.stop()
        keys = self.listed()
        self.assertGreater(keys[key], 50)
        self.assertIn('/registry/deployments/default/web', keys)
        self.assertEqual(list(keys), sorted(keys, key=lambda key: key.strip('"')))
        self.assertEqual(list(self.listed('/registry/configmaps/default/')),
                         [k for k in keys if k.startswith('/registry/configmaps/default/')])
        # Names cannot control the terminal, and can be given as they are shown.
        shown = '"/registry/roles/default/a\\u001b[31m\\u202e\\""'
        self.assertIn(shown, keys)
        self.assertIn('there is no key', self.store('delete', '--data-dir', self.path('a'), key + 'x', fails=True))
        out = self.store('delete', '--data-dir', self.path('a'), key, shown)
        self.assertEqual(out.count('\n'), 2)
        revision = int(out.split('revision ')[1].split()[0])
        self.assertGreater(revision, int(before))
        self.assertEqual(set(keys) - set(self.listed()), {key, shown})
        self.assertIn('nothing is damaged', self.store('check', self.path('a')))
        server.start()
        with Connection(server) as connection:
            self.assertEqual(connection.call('GET', '/api/v1/namespaces/default/configmaps/one')[0], 404)
            web = connection.done('GET', '/apis/apps/v1/namespaces/default/deployments/web')
            self.assertEqual(web['spec']['replicas'], 2)
            created = connection.done('POST', '/api/v1/namespaces/default/configmaps', {'metadata': {'name': 'one'}})
            self.assertGreater(int(created['metadata']['resourceVersion']), revision)

    def test_managers_stored_before_they_were_validated_do_not_lock_an_object(self):
        etcd = self.etcd()
        server, _ = self.serve('on-etcd', '--etcd-servers', etcd.url, '--controllers=none')
        path = '/api/v1/namespaces/default/configmaps'
        with Connection(server) as connection:
            connection.done('POST', path + '?fieldManager=forged-name', {'metadata': {'name': 'old'}, 'data': {'a': 'b'}})
        server.stop()
        key = '/registry/configmaps/default/old'
        good = etcd.values()[key][0]
        self.assertIn(b'forged-name', good)
        etcd.put(key, good.replace(b'forged-name', b'forged\x1bname'))
        server.start()
        with Connection(server) as connection:
            found = connection.done('GET', path + '/old')
            self.assertEqual([entry['manager'] for entry in found['metadata']['managedFields']], ['forged\x1bname'])
            changed = connection.done('PATCH', path + '/old', {'data': {'c': 'd'}}, 'application/merge-patch+json')
            self.assertEqual(len(changed['metadata']['managedFields']), 2)
            changed['data']['e'] = 'f'
            changed = connection.done('PUT', path + '/old', changed)
            # Others are not accepted, and none for a new object.
            changed['metadata']['managedFields'].append(dict(changed['metadata']['managedFields'][0], manager='more\x1b'))
            code, answer = connection.call('PUT', path + '/old', changed)
            self.assertEqual(code, 422, answer)
            self.assertEqual({cause['field'] for cause in answer['details']['causes']}, {'metadata.managedFields[1].manager'})
            new = {'metadata': {'name': 'new', 'managedFields': found['metadata']['managedFields']}}
            self.assertEqual(connection.call('POST', path, new)[0], 422)

    def test_objects_of_old_versions_are_read_and_written_in_the_version_of_today(self):
        etcd = self.etcd()
        old = {
            '/registry/poddisruptionbudgets/default/b': {'apiVersion': 'policy/v1beta1', 'kind': 'PodDisruptionBudget', 'spec': {'selector': {}}},
            '/registry/cronjobs/default/c': {'apiVersion': 'batch/v1beta1', 'kind': 'CronJob', 'spec': {
                'schedule': '* * * * *', 'jobTemplate': {'spec': {'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}}}}},
            '/registry/ingress/default/i': {'apiVersion': 'extensions/v1beta1', 'kind': 'Ingress', 'spec': {'backend': {'serviceName': 's', 'servicePort': 80}}},
            '/registry/services/specs/default/s': {'apiVersion': 'v1', 'kind': 'Service', 'spec': {'clusterIP': '10.0.0.44', 'ports': [{'port': 80}]}}}
        for key, value in old.items():
            name = key.rsplit('/', 1)[1]
            metadata = {'name': name, 'namespace': 'default', 'uid': 'u-' + name, 'creationTimestamp': '2020-01-01T00:00:00Z'}
            etcd.put(key, json.dumps({**value, 'metadata': metadata}).encode())
        outdated = ['policy/v1beta1 PodDisruptionBudget: 1 stored', 'batch/v1beta1 CronJob: 1 stored', 'extensions/v1beta1 Ingress: 1 stored']
        checked = self.store('check', etcd.url)
        for text in outdated + ['nothing is damaged']:
            self.assertIn(text, checked)
        server, client = self.serve('old', '--etcd-servers', etcd.url, '--controllers=none')
        paths = {'b': '/apis/policy/v1/namespaces/default/poddisruptionbudgets/b', 'c': '/apis/batch/v1/namespaces/default/cronjobs/c',
                 'i': '/apis/networking.k8s.io/v1/namespaces/default/ingresses/i', 's': '/api/v1/namespaces/default/services/s'}
        with Connection(server) as connection:
            live = {name: connection.done('GET', path) for name, path in paths.items()}
            self.assertEqual(live['b']['spec']['selector']['matchExpressions'][0]['operator'], 'Exists')
            self.assertEqual(live['i']['spec']['defaultBackend'], {'service': {'name': 's', 'port': {'number': 80}}})
            self.assertEqual([live['s']['spec'][key] for key in ('clusterIPs', 'ipFamilies', 'ipFamilyPolicy')], [['10.0.0.44'], ['IPv4'], 'SingleStack'])
            self.assertEqual(connection.done('GET', '/apis/networking.k8s.io/v1/ipaddresses/10.0.0.44')['spec']['parentRef']['name'], 's')
            for name, path in paths.items():
                if name == 'b':  # Also a write that changes nothing.
                    connection.done('PUT', path, live[name])
                else:
                    connection.done('PATCH', path, {'metadata': {'labels': {'a': 'b'}}}, 'application/merge-patch+json')
                self.assertEqual(connection.done('GET', path)['spec'], live[name]['spec'])
        checked = self.store('check', etcd.url)
        for text in outdated:
            self.assertNotIn(text, checked)
        self.assertIn(b'policy/v1', etcd.values('/registry/poddisruptionbudgets/')['/registry/poddisruptionbudgets/default/b'][0])

    def test_objects_move_to_an_etcd_and_back(self):
        server, client = self.filled()
        want = self.everything(client, revisions=False)
        before = max(int(item['metadata']['resourceVersion']) for item in self.everything(client).values())
        server.stop()
        etcd = self.etcd()
        self.store('copy', '--from', self.path('a'), '--to', etcd.url)
        self.assertIn('is not empty', self.store('copy', '--from', self.path('a'), '--to', etcd.url, fails=True))
        self.assertIn('nothing is damaged', self.store('check', etcd.url))
        # As written by kube-apiserver: nothing of our own format is left.
        for key, (value, _) in etcd.values().items():
            self.assertNotIn(b'holdfast/', value, key)
            self.assertNotIn(b'FieldsV2', value, key)
        server, client = self.serve('on-etcd', '--etcd-servers', etcd.url, '--controllers=none')
        self.assertEqual(self.everything(client, revisions=False), want)
        after = min(int(item['metadata']['resourceVersion']) for item in self.everything(client).values())
        self.assertGreater(after, before, 'revisions grow')
        client.run('delete', 'configmap', 'one')
        want = self.everything(client, revisions=False)
        self.store('copy', '--from', etcd.url, '--to', self.path('home'))
        server.stop()
        _, client = self.serve('home', '--controllers=none')
        self.assertEqual(self.everything(client, revisions=False), want)
        client.run('apply', '--server-side', '--field-manager=me', '-f', '-', stdin=OBJECTS)

    def test_damage_is_reported(self):
        etcd = self.etcd()
        server, client = self.serve('on-etcd', '--etcd-servers', etcd.url, '--controllers=none')
        client.create_config_map('whole')
        server.stop()
        good = etcd.values()['/registry/configmaps/default/whole'][0]
        etcd.put('/registry/configmaps/default/cut', good[:-20])
        etcd.put('/registry/configmaps/default/moved', good)
        etcd.put('/registry/example.com/widgets/default/w', b'{')
        out = self.store('check', etcd.url, fails=True)
        self.assertIn('/registry/configmaps/default/moved: it holds the object default/whole\n', out)
        for key in ('/registry/configmaps/default/cut: ', '/registry/example.com/widgets/default/w: '):
            self.assertIn('\n' + key, '\n' + out)
        self.assertNotIn('default/whole: ', out)
        self.assertIn(': 3 problems\n', out)

    def test_options_stored_in_a_custom_object_are_removed_on_read(self):
        """metadata.options belongs to requests; an older server stored it when a webhook had added it."""
        etcd = self.etcd()
        server, client = self.serve('on-etcd', '--etcd-servers', etcd.url, '--controllers=none')
        client.run('apply', '--server-side', '--field-manager=me', '-f', '-', stdin=OBJECTS)
        client.run('wait', '--for=condition=established', 'crd/widgets.example.com')
        client.run('create', '--field-manager=maker', '-f', '-', stdin=WIDGET)
        key = '/registry/example.com/widgets/default/w'
        stored = json.loads(etcd.values()[key][0])
        stored['metadata']['options'] = {'fieldManager': 'somebody', 'bogus': 'x'}
        shown = lambda: client.json('get', 'widgets', 'w', '--show-managed-fields')['metadata']
        before = shown()['resourceVersion']
        etcd.put(key, json.dumps(stored).encode())
        self.assertNotEqual(shown()['resourceVersion'], before)
        self.assertNotIn('options', shown())
        self.assertEqual([entry['manager'] for entry in shown()['managedFields']], ['maker'])
        client.patch('/apis/example.com/v1/namespaces/default/widgets/w?fieldManager=patcher', {'spec': {'n': 2}})
        self.assertEqual({entry['manager'] for entry in shown()['managedFields']}, {'maker', 'patcher'})
        self.assertNotIn('options', json.loads(etcd.values()[key][0])['metadata'])

    def test_health_reports_when_etcd_is_unavailable(self):
        etcd = self.etcd()
        server, client = self.serve('on-etcd', '--etcd-servers', etcd.url, '--controllers=none')
        self.assertIn('[+]etcd ok\n', client.run('get', '--raw', '/readyz?verbose'))
        etcd.kill()
        end = time.time() + 120
        while '[-]etcd failed: reason withheld' not in client.run('get', '--raw', '/readyz', fails=None):
            self.assertLess(time.time(), end)
        client.run('get', '--raw', '/livez', fails=True)
        etcd.start()
        end = time.time() + 120
        while '[+]etcd ok' not in client.run('get', '--raw', '/livez?verbose', fails=None):
            self.assertLess(time.time(), end)
        client.create_config_map('again')
        metrics = client.run('get', '--raw', '/metrics')
        for name in ('cache_objects', 'cache_body_raw_bytes', 'ownership_bytes', 'ownership_raw_bytes'):
            self.assertRegex(metrics, r'\nholdfast_' + name + r'(\{[^}]*\})? [1-9]')

    def test_resources_may_be_stored_in_another_etcd(self):
        main, other = self.etcd(), self.etcd()
        elsewhere = f'/events#{other.url},apps/deployments#{other.url}'
        server, client = self.serve('parted', '--etcd-servers', main.url, '--etcd-servers-overrides', elsewhere,
                                     '--controllers=garbage-collector')
        event = {'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'e'}, 'involvedObject': {'kind': 'Pod', 'name': 'p', 'namespace': 'default'},
                 'reason': 'R', 'type': 'Normal', 'source': {'component': 'c'}, 'reportingComponent': 'c', 'reportingInstance': 'i', 'action': 'A'}
        client.run('create', '-f', '-', stdin=json.dumps(event))
        client.run('create', '-f', '-', stdin=OBJECTS)
        client.patch('/apis/apps/v1/namespaces/default/deployments/web/scale', {'spec': {'replicas': 3}})
        kinds = lambda etcd: {key.split('/')[2] for key in etcd.values()}
        self.assertEqual(kinds(other), {'events', 'deployments'})
        self.assertIn('configmaps', kinds(main))
        self.assertFalse(kinds(main) & {'events', 'deployments'})
        self.assertEqual(client.run('get', 'events', '-o', 'name').split(), ['event/e'])
        self.assertEqual(client.run('get', 'deployments', '-o', 'jsonpath={.items[*].spec.replicas}'), '3')
        uid = client.json('get', 'deployment', 'web')['metadata']['uid']
        owner = {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'name': 'web', 'uid': uid, 'blockOwnerDeletion': True}
        client.run('create', '-f', '-', stdin=json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'owned', 'ownerReferences': [owner]}}))
        client.run('delete', 'deployment', 'web', '--cascade=foreground', '--timeout=60s')
        self.assertNotIn('owned', client.run('get', 'configmaps', '-o', 'name'))
        healthy = client.run('get', '--raw', '/readyz?verbose')
        self.assertIn('[+]etcd-override-0 ok\n', healthy)
        self.assertNotIn('etcd-override-1', healthy)
        other.kill()
        end = time.time() + 120
        while '[-]etcd-override-0 failed: reason withheld' not in client.run('get', '--raw', '/readyz', fails=None):
            self.assertLess(time.time(), end)
        self.assertIn('[+]etcd ok', client.run('get', '--raw', '/readyz', fails=None))
        client.create_config_map('beside')
        server.stop()

    def test_a_server_waiting_for_unreadable_data_can_be_stopped(self):
        etcd = self.etcd()
        etcd.put('/registry/configmaps/default/secret', b'k8s:enc:aescbc:v1:key:nonsense')
        log = self.path('log')
        with open(log, 'w') as out:
            process = subprocess.Popen([BINARY, 'serve', '--data-dir', self.path('data'), '--etcd-servers', etcd.url,
                                        '--listen', '127.0.0.1:0'], stdout=out, stderr=out)
        self.addCleanup(process.kill)

        def said():
            with open(log) as text:
                return text.read()

        end = time.time() + 120
        while 'is encrypted (k8s:enc:)' not in said():
            self.assertLess(time.time(), end, said())
            self.assertIsNone(process.poll(), said())
            time.sleep(0.02)
        process.terminate()
        self.assertEqual(process.wait(30), 0, said())

    def test_flipped_bits_in_an_embedded_store_are_detected(self):
        server, _ = self.filled()
        server.stop()
        files = [os.path.join(self.path('a'), 'store', f) for f in os.listdir(os.path.join(self.path('a'), 'store'))]
        largest = max((f for f in files if f.endswith(('.log', '.sst'))), key=os.path.getsize)
        with open(largest, 'r+b') as f:
            f.seek(os.path.getsize(largest) // 2)
            byte = f.read(1)[0]
            f.seek(-1, 1)
            f.write(bytes([byte ^ 0x10]))
        self.assertIn('problems', self.store('check', self.path('a'), fails=True))

    def test_mistakes_are_one_line(self):
        for words, want in (
                (('check', self.path('nothing')), 'there is no store'),
                (('copy', '--from', self.path('nothing'), '--to', self.path('b')), 'there is no store'),
                (('copy', '--from', self.path('nothing')), '--to is required'),
                (('check', 'http://127.0.0.1:1'), '127.0.0.1:1'),
                (('list', '--data-dir', self.path('nothing')), 'there is no store'),
                (('delete', '--data-dir', self.path('nothing'), '/registry/x'), 'there is no store'),
                (('delete', '--data-dir', self.path('nothing')), 'key is required'),
                (('restore', '--data-dir', self.path('b'), self.path('nothing')), self.path('nothing')),
                ((), 'subcommand')):
            with self.subTest(words=words):
                out = self.store(*words, fails=True)
                self.assertIn(want, out)
                self.assertEqual(out.count('\n'), 1, out)


if __name__ == '__main__':
    unittest.main(verbosity=1)
