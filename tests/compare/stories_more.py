"""More stories: encodings, deletion, subresources, conflicts, options of lists and watches, addresses, discovery."""
import copy

from grow import at
from stories import APPLY, FIELDS, JSON, MERGE, PARTIAL, PARTIAL_LIST, PATCH, STRATEGIC, TABLE, comes_to_be_served, query

PROTOBUF, CBOR = 'application/vnd.kubernetes.protobuf', 'application/cbor'
AS_TABLE, AS_PARTIAL, AS_PARTIALS = ';as=Table;v=v1;g=meta.k8s.io', ';as=PartialObjectMetadata;v=v1;g=meta.k8s.io', ';as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'


def accept(rng):
    def one():
        kind = rng.choice(['application/json'] * 4 + ['application/yaml', PROTOBUF, CBOR, '*/*', 'application/*', 'text/html', 'application/vnd.kubernetes.protobuf;type=x'])
        kind += rng.choice(['', '', '', AS_TABLE, AS_PARTIAL, AS_PARTIALS, AS_TABLE.replace('v1', 'v1beta1'), AS_TABLE.replace('v1', 'v2'), ';as=Table', ';as=Nope;v=v1;g=meta.k8s.io',
                            ';as=Table;v=v1', ';as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io', ';profile=x'])
        return kind + rng.choice(['', '', ';q=0.5', ';q=0', ';q=1.0', ';q=x', ';charset=utf-8'])
    return rng.choice([', ', ',']).join(one() for _ in range(rng.choice([1, 1, 2, 3])))


def story_formats(w, name):
    """One object in every encoding, read and written back unchanged."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    path = w.kind.path(w.ns, name)
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': {**JSON, 'Accept': accept(rng)}, 'body': sample}
    answer = yield {'method': 'GET', 'path': path}
    if answer['code'] != 200:
        return
    for _ in range(5):
        yield {'method': 'GET', 'path': path if rng.random() < 0.6 else w.kind.path(w.ns) + '?fieldSelector=metadata.name%3D' + name, 'headers': {'Accept': accept(rng)}}
    for kind in rng.sample([PROTOBUF, CBOR, 'application/yaml', 'application/json'], 2):
        answer = yield {'method': 'GET', 'path': path, 'headers': {'Accept': kind}}
        if answer['code'] == 200:
            yield {'method': 'PUT', 'path': path + rng.choice(['', '?dryRun=All', '?fieldManager=x', '?fieldValidation=Strict']), 'headers': {'Content-Type': kind, 'Accept': rng.choice([kind, 'application/json'])}, 'again': True}
    if 'watch' in w.kind.verbs:
        yield {'method': 'GET', 'path': w.kind.path(w.ns) + '?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3D' + name, 'headers': {'Accept': accept(rng)}}


def story_end(w, name):
    """Deletion step by step: grace, finalizers, preconditions, propagation, and writes in between."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    path = w.kind.path(w.ns, name)
    if rng.random() < 0.6:
        sample['metadata']['finalizers'] = rng.choice([['example.com/x'], ['example.com/x', 'example.com/y'], ['foregroundDeletion'], ['orphan'], ['orphan', 'example.com/x']])
    if w.kind.name == 'Pod':
        if rng.random() < 0.6:
            sample['spec']['nodeName'] = 'n'
        if rng.random() < 0.3:
            sample['spec']['terminationGracePeriodSeconds'] = rng.choice([0, 5, 1])
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    if answer['code'] != 201:
        return
    for _ in range(6):
        answer = yield {'method': 'GET', 'path': path}
        if answer['code'] != 200:
            yield {'method': 'DELETE', 'path': path}
            return
        move = rng.random()
        if w.kind.name == 'Namespace' and rng.random() < 0.25:
            body = {**answer['body'], 'spec': rng.choice([{}, {}, {'finalizers': []}, {'finalizers': ['kubernetes', 'example.com/x']}])}
            body['metadata'] = {k: v for k, v in body['metadata'].items() if k in ('name', 'labels', 'finalizers')}
            yield {'method': 'PUT', 'path': path + '/finalize', 'headers': JSON, 'body': body}
        elif move < 0.6:
            options = {}
            for key, values in (('gracePeriodSeconds', [0, 1, 30, 60, -1, None]), ('propagationPolicy', ['Foreground', 'Background', 'Orphan', 'X', '']),
                                ('preconditions', [{'uid': 'x'}, {'uid': '<uid>'}, {'resourceVersion': '1'}, {'resourceVersion': '<live>'}, {'uid': '<uid>', 'resourceVersion': '<live>'}, {}, {'resourceVersion': ''}]),
                                ('dryRun', [['All'], ['All', 'All'], [], ['X']]), ('orphanDependents', [True, False, None]), ('unknown', [1]), ('ignoreStoreReadErrorWithClusterBreakingPotential', [True, False])):
                if rng.random() < 0.22:
                    options[key] = rng.choice(values)
            if rng.random() < 0.5:
                options.update(kind='DeleteOptions', apiVersion=rng.choice(['v1', w.kind.api_version, 'v1', 'meta.k8s.io/v1', 'nope/v1']))
            yield {'method': 'DELETE', 'path': path + rng.choice(['', '', '?gracePeriodSeconds=5', '?propagationPolicy=Background', '?dryRun=All', '?pretty=true']),
                   'headers': {**JSON, 'Accept': rng.choice(['application/json'] * 4 + [TABLE['Accept'], PARTIAL['Accept']])}, 'body': options}
        elif move < 0.8:
            yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'metadata': rng.choice([
                {'finalizers': None}, {'finalizers': ['example.com/x']}, {'finalizers': ['example.com/new', 'example.com/x']}, {'finalizers': []}, {'labels': {'a': 'b'}}, {'deletionTimestamp': None},
                {'deletionGracePeriodSeconds': 1}, {'deletionTimestamp': '2020-01-01T00:00:00Z'}])}}
        elif move < 0.9:
            body = copy.deepcopy(answer['body'])
            body['metadata'] = {k: v for k, v in body['metadata'].items() if k in ('name', 'labels') or k == 'finalizers' and rng.random() < 0.6}
            yield {'method': 'PUT', 'path': path, 'headers': JSON, 'body': body}
        else:
            config = {'apiVersion': w.kind.api_version, 'kind': w.kind.name, 'metadata': {'name': name, 'finalizers': rng.choice([[], ['example.com/x'], ['example.com/z']])}}
            yield {'method': 'PATCH', 'path': path + '?fieldManager=alice&force=true', 'headers': APPLY, 'body': config}


# ------------------------------------------------------------------ subresources

def _pod_moves(w, name):
    rng = w.rng
    eviction = {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': name}}
    rng.choice([lambda: None, lambda: eviction.update(deleteOptions={'gracePeriodSeconds': rng.choice([0, 5, -1])}), lambda: eviction.update(deleteOptions={'dryRun': ['All']}),
                lambda: eviction.update(deleteOptions={'preconditions': {'uid': rng.choice(['x', '<uid>'])}}), lambda: eviction['metadata'].update(name='other'), lambda: eviction.pop('metadata'),
                lambda: eviction.update(apiVersion='policy/v1beta1'), lambda: eviction.update(kind='Nope'), lambda: eviction['metadata'].update(namespace='elsewhere'), lambda: eviction.update(x=1)])()
    yield {'method': 'POST', 'path': w.kind.path(w.ns, name, 'eviction') + rng.choice(['', '', '?dryRun=All', '?fieldValidation=Strict']), 'headers': JSON, 'body': eviction}
    binding = {'apiVersion': 'v1', 'kind': 'Binding', 'metadata': {'name': name}, 'target': {'kind': 'Node', 'name': 'n', 'apiVersion': 'v1'}}
    rng.choice([lambda: None, lambda: None, lambda: binding['target'].update(kind=rng.choice(['', 'Pod'])), lambda: binding['target'].update(name=rng.choice(['', 'A b'])), lambda: binding.pop('target'),
                lambda: binding['metadata'].update(name='other'), lambda: binding['metadata'].update(labels={'a': 'b', 'topology.kubernetes.io/zone': 'z'}, annotations={'c': 'd'}), lambda: binding['metadata'].update(uid=rng.choice(['x', '<uid>'])),
                lambda: binding['metadata'].update(resourceVersion='1'), lambda: binding.update(kind='Pod'), lambda: binding['metadata'].update(namespace='x')])()
    yield {'method': 'POST', 'path': w.kind.path(w.ns, name, 'binding') + rng.choice(['', '', '?dryRun=All', '?fieldManager=sched']), 'headers': JSON, 'body': binding}
    if rng.random() < 0.3:
        yield {'method': 'POST', 'path': '/api/v1/namespaces/%s/bindings' % w.ns, 'headers': JSON, 'body': binding}
    debug = {'name': rng.choice(['debug', 'debug', 'a', 'app', 'A b', '']), 'image': rng.choice(['x', 'x', '']), 'targetContainerName': rng.choice(['a', 'app', 'nope'])}
    rng.choice([lambda: None, lambda: debug.update(ports=[{'containerPort': 1}]), lambda: debug.update(resources={'limits': {'cpu': '1'}}), lambda: debug.update(livenessProbe={'tcpSocket': {'port': 1}}),
                lambda: debug.update(stdin=True, tty=True, command=['sh']), lambda: debug.update(volumeMounts=[{'name': 'config', 'mountPath': '/x', 'subPath': 'y'}]), lambda: debug.update(lifecycle={}),
                lambda: debug.update(securityContext={'privileged': True}), lambda: debug.update(env=[{'name': 'A b', 'value': 'x'}])])()
    yield rng.choice([
        {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'ephemeralcontainers') + query(rng), 'headers': STRATEGIC, 'body': {'spec': {'ephemeralContainers': [debug]}}},
        {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'ephemeralcontainers') + query(rng), 'headers': MERGE, 'body': {'spec': {'ephemeralContainers': [debug, debug][:rng.choice([0, 1, 2])]}}},
        {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'ephemeralcontainers') + query(rng), 'headers': PATCH, 'body': [{'op': 'add', 'path': '/spec/ephemeralContainers', 'value': [debug]}]},
        {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'ephemeralcontainers') + '?fieldManager=d', 'headers': APPLY, 'body': {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {'ephemeralContainers': [debug]}}}])
    size = {'name': rng.choice(['a', 'b', 'app', 'app']), 'resources': rng.choice([{'requests': {'cpu': '200m'}}, {'limits': {'cpu': '2', 'memory': '256Mi'}}, {'limits': {'memory': '32Mi'}}, {'requests': {'cpu': None}},
                    {'requests': {'example.com/gpu': '2'}, 'limits': {'example.com/gpu': '2'}}, {'requests': {'cpu': '-1'}}, {'requests': {'ephemeral-storage': '2Gi'}}, {'claims': [{'name': 'gpu'}]}, None, {}])}
    if rng.random() < 0.3:
        size['resizePolicy'] = [{'resourceName': 'cpu', 'restartPolicy': rng.choice(['NotRequired', 'RestartContainer', 'X'])}]
    if rng.random() < 0.1:
        size['image'] = 'other'
    yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'resize') + query(rng), 'headers': STRATEGIC, 'body': {'spec': {'containers': [size]}}}
    yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, 'status') + query(rng), 'headers': rng.choice([MERGE, STRATEGIC]), 'body': {'status': rng.choice([
        {'phase': rng.choice(['Running', 'Succeeded', 'Nope'])}, {'conditions': [{'type': 'Ready', 'status': rng.choice(['True', 'x'])}]}, {'podIP': '1.2.3.4', 'podIPs': [{'ip': rng.choice(['1.2.3.4', '5.6.7.8', 'x'])}]},
        {'hostIP': '1.2.3.4', 'hostIPs': [{'ip': '1.2.3.4'}, {'ip': '::1'}]}, {'containerStatuses': [{'name': 'a', 'ready': True, 'restartCount': 1, 'image': 'x', 'imageID': 'y', 'state': rng.choice([{'running': {}}, {'terminated': {'exitCode': 1}}, {'waiting': {'reason': 'x'}}])}]},
        {'qosClass': 'BestEffort'}, {'nominatedNodeName': rng.choice(['n', 'A b'])}, {'ephemeralContainerStatuses': [{'name': 'x', 'ready': False, 'restartCount': 0, 'image': '', 'imageID': ''}]},
        {'observedGeneration': rng.choice([1, -1])}, {'resize': 'Deferred'}, {'startTime': 'x'}, {'extendedResourceClaimStatus': {'resourceClaimName': 'x', 'requestMappings': []}}, {'resourceClaimStatuses': [{'name': 'gpu', 'resourceClaimName': 'c'}]}])}}
    yield {'method': rng.choice(['GET', 'PUT', 'POST', 'DELETE']), 'path': w.kind.path(w.ns, name, rng.choice(['eviction', 'binding', 'ephemeralcontainers', 'resize', 'status', 'nope']))}


def _token_moves(w, name):
    rng = w.rng
    for _ in range(3):
        spec = {'audiences': ['a'], 'expirationSeconds': 3600}
        body = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': spec}
        rng.choice([lambda: None, lambda: spec.update(expirationSeconds=rng.choice([0, 599, 600, 2 ** 32, 2 ** 32 + 1, -1, 'x'])), lambda: spec.update(audiences=rng.choice([[], [''], ['a', 'b'], None])),
                    lambda: spec.update(boundObjectRef={'kind': rng.choice(['Pod', 'Secret', 'Node', 'Nope', '']), 'apiVersion': rng.choice(['v1', 'x/v1', '']), 'name': rng.choice(['nope', '']), 'uid': rng.choice(['', 'x'])}),
                    lambda: body.pop('spec'), lambda: body.update(metadata={'name': rng.choice([name, 'other'])}), lambda: body.update(metadata={'namespace': rng.choice([w.ns, 'other'])}), lambda: body.update(kind='Nope'), lambda: body.update(apiVersion='v1'),
                    lambda: body.update(status={'token': 'x'}), lambda: spec.update(unknown=1)])()
        yield {'method': 'POST', 'path': w.kind.path(w.ns, rng.choice([name] * 5 + ['nope']), 'token') + query(rng), 'headers': JSON, 'body': body}
    yield {'method': 'GET', 'path': w.kind.path(w.ns, name, 'token')}


def _approval_moves(w, name):
    rng = w.rng
    for _ in range(3):
        condition = {'type': rng.choice(['Approved', 'Denied', 'Failed', 'Other', '']), 'status': rng.choice(['True', 'True', 'False', '', 'x']), 'reason': 'r', 'message': 'm'}
        conditions = [condition] * rng.choice([1, 1, 1, 2]) + rng.choice([[], [{'type': 'Denied', 'status': 'True'}]])
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, rng.choice(['approval', 'approval', 'status'])) + query(rng), 'headers': rng.choice([MERGE, STRATEGIC]),
               'body': {'status': rng.choice([{'conditions': conditions}, {'conditions': conditions}, {'conditions': []}, {'certificate': rng.choice(['eA==', '', 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=='])}])}}
        yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


def _namespace_moves(w, name):
    rng = w.rng
    for _ in range(3):
        body = {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': name}, 'spec': {'finalizers': rng.choice([['kubernetes'], [], ['example.com/x'], ['A b'], ['x'], None])}, 'status': {'phase': rng.choice(['Active', 'Terminating', 'X'])}}
        if rng.random() < 0.2:
            body['metadata'].update(rng.choice([{'name': 'other'}, {'resourceVersion': '1'}, {'resourceVersion': '<live>'}, {'uid': 'x'}, {'labels': {'a': 'b'}}]))
        yield {'method': 'PUT', 'path': w.kind.path(w.ns, name, rng.choice(['finalize', 'finalize', 'status'])) + query(rng), 'headers': JSON, 'body': body}
        yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
    yield {'method': 'DELETE', 'path': w.kind.path(w.ns, name)}
    yield {'method': 'PUT', 'path': w.kind.path(w.ns, name, 'finalize'), 'headers': JSON, 'body': {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': name}, 'spec': {'finalizers': []}}}
    yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


MOVES = {'Pod': _pod_moves, 'ServiceAccount': _token_moves, 'CertificateSigningRequest': _approval_moves, 'Namespace': _namespace_moves}


def story_subresources(w, name):
    """The subresources with their own rules."""
    moves = MOVES.get(w.kind.name)
    if not moves:
        return
    sample = w.valid(name)
    name = sample['metadata']['name']
    if w.kind.name == 'Pod' and w.rng.random() < 0.4:
        sample['spec']['nodeName'] = 'n'
    if w.kind.name == 'Pod' and w.rng.random() < 0.4:
        sample['metadata']['labels'] = {'app': 'web'}
        budget = {'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {'name': 'b'}, 'spec': {'minAvailable': 1, 'selector': {'matchLabels': {'app': 'web'}}}}
        yield {'method': 'POST', 'path': '/apis/policy/v1/namespaces/%s/poddisruptionbudgets' % w.ns, 'headers': JSON, 'body': budget}
        yield {'method': 'PATCH', 'path': '/apis/policy/v1/namespaces/%s/poddisruptionbudgets/b/status' % w.ns, 'headers': MERGE,
               'body': {'status': {'disruptionsAllowed': w.rng.choice([0, 1]), 'currentHealthy': 1, 'desiredHealthy': 1, 'expectedPods': 1, 'observedGeneration': w.rng.choice([0, 1, 2])}}}
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    if answer['code'] != 201:
        return
    yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
    requests = list(moves(w, name))
    if w.kind.name == 'Pod':
        w.rng.shuffle(requests)
    for request in requests:
        yield request
        if w.kind.name == 'Pod':
            yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


# ------------------------------------------------------------------ ownership of lists

def typed_lists(w, value, path=()):
    """The lists of an object with their schema: path, type, keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and item:
                known = w.grower.schema_at(w.kind.schema, path + (key,))
                parent = w.grower.schema_at(w.kind.schema, path).get('properties', {}).get(key, {})
                known = {**known, **parent}
                yield path + (key,), known.get('x-kubernetes-list-type', 'atomic'), known.get('x-kubernetes-list-map-keys', [])
            yield from typed_lists(w, item, path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from typed_lists(w, item, path + (i,))


def change_list(w, config):
    """Varies one list of a configuration: fewer, additional, duplicate or reordered items, a missing key, null."""
    rng = w.rng
    lists = list(typed_lists(w, config))
    keyed = [one for one in lists if one[1] != 'atomic']
    if not lists:
        return
    path, kind, keys = rng.choice(keyed if keyed and rng.random() < 0.8 else lists)
    items = at(config, path)
    one = rng.randrange(len(items))
    item = items[one]
    move = rng.random()
    if move < 0.15:
        del items[one]
    elif move < 0.25:
        items.reverse()
    elif move < 0.35:
        items.append(copy.deepcopy(item))
    elif move < 0.4:
        items.append(rng.choice([None, {}, 'x', 5, []]))
    elif isinstance(item, dict):
        other = [k for k in item if k not in keys]
        if move < 0.5 and keys:
            item.pop(rng.choice(keys), None)
        elif move < 0.58 and keys:
            item[rng.choice(keys)] = rng.choice([None, 'new', 5, 8080, '', 'UDP', 'SCTP', {}, 1.5, True])
        elif move < 0.75 and other:
            field = rng.choice(other)
            item[field] = w.grower.grow(w.grower.schema_at(w.kind.schema, path + (0, field)), 2)
        elif move < 0.85 and other:
            item.pop(rng.choice(other))
        else:
            added = copy.deepcopy(item)
            for key in keys:
                added[key] = 'new' if isinstance(added.get(key), str) and key != 'protocol' else 9999 if key != 'protocol' else 'UDP'
            items.append(added)
    else:
        items[one] = rng.choice([item, 'example.com/new', 'x', 5, ''])


def story_lists(w, name):
    """Appliers of one object that disagree about its lists, with and without force, and updaters in between."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    sample['metadata'].pop('namespace', None)
    sample['metadata']['finalizers'] = ['example.com/a', 'example.com/b']
    path = w.kind.path(w.ns, name)
    configs = {}
    for turn in range(8):
        manager = rng.choice(['alice', 'bob', 'carol'])
        config = copy.deepcopy(configs.get(manager) or sample)
        for _ in range(rng.choice([0, 1, 1, 2])):
            if isinstance(config, dict):
                change_list(w, config)
        options = rng.choice(['', '', '&force=true', '&force=true', '&dryRun=All', '&force=true&dryRun=All'])
        if rng.random() < 0.75:
            answer = yield {'method': 'PATCH', 'path': path + '?fieldManager=' + manager + options, 'headers': APPLY, 'body': config}
            if answer['code'] in (200, 201):
                configs[manager] = config
        else:
            body = {k: v for k, v in config.items() if k not in ('apiVersion', 'kind', 'metadata')}
            yield {'method': 'PATCH', 'path': path + '?fieldManager=' + rng.choice(['edit', manager]), 'headers': rng.choice([MERGE, STRATEGIC]), 'body': body}
        if rng.random() < 0.5:
            yield {'method': 'GET', 'path': path}
    yield {'method': 'GET', 'path': path}


# ------------------------------------------------------------------ options of lists and watches

def story_options(w, name):
    """Lists and watches of a few objects, namespaced or not, with options that may conflict."""
    rng, kind = w.rng, w.kind
    mine = 'compare%3D' + w.ns
    for i in range(3):
        sample = w.valid(name + str(i))
        if kind.name not in ('CustomResourceDefinition', 'APIService', 'IPAddress'):
            sample['metadata']['name'] = name + str(i)
        elif i:
            break
        sample['metadata']['labels'] = {**(sample['metadata'].get('labels') or {}), 'n': str(i), 'compare': w.ns}
        yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': sample}
    paths = [kind.path(w.ns)]
    if kind.namespaced:
        paths.append(kind.path(w.ns).replace('/namespaces/' + w.ns, ''))
    fields = ['metadata.name', 'metadata.namespace'] + FIELDS.get(kind.name, [])
    yield {'method': 'GET', 'path': kind.path(w.ns) + '?labelSelector=' + mine, 'remember': True}
    for _ in range(9):
        options = ['labelSelector=' + mine + rng.choice(['', '', '', ',n%3D1', ',n%21%3D1', ',n%20in%20(1,2)', ',x', ',n%3E0', '%2C', ',n%3D%27'])]
        if rng.random() < 0.4:
            options.append('fieldSelector=' + rng.choice(fields + ['nope', 'metadata.uid']) + rng.choice(['%3D', '%3D%3D', '%21%3D']) + rng.choice([name + '1', w.ns, '', 'x', 'Pending', 'a%5C%3Db']) + rng.choice(['', '', ',metadata.name%21%3Dz', ',']))
        options += rng.sample(['limit=1', 'limit=2', 'limit=0', 'limit=', 'resourceVersion=0', 'resourceVersion=<remembered>', 'resourceVersion=', 'resourceVersion=-1', 'resourceVersion=99999999999999999999',
                               'resourceVersionMatch=Exact', 'resourceVersionMatch=NotOlderThan', 'resourceVersionMatch=', 'resourceVersionMatch=exact', 'timeoutSeconds=1', 'timeoutSeconds=-1', 'timeoutSeconds=0', 'pretty=1',
                               'allowWatchBookmarks=1', 'allowWatchBookmarks=yes', 'sendInitialEvents=1', 'sendInitialEvents=', 'continue=',
                               'continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoieCJ9', 'continue=e30', 'shardSelector=x', 'labelSelector=z', 'includeObject=None'], rng.choice([0, 1, 1, 2, 3]))
        if rng.random() < 0.2 and 'watch' in kind.verbs:
            options = [o for o in options if not o.startswith('timeoutSeconds')] + ['timeoutSeconds=1', rng.choice(['watch=1', 'watch=true', 'watch=', 'watch=yes', 'watch=0'])]
        rng.shuffle(options)
        yield {'method': 'GET', 'path': rng.choice(paths) + '?' + '&'.join(options), 'headers': rng.choice([{}, {}, TABLE, PARTIAL_LIST, {'Accept': PROTOBUF}, {'Accept': CBOR}])}
    for match in ('Exact', 'NotOlderThan'):
        page = yield {'method': 'GET', 'path': kind.path(w.ns) + '?limit=1&labelSelector=' + mine + rng.choice(['', '&resourceVersion=0', '&resourceVersion=<remembered>&resourceVersionMatch=' + match])}
        for _ in range(2):
            if isinstance(page['body'], dict) and (page['body'].get('metadata') or {}).get('continue'):
                page = yield {'method': 'GET', 'path': kind.path(w.ns) + '?limit=%d&labelSelector=%s&continue=<continue>' % (rng.choice([1, 2]), mine), 'headers': rng.choice([{}, TABLE])}
    if 'deletecollection' in kind.verbs and kind.name != 'Namespace':
        yield {'method': 'DELETE', 'path': kind.path(w.ns) + '?labelSelector=' + mine + rng.choice(['', ',n%3D1', '&fieldSelector=metadata.name%3D' + name + '1', '&limit=1', '&resourceVersion=0', '&fieldSelector=nope%3D1', '&dryRun=All']),
               'headers': {**JSON, 'Accept': rng.choice(['application/json'] * 3 + [TABLE['Accept'], PARTIAL_LIST['Accept'], PROTOBUF])}, 'body': rng.choice([None, {}, {'gracePeriodSeconds': 0}, {'propagationPolicy': 'X'}, {'dryRun': ['All']}])}
        yield {'method': 'GET', 'path': kind.path(w.ns) + '?labelSelector=' + mine}


def story_addresses(w, name):
    """Malformed and unusual paths, methods and queries."""
    rng, sample = w.rng, w.valid(name)
    name, kind = sample['metadata']['name'], w.kind
    yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': sample}
    one, many = kind.path(w.ns, name), kind.path(w.ns)
    root = '/apis/' + kind.group + '/' + kind.version if kind.group else '/api/v1'
    for _ in range(9):
        path = rng.choice([one + '/', many + '/', one.replace(kind.plural, kind.plural.upper()), many.replace(kind.plural, kind.plural[:-1]), many + '/A%20b', many + '/a%2Fb', many + '/%2e%2e', many + '//' + name, one + '/status', one + '/nope', one + '/status/x',
                           many.replace(kind.version, 'v9'), many.replace(kind.version, 'V1'), many.replace('/namespaces/' + w.ns, '/namespaces/nope'), many.replace('/namespaces/' + w.ns, ''), one.replace('/namespaces/' + w.ns, ''), root + '/namespaces/' + w.ns + '/' + kind.plural,
                           root, root + '/', root + '/nope', '/apis/' + (kind.group or 'x'), '/apis/nope.example.com', '/apis/nope.example.com/v1/things', one.replace(root, root + '/watch') + '?timeoutSeconds=1', many.replace(root, root + '/watch') + '?timeoutSeconds=1&fieldSelector=metadata.name%3D' + name,
                           root + '/proxy/namespaces/x', '/apis', '/healthz', '/livez/ping', '/readyz?verbose', '/nope', '/api/v2', one + '?x=y', one + '?dryRun=All', many + '?fieldManager=x', one + '?resourceVersion=0', one + '?resourceVersion=x',
                           one + '?resourceVersion=99999999', one + '?pretty=true&pretty=false', many + '?limit=1&limit=2&fieldSelector=metadata.name%3Dnope', one + '?%zz', one + '?a;b', '/api/v1/namespaces/' + w.ns + '/' + kind.plural + '/' + name + '/exec/x'])
        method = rng.choice(['GET', 'GET', 'GET', 'POST', 'PUT', 'PATCH', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'FOO'])
        if method == 'DELETE' and ('/' + kind.plural not in path or name not in path):
            method = 'GET'
        request = {'method': method, 'path': path, 'headers': {}}
        if method in ('POST', 'PUT'):
            request.update(headers=JSON, body=rng.choice([sample, {}, None]))
        if method == 'PATCH':
            request.update(headers=rng.choice([MERGE, JSON, APPLY, {}]), body={'metadata': {'labels': {'x': 'y'}}})
        if path == '/apis' or method in ('GET', 'HEAD') and path in (many + '/', many, many.replace('/namespaces/' + w.ns, ''), many + '?fieldManager=x'):
            continue  # Shared by all.
        yield request


# ------------------------------------------------------------------ custom kinds

def story_published(w, name):
    """Discovery and OpenAPI of a custom kind with a randomly composed schema."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng, definition = w.rng, w.named(w.kind.samples[-1], name)
    spec = definition['spec']
    group = spec['group']

    def schema(depth=0):
        kind = rng.choice(['string', 'integer', 'number', 'boolean', 'object', 'array', 'object', 'any'])
        if depth > 2:
            kind = rng.choice(['string', 'integer'])
        out = {'type': kind} if kind != 'any' else rng.choice([{'x-kubernetes-preserve-unknown-fields': True}, {'x-kubernetes-int-or-string': True}, {'type': 'object', 'x-kubernetes-embedded-resource': True, 'x-kubernetes-preserve-unknown-fields': True}])
        if kind == 'string':
            out.update(rng.choice([{}, {'enum': ['a', 'b']}, {'format': rng.choice(['date-time', 'byte', 'nope', 'int-or-string'])}, {'pattern': '^a$'}, {'minLength': 1, 'maxLength': 5}, {'default': 'a'}]))
        if kind in ('integer', 'number'):
            out.update(rng.choice([{}, {'minimum': 1, 'exclusiveMinimum': True}, {'maximum': 5}, {'multipleOf': 2}, {'format': 'int32'}, {'default': 2}, {'enum': [1, 2]}]))
        if kind == 'array':
            out['items'] = schema(depth + 1)
            if out['items'].get('type') == 'string':
                out.update(rng.choice([{}, {'x-kubernetes-list-type': 'set'}, {'x-kubernetes-list-type': 'atomic'}, {'uniqueItems': False}]))
        if kind == 'object':
            if rng.random() < 0.6:
                out['properties'] = {n: schema(depth + 1) for n in rng.sample(['a', 'b', 'c', 'name'], 2)}
                if rng.random() < 0.3:
                    out['required'] = ['a']
                if rng.random() < 0.2:
                    out['oneOf'] = [{'required': ['a']}, {'required': ['b']}]
            elif rng.random() < 0.7:
                out['additionalProperties'] = schema(depth + 1)
            out.update(rng.choice([{}, {}, {'x-kubernetes-map-type': 'atomic'}, {'minProperties': 1}]))
        if rng.random() < 0.2:
            out['nullable'] = True
        if rng.random() < 0.2:
            out['description'] = 'about it'
        return out
    whole = {'type': 'object', 'properties': {'spec': schema(), 'status': {'type': 'object', 'properties': {'a': schema(2)}}}}
    if rng.random() < 0.2:
        whole['properties']['metadata'] = {'type': 'object', 'properties': {'name': {'type': 'string', 'maxLength': 20}}}
    if rng.random() < 0.2:
        whole['description'] = 'a thing'
    spec['versions'] = [{'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': whole}}]
    if rng.random() < 0.5:
        spec['versions'][0]['subresources'] = rng.choice([{'status': {}}, {'status': {}, 'scale': {'specReplicasPath': '.spec.replicas', 'statusReplicasPath': '.status.replicas'}}])
    if rng.random() < 0.4:
        spec['versions'].append({'name': rng.choice(['v2', 'v1beta1', 'v1alpha1', 'x1']), 'served': rng.random() < 0.7, 'storage': False, 'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}, **rng.choice([{}, {'deprecated': True}, {'deprecated': True, 'deprecationWarning': 'old'}])})
    spec['scope'] = rng.choice(['Namespaced', 'Cluster'])
    spec['names'] = {'plural': 'widgets', 'kind': 'Widget', **rng.choice([{}, {'singular': 'widget', 'shortNames': ['wd', 'w'], 'categories': ['all', 'x']}, {'listKind': 'Widgets'}])}
    if not (yield from comes_to_be_served(w, definition)):
        return
    for _ in range(20):
        answer = yield {'method': 'GET', 'path': '/openapi/v3/apis/%s/v1' % group, 'wait': True}
        if answer['code'] == 200:
            break
    yield {'method': 'GET', 'path': w.kind.path(w.ns, definition['metadata']['name'])}
    yield {'method': 'GET', 'path': '/apis/' + group}
    for version in spec['versions']:
        yield {'method': 'GET', 'path': '/apis/%s/%s' % (group, version['name'])}
        yield {'method': 'GET', 'path': '/openapi/v3/apis/%s/%s' % (group, version['name'])}
    for form in ('v2', 'v2beta1'):
        yield {'method': 'GET', 'path': '/apis', 'headers': {'Accept': 'application/json;as=APIGroupDiscoveryList;v=%s;g=apidiscovery.k8s.io' % form}, 'pick': group}
    yield {'method': 'GET', 'path': '/openapi/v2', 'pick': group}
    yield {'method': 'PATCH', 'path': w.kind.path(w.ns, definition['metadata']['name']), 'headers': MERGE, 'body': {'spec': {'names': {'shortNames': ['zz']}, 'versions': [{**spec['versions'][0], 'additionalPrinterColumns': [{'name': 'A', 'type': 'string', 'jsonPath': '.spec.a'}]}]}}}
    path = '/apis/%s/v1/' % group + ('namespaces/default/' if spec['scope'] == 'Namespaced' else '') + 'widgets'
    one = w.of(type(w.kind)(group, 'v1', {'kind': 'Widget', 'name': 'widgets', 'namespaced': False, 'verbs': w.kind.verbs}, []), {'type': 'object', 'properties': {**whole['properties'], 'metadata': {'type': 'object'}}})
    for i in range(4):
        body = {'apiVersion': group + '/v1', 'kind': 'Widget', 'metadata': {'name': 'w%d' % i}, 'spec': one.grower.grow(whole['properties']['spec'])}
        yield {'method': 'POST', 'path': path + query(rng), 'headers': JSON, 'body': body}
        yield {'method': 'PATCH', 'path': path + '/w%d?fieldManager=%s&force=true' % (i, rng.choice(['alice', 'bob'])), 'headers': APPLY, 'body': {**body, 'spec': one.grower.grow(whole['properties']['spec'])}}
    yield {'method': 'GET', 'path': path, 'headers': rng.choice([{}, TABLE, PARTIAL_LIST, {'Accept': CBOR}])}
    yield {'method': 'GET', 'path': '/apis/' + group}


STORIES = {name[len('story_'):]: story for name, story in sorted(globals().items()) if name.startswith('story_')}
