"""Stories about reviews: who may do what under roles that the story has created, and mistakes in the bodies of reviews."""
from stories import JSON

GROUPS = ['', 'apps', 'batch', 'example.com', '*', 'rbac.authorization.k8s.io']
RESOURCES = ['pods', 'pods/log', 'deployments', 'deployments/scale', 'secrets', '*', '*/status', 'pods/*', 'configmaps', 'nodes']
VERBS = ['get', 'list', 'watch', 'create', 'update', 'delete', '*', 'escalate', 'GET', '']
NAMES = ['a', 'b', '']
URLS = ['/healthz', '/healthz/*', '*', '/api', '/api/*', '/metrics', '/x']


def rule(rng):
    if rng.random() < 0.2:
        return {'verbs': rng.sample(VERBS[:6], 2), 'nonResourceURLs': rng.sample(URLS, 2)}
    out = {'verbs': rng.sample(VERBS[:8], rng.choice([1, 2])), 'apiGroups': rng.sample(GROUPS, rng.choice([1, 2])), 'resources': rng.sample(RESOURCES, rng.choice([1, 2, 3]))}
    if rng.random() < 0.3:
        out['resourceNames'] = rng.sample(['a', 'b', 'c'], rng.choice([1, 2]))
    return out


def subject(rng, w):
    return rng.choice([{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': 'u-' + w.ns}, {'kind': 'Group', 'apiGroup': 'rbac.authorization.k8s.io', 'name': 'g-' + w.ns},
                       {'kind': 'ServiceAccount', 'namespace': w.ns, 'name': 'sa'}])


def selector(rng, field):
    if rng.random() < 0.3:
        return {'rawSelector': rng.choice(['a=b', 'a', 'a in (b,c)', 'a!=b', '', 'a=b,c', 'a b', '!a', 'metadata.name=x', 'x>1'])}
    return {'requirements': [{'key': rng.choice(['a', 'metadata.name', '']), 'operator': rng.choice(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Nope', '']),
                              'values': rng.choice([[], ['x'], ['x', 'y']])} for _ in range(rng.choice([0, 1, 2]))]}


def attributes(rng, w):
    if rng.random() < 0.15:
        return {'nonResourceAttributes': {'path': rng.choice(URLS), 'verb': rng.choice(VERBS)}}
    resource, _, sub = rng.choice(RESOURCES).partition('/')
    out = {'verb': rng.choice(VERBS), 'resource': resource, 'group': rng.choice(GROUPS)}
    for key, value in (('subresource', sub), ('name', rng.choice(NAMES)), ('namespace', rng.choice([w.ns, w.ns, '', 'default', '*'])), ('version', rng.choice(['v1', '*', '']))):
        if value or rng.random() < 0.1:
            out[key] = value
    for key in ('fieldSelector', 'labelSelector'):
        if rng.random() < 0.12:
            out[key] = selector(rng, key)
    return {'resourceAttributes': out}


def review(rng, w):
    kind = rng.choice(['SubjectAccessReview', 'SubjectAccessReview', 'SelfSubjectAccessReview', 'LocalSubjectAccessReview', 'SelfSubjectRulesReview', 'SelfSubjectReview', 'TokenReview'])
    body, group = {'kind': kind}, 'authorization.k8s.io'
    if kind.endswith('AccessReview'):
        body['spec'] = attributes(rng, w)
        if not kind.startswith('Self'):
            for key, values in (('user', ['u-' + w.ns, 'system:serviceaccount:%s:sa' % w.ns, 'nobody', '']), ('groups', [['g-' + w.ns], ['system:masters'], ['system:authenticated'], []]),
                                ('extra', [{'a': ['b']}, {}]), ('uid', ['x'])):
                if rng.random() < (0.8 if key in ('user', 'groups') else 0.1):
                    body['spec'][key] = rng.choice(values)
    elif kind == 'SelfSubjectRulesReview':
        body['spec'] = rng.choice([{'namespace': w.ns}, {'namespace': ''}, {}, {'namespace': 'default'}])
    elif kind == 'TokenReview':
        group, body['spec'] = 'authentication.k8s.io', rng.choice([{'token': 'compare'}, {'token': 'nope'}, {'token': ''}, {}, {'token': 'compare', 'audiences': ['x']}, {'token': 'a.b.c'}])
    else:
        group = 'authentication.k8s.io'
    rng.choice([lambda: None] * 12 + [lambda: body.update(metadata={'name': 'x'}), lambda: body.update(metadata={'labels': {'a': 'b'}}), lambda: body.pop('spec', None), lambda: body.update(spec=None), lambda: body.update(nope=1),
                                      lambda: body.update(status={'allowed': True}), lambda: body.get('spec', {}).update(nonResourceAttributes={'path': '/x', 'verb': 'get'}), lambda: body.update(kind='Nope'),
                                      lambda: body.get('spec', {}).pop('resourceAttributes', None), lambda: body.update(metadata={'namespace': w.ns})])()
    body['apiVersion'] = group + '/v1'
    where = '/namespaces/%s' % rng.choice([w.ns, w.ns, 'other']) if kind.startswith('Local') else ''
    return {'method': 'POST', 'path': '/apis/%s/v1%s/%ss%s' % (group, where, kind.lower(), rng.choice(['', '', '', '?dryRun=All', '?fieldValidation=Strict', '?fieldValidation=Ignore'])), 'headers': JSON, 'body': body}


def story_reviews(w, name):
    rng, group = w.rng, '/apis/rbac.authorization.k8s.io/v1/'
    if w.kind.name not in ('Role', 'RoleBinding', 'ServiceAccount'):
        return
    for i in range(2):
        cluster = rng.random() < 0.4
        role = {'metadata': {'name': '%s-%d' % (name, i)}, 'rules': [rule(rng) for _ in range(rng.choice([1, 2]))]}
        if not cluster:
            role['rules'] = [r for r in role['rules'] if 'resources' in r]
        yield {'method': 'POST', 'path': group + ('clusterroles' if cluster else 'namespaces/%s/roles' % w.ns), 'headers': JSON, 'body': role}
        wide = cluster and rng.random() < 0.5
        binding = {'metadata': {'name': '%s-%d' % (name, i)}, 'subjects': [subject(rng, w) for _ in range(rng.choice([1, 2]))],
                   'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole' if cluster else 'Role', 'name': role['metadata']['name']}}
        yield {'method': 'POST', 'path': group + ('clusterrolebindings' if wide else 'namespaces/%s/rolebindings' % w.ns), 'headers': JSON, 'body': binding, 'wait': True}
    yield {'method': 'GET', 'path': group + 'namespaces/%s/rolebindings' % w.ns, 'wait': True}
    for _ in range(12):
        yield review(rng, w)
    for i in range(2):
        for plural in ('clusterrolebindings', 'clusterroles'):
            yield {'method': 'DELETE', 'path': group + '%s/%s-%d' % (plural, name, i), 'wait': True}


STORIES = {'reviews': story_reviews}
