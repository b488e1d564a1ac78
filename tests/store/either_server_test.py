#!/usr/bin/env python3
"""Each server starts on the data of the other: a real kube-apiserver and Holdfast, in turn, on one etcd.

kube-apiserver writes objects of every kind. Holdfast reads them all as kube-apiserver returned them, rewrites them without
changes (nothing may be written), and changes and creates some; a second kube-apiserver, on a copy of the etcd, gets the same
requests. The contents of the two etcds must then be identical bytes, except for times and uids. Finally kube-apiserver
starts on the data written by Holdfast and reads it all.

either_server_test.py PATH/TO/holdfast
"""
import copy, glob, json, os, re, shutil, sys, tempfile, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'clients')]
from etcd import Etcd
from peer import TOKEN, Api, KubeApiserver
from server import Server as Holdfast
import needs

VECTORS = os.path.join(HERE, '..', 'vectors')
NS = 'either'
# Written by the servers themselves, at any time.
OWN = re.compile(r'^/registry/(masterleases|peerserverleases|leases/kube-system|events|ranges|ipaddresses|apiregistration.k8s.io|services/endpoints/default/'
                 r'kubernetes|endpointslices/default/kubernetes|flowschemas|prioritylevelconfigurations|configmaps/kube-system)')

DEFINITIONS = [
    {'plural': 'gadgets', 'kind': 'Gadget', 'versions': [
        {'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': {
            'type': 'object', 'properties': {'spec': {'type': 'object', 'properties': {
                'size': {'type': 'integer', 'default': 3}, 'note': {'type': 'string', 'description': '<a & b>'},
                'list': {'type': 'array', 'items': {'type': 'string'}, 'x-kubernetes-list-type': 'set'}}},
                'status': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}},
         'subresources': {'status': {}}, 'additionalPrinterColumns': [
             {'name': 'Size', 'type': 'integer', 'jsonPath': '.spec.size'}]}]},
    {'plural': 'gizmos', 'kind': 'Gizmo', 'versions': [
        {'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': {
            'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}},
         'additionalPrinterColumns': [{'name': 'A', 'type': 'string', 'jsonPath': '.a', 'priority': 1}]},
        {'name': 'v2', 'served': True, 'storage': False, 'deprecated': True, 'schema': {'openAPIV3Schema': {
            'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}, 'subresources': {'status': {}},
         'selectableFields': []}]},
]
CUSTOM = [
    ('gadgets', {'kind': 'Gadget', 'apiVersion': 'either.example.com/v1', 'metadata': {'name': 'g'},
                 'spec': {'note': '<x> & "y" \u00e9', 'list': ['b', 'a']}}),
    ('gizmos', {'kind': 'Gizmo', 'apiVersion': 'either.example.com/v1', 'metadata': {'name': 'z', 'labels': {'b': '1', 'a': '2'}},
                'deep': {'z': 1.5, 'a': [1, {'y': None, 'x': True}], 'big': 12345678901234567}}),
]


# As written by users: the server adds the defaults.
MINIMAL = [
    ('/api/v1/namespaces/either/pods', {'kind': 'Pod', 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}),
    ('/api/v1/namespaces/either/services', {'kind': 'Service', 'spec': {
        'clusterIP': '10.0.0.149', 'selector': {'a': 'b'}, 'ports': [{'port': 80}]}}),
    ('/api/v1/namespaces/either/persistentvolumeclaims', {'kind': 'PersistentVolumeClaim', 'spec': {
        'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}),
    ('/api/v1/persistentvolumes', {'kind': 'PersistentVolume', 'spec': {
        'accessModes': ['ReadWriteOnce'], 'capacity': {'storage': '1Gi'}, 'hostPath': {'path': '/x'}}}),
    ('/api/v1/nodes', {'kind': 'Node'}),
    ('/api/v1/namespaces', {'kind': 'Namespace'}),
    ('/api/v1/namespaces/either/secrets', {'kind': 'Secret', 'stringData': {'a': 'b'}}),
    ('/api/v1/namespaces/either/replicationcontrollers', {'kind': 'ReplicationController', 'spec': {'template': {
        'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}),
    ('/apis/apps/v1/namespaces/either/deployments', {'kind': 'Deployment', 'spec': {
        'selector': {'matchLabels': {'a': 'b'}}, 'template': {
            'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}),
    ('/apis/apps/v1/namespaces/either/statefulsets', {'kind': 'StatefulSet', 'spec': {
        'serviceName': 's', 'selector': {'matchLabels': {'a': 'b'}}, 'template': {
            'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}},
        'volumeClaimTemplates': [{'metadata': {'name': 'v'}, 'spec': {
            'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}]}}),
    ('/apis/apps/v1/namespaces/either/daemonsets', {'kind': 'DaemonSet', 'spec': {
        'selector': {'matchLabels': {'a': 'b'}}, 'template': {
            'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}),
    ('/apis/batch/v1/namespaces/either/cronjobs', {'kind': 'CronJob', 'spec': {'schedule': '* * * * *', 'jobTemplate': {
        'spec': {'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}}}}}),
    ('/apis/autoscaling/v1/namespaces/either/horizontalpodautoscalers', {'kind': 'HorizontalPodAutoscaler', 'spec': {
        'maxReplicas': 3, 'scaleTargetRef': {'kind': 'Deployment', 'name': 'd'}}}),
    ('/apis/networking.k8s.io/v1/namespaces/either/networkpolicies', {'kind': 'NetworkPolicy', 'spec': {'podSelector': {}}}),
    ('/apis/storage.k8s.io/v1/storageclasses', {'kind': 'StorageClass', 'provisioner': 'p'}),
    ('/apis/storage.k8s.io/v1/csidrivers', {'kind': 'CSIDriver', 'spec': {}}),
    ('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {'kind': 'ClusterRoleBinding', 'roleRef': {
        'kind': 'ClusterRole', 'name': 'r'}, 'subjects': [{'kind': 'User', 'name': 'u'}]}),
    ('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', {'kind': 'MutatingWebhookConfiguration'}),
    ('/apis/policy/v1/namespaces/either/poddisruptionbudgets', {'kind': 'PodDisruptionBudget', 'spec': {'maxUnavailable': 1}}),
    ('/apis/coordination.k8s.io/v1/namespaces/either/leases', {'kind': 'Lease'}),
]


def bare(vector):
    """Makes an object that was read creatable."""
    value = copy.deepcopy(vector)
    metadata = value['metadata']
    for name in ('uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields', 'selfLink', 'deletionTimestamp',
                 'deletionGracePeriodSeconds', 'ownerReferences', 'finalizers', 'generateName'):
        metadata.pop(name, None)
    for name in ('clusterIP', 'clusterIPs', 'healthCheckNodePort'):
        value.get('spec', {}).pop(name, None) if isinstance(value.get('spec'), dict) else None
    for port in (value.get('spec') or {}).get('ports', []) if value['kind'] == 'Service' else []:
        port.pop('nodePort', None)
    return value


def resources(api):
    """{(apiVersion, kind): (collection path, namespaced)}"""
    found = {}
    groups = [('v1', '/api/v1')] + [(g['preferredVersion']['groupVersion'], '/apis/' + g['preferredVersion']['groupVersion'])
                                    for g in api.get('/apis')['groups']]
    for version, path in groups:
        for r in api.get(path)['resources']:
            if '/' not in r['name'] and 'create' in r['verbs'] and 'list' in r['verbs']:
                found[version, r['kind']] = (path, r['name'], r['namespaced'])
    return found


TIME = re.compile(rb'"(time|creationTimestamp|lastTransitionTime)":"[^"]*"')
STAMP = re.compile(rb'([\x22\x42])\x08\x08.{5}\x10\x00', re.S)
UID = re.compile(rb'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')


def timeless(value):
    value = UID.sub(b'<uid>', TIME.sub(rb'"\1":"T"', value))
    return STAMP.sub(lambda found: found.group(1) + b'<time>', value)


def parted(a, b):
    """Two values, starting shortly before they differ."""
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    # Lengths of enclosing messages differ first; the actual difference is before the longest common suffix.
    end = next((i for i, (x, y) in enumerate(zip(a[::-1], b[::-1])) if x != y), min(len(a), len(b)))
    return f'{len(a)} and {len(b)} bytes; until {at}, before the last {end}: {a[-end - 150:len(a) - end + 30]} and {b[-end - 150:len(b) - end + 30]}'


class EitherServer(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-either-')
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.path = lambda name: os.path.join(self.folder, name)

    def start_etcd(self, data=None):
        etcd = Etcd(os.path.join(PEER, 'etcd'), data)
        self.addCleanup(etcd.stop)
        return etcd

    def start_peer(self, etcd, name='peer'):
        peer = KubeApiserver(os.path.join(PEER, 'kube-apiserver'), etcd, self.path(name))
        self.addCleanup(peer.stop)
        return peer

    def start_holdfast(self, etcd):
        data = self.path('holdfast')
        os.makedirs(data)
        with open(self.path('tokens.csv'), 'w') as f:
            f.write(TOKEN + ',admin,admin,"system:masters"\n')
        server = Holdfast(BINARY, '--etcd-servers', etcd.url, '--feature-gates=OwnershipAPI=false', '--controllers=none', '--token-auth-file', self.path('tokens.csv'),
                          '--disable-admission-plugins=ServiceAccount,Priority', data_dir=data)
        self.addCleanup(server.stop)
        server.start()
        server.api = Api(server.url())
        return server

    def create_everything(self, api):
        """Paths of the objects that could be created."""
        kinds = resources(api)
        code, value = api.call('POST', '/api/v1/namespaces', {'metadata': {'name': NS}})
        self.assertEqual(code, 201, value)
        made = []
        for file in sorted(glob.glob(os.path.join(VECTORS, '*.json'))):
            with open(file) as f:
                vector = json.load(f)
            kind = kinds.get((vector.get('apiVersion'), vector.get('kind')))
            if kind is None or vector['kind'] in ('Namespace', 'Event', 'CustomResourceDefinition', 'APIService') or 'metadata' not in vector:
                continue
            path, plural, namespaced = kind
            value = bare(vector)
            if not value['metadata'].get('name'):
                continue
            value['metadata'].pop('namespace', None)
            collection = f'{path}/namespaces/{NS}/{plural}' if namespaced else f'{path}/{plural}'
            code, answer = api.call('POST', collection + '?fieldManager=maker', value)
            if code == 201:
                made.append(f'{collection}/{value["metadata"]["name"]}')
        for definition in DEFINITIONS:
            names = {'plural': definition['plural'], 'kind': definition['kind'], 'shortNames': [definition['plural'][:3]]}
            code, answer = api.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=maker', {
                'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
                'metadata': {'name': definition['plural'] + '.either.example.com'},
                'spec': {'group': 'either.example.com', 'scope': 'Namespaced', 'names': names, 'versions': definition['versions']}})
            self.assertEqual(code, 201, answer)
            made.append(f'/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition["plural"]}.either.example.com')
        for plural, value in CUSTOM:
            collection = f'/apis/either.example.com/v1/namespaces/{NS}/{plural}'
            end = time.time() + 30
            while True:
                code, answer = api.call('POST', collection + '?fieldManager=maker', value)
                if code == 201 or time.time() > end:
                    break
                time.sleep(0.1)
            self.assertEqual(code, 201, answer)
            made.append(f'{collection}/{value["metadata"]["name"]}')
        return made

    def rewrite(self, api, paths):
        """Writes each object back as read."""
        for path in paths:
            value = api.get(path)
            code, answer = api.call('PUT', path + '?fieldManager=maker', value)
            self.assertIn(code, (200,), (path, answer))

    def change(self, api, paths):
        """The same writes with changes, for either server."""
        refused, addresses = [], 0
        for path in paths:
            if path.endswith('-raw'):
                continue  # A patch would reorder its members, which are immutable.
            now = api.get(path)
            code, answer = api.call('PATCH', path + '?fieldManager=changer', {'metadata': {'labels': {'changed': 'yes'}}},
                                    'application/merge-patch+json')
            if code != 200:
                refused.append((path, code))
            applied = {'apiVersion': now['apiVersion'], 'kind': now['kind'],
                       'metadata': {'name': path.rsplit('/', 1)[1], 'annotations': {'applied': 'yes'}}}
            code, answer = api.call('PATCH', path + '?fieldManager=applier&force=true', applied, 'application/apply-patch+yaml')
            if code != 200:
                refused.append((path, code))
            again = bare(answer) if code == 200 else None
            if again is not None and answer['kind'] not in ('CustomResourceDefinition', 'ServiceCIDR', 'IPAddress'):
                again['metadata']['name'] = again['metadata']['name'][:40] + '-again'
                if answer['kind'] == 'Service' and answer['spec'].get('clusterIP', 'None') != 'None':
                    # Allocated values are random.
                    addresses += 1
                    again['spec']['clusterIP'] = f'10.0.0.{150 + addresses}'
                    for port in again['spec']['ports']:
                        if answer['spec']['type'] != 'ClusterIP':
                            port['nodePort'] = 30100 + addresses
                collection = path.rsplit('/', 1)[0]
                code, answer = api.call('POST', collection + '?fieldManager=maker', again)
                refused += [(collection, code, answer.get('message'))] if code != 201 else []
        for collection, value in MINIMAL:
            group, version = re.match(r'/apis?(?:/([a-z0-9.]+))?/(v[0-9a-z]+)/', collection).groups()
            value = dict(value, apiVersion=f'{group}/{version}' if group else version, metadata={'name': 'minimal'})
            code, answer = api.call('POST', collection, value)
            refused += [(collection, code, answer.get('message'))] if code != 201 else []
        return refused

    def shown(self, api, paths):
        return {path: api.get(path) for path in paths}

    def objects(self, etcd):
        return {key: value for key, value in etcd.values().items() if not OWN.match(key)}

    def test_each_server_starts_on_the_data_of_the_other(self):
        etcd = self.start_etcd()
        peer = self.start_peer(etcd)
        paths = self.create_everything(peer.api)
        self.assertGreater(len(paths), 45)
        want = self.shown(peer.api, paths)
        peer.stop()
        etcd.kill()
        twin_data = self.path('twin-etcd')
        shutil.copytree(os.path.join(etcd.folder, 'data'), twin_data)
        etcd.start()
        before = self.objects(etcd)

        holdfast = self.start_holdfast(etcd)
        for path in paths:
            with self.subTest('reads match those of kube-apiserver', path=path):
                self.assertEqual(holdfast.api.get(path), want[path])
        self.rewrite(holdfast.api, paths)
        after = self.objects(etcd)
        for key in before:
            with self.subTest('rewriting without a change writes nothing', key=key):
                self.assertEqual(after.get(key), before[key])
        with self.subTest('nothing else was written'):
            self.assertEqual(sorted(set(after) - set(before)), [])
        refused = self.change(holdfast.api, paths)
        got, shown = self.objects(etcd), self.shown(holdfast.api, paths)
        holdfast.stop()

        twin = self.start_etcd(twin_data)
        second = self.start_peer(twin)
        twin_refused = self.change(second.api, paths)
        with self.subTest('both accept and reject the same'):
            self.assertEqual(refused, twin_refused)
        twin_got = self.objects(twin)
        second.stop()
        for key in sorted(set(got) | set(twin_got)):
            ours, theirs = (timeless(values.get(key, (b'absent', 0))[0]) for values in (got, twin_got))
            if ours != theirs:
                with self.subTest('the same writes store the same bytes', key=key):
                    self.fail(parted(ours, theirs))

        third = self.start_peer(etcd)
        for path in paths:
            with self.subTest('kube-apiserver reads what Holdfast wrote', path=path):
                self.assertEqual(third.api.get(path), shown[path])
        third.stop()


if __name__ == '__main__':
    BINARY, PEER = os.path.abspath(sys.argv.pop(1)), needs.peer('kube-apiserver', 'etcd')
    if PEER is None:
        needs.skip(needs.NO_PEER)
    unittest.main(verbosity=1)
