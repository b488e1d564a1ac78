"""The kinds of a server, and random objects of them: generated from the published schemas, or mutated from samples."""
import copy, json, os

from samples import SAMPLES

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, '..', 'vectors')


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
    for kind in kinds:
        kind.samples += SAMPLES.get((kind.api_version, kind.name), [])
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
    """Generates and mutates objects of one kind."""

    def __init__(self, kind, rng, ns, number):
        self.kind, self.rng, self.ns, self.number = kind, rng, ns, number
        self.grower = Grower(rng, kind.schemas)

    def of(self, kind, schema):
        """The same for another kind with the given schema."""
        kind.schema, kind.schemas = schema, self.kind.schemas
        return Writer(kind, self.rng, self.ns, self.number)

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

    def changed_part(self, part, path):
        """A part of an object, at `path` in the schema, with one field generated again."""
        out = copy.deepcopy(part)
        names = list(self.grower.schema_at(self.kind.schema, path).get('properties', {}))
        if isinstance(out, dict) and names:
            name = self.rng.choice(names)
            out[name] = self.grower.grow(self.grower.schema_at(self.kind.schema, path + (name,)), 1)
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
            elif isinstance(parent[key], dict):
                parent[key]['unknownField'] = 1
        elif move < 0.90:
            # A field that is not set yet.
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
