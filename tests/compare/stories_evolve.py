"""Stories about custom kinds with randomly composed schemas, whose definition changes while several managers own fields of
an object."""
import copy

from stories import APPLY, JSON, MERGE, PATCH, comes_to_be_served, part_of

TEXTS = ['', 'a', 'b', 'ab', 'd', 'abcd', 'x']


def _text(rng, fixed):
    out = {'type': 'string', **rng.choice([{}, {}, {}, {'default': 'd'}, {'enum': ['a', 'b', 'd']}, {'maxLength': 2}, {'pattern': '^[a-d]*$'}, {'nullable': True}])}
    if fixed and rng.random() < 0.08:
        out['x-kubernetes-validations'] = [{'rule': 'self == oldSelf', 'message': 'stays as it is'}]
    return out


def _number(rng):
    return {'type': 'integer', **rng.choice([{}, {}, {'default': 5}, {'minimum': 2}, {'maximum': 7}, {'format': 'int32'}, {'nullable': True, 'default': None}])}


def _schema(rng, depth=0, in_list=False):
    """A structural schema that most results of _value match."""
    kind = rng.choice(['text', 'number', 'flag', 'set', 'port'] + ([] if depth > 1 else ['struct', 'struct', 'map', 'keyed', 'keyed', 'list', 'any', 'embedded']))
    if kind == 'text':
        return _text(rng, not in_list)
    if kind == 'number':
        return _number(rng)
    if kind == 'flag':
        return {'type': 'boolean'}
    if kind == 'port':
        return {'x-kubernetes-int-or-string': True}
    if kind == 'set':
        return {'type': 'array', 'items': {'type': 'string'}, **rng.choice([{'x-kubernetes-list-type': 'set'}, {'x-kubernetes-list-type': 'set'}, {'x-kubernetes-list-type': 'atomic'}, {}])}
    if kind == 'any':
        return {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True, **rng.choice([{}, {'properties': {'a': _schema(rng, depth + 1, in_list)}}, {'x-kubernetes-map-type': 'atomic'}])}
    if kind == 'embedded':
        return {'type': 'object', 'x-kubernetes-embedded-resource': True, **rng.choice([{'x-kubernetes-preserve-unknown-fields': True}, {'properties': {'spec': _schema(rng, 2, in_list)}}])}
    if kind == 'map':
        return {'type': 'object', 'additionalProperties': _schema(rng, depth + 1, in_list), **rng.choice([{}, {}, {'x-kubernetes-map-type': 'atomic'}, {'maxProperties': 2}])}
    if kind == 'list':
        return {'type': 'array', 'items': _schema(rng, depth + 1, True), **rng.choice([{}, {'x-kubernetes-list-type': 'atomic'}, {'maxItems': 2}, {'nullable': True}])}
    if kind == 'keyed':
        keys = rng.choice([['name'], ['name'], ['name', 'port']])
        fields = {'name': {'type': 'string'}, 'port': {'type': 'integer', 'default': 80}, 'value': _schema(rng, depth + 1, True), 'more': _schema(rng, 2, True)}
        return {'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys,
                'items': {'type': 'object', 'required': ['name'], 'properties': fields, **rng.choice([{}, {}, {}, {'x-kubernetes-map-type': 'atomic'}])}}
    fields = {name: _schema(rng, depth + 1, in_list) for name in rng.sample('abcdef', rng.choice([1, 2, 3]))}
    return {'type': 'object', 'properties': fields, **rng.choice([{}, {}, {'x-kubernetes-map-type': 'atomic'}, {'x-kubernetes-map-type': 'granular'}, {'default': {}}, {'required': sorted(fields)[:1]}])}


# How often a value has the wrong type, or an object an unknown field. Only one of them per story: kube-apiserver stops at an
# unknown field, and which other fields it has seen by then is random in Go.
TYPES, NAMES = (0.02, 0), (0, 0.04)


def _value(rng, schema, wrong):
    if rng.random() < wrong[0]:
        return rng.choice([None, 'x', 5, True, [], {}, [1], {'a': 'b'}, 1.5])
    kind = schema.get('type')
    if 'enum' in schema:
        return rng.choice(schema['enum'])
    if kind == 'string':
        return rng.choice(TEXTS)
    if kind == 'integer':
        return rng.choice([0, 1, 2, 3, 5, 7, 9])
    if kind == 'boolean':
        return rng.random() < 0.5
    if kind == 'array':
        if schema['items'].get('type') == 'string':
            return rng.sample(TEXTS, rng.choice([0, 1, 2, 3])) if rng.random() < 0.93 else ['a', 'a']
        items = [_value(rng, schema['items'], wrong) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
        keys = schema.get('x-kubernetes-list-map-keys')
        if keys and rng.random() < 0.93:  # Each key is unique.
            items = list({tuple(str(item.get(key)) for key in keys): item for item in items if isinstance(item, dict)}.values())
        return items
    if schema.get('x-kubernetes-int-or-string'):
        return rng.choice([80, 'http', '5%', 0])
    if schema.get('x-kubernetes-embedded-resource'):
        out = {'apiVersion': 'v1', 'kind': 'Thing', 'metadata': {'name': 'inner', **rng.choice([{}, {'labels': {'a': 'b'}}, {'bogus': 1}])}}
        out.update({name: _value(rng, field, wrong) for name, field in schema.get('properties', {}).items()})
        return out
    if 'additionalProperties' in schema:
        return {name: _value(rng, schema['additionalProperties'], wrong) for name in rng.sample(['a', 'b', 'c/d', 'k'], rng.choice([0, 1, 2]))}
    required = schema.get('required', [])
    out = {name: _value(rng, field, wrong) for name, field in schema.get('properties', {}).items() if rng.random() < (0.97 if name in required else 0.6)}
    if schema.get('x-kubernetes-preserve-unknown-fields'):
        out.update(rng.choice([{}, {'free': {'x': [1, {'y': 2}]}}, {'free': 'x', 'other': None}]))
    elif rng.random() < wrong[1]:
        out['unknown'] = 1
    return out


def _part(rng, schema, wrong, chance):
    """A subset of the fields of such a value."""
    value = _value(rng, schema, wrong)
    return part_of(rng, value, chance) if isinstance(value, dict) else {}


def _nodes(schema):
    yield schema
    for field in schema.get('properties', {}).values():
        yield from _nodes(field)
    for key in ('items', 'additionalProperties'):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])


def _edit(rng, schema):
    """One change of a schema, as typically made by authors of definitions."""
    node = rng.choice(list(_nodes(schema)))
    kind = node.get('type')
    if kind == 'array':
        if node.get('x-kubernetes-list-type') == 'map':
            node.pop('x-kubernetes-list-map-keys')
            node['x-kubernetes-list-type'] = 'atomic'
        elif 'name' in node['items'].get('properties', {}):
            node.update({'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name']})
        elif node['items'].get('type') == 'string':
            node['x-kubernetes-list-type'] = 'atomic' if node.get('x-kubernetes-list-type') == 'set' else 'set'
        else:
            node['maxItems'] = 1
    elif kind == 'object' and 'properties' in node:
        move = rng.random()
        if move < 0.3:
            node['properties'][rng.choice('abcdefg')] = _schema(rng, 1, True)
        elif move < 0.5 and len(node['properties']) > 1:
            gone = rng.choice(sorted(node['properties']))
            if gone not in ('name', 'port') and gone not in node.get('required', []):
                del node['properties'][gone]
        elif move < 0.7 and not node.get('x-kubernetes-embedded-resource'):
            node['x-kubernetes-map-type'] = 'granular' if node.get('x-kubernetes-map-type') == 'atomic' else 'atomic'
        elif move < 0.8:
            node['required'] = sorted(node['properties'])[:1]
        else:
            node['x-kubernetes-preserve-unknown-fields'] = True
    elif kind == 'object':
        node['maxProperties'] = 1
    elif kind == 'string' and 'enum' not in node:
        rng.choice([lambda: node.update(default='b'), lambda: node.pop('default', None), lambda: node.update(maxLength=1), lambda: node.update(enum=['a', 'b', 'd']),
                    lambda: node.update(nullable=True)])()
    elif kind == 'integer':
        rng.choice([lambda: node.update(default=3), lambda: node.pop('default', None), lambda: node.update(minimum=3)])()


def story_evolve(w, name):
    """Appliers and updaters of one object through two versions, with a definition that changes in between."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng, definition = w.rng, w.named(w.kind.samples[-1], name)
    spec = {'type': 'object', 'properties': {key: _schema(rng) for key in 'abcd'}, **rng.choice([{}, {}, {'default': {}}])}
    status = {'type': 'object', 'properties': {'a': _schema(rng, 1)}}
    other = copy.deepcopy(spec)
    for _ in range(rng.choice([0, 0, 1])):
        _edit(rng, other)

    def version(name, storage, spec, more):
        return {'name': name, 'served': True, 'storage': storage, **more, 'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {'spec': spec, 'status': copy.deepcopy(status)}}}}
    more = rng.choice([{}, {'subresources': {'status': {}}}])
    versions = [version('v1', True, spec, more), version('v2', False, other, copy.deepcopy(more))]
    body = definition['spec']
    body.update(scope='Cluster', names={'plural': 'widgets', 'kind': 'Widget'}, versions=versions)
    body.pop('conversion', None)
    group = body['group']
    if not (yield from comes_to_be_served(w, definition)):
        return
    configs, wrong = {}, rng.choice([TYPES, TYPES, NAMES])

    def path(version):
        return '/apis/%s/%s/widgets' % (group, version)
    for turn in range(16):
        which = rng.randrange(2)
        this, schema = versions[which]['name'], versions[which]['schema']['openAPIV3Schema']['properties']['spec']
        move = rng.random()
        if turn and move < 0.17:
            for one in versions if rng.random() < 0.6 else [versions[which]]:
                state = rng.getstate()
                _edit(rng, one['schema']['openAPIV3Schema']['properties']['spec'])
                rng.setstate(state)  # The same change in both versions, if they have the same schema.
            rng.random()
            if rng.random() < 0.15:
                versions[0]['storage'], versions[1]['storage'] = versions[1]['storage'], versions[0]['storage']
            yield {'method': 'PATCH', 'path': w.kind.path(w.ns, definition['metadata']['name']), 'headers': MERGE, 'body': {'spec': {'versions': copy.deepcopy(versions)}}}
        elif move < 0.62 or not turn:
            manager = rng.choice(['alice', 'bob', 'carol'])
            config = configs.get(manager)
            if config is None or rng.random() < 0.3:
                config = _value(rng, schema, wrong)
            elif rng.random() < 0.7:
                config = copy.deepcopy(config)
                config.update(_part(rng, schema, wrong, 0.5))
                for key in list(config):
                    if rng.random() < 0.15:
                        del config[key]
            if not isinstance(config, dict):
                continue
            sent = {'apiVersion': '%s/%s' % (group, this), 'kind': 'Widget', 'metadata': {'name': 'w', **rng.choice([{}, {'labels': {'a': rng.choice('xy')}}])}, 'spec': config}
            options = rng.choice(['', '', '&force=true', '&force=true', '&force=true', '&force=true&dryRun=All', '&fieldValidation=Strict', '&force=true&fieldValidation=Ignore'])
            answer = yield {'method': 'PATCH', 'path': path(this) + '/w?fieldManager=' + manager + options, 'headers': APPLY, 'body': sent}
            if answer['code'] in (200, 201):
                configs[manager] = config
        elif move < 0.74:
            yield {'method': 'PATCH', 'path': path(this) + '/w?fieldManager=' + rng.choice(['edit', 'alice']), 'headers': MERGE, 'body': {'spec': _part(rng, schema, wrong, 0.5)}}
        elif move < 0.8:
            key = rng.choice('abcd')
            yield {'method': 'PATCH', 'path': path(this) + '/w', 'headers': PATCH, 'body': [rng.choice([{'op': 'remove', 'path': '/spec/' + key}, {'op': 'add', 'path': '/spec/' + key, 'value': _value(rng, schema['properties'].get(key, {'type': 'string'}), wrong)}])]}
        elif move < 0.93:
            answer = yield {'method': 'GET', 'path': path(this) + '/w'}
            if answer['code'] == 200:
                live = copy.deepcopy(answer['body'])
                kept = live.get('spec') if isinstance(live.get('spec'), dict) else {}
                kept.update(_part(rng, schema, wrong, 0.4))
                live['spec'] = kept
                live['metadata'] = {'name': 'w', 'resourceVersion': '<live>', **rng.choice([{}, {'labels': {'a': 'z'}}])}
                yield {'method': 'PUT', 'path': path(this) + '/w?fieldManager=' + rng.choice(['updater', 'bob']), 'headers': JSON, 'body': live}
        else:
            at = rng.choice(['', '/status'])
            yield {'method': 'PATCH', 'path': path(this) + '/w' + at + '?fieldManager=status&force=true', 'headers': APPLY,
                   'body': {'apiVersion': '%s/%s' % (group, this), 'kind': 'Widget', 'metadata': {'name': 'w'}, 'status': _value(rng, status, wrong)}}
        yield {'method': 'GET', 'path': path(rng.choice(['v1', 'v2'])) + '/w'}
    yield {'method': 'GET', 'path': path('v1')}


STORIES = {'evolve': story_evolve}
