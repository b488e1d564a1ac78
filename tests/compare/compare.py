#!/usr/bin/env python3
"""Sends the same random requests to Holdfast and to a real kube-apiserver, and compares the answers.

  compare.py --ours URL --theirs URL --token T [--seed N] [--stories N] [--kind Name,...] [--without Name,...] [--about WORD] [--keep FILE]

Both servers know the token, run no controllers and have the admission plugins ServiceAccount and Priority off (as the
recordings were made; `tools/peer up` of the project's shared folder starts such a kube-apiserver). A story is a few
requests in a namespace of its own, grown from the objects in tests/vectors and from the published schemas: objects with
fields that are missing, of another type, out of range, unknown; updates, patches, applies, lists, tables, dry runs.
What each server chooses (uid, time, resourceVersion, addresses) is made equal first. The seed repeats a run.
"""
import argparse, collections, copy, http.client, json, os, random, re, ssl, string, sys, threading
from urllib.parse import urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, '..', 'vectors')
SERVER_SET = ('uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'selfLink',
              'deletionTimestamp', 'deletionGracePeriodSeconds')


class Server:
    def __init__(self, url, token):
        self.where, self.token, self.local = urlsplit(url).netloc, token, threading.local()

    def connection(self):
        if getattr(self.local, 'connection', None) is None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.local.connection = http.client.HTTPSConnection(self.where, context=context, timeout=30)
        return self.local.connection

    def send(self, request):
        headers = {'Authorization': 'Bearer ' + self.token, 'Accept': 'application/json', 'User-Agent': 'compare'}
        headers.update(request.get('headers', {}))
        body = request.get('body')
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        for attempt in (0, 1):
            try:
                connection = self.connection()
                connection.request(request['method'], request['path'], body.encode() if body else None, headers)
                response = connection.getresponse()
                data = response.read()
                break
            except (http.client.HTTPException, OSError):
                self.local.connection = None
                if attempt:
                    raise
        answer = {'code': response.status, 'type': response.headers.get('Content-Type'),
                  'warnings': sorted(response.headers.get_all('Warning') or [])}
        try:
            answer['body'] = json.loads(data)
        except ValueError:
            answer['body'] = data.decode('utf-8', 'replace')
        return answer


# ------------------------------------------------------------------ what each server chooses

UID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d')
RANDOM = re.compile(r'(gen-)[bcdfghjklmnpqrstvwxz2456789]{5}')
ADDRESS = re.compile(r'\b10\.0\.\d+\.\d+\b')


def text(value):
    value = UID.sub('<uid>', value)
    value = TIME.sub('<time>', value)
    value = re.sub(r'<time>\.\d+', '<time>.<fraction>', value)
    value = RANDOM.sub(r'\1<random>', value)
    value = re.sub(r'(resourceVersion|ResourceVersion)(\W+)\d+', r'\1\2<rv>', value)
    value = re.sub(r'in record \(\d+\)', 'in record (<rv>)', value)
    return ADDRESS.sub('<ip>', value)


# Conditions that a part of kube-apiserver writes by itself.
ITS_OWN = ('api-priority-and-fairness-config-consumer-v1', 'kube-apiserver')


def normal(value, key=''):
    if key == 'managedFields' and isinstance(value, list):
        # Entries of one second are ordered by name, those of two by time: a matter of luck here.
        value = sorted((v for v in value if v.get('manager') not in ITS_OWN),
                       key=lambda v: (v.get('manager', ''), v.get('operation', ''), v.get('subresource', '')))
    if isinstance(value, dict):
        if value.get('kind') in ('FlowSchema', 'APIService') and isinstance(value.get('status'), dict):
            value = {**value, 'status': {k: v for k, v in value['status'].items() if k != 'conditions'}}
        return {k if not k.startswith('k:') else text(k): normal(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v, key) for v in value]
    if isinstance(value, str):
        if key in ('resourceVersion', 'continue') and value:
            return '<' + key + '>'
        return text(value)
    if key == 'nodePort' and value:
        return '<port>'
    if key == 'remainingItemCount':
        return '<count>'
    return value


def pieces(message):
    """Several refusals of one object may come in any order: Go's maps have none."""
    return sorted(re.split(r', (?=[a-z<][A-Za-z0-9.\[\]<>]*: )', message.replace(': [', ': ').rstrip(']')))


def comparable(answer):
    body = normal(answer['body'])
    if isinstance(body, dict) and body.get('kind') == 'Status' and isinstance(body.get('message'), str):
        body['message'] = pieces(body['message'])
        details = body.get('details')
        if isinstance(details, dict) and isinstance(details.get('causes'), list):
            details['causes'] = sorted(details['causes'], key=json.dumps)
    if isinstance(body, dict) and body.get('kind') == 'Table':
        for column in body.get('columnDefinitions') or []:
            column['description'] = ''  # Differs and is written down in docs/differences.md.
        for row in body.get('rows') or []:
            row['cells'] = [re.sub(r'^\d+(s|m|m\d+s)$', '<age>', c) if isinstance(c, str) else c for c in row['cells']]
    return {'code': answer['code'], 'type': answer['type'], 'warnings': [text(w) for w in answer['warnings']],
            'body': body}


def differences(ours, theirs, path=''):
    if path == '.body.details.causes' and isinstance(ours, list) and isinstance(theirs, list):
        left, right = (collections.Counter(json.dumps(c, sort_keys=True) for c in causes) for causes in (ours, theirs))
        if left != right:
            yield path, sorted((left - right).elements()), sorted((right - left).elements())
        return
    if type(ours) is type(theirs) and isinstance(ours, dict):
        for key in sorted(set(ours) | set(theirs)):
            if key not in ours:
                yield path + '.' + key, '<absent>', theirs[key]
            elif key not in theirs:
                yield path + '.' + key, ours[key], '<absent>'
            else:
                yield from differences(ours[key], theirs[key], path + '.' + key)
    elif type(ours) is type(theirs) and isinstance(ours, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, path + '[%d]' % i)
    elif type(ours) is not type(theirs) or ours != theirs:
        yield path, ours, theirs


# ------------------------------------------------------------------ what there is

class Kind:
    def __init__(self, group, version, resource, subresources):
        self.group, self.version, self.name = group, version, resource['kind']
        self.plural, self.namespaced, self.verbs = resource['name'], resource['namespaced'], resource['verbs']
        self.subresources = subresources
        self.api_version = (group + '/' if group else '') + version
        self.schema, self.samples = None, []

    def path(self, ns, name=None, sub=None):
        root = '/apis/' + self.group if self.group else '/api'
        out = root + '/' + self.version + ('/namespaces/' + ns if self.namespaced else '') + '/' + self.plural
        return out + ('/' + name if name else '') + ('/' + sub if sub else '')


def load_kinds(server):
    def get(path, accept='application/json'):
        return server.send({'method': 'GET', 'path': path, 'headers': {'Accept': accept}})['body']
    versions = [('', 'v1')] + [(g['name'], v['version']) for g in get('/apis')['groups'] for v in g['versions']
                               if g['name'].endswith('.k8s.io') or '.' not in g['name']]
    kinds = []
    for group, version in versions:
        where = ('apis/' + group if group else 'api') + '/' + version
        listed = get('/' + where)['resources']
        schemas = get('/openapi/v3/' + where)['components']['schemas']
        for resource in listed:
            if '/' in resource['name'] or 'create' not in resource['verbs']:
                continue
            subs = [r['name'].split('/')[1] for r in listed if r['name'].startswith(resource['name'] + '/')]
            kind = Kind(group, version, resource, subs)
            for name, schema in schemas.items():
                for gvk in schema.get('x-kubernetes-group-version-kind', []):
                    if (gvk['group'], gvk['version'], gvk['kind']) == (group, version, kind.name):
                        kind.schema = schema
            kind.schemas = schemas
            kinds.append(kind)
    for file in sorted(os.listdir(VECTORS)):
        if not file.endswith('.json') or file.startswith(('table-', 'yaml-', 'custom')):
            continue
        with open(os.path.join(VECTORS, file)) as f:
            try:
                sample = json.load(f)
            except ValueError:
                continue
        for kind in kinds:
            if sample.get('kind') == kind.name and sample.get('apiVersion') == kind.api_version and 'metadata' in sample:
                sample['metadata'] = {k: v for k, v in sample['metadata'].items()
                                      if k in ('labels', 'annotations', 'finalizers')}
                kind.samples.append(sample)
    return kinds


# ------------------------------------------------------------------ objects

TEXTS = ['', 'x', 'a-b', 'A_b', 'Not Valid!', '-x', 'x' * 64, 'x' * 254, 'example.com/x', 'a.b.c', '1.2.3.4', '::1',
         '10.0.0.0/8', '100m', '1Gi', '-5', '1.5', '5%', '200%', 'http', 'TCP', 'Always', 'Never', 'true', 'null', '/a/b',
         '../a', '2026-01-01T00:00:00Z', '*/5 * * * *', '*', 'ü', 'a=b', 'https://example.com', 'None', 'Retain', '0']
NUMBERS = [0, 1, -1, 2, 80, 443, 65535, 65536, 100, 101, 1000, 2147483647, 2147483648, -2147483648, 9223372036854775807,
           1.5, 1e3, 30000, 32768]


class Grower:
    def __init__(self, rng, schemas):
        self.rng, self.schemas = rng, schemas

    def resolve(self, schema):
        while True:
            if '$ref' in schema:
                schema = self.schemas[schema['$ref'].rsplit('/', 1)[1]]
            elif len(schema.get('allOf', [])) == 1:
                schema = {**schema['allOf'][0], **{k: v for k, v in schema.items() if k != 'allOf'}}
                if '$ref' in schema:
                    continue
                return schema
            else:
                return schema

    def any(self):
        return self.rng.choice([None, True, False, [], {}, [None], {'a': 1}, [1, 'x'], 'text', 5, -1.5, [{}], {'x': None}])

    def grow(self, schema, depth=0):
        rng, schema = self.rng, self.resolve(schema)
        if rng.random() < 0.01:
            return self.any()
        if schema.get('enum') and rng.random() < 0.9:
            return rng.choice(schema['enum'])
        kind = schema.get('type')
        if kind == 'object' and 'properties' in schema:
            out, required = {}, schema.get('required', [])
            for name, property in schema['properties'].items():
                chance = 0.93 if name in required else 0.35 / (1 + depth)
                if rng.random() < chance:
                    out[name] = self.grow(property, depth + 1)
            return out
        if kind == 'object':
            element = schema.get('additionalProperties')
            if not isinstance(element, dict):
                return rng.choice([{}, {'a': 'b'}])
            return {rng.choice(['a', 'cpu', 'memory', 'example.com/x', 'A b', 'k']): self.grow(element, depth + 1)
                    for _ in range(rng.randint(0, 2))}
        if kind == 'array':
            return [self.grow(schema['items'], depth + 1) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
        if kind == 'string':
            form = schema.get('format')
            if form == 'date-time':
                return rng.choice(['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.123456Z', 'x'])
            if form == 'byte':
                return rng.choice(['YQ==', '', 'x', 'YWJj'])
            return rng.choice(TEXTS)
        if kind == 'integer':
            return rng.choice(NUMBERS[:-5] if rng.random() < 0.9 else NUMBERS)
        if kind == 'number':
            return rng.choice(NUMBERS)
        if kind == 'boolean':
            return rng.random() < 0.5
        if 'oneOf' in schema:  # Quantities and ports.
            return rng.choice(['1', '100m', '5%', 'http', 5, 0, -1, 80, '1Gi', '1.5', 'x y', ''])
        return self.any() if rng.random() < 0.5 else {'a': 1}

    def schema_at(self, schema, path):
        for step in path:
            schema = self.resolve(schema)
            if isinstance(step, int):
                schema = schema.get('items', {})
            elif step in schema.get('properties', {}):
                schema = schema['properties'][step]
            else:
                schema = schema.get('additionalProperties', {})
                if not isinstance(schema, dict):
                    schema = {}
        return self.resolve(schema)


def places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            if path or key not in ('apiVersion', 'kind'):
                yield from places(item, path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, path + (i,))


def at(value, path):
    for step in path:
        value = value[step]
    return value


class Writer:
    """Grows and changes objects of one kind."""

    def __init__(self, kind, rng, ns, number):
        self.kind, self.rng, self.ns, self.number = kind, rng, ns, number
        self.grower = Grower(rng, kind.schemas)

    def named(self, sample, name):
        out = copy.deepcopy(sample)
        out.setdefault('metadata', {})['name'] = name
        out.setdefault('apiVersion', self.kind.api_version)
        out.setdefault('kind', self.kind.name)
        if self.kind.name == 'CustomResourceDefinition':
            group = name + '.example.com'
            out['metadata']['name'] = 'widgets.' + group
            if isinstance(out.get('spec'), dict):
                out['spec']['group'] = group
        if self.kind.name == 'APIService' and isinstance(out.get('spec'), dict):
            out['spec'].update(group=name + '.example.com', version='v1')
            out['metadata']['name'] = 'v1.' + name + '.example.com'
        if self.kind.name == 'IPAddress':
            out['metadata']['name'] = '192.0.2.%d' % (self.number % 250)
        if self.kind.namespaced and self.rng.random() < 0.1:
            out['metadata']['namespace'] = self.ns
        return out

    def valid(self, name):
        if not self.kind.samples:
            return self.grown(name)
        out = self.named(self.rng.choice(self.kind.samples), name)
        if self.rng.random() < 0.7:
            out.pop('status', None)
        return out

    def grown(self, name):
        schema = self.grower.resolve(self.kind.schema)
        out = {}
        for key, property in schema.get('properties', {}).items():
            if key not in ('apiVersion', 'kind', 'metadata', 'status'):
                out[key] = self.grower.grow(property)
        return self.named(out, name)

    def changed(self, sample, times=None, keep_name=True):
        out = copy.deepcopy(sample)
        for _ in range(times or self.rng.choice([1, 1, 1, 2, 3])):
            self.change(out)
        if keep_name:
            if not isinstance(out.get('metadata'), dict):
                out['metadata'] = {}
            out['metadata']['name'] = sample['metadata']['name']
        return out

    def change(self, out):
        rng = self.rng
        spots = [p for p in places(out) if p[:2] != ('metadata', 'name')]
        if not spots:
            return
        path = rng.choice(spots)
        parent, key = at(out, path[:-1]), path[-1]
        schema = self.grower.schema_at(self.kind.schema, path)
        move = rng.random()
        if move < 0.22:
            del parent[key]
        elif move < 0.30:
            parent[key] = self.grower.any()
        elif move < 0.60:
            parent[key] = self.grower.grow(schema)
        elif move < 0.68:
            if isinstance(parent[key], str):
                parent[key] = rng.choice(TEXTS)
            elif isinstance(parent[key], (int, float)):
                parent[key] = rng.choice(NUMBERS)
            elif isinstance(parent[key], list):
                parent[key] = parent[key] + parent[key][:1]
            else:
                parent[key]['unknownField'] = 1
        elif move < 0.90:
            # A field that is not there yet.
            holder = parent[key] if isinstance(parent[key], dict) else parent
            spot = path if isinstance(parent[key], dict) else path[:-1]
            here = self.grower.schema_at(self.kind.schema, spot)
            names = [n for n in here.get('properties', {}) if n not in holder] if isinstance(holder, dict) else []
            if names:
                name = rng.choice(names)
                holder[name] = self.grower.grow(here['properties'][name], len(spot))
        else:
            meta = out.setdefault('metadata', {}) if isinstance(out.get('metadata', {}), dict) else {}
            rng.choice([
                lambda: meta.update(labels={rng.choice(TEXTS): rng.choice(TEXTS)}),
                lambda: meta.update(annotations={rng.choice(TEXTS): rng.choice(TEXTS)}),
                lambda: meta.update(finalizers=[rng.choice(TEXTS)]),
                lambda: meta.update(ownerReferences=[{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'x', 'uid': rng.choice(['u', ''])}]),
                lambda: meta.update(generation=rng.choice([-1, 5]), creationTimestamp='2020-01-01T00:00:00Z', uid='x'),
                lambda: meta.update(generateName=rng.choice(TEXTS)),
                lambda: meta.update(labels={'a': rng.choice([None, 5, {}])}),
            ])()


# ------------------------------------------------------------------ stories

def query(rng, write=True):
    options = []
    if write and rng.random() < 0.3:
        options.append('fieldValidation=' + rng.choice(['Strict', 'Strict', 'Warn', 'Ignore', 'Nope']))
    if write and rng.random() < 0.15:
        options.append('dryRun=' + rng.choice(['All', 'All', 'All', 'Some', '']))
    if write and rng.random() < 0.15:
        options.append('fieldManager=' + rng.choice(['me', 'x' * 129, 'a%0Ab', '']))
    if rng.random() < 0.05:
        options.append('pretty=' + rng.choice(['true', 'false', 'x']))
    return '?' + '&'.join(options) if options else ''


TABLE = {'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io'}
PARTIAL = {'Accept': 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'}
PARTIAL_LIST = {'Accept': 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'}
JSON = {'Content-Type': 'application/json'}
APPLY = {'Content-Type': 'application/apply-patch+yaml'}
MERGE = {'Content-Type': 'application/merge-patch+json'}
STRATEGIC = {'Content-Type': 'application/strategic-merge-patch+json'}
PATCH = {'Content-Type': 'application/json-patch+json'}


def merge_difference(old, new):
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    out = {}
    for key in set(old) | set(new):
        if key not in new:
            out[key] = None
        elif key not in old:
            out[key] = new[key]
        elif old[key] != new[key]:
            out[key] = merge_difference(old[key], new[key])
    return out


def pointer(path):
    return ''.join('/' + str(step).replace('~', '~0').replace('/', '~1') for step in path)


def json_patch(rng, writer, sample):
    operations = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        spots = list(places(sample)) or [('metadata',)]
        path = rng.choice(spots)
        op = rng.choice(['add', 'replace', 'remove', 'test', 'copy', 'move', 'add', 'replace', 'nope'])
        operation = {'op': op, 'path': pointer(path)}
        if rng.random() < 0.1:
            operation['path'] += rng.choice(['/x', '/-', '/0', '/99', '~', ''])
        if op in ('add', 'replace', 'test', 'nope'):
            if rng.random() < 0.95:
                known = writer.grower.schema_at(writer.kind.schema, path)
                operation['value'] = at(sample, path) if rng.random() < 0.3 else writer.grower.grow(known)
        if op in ('copy', 'move'):
            operation['from'] = pointer(rng.choice(spots))
        if rng.random() < 0.03:
            operation[rng.choice(['op', 'path', 'extra'])] = 5
        operations.append(operation)
    return operations


def reads(kind, ns, name, rng):
    sel = rng.choice(['labelSelector=a', 'labelSelector=a%3Db', 'labelSelector=a%20in%20(b,c)', 'labelSelector=!a',
                      'labelSelector=a%20b%20c', 'fieldSelector=metadata.name%3D' + name, 'fieldSelector=spec.x%3D1',
                      'fieldSelector=metadata.namespace%3D' + ns, 'limit=1', 'limit=-1', 'limit=x', 'limit=500',
                      'resourceVersion=0', 'resourceVersion=x', 'resourceVersion=0&resourceVersionMatch=Exact',
                      'resourceVersionMatch=NotOlderThan', 'continue=x', 'fieldSelector=a', 'fieldSelector=status.phase%3DRunning',
                      'fieldSelector=spec.nodeName%3Dn', 'fieldSelector=type%3DOpaque', 'timeoutSeconds=x',
                      'watch=true&timeoutSeconds=1&resourceVersion=x', 'sendInitialEvents=true'])
    mine = ('&' if kind.namespaced else '&labelSelector=%21app,compare%3D' + ns + '&')[:-1] if not kind.namespaced else ''
    yield {'method': 'GET', 'path': kind.path(ns, name)}
    if kind.namespaced:
        yield {'method': 'GET', 'path': kind.path(ns) + '?' + sel}
        yield {'method': 'GET', 'path': kind.path(ns), 'headers': TABLE}
        yield {'method': 'GET', 'path': kind.path(ns), 'headers': PARTIAL_LIST}
    else:
        yield {'method': 'GET', 'path': kind.path(ns) + '?fieldSelector=metadata.name%3D' + name, 'headers': TABLE}
    yield {'method': 'GET', 'path': kind.path(ns, name), 'headers': TABLE}
    yield {'method': 'GET', 'path': kind.path(ns, name), 'headers': PARTIAL}
    yield {'method': 'GET', 'path': kind.path(ns, name), 'headers': {'Accept': 'application/yaml'}}


def story_create(w, name):
    sample = w.valid(name) if w.rng.random() < 0.85 else w.grown(name)
    body = sample if w.rng.random() < 0.1 else w.changed(sample, keep_name=w.rng.random() < 0.97)
    yield {'method': 'POST', 'path': w.kind.path(w.ns) + query(w.rng), 'headers': JSON, 'body': body}
    real = name
    if isinstance(body.get('metadata'), dict) and isinstance(body['metadata'].get('name'), str):
        real = body['metadata']['name']
    if w.rng.random() < 0.4:
        yield from reads(w.kind, w.ns, real or name, w.rng)


def story_grown(w, name):
    yield {'method': 'POST', 'path': w.kind.path(w.ns) + query(w.rng), 'headers': JSON, 'body': w.grown(name)}


def story_update(w, name):
    sample = w.valid(name)
    name = sample['metadata']['name']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(3):
        if answer['code'] not in (200, 201):
            return
        live = answer['body']
        body = w.changed({k: v for k, v in live.items()}, keep_name=w.rng.random() < 0.95)
        if isinstance(body.get('metadata'), dict):
            for key in ('uid', 'creationTimestamp', 'managedFields', 'generation'):
                body['metadata'].pop(key, None)
            body['metadata']['resourceVersion'] = '<live>'
            if w.rng.random() < 0.2:
                body['metadata'].pop('resourceVersion')
            elif w.rng.random() < 0.1:
                body['metadata']['resourceVersion'] = w.rng.choice(['0', '1', 'x', 5])
        sub = w.rng.choice(w.kind.subresources) if w.kind.subresources and w.rng.random() < 0.3 else None
        if sub not in (None, 'status', 'scale', 'resize', 'ephemeralcontainers', 'approval', 'finalize'):
            sub = None
        if sub == 'scale':
            body = w.changed({'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': name},
                              'spec': {'replicas': w.rng.choice([0, 1, 5, -1])}})
        yield {'method': 'PUT', 'path': w.kind.path(w.ns, name, sub) + query(w.rng), 'headers': JSON, 'body': body}
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
    yield from reads(w.kind, w.ns, name, w.rng)


def story_patch(w, name):
    sample = w.valid(name)
    name = sample['metadata']['name']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(4):
        if answer['code'] not in (200, 201):
            return
        live = answer['body']
        sub = w.rng.choice(w.kind.subresources) if w.kind.subresources and w.rng.random() < 0.25 else None
        if sub not in (None, 'status', 'scale', 'resize', 'ephemeralcontainers', 'approval'):
            sub = None
        form = w.rng.choice([MERGE, STRATEGIC, PATCH])
        if sub == 'scale':
            live = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': name}, 'spec': {'replicas': 1}}
        plain = {k: v for k, v in live.items()}
        plain['metadata'] = {k: v for k, v in live['metadata'].items() if k not in SERVER_SET}
        if form is PATCH:
            body = json_patch(w.rng, w, plain)
        else:
            body = merge_difference(plain, w.changed(plain, keep_name=w.rng.random() < 0.97))
            if form is STRATEGIC and w.rng.random() < 0.2:
                spots = [p for p in places(body) if isinstance(at(body, p), dict)]
                if spots:
                    at(body, w.rng.choice(spots))['$patch'] = w.rng.choice(['replace', 'delete', 'merge', 'x'])
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, sub) + query(w.rng), 'headers': form, 'body': body}
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


def story_apply(w, name):
    sample = w.valid(name)
    name = sample['metadata']['name']
    for _ in range(5):
        manager, force = w.rng.choice(['alice', 'bob', 'carol']), w.rng.choice(['', '&force=true', '&force=false', '&force=x'])
        config = w.changed(sample) if w.rng.random() < 0.8 else copy.deepcopy(sample)
        if w.rng.random() < 0.5 and isinstance(config.get('metadata'), dict):
            for key in list(config):
                if key not in ('apiVersion', 'kind', 'metadata') and w.rng.random() < 0.2:
                    del config[key]
        sub = 'status' if 'status' in w.kind.subresources and w.rng.random() < 0.15 else None
        extra = query(w.rng).replace('fieldManager=', 'x=').replace('?', '&')
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, sub) + '?fieldManager=' + manager + force + extra,
               'headers': APPLY, 'body': config}
    yield from reads(w.kind, w.ns, name, w.rng)


def story_delete(w, name):
    sample = w.valid(name)
    if w.rng.random() < 0.5:
        sample['metadata']['finalizers'] = ['example.com/x']
    if w.rng.random() < 0.2:
        sample['metadata'].pop('name')
        sample['metadata']['generateName'] = 'gen-'
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns) + query(w.rng), 'headers': JSON, 'body': sample}
    name = sample['metadata'].get('name') or name
    options = {'kind': 'DeleteOptions', 'apiVersion': w.rng.choice(['v1', 'meta.k8s.io/v1', 'x/v1'] if w.rng.random() < 0.2 else ['v1'])}
    for key, values in (('gracePeriodSeconds', [0, 30, -1, 'x']), ('propagationPolicy', ['Foreground', 'Background', 'Orphan', 'X']),
                        ('preconditions', [{'uid': 'x'}, {'resourceVersion': '1'}, {}]), ('dryRun', [['All'], ['X']]),
                        ('orphanDependents', [True, False])):
        if w.rng.random() < 0.25:
            options[key] = w.rng.choice(values)
    request = {'method': 'DELETE', 'path': w.kind.path(w.ns, name)}
    if w.rng.random() < 0.7:
        request.update(headers=JSON, body=options)
    else:
        request['path'] += '?' + w.rng.choice(['gracePeriodSeconds=0', 'propagationPolicy=Foreground', 'dryRun=All', 'gracePeriodSeconds=x',
                                               'propagationPolicy=X', 'orphanDependents=true'])
    yield request
    yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
    if w.kind.namespaced and w.rng.random() < 0.3:
        yield {'method': 'DELETE', 'path': w.kind.path(w.ns) + w.rng.choice(['', '?dryRun=All', '?labelSelector=a', '?gracePeriodSeconds=0'])}
    yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name), 'headers': MERGE, 'body': {'metadata': {'finalizers': None}}}
    yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


FAULTS = [{'uid': 'x'}, {'finalizers': ['x']}, {'finalizers': ['Not Valid!']}, {'labels': {'A b': 'c d'}}, {'generation': -1},
          {'annotations': {'A b': 'x'}}, {'creationTimestamp': '2020-01-01T00:00:00Z'}, {'deletionGracePeriodSeconds': 5},
          {'ownerReferences': [{'apiVersion': '', 'kind': '', 'name': '', 'uid': ''}]}, {'generateName': 'A b'},
          {'finalizers': ['orphan', 'foregroundDeletion']}, {'deletionTimestamp': '2020-01-01T00:00:00Z'},
          {'managedFields': [{'manager': 'x', 'operation': 'Nope'}]}, {'selfLink': 'x'}, {'namespace': 'elsewhere'}]


def story_metadata(w, name):
    """Each fault of metadata alone, by POST, PUT and at the status."""
    sample = w.valid(name)
    name = sample['metadata']['name']
    faults = w.rng.sample(FAULTS, 4)
    for fault in faults:
        body = copy.deepcopy(sample)
        body['metadata'].update(copy.deepcopy(fault))
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All', 'headers': JSON, 'body': body}
    yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for fault in faults:
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
        if answer['code'] != 200:
            return
        body = copy.deepcopy(answer['body'])
        body['metadata'] = {'name': name, 'resourceVersion': '<live>', **copy.deepcopy(fault)}
        sub = 'status' if 'status' in w.kind.subresources and w.rng.random() < 0.4 else None
        yield {'method': 'PUT', 'path': w.kind.path(w.ns, name, sub), 'headers': JSON, 'body': body}


STORIES = {'metadata': story_metadata, 'create': story_create, 'grown': story_grown, 'update': story_update, 'patch': story_patch,
           'apply': story_apply, 'delete': story_delete}


def with_live(request, answer):
    """A PUT carries each server's own resourceVersion."""
    body = request.get('body')
    if not isinstance(body, dict) or not isinstance(body.get('metadata'), dict):
        return request
    if body['metadata'].get('resourceVersion') != '<live>':
        return request
    out = copy.deepcopy(request)
    live = answer['body'].get('metadata', {}) if isinstance(answer['body'], dict) else {}
    out['body']['metadata']['resourceVersion'] = live.get('resourceVersion', '')
    return out


def both(servers, requests):
    answers = [None, None]
    def run(i):
        answers[i] = servers[i].send(requests[i])
    other = threading.Thread(target=run, args=(0,))
    other.start()
    run(1)
    other.join()
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ours', required=True)
    parser.add_argument('--theirs', required=True)
    parser.add_argument('--token', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--stories', type=int, default=200)
    parser.add_argument('--kind', help='only these kinds, separated by commas')
    parser.add_argument('--without', default='', help='not these kinds')
    parser.add_argument('--each', action='store_true', help='the kinds in turn')
    parser.add_argument('--about', choices=sorted(STORIES))
    parser.add_argument('--keep', help='a file for the requests of stories that differ')
    parser.add_argument('--most', type=int, default=40, help='differences that are printed')
    args = parser.parse_args()
    servers = [Server(args.ours, args.token), Server(args.theirs, args.token)]
    kinds = [k for k in load_kinds(servers[1]) if (not args.kind or k.name in args.kind.split(',')) and k.name not in args.without.split(',') and k.schema and 'get' in k.verbs]
    seen, told, requests_sent, kept = collections.Counter(), 0, 0, []
    for number in range(args.stories):
        rng = random.Random('%d/%d' % (args.seed, number))
        kind = kinds[number % len(kinds)] if args.each else rng.choice(kinds)
        about = args.about or rng.choice(sorted(STORIES))
        ns = 'c%d-%d' % (args.seed, number)
        if kind.namespaced:
            create = {'method': 'POST', 'path': '/api/v1/namespaces', 'headers': JSON, 'body': {'metadata': {'name': ns}}}
            both(servers, [create, create])
        writer = Writer(kind, rng, ns, args.seed * 31 + number)
        story, answer, sent = STORIES[about](writer, ns + '-x'), None, []
        previous = [None, None]
        while True:
            try:
                request = next(story) if answer is None else story.send(answer)
            except StopIteration:
                break
            request = copy.deepcopy(request)
            pair = [request if p is None else with_live(request, p) for p in previous]
            answers = both(servers, pair)
            requests_sent += 1
            sent.append(request)
            if request['method'] == 'GET' or previous[0] is None:
                previous = answers
            answer = answers[1]
            ours, theirs = comparable(answers[0]), comparable(answers[1])
            found = list(differences(ours, theirs))
            if any(path.startswith('.body.details.causes') for path, _, _ in found):
                found = [f for f in found if not f[0].startswith('.body.message')]  # It says the same again.
            if not found:
                continue
            generic = re.sub(r'\[\d+\]', '[]', found[0][0])
            key = (kind.name, about if found[0][0] == '.code' else '', generic, str(found[0][2])[:40] if found[0][0] != '.code' else
                   str(ours['body'].get('message') if isinstance(ours['body'], dict) else '')[:60] +
                   str(theirs['body'].get('message') if isinstance(theirs['body'], dict) else '')[:60])
            key = tuple(re.sub(r'c\d+-\d+(-x)?', 'N', str(k)) for k in key)
            seen[key] += 1
            if seen[key] == 1 and told < args.most:
                told += 1
                print('--- seed %d story %d %s: %s %s %s' % (args.seed, number, about, kind.name, request['method'], request['path']))
                if request.get('headers') not in (None, JSON, APPLY):
                    print('    %s' % request['headers'])
                shown = json.dumps(request.get('body'))
                print('    sent   ' + (shown if len(shown) < 1500 else shown[:1500] + ' ...'))
                for path, one, other in found[:6]:
                    print('    at     ' + path)
                    print('    ours   ' + json.dumps(one)[:600])
                    print('    theirs ' + json.dumps(other)[:600])
                if found[0][0] == '.code':
                    print('    ours said   ' + str(ours['body'].get('message') if isinstance(ours['body'], dict) else ours['body'])[:600])
                    print('    theirs said ' + str(theirs['body'].get('message') if isinstance(theirs['body'], dict) else theirs['body'])[:600])
                sys.stdout.flush()
            kept.append({'story': number, 'kind': kind.name, 'about': about, 'requests': sent})
            break
        # Names of things without a namespace are free again.
        cleanup = []
        if kind.namespaced:
            cleanup.append({'method': 'DELETE', 'path': '/api/v1/namespaces/' + ns})
        else:
            for request in sent:
                if request['method'] == 'POST' and isinstance(request.get('body'), dict):
                    meta = request['body'].get('metadata')
                    if isinstance(meta, dict) and isinstance(meta.get('name'), str) and meta['name']:
                        path = kind.path(ns, re.sub(r'[^A-Za-z0-9.:-]', '-', meta['name']))
                        cleanup.append({'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'metadata': {'finalizers': None}}})
                        cleanup.append({'method': 'DELETE', 'path': path + '?gracePeriodSeconds=0'})
        for request in cleanup:
            both(servers, [request, request])
    if args.keep:
        with open(args.keep, 'w') as f:
            json.dump(kept, f, indent=1)
    print('%d stories, %d requests, %d stories differ in %d ways' % (args.stories, requests_sent, sum(seen.values()), len(seen)))
    sys.exit(1 if seen else 0)


if __name__ == '__main__':
    main()
