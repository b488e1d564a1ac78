"""Stories about custom resources beyond their objects: paths, verbs and subresources that a definition has or does not have,
/scale, the defaults of each version, selectable fields, field validation; and about requests with superfluous content."""

from stories import JSON, MERGE, PATCH, STRATEGIC, comes_to_be_served


def _definition(w, name):
    """A definition with random subresources, scope and versions; its versions differ in their defaults and selectable fields."""
    rng, definition = w.rng, w.named(w.kind.samples[-1], name)
    text = {'type': 'string'}

    def spec(version):
        fields = {key: dict(text) for key in 'abcd'}
        for key in rng.sample('abcd', rng.choice([0, 1, 2])):
            fields[key]['default'] = version
        inner = {'type': 'object', 'x-kubernetes-embedded-resource': True, 'x-kubernetes-preserve-unknown-fields': True}
        return {'type': 'object', 'default': {}, 'properties': {**fields, 'replicas': {'type': 'integer', **rng.choice([{}, {}, {'default': 2}])}, 'inner': inner}}

    def version(version, storage):
        out = {'name': version, 'served': True, 'storage': storage, 'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {
            'spec': spec(version), 'status': {'type': 'object', 'properties': {'replicas': {'type': 'integer'}, 'a': text}}}}}}
        subresources = {}
        if rng.random() < 0.5:
            subresources['status'] = {}
        if rng.random() < 0.7:
            subresources['scale'] = {'specReplicasPath': '.spec.replicas', 'statusReplicasPath': '.status.replicas'}
        if subresources:
            out['subresources'] = subresources
        if rng.random() < 0.5:
            out['selectableFields'] = [{'jsonPath': '.spec.' + key} for key in rng.sample('abcd', rng.choice([1, 2]))]
        return out
    body = definition['spec']
    body['scope'] = rng.choice(['Namespaced', 'Namespaced', 'Cluster'])
    body['names'] = {'plural': 'widgets', 'kind': 'Widget'}
    body['versions'] = [version('v1', True)] + ([version('v2', False)] if rng.random() < 0.6 else [])
    return definition


def story_routes(w, name):
    """Every method on every path that a custom kind could have."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng, definition = w.rng, _definition(w, name)
    group, namespaced = definition['spec']['group'], definition['spec']['scope'] == 'Namespaced'
    if not (yield from comes_to_be_served(w, definition)):
        return
    versions = [v['name'] for v in definition['spec']['versions']]

    def base(version, within=namespaced):
        return '/apis/%s/%s/%swidgets' % (group, version, 'namespaces/default/' if within else '')

    def body(version, name):
        return {'apiVersion': '%s/%s' % (group, version), 'kind': 'Widget', 'metadata': {'name': name}, 'spec': {}}

    def scale(name):
        metadata = {'name': name, **rng.choice([{}, {'namespace': 'default'}, {'resourceVersion': '1'}, {'resourceVersion': '<live>'}])}
        return {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': metadata, 'spec': rng.choice([{}, {'replicas': 3}, {'replicas': 0}, {'replicas': -1}])}
    for thing in ('one', 'two'):
        version = rng.choice(versions)
        made = body(version, thing)
        made['spec'] = {key: 'sent' for key in rng.sample('abcd', rng.choice([0, 1, 2]))}
        if rng.random() < 0.5:
            made['spec']['replicas'] = 1
        if rng.random() < 0.4:
            made['metadata']['finalizers'] = rng.choice([['plain'], ['a.b'], ['example.com/x'], ['orphan', 'plain']])
        if rng.random() < 0.4:
            made['spec']['inner'] = {'apiVersion': 'v1', 'kind': 'X', 'metadata': rng.choice([{'name': 'i'}, {'name': 'i', 'bogus': 1}])}
            made[rng.choice(['bogus', 'zzz'])] = 1
            made['metadata'].update(rng.choice([{}, {'mine': 1}]))
        yield {'method': 'POST', 'path': base(version) + rng.choice(['', '?fieldValidation=Strict', '?fieldValidation=Warn', '?dryRun=All']), 'headers': JSON, 'body': made}
    for _ in range(14):
        version = rng.choice(versions + ['v1', 'v9'])
        path = base(version, namespaced if rng.random() < 0.8 else not namespaced)
        item = rng.choice(['', '/one', '/one', '/two', '/missing'])
        sub = rng.choice(['', '', '/status', '/scale', '/scale', '/bogus', '/status/x']) if item else ''
        method = rng.choice(['GET', 'GET', 'POST', 'PUT', 'PATCH', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'] if sub else ['GET', 'POST', 'PUT', 'PATCH', 'OPTIONS', 'HEAD'])
        request = {'method': method, 'path': path + item + sub + rng.choice(['', '', '?export=true', '?dryRun=All'])}
        if method in ('POST', 'PUT'):
            request.update(headers=JSON, body=scale(item[1:]) if sub == '/scale' else body(version, item[1:] or 'three'))
        if method == 'PATCH':
            request.update(headers=MERGE, body={'spec': {'replicas': rng.choice([2, 5, -1, None])}})
        yield request
    for version in versions:
        yield {'method': 'GET', 'path': base(version)}
        for key in rng.sample('abcd', 2):
            yield {'method': 'GET', 'path': base(version) + '?fieldSelector=spec.%s%%3D%s' % (key, rng.choice(['sent', 'v1', 'v2']))}
        yield {'method': 'PATCH', 'path': base(version) + '/one', 'headers': MERGE, 'body': {'metadata': {'labels': {'touched': version}}}}
    for version in versions:
        yield {'method': 'GET', 'path': base(version) + '/one'}


# What a document may claim to be instead of what its path says.
OTHER_KINDS = [{'kind': kind, 'apiVersion': version} for version, kinds in {
    'v1': ('Secret', 'SecretList', 'Status', 'List', 'DeleteOptions', 'APIGroup', 'Binding', 'Event', 'Nope'),
    'apps/v1': ('Deployment', 'DeploymentList', 'PatchOptions', 'Pod'),
    'autoscaling/v1': ('Scale',), 'policy/v1': ('Eviction',), 'authentication.k8s.io/v1': ('TokenRequest',),
    'meta.k8s.io/v1': ('Table', 'PartialObjectMetadata'), 'events.k8s.io/v1': ('Event',), 'x/v1': ('Nope',)}.items() for kind in kinds] + [
    {'kind': 'Secret'}, {'kind': 'Pod'}, {'kind': 'Nope'}, {'kind': 'Pod', 'spec': {'containers': 1}},
    {'kind': 'ConfigMap', 'apiVersion': 'v1', 'data': {'a': 1}}, {'apiVersion': 'v1'}, {'apiVersion': 'apps/v1'}]


def story_much(w, name):
    """Requests with superfluous content: a resourceVersion where none belongs, another kind in a patch, unknown or duplicate
    members."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    path = w.kind.path(w.ns, name)
    early = {**sample, 'metadata': {**sample['metadata'], 'resourceVersion': rng.choice(['5', '0', 'x', '1'])}}
    for query in rng.sample(['', '?dryRun=All', '?dryRun=All'], 2):
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + query, 'headers': JSON, 'body': early}
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All', 'headers': JSON, 'body': early}
    if answer['code'] not in (201, 409):
        return
    for _ in range(3):
        kind = rng.choice(OTHER_KINDS)
        yield {'method': 'PATCH', 'path': path + rng.choice(['', '?fieldValidation=Strict']), 'headers': rng.choice([MERGE, STRATEGIC]), 'body': kind}
        kind = rng.choice(OTHER_KINDS)
        yield rng.choice([{'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': kind},
                          {'method': 'PUT', 'path': path, 'headers': JSON, 'body': {**sample, **kind}}])
        operations = []
        for i in range(rng.choice([1, 2, 3])):
            members = ['"op":"add"', '"path":"/metadata/labels"', '"value":{"a":"%d"}' % i] + rng.sample(['"foo":1', '"op":"add"', '"bar":1', '"bar":2', '"path":"/metadata/labels"'], rng.choice([0, 1, 2]))
            operations.append('{%s}' % ','.join(members))
        operations += rng.choice([[], ['{"op":"add","path":"/bogus","value":1}'], ['{"op":"add","path":"/metadata/bogus","value":1}']])
        yield {'method': 'PATCH', 'path': path + rng.choice(['', '?fieldValidation=Strict', '?fieldValidation=Warn', '?fieldValidation=Ignore']), 'headers': PATCH, 'body': '[%s]' % ','.join(operations)}
    for query in ('continue=garbage', 'continue=e30', 'continue=garbage&resourceVersion=5', 'continue=e30&resourceVersion=0', 'export=true'):
        yield {'method': 'GET', 'path': (path if query == 'export=true' and rng.random() < 0.5 else w.kind.path(w.ns)) + '?' + query}


def story_faults(w, name):
    """Definitions with rarely used features: defaults of embedded resources, indices in the paths of /scale, top-level names
    with rules, a built-in group."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng, definition = w.rng, _definition(w, name)
    version = definition['spec']['versions'][0]
    fields = version['schema']['openAPIV3Schema']['properties']
    if rng.random() < 0.6:
        metadata = rng.choice([{}, {'name': 'i'}, {'name': 1}, {'name': 'A B'}, {'labels': {'-': '_ _'}}, {'labels': 'x'}, {'bogus': 1, 'name': 'i'}, {'annotations': {'a': 1}}])
        default = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': metadata}
        for key in rng.sample(sorted(default), rng.choice([0, 0, 1])):
            default.pop(key)
        default.update(rng.choice([{}, {}, {'kind': rng.choice(['', 1, '_'])}, {'apiVersion': rng.choice(['', 'a/b/c', 1])}]))
        fields['spec']['properties']['inner']['default'] = default
    if rng.random() < 0.5:
        version['subresources'] = {'scale': {'specReplicasPath': rng.choice(['.spec.list[0].n', '.spec.', '.spec.a.b', 'spec.a', '.status.a', '']),
                                             'statusReplicasPath': rng.choice(['.status.a[1]', '.status.a', '.spec.a', '.status']),
                                             **rng.choice([{}, {'labelSelectorPath': rng.choice(['.status.s[0]', '.metadata.x', 's', '.spec.s'])}])}}
    if rng.random() < 0.5:
        fields.update(rng.choice([{'apiVersion': {'type': 'integer'}}, {'kind': {'type': 'string', 'pattern': '^W'}}, {'apiVersion': {'type': 'string', 'enum': ['x']}}, {'kind': {'type': 'string', 'default': 'x'}},
                                  {'metadata': {'type': 'object', 'properties': {'name': {'type': 'string', 'maxLength': 3}}}}, {'metadata': {'type': 'object', 'properties': {'labels': {'type': 'object'}}}}]))
    if rng.random() < 0.2:
        group = rng.choice(['networking.k8s.io', 'storage.k8s.io', 'example.k8s.io'])
        definition['spec']['group'], definition['metadata']['name'] = group, 'widgets.' + group
        definition['metadata']['annotations'] = rng.choice([{}, {'api-approved.kubernetes.io': rng.choice(['https://github.com/x', 'unapproved, test', 'nope'])}])
    group = definition['spec']['group']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': definition}
    if answer['code'] != 201:
        return
    base = '/apis/%s/v1/%swidgets' % (group, 'namespaces/default/' if definition['spec']['scope'] == 'Namespaced' else '')
    yield {'method': 'GET', 'path': base, 'wait': True}
    yield {'method': 'GET', 'path': base}
    body = {'apiVersion': group + '/v1', 'kind': 'Widget', 'metadata': {'name': 'one', 'labels': {'b': '1', 'a': '2'}}, 'spec': {'b': '1', 'a': '2'}}
    for path in ('?fieldManager=b', ''):
        yield {'method': 'POST', 'path': base + path, 'headers': JSON, 'body': body}
    yield {'method': 'GET', 'path': base + '/one', 'headers': {'Accept': rng.choice(['application/json', 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'])}}
    yield {'method': 'GET', 'path': base + '/one/scale'}
    yield {'method': 'DELETE', 'path': w.kind.path(w.ns, 'widgets.' + group)}


def story_mistaken(w, name):
    """Definitions with several mistakes at once: in the structure of a schema, its keywords, defaults, lists, rules,
    selectable fields, and the webhook."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng = w.rng

    def broken(depth=0):
        """One property per level, because Go visits several in random order."""
        schema = {'type': rng.choice(['object', 'object', 'object', 'array', 'string', 'integer', 'text', '', 'null'])}
        if not schema['type']:
            del schema['type']
        faults = [{'nullable': True}, {'pattern': rng.choice(['+', '(', '[a', 'a{2,1}', '\\x', '^a$'])}, {'default': rng.choice([1, 'x', {}, {'z': 1, 'a': 'b'}, [1], True])},
                  {'$ref': '#/x'}, {'id': 'x'}, {'$schema': 'http://json-schema.org/draft-04/schema#'}, {'definitions': {'d': {'type': 'text'}}}, {'dependencies': {'a': ['b']}},
                  {'patternProperties': {'^a': {'type': 'string'}}}, {'additionalItems': True}, {'uniqueItems': True}, {'title': 't'}, {'description': 'd'},
                  {'additionalProperties': rng.choice([True, False, {'type': 'string'}, {'type': 'string', 'default': 1}])}, {'x-kubernetes-preserve-unknown-fields': rng.choice([True, False])},
                  {'x-kubernetes-int-or-string': True}, {'x-kubernetes-embedded-resource': True}, {'x-kubernetes-list-type': rng.choice(['map', 'set', 'atomic', 'x'])},
                  {'x-kubernetes-list-map-keys': rng.choice([['a'], ['a', 'a'], ['zz', 'a', 'zz']])}, {'x-kubernetes-map-type': rng.choice(['atomic', 'x'])},
                  {'items': rng.choice([{'type': 'object'}, {'type': 'array'}, {}, [{'type': 'string'}], {'type': 'object', 'nullable': True, 'properties': {'a': rng.choice([{'type': 'string'}, {'type': 'object'}])}}])},
                  {'not': {'properties': {'other': {'type': 'string'}}}}, {'anyOf': [{'required': ['a']}, {'properties': {'other': {'minLength': 1}}}]},
                  {'allOf': [{'nullable': True, 'additionalProperties': rng.choice([True, False])}]},
                  {'x-kubernetes-validations': [rng.choice([{'rule': ''}, {'rule': 'true', 'message': ' '}, {'rule': 'self.nope'}, {'rule': 'true', 'reason': 'X', 'fieldPath': '.x'}, {'rule': 'true'}, {'rule': 'false'}])]}]
        for fault in rng.sample(faults, rng.choice([0, 1, 2, 3])):
            schema.update(fault)
        if depth < 2 and rng.random() < 0.7:
            schema['properties'] = {rng.choice(['a', 'metadata', 'kind']): broken(depth + 1)}
        return schema

    def version(name, storage):
        whole = {'type': 'object', 'properties': {'spec': broken()}} if rng.random() < 0.8 else broken()
        out = {'name': name, 'served': True, 'storage': storage, 'schema': {'openAPIV3Schema': whole}}
        if rng.random() < 0.3:
            out['subresources'] = rng.choice([{'status': {}}, {'scale': {'specReplicasPath': '.x', 'statusReplicasPath': 'y', 'labelSelectorPath': '.z'}}])
        if rng.random() < 0.4:
            paths = ['.spec.a', '.spec', 'spec', '.', '.spec.', '.spec.a.', '..', '.metadata', '.metadata.name', '.spec[0]', ".spec['a']", '.nope', '', '.spec.a']
            out['selectableFields'] = [{'jsonPath': path} for path in rng.sample(paths, rng.choice([1, 2, 4, 10]))]
        if rng.random() < 0.2:
            out.update(rng.choice([{'deprecationWarning': 'x'}, {'deprecated': True, 'deprecationWarning': rng.choice(['', 'a\tb', 'y' * 300, '<&>'])}]))
        return out
    for _ in range(6):
        definition = w.named(w.kind.samples[-1], name)
        spec = definition['spec']
        spec['versions'] = [version('v1', True)] + ([version(rng.choice(['v2', 'v1', 'V2']), rng.random() < 0.2)] if rng.random() < 0.4 else [])
        if rng.random() < 0.3:
            spec['conversion'] = {'strategy': rng.choice(['Webhook', 'Webhook', 'None', 'x', '']), **rng.choice([{}, {'webhook': {
                'conversionReviewVersions': rng.choice([['v1'], ['v2'], ['v1', 'v1'], [], ['V' * 70]]),
                'clientConfig': rng.choice([{}, {'url': 'http://x'}, {'service': {'name': 'n'}}, {'service': {'namespace': 'n', 'port': 0, 'path': 'a//B'}}, {'url': 'https://x', 'service': {'name': 'n', 'namespace': 'n'}}])}}])}
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All', 'headers': JSON, 'body': definition}


def story_claims(w, name):
    """The status of a ResourceClaim, changed by a user with some of the required permissions."""
    if w.kind.name != 'ResourceClaim':
        return
    rng, user = w.rng, 'user-' + w.ns
    claim = {'metadata': {'name': 'c'}, 'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'gpus'}}]}}}
    rules = [{'apiGroups': ['resource.k8s.io'], 'resources': ['resourceclaims/status'], 'verbs': ['get', 'patch', 'update']}]
    rules += rng.choice([[], [{'apiGroups': ['resource.k8s.io'], 'resources': ['resourceclaims/binding'], 'verbs': [rng.choice(['patch', 'update'])]}]])
    rules += rng.choice([[], [{'apiGroups': ['resource.k8s.io'], 'resources': ['resourceclaims/driver'], 'verbs': [rng.choice(['arbitrary-node:patch', 'associated-node:patch', 'patch'])],
                               **rng.choice([{}, {'resourceNames': ['a.example.com']}])}]])
    rbac = '/apis/rbac.authorization.k8s.io/v1/'
    yield {'method': 'POST', 'path': rbac + 'clusterroles', 'headers': JSON, 'body': {'metadata': {'name': user}, 'rules': rules}}
    yield {'method': 'POST', 'path': rbac + 'clusterrolebindings', 'headers': JSON, 'wait': True, 'body': {
        'metadata': {'name': user}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': user}, 'subjects': [{'kind': 'User', 'name': user}]}}
    yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': claim}
    device = lambda: {'driver': rng.choice(['a.example.com', 'b.example.com']), 'pool': 'p', 'device': 'd'}
    for _ in range(6):
        status = rng.choice([{'allocation': {'devices': {'results': [{'request': 'r', **device()}]}}}, {'allocation': None}, {'reservedFor': [{'resource': 'pods', 'name': 'p', 'uid': 'u'}] * rng.choice([1, 1, 2])},
                             {'devices': [{**device(), 'data': {'a': rng.choice([1, 2])}} for _ in range(rng.choice([1, 1, 2, 3]))]}, {'devices': None}, {}])
        who = rng.choice([{'Impersonate-User': user}, {'Impersonate-User': user}, {}])
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, 'c') + '/status', 'headers': {**MERGE, **who}, 'body': {'status': status}}


STORIES = {name[len('story_'):]: story for name, story in sorted(globals().items()) if name.startswith('story_')}
