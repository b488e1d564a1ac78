#!/usr/bin/env python3
"""Several servers on one etcd: no node port or cluster IP is allocated twice, and released ones are available to all servers.

servers_test.py PATH/TO/holdfast
"""
import concurrent.futures, os, shutil, signal, sys, tempfile, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'clients')]
from etcd import Etcd
from peer import TOKEN, Api, KubeApiserver
from server import Server as Holdfast
import needs

PEER = needs.peer('kube-apiserver')

SERVICES = '/api/v1/namespaces/default/services'
ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses'
OWN_ADDRESS = {'10.0.0.1': 'default/kubernetes'}
LEDGER = '/registry/ranges/servicenodeports'
FIRST_PORT = 30000
# Small, so that random choices collide.
RANGES = ('--service-node-port-range=30000-30059', '--service-cluster-ip-range=10.0.0.0/26')
OURS = (*RANGES, '--controllers=none', '--disable-admission-plugins=ServiceAccount,Priority')


def service(name, **spec):
    return {'metadata': {'name': name}, 'spec': {'type': 'NodePort', 'ports': [{'port': 80}], **spec}}


def message_fields(data):
    """{number: [bytes]} of the length-delimited fields of a Protobuf message."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = number()
        length = number()
        if tag & 7 == 2:
            fields.setdefault(tag >> 3, []).append(data[at:at + length])
            at += length
    return fields


class ServersCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-servers-')
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.tokens = os.path.join(self.folder, 'tokens.csv')
        with open(self.tokens, 'w') as f:
            f.write(TOKEN + ',admin,admin,"system:masters"\n')
        self.etcd = Etcd()
        self.addCleanup(self.etcd.stop)

    def start(self, name, *flags):
        data = os.path.join(self.folder, name)
        os.makedirs(data, exist_ok=True)
        server = Holdfast(BINARY, '--etcd-servers', self.etcd.url, '--token-auth-file', self.tokens, *OURS, *flags, data_dir=data)
        self.addCleanup(server.stop)
        self.start_again(server)
        return server

    def start_again(self, server):
        server.start()
        # It listens there, whatever it advertises.
        server.api = Api('https://127.0.0.1:' + server.url().rsplit(':', 1)[1])

    def start_peer(self, *flags):
        peer = KubeApiserver(os.path.join(PEER, 'kube-apiserver'), self.etcd, os.path.join(self.folder, 'peer'), *RANGES, *flags)
        self.addCleanup(peer.stop)
        return peer

    def addresses(self, api):
        """{address: the Service that has it}, from the IPAddress objects"""
        parents = {i['metadata']['name']: i['spec']['parentRef'] for i in api.get(ADDRESSES)['items']}
        return {ip: parent['namespace'] + '/' + parent['name'] for ip, parent in parents.items()}


class ServicesTest(ServersCase):
    def start_two(self):
        return [self.start(name).api for name in ('first', 'second')]

    def ledger(self):
        """The ports recorded as allocated in etcd."""
        value = self.etcd.values(LEDGER)[LEDGER][0]
        self.assertTrue(value.startswith(b'k8s\0'), value)
        message = message_fields(message_fields(value[4:])[2][0])
        self.assertEqual(message[2], [b'30000-30059'])
        bits = int.from_bytes(message.get(3, [b''])[0], 'big')
        return {FIRST_PORT + i for i in range(bits.bit_length()) if bits >> i & 1}

    def create(self, api, body):
        code, made = api.call('POST', SERVICES, body)
        self.assertEqual(code, 201, made)
        return made

    def refuse(self, api, body, words):
        code, answer = api.call('POST', SERVICES, body)
        self.assertEqual(code, 422, answer)
        self.assertIn(words, answer['message'])

    def delete(self, api, name):
        code, answer = api.call('DELETE', f'{SERVICES}/{name}')
        self.assertEqual(code, 200, answer)

    def create_through_all(self, apis, each):
        """Creates that many Services concurrently through each server -> {name: Service}"""
        with concurrent.futures.ThreadPoolExecutor(8 * len(apis)) as pool:
            made = [pool.submit(self.create, api, service(f's{a}-{i}')) for i in range(each) for a, api in enumerate(apis)]
            return {s['metadata']['name']: s for s in (future.result() for future in made)}

    def check_nothing_twice(self, api, made):
        held = {s['spec']['clusterIP']: 'default/' + name for name, s in made.items()}
        self.assertEqual(len(held), len(made), held)
        self.assertEqual(self.addresses(api), held | OWN_ADDRESS)
        ports = [port['nodePort'] for s in made.values() for port in s['spec']['ports']]
        self.assertEqual(len(set(ports)), len(ports), sorted(ports))
        self.assertEqual(self.ledger(), set(ports))

    def delete_through_others(self, apis, made):
        """Deletes each through a different server than the one that created it."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.delete(apis[(int(name[1]) + 1) % len(apis)], name), made))
        self.assertEqual(self.ledger(), set())
        self.assertEqual(self.addresses(apis[0]), OWN_ADDRESS)

    def test_concurrent_allocations_are_unique(self):
        apis = self.start_two()
        for _ in range(2):
            made = self.create_through_all(apis, each=25)
            self.check_nothing_twice(apis[0], made)
            self.delete_through_others(apis, made)

    def test_requested_ports_are_rejected_by_every_server_until_released(self):
        first, second = self.start_two()
        for maker, other in ((first, second), (second, first)):
            body = service('wanted', ports=[{'port': 443, 'nodePort': 30011}])
            self.create(maker, body)
            self.refuse(other, dict(body, metadata={'name': 'other'}), 'provided port is already allocated')
            self.delete(other, 'wanted')
            self.assertEqual(self.ledger(), set())

    def test_requested_addresses_are_rejected_by_every_server_until_released(self):
        first, second = self.start_two()
        for maker, other in ((first, second), (second, first)):
            self.create(maker, service('wanted', clusterIP='10.0.0.9'))
            self.refuse(other, service('other', clusterIP='10.0.0.9'), 'provided IP is already allocated')
            self.delete(other, 'wanted')
            self.assertEqual(self.addresses(maker), OWN_ADDRESS)
            self.assertEqual(self.ledger(), set())

    def test_dry_runs_see_allocations_of_other_servers(self):
        first, second = self.start_two()
        body = service('wanted', ports=[{'port': 443, 'nodePort': 30011}])
        for _ in range(2):
            code, answer = first.call('POST', SERVICES + '?dryRun=All', body)
            self.assertEqual(code, 201, answer)
            self.create(second, body)
            code, answer = first.call('POST', SERVICES + '?dryRun=All', dict(body, metadata={'name': 'other'}))
            self.assertEqual(code, 422, answer)
            self.delete(second, 'wanted')

    def test_changing_the_type_of_a_service_releases_its_allocations(self):
        first, second = self.start_two()
        self.create(first, service('s', ports=[{'port': 80, 'nodePort': 30001}]))
        code, changed = second.call('PATCH', SERVICES + '/s', {'spec': {'type': 'ClusterIP'}}, 'application/merge-patch+json')
        self.assertEqual(code, 200, changed)
        self.assertEqual(self.ledger(), set())
        code, changed = first.call('PATCH', SERVICES + '/s', {'spec': {'type': 'NodePort'}}, 'application/merge-patch+json')
        self.assertEqual(code, 200, changed)
        self.assertEqual(self.ledger(), {changed['spec']['ports'][0]['nodePort']})
        code, changed = second.call('PATCH', SERVICES + '/s', {'spec': {'type': 'ExternalName', 'externalName': 'a.example'}},
                                    'application/merge-patch+json')
        self.assertEqual(code, 200, changed)
        self.assertEqual(self.ledger(), set())
        self.assertEqual(self.addresses(first), OWN_ADDRESS)
        code, changed = first.call('PATCH', SERVICES + '/s', {'spec': {'type': 'ClusterIP'}}, 'application/merge-patch+json')
        self.assertEqual(code, 200, changed)
        self.assertEqual(self.addresses(second), {changed['spec']['clusterIP']: 'default/s'} | OWN_ADDRESS)

    def test_rejected_writes_allocate_nothing(self):
        first, second = self.start_two()
        made = self.create(first, service('s', ports=[{'port': 80, 'nodePort': 30001}]))
        code, answer = second.call('POST', SERVICES, service('s', ports=[{'port': 80, 'nodePort': 30002}]))
        self.assertEqual(code, 409, answer)
        code, answer = second.call('POST', SERVICES, service('Not.A.Name', ports=[{'port': 80, 'nodePort': 30003}]))
        self.assertEqual(code, 422, answer)
        self.refuse(second, service('t', ports=[{'name': 'a', 'port': 80, 'nodePort': 30004},
                                                {'name': 'b', 'port': 81, 'nodePort': 30001}]), 'already allocated')
        code, answer = second.call('PATCH', SERVICES + '/s', {'spec': {'ports': [{'port': 80, 'nodePort': 30005}],
                                                                       'sessionAffinity': 'Sometimes'}}, 'application/merge-patch+json')
        self.assertEqual(code, 422, answer)
        self.check_nothing_twice(second, {'s': made})

    def test_starting_repairs_the_allocation_records(self):
        first = self.start('first')
        made = self.create(first.api, service('s', ports=[{'port': 80, 'nodePort': 30001}]))
        with_other_range = self.etcd.values(LEDGER)[LEDGER][0].replace(b'30000-30059', b'30000-30058')
        first.stop()
        for lost in (LEDGER, '/registry/ipaddresses/' + made['spec']['clusterIP']):
            self.etcd.call('kv/deleterange', key=self.etcd.text(lost.encode()))
        self.start_again(first)
        self.check_nothing_twice(first.api, {'s': made})
        self.refuse(first.api, service('t', ports=[{'port': 80, 'nodePort': 30001}]), 'already allocated')
        # Records of another range are converted to the range of this server.
        first.stop()
        self.etcd.put(LEDGER, with_other_range)
        self.start_again(first)
        self.assertEqual(self.ledger(), {30001})

    def test_without_a_store_nothing_is_allocated_or_lost(self):
        first, second = self.start_two()
        self.create(first, service('before', ports=[{'port': 80, 'nodePort': 30001}]))
        self.etcd.kill()
        code, answer = first.call('POST', SERVICES, service('meanwhile'))
        self.assertGreaterEqual(code, 500, answer)
        self.assertTrue(answer['message'])
        self.etcd.start()
        made = {'before': first.get(SERVICES + '/before'), 'after': self.create(second, service('after'))}
        self.check_nothing_twice(second, made)


ENDPOINTS = '/api/v1/namespaces/default/endpoints/kubernetes'
SLICE = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'


class EndpointsTest(ServersCase):
    def shown(self, api):
        """The addresses of the Service kubernetes, once Endpoints and EndpointSlice agree."""
        code, endpoints = api.call('GET', ENDPOINTS)
        if code != 200:
            return None
        addresses = [a['ip'] for s in endpoints.get('subsets', []) for a in s['addresses']]
        sliced = [e['addresses'][0] for e in api.get(SLICE)['endpoints'] or []]
        return addresses if addresses == sliced else None

    def wait_for(self, api, wanted):
        end = time.time() + 60
        while self.shown(api) != wanted:
            self.assertLess(time.time(), end, self.shown(api))
            time.sleep(0.1)

    def test_each_running_server_has_an_endpoint(self):
        first = self.start('first', '--advertise-address=10.9.0.1')
        self.assertEqual(self.shown(first.api), ['10.9.0.1'])
        second = self.start('second', '--advertise-address=10.9.0.2')
        self.assertEqual(self.shown(second.api), ['10.9.0.1', '10.9.0.2'])
        second.stop()
        self.assertEqual(self.shown(first.api), ['10.9.0.1'])
        self.start_again(second)
        self.assertEqual(self.shown(first.api), ['10.9.0.1', '10.9.0.2'])
        # The endpoint of a killed server is removed when its lease expires.
        second.stop(signal.SIGKILL)
        self.wait_for(first.api, ['10.9.0.1'])
        self.assertEqual(list(self.etcd.values('/registry/masterleases/')), ['/registry/masterleases/10.9.0.1'])

    def test_a_server_without_a_store_stops_without_removing_its_endpoint(self):
        server = self.start('alone', '--advertise-address=10.9.0.1')
        self.etcd.kill()
        failures = lambda: server.text().count('the endpoints of the Service kubernetes could not be brought up to date')
        end = time.time() + 60
        while failures() == 0:
            self.assertLess(time.time(), end)
            time.sleep(0.1)
        self.assertEqual(server.stop(), 0, server.text()[-2000:])
        self.assertEqual(failures(), 1)

    def test_servers_started_concurrently_all_have_endpoints(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            servers = list(pool.map(lambda i: self.start(f's{i}', f'--advertise-address=10.9.0.{i}'), (1, 2, 3)))
        self.assertEqual(self.shown(servers[0].api), ['10.9.0.1', '10.9.0.2', '10.9.0.3'])
        # The Service has its address, whichever server created it.
        self.assertEqual(self.addresses(servers[0].api), OWN_ADDRESS)
        self.assertEqual(servers[0].api.get(SERVICES + '/kubernetes')['spec']['clusterIP'], '10.0.0.1')
        for server in servers:
            self.assertNotIn('could not be made', server.text())

    def test_master_count_reconciler(self):
        flags = ('--endpoint-reconciler-type=master-count', '--apiserver-count=2')
        servers = [self.start(f's{i}', f'--advertise-address=10.9.0.{i}', *flags) for i in (1, 2, 3)]
        self.assertEqual(self.shown(servers[2].api), ['10.9.0.2', '10.9.0.3'])
        servers[1].stop()
        self.assertNotIn('10.9.0.2', self.shown(servers[0].api))
        self.assertEqual(self.etcd.values('/registry/masterleases/'), {})

    def test_none_reconciler(self):
        first = self.start('first', '--endpoint-reconciler-type=none')
        self.assertEqual(first.api.call('GET', ENDPOINTS)[0], 404)

    @unittest.skipUnless(PEER, needs.NO_PEER)
    def test_a_kube_apiserver_has_an_endpoint_as_well(self):
        first = self.start('first', '--advertise-address=10.9.0.1')
        peer = self.start_peer('--advertise-address=10.9.0.7')
        for api in (first.api, peer.api):
            self.wait_for(api, ['10.9.0.1', '10.9.0.7'])
        first.stop()
        self.wait_for(peer.api, ['10.9.0.7'])


@unittest.skipUnless(PEER, needs.NO_PEER)
class ServicesWithKubeApiserver(ServicesTest):
    """The same with a kube-apiserver as the second server."""

    def start_two(self):
        peer = self.start_peer()
        return [self.start('first').api, peer.api]


if __name__ == '__main__':
    BINARY = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
