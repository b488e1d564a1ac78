"""Stories: generators of requests about one kind. The response of kube-apiserver is sent to the generator."""
import copy, json

from grow import TEXTS, at, places

SERVER_SET = ('uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'selfLink',
              'deletionTimestamp', 'deletionGracePeriodSeconds')


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


def created(w, name):
    """Creates a valid object. Returns its name and the response."""
    sample = w.valid(name)
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    return sample['metadata']['name'], answer


def story_update(w, name):
    name, answer = yield from created(w, name)
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
    name, answer = yield from created(w, name)
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
    yield {'method': 'POST', 'path': w.kind.path(w.ns) + query(w.rng), 'headers': JSON, 'body': sample}
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


def several_faults(rng):
    """Mistakes in several members of metadata at once, whose order in the error shows the order of the checks."""
    faults = {}
    for fault in rng.sample(FAULTS, 6):
        faults = {**fault, **faults}
    return faults


def story_metadata(w, name):
    """Mistakes in metadata, one by one and several at once, with POST, PUT and through the status."""
    sample = w.valid(name)
    name = sample['metadata']['name']
    faults = w.rng.sample(FAULTS, 3) + [several_faults(w.rng), several_faults(w.rng)]
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


# ------------------------------------------------------------------ patches as written by tools

def merge_lists(w, value, path=()):
    """The lists of an object that strategic merge patches merge: path, merge key (None for lists of strings)."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list):
                parent = w.grower.schema_at(w.kind.schema, path)
                known = parent.get('properties', {}).get(key, {})
                strategy = known.get('x-kubernetes-patch-strategy', '')
                if 'merge' in strategy:
                    yield path + (key,), known.get('x-kubernetes-patch-merge-key')
            yield from merge_lists(w, item, path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from merge_lists(w, item, path + (i,))


def wrap(w, live, path, inner):
    """A patch for a given path: items of merged lists are identified by their key."""
    for i in range(len(path) - 1, -1, -1):
        step = path[i]
        if isinstance(step, int):
            keys = [k for p, k in merge_lists(w, live) if p == path[:i]]
            item = at(live, path[:i + 1])
            key = keys[0] if keys else None
            if key and isinstance(item, dict) and key in item:
                inner = {key: item[key], **inner}
            inner = [inner]
        else:
            inner = {step: inner}
    return inner


def story_strategic(w, name):
    """Directives of strategic merge patches."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    sample['metadata']['finalizers'] = ['example.com/a', 'example.com/b']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(6):
        if answer['code'] not in (200, 201):
            return
        live = answer['body']
        live['metadata'].pop('managedFields', None)
        lists = [(p, k) for p, k in merge_lists(w, live) if at(live, p)]
        dicts = [p for p in places(live) if isinstance(at(live, p), dict) and p[0] not in ('metadata',)]
        move = rng.random()
        if lists and move < 0.75:
            path, key = rng.choice(lists)
            items, field = at(live, path), path[-1]
            if key is None or not isinstance(items[0], dict):
                inner = rng.choice([
                    {field: ['example.com/c']}, {'$deleteFromPrimitiveList/' + field: [items[0]]},
                    {'$setElementOrder/' + field: list(reversed(items)), field: ['example.com/d']},
                    {'$setElementOrder/' + field: items[:1]}, {field: None}, {field: [{'$patch': 'replace'}, 'x']},
                    {'$deleteFromPrimitiveList/' + field: ['not-there']}, {'$deleteFromPrimitiveList/' + field: 'x'}])
            else:
                names = [i.get(key) for i in items if isinstance(i, dict)]
                order = [{key: n} for n in names]
                added = w.grower.grow(w.grower.schema_at(w.kind.schema, path + (0,)))
                added = dict(added) if isinstance(added, dict) else {}
                added[key] = rng.choice(names + ['new', 'new', 5, 9999])
                one = dict(rng.choice([i for i in items if isinstance(i, dict)] or [{}]))
                changed = w.changed_part(one, path + (0,))
                if isinstance(changed, dict):
                    changed.setdefault(key, one.get(key))
                inner = rng.choice([
                    {field: [added]}, {field: [{key: names[0], '$patch': 'delete'}]}, {field: [{key: 'nope', '$patch': 'delete'}]},
                    {field: [{'$patch': 'replace'}, one]}, {field: [one, {'$patch': 'replace'}]}, {field: [{'$patch': 'x'}]},
                    {field: [changed]}, {field: [changed]}, {field: [{**one, '$patch': 'replace'}]}, {field: [{**one, '$patch': 'merge'}]},
                    {'$setElementOrder/' + field: list(reversed(order))}, {'$setElementOrder/' + field: order + [{key: 'new'}], field: [{**one, key: 'new'}]},
                    {'$setElementOrder/' + field: order[:1], field: [added]}, {'$setElementOrder/' + field: [{'x': 1}]},
                    {field: [{k: v for k, v in one.items() if k != key}]}, {field: None}, {field: []}, {field: {}}, {field: [None]}, {field: ['x']},
                    {field: [{key: names[0], '$retainKeys': [key, rng.choice(list(one) or ['x'])]}]}, {'$retainKeys': [field]},
                    {'$deleteFromPrimitiveList/' + field: [1]}])
            body = wrap(w, live, path[:-1], inner)
        elif dicts:
            path = rng.choice(dicts)
            here = at(live, path)
            some = rng.choice(list(here) or ['x'])
            inner = rng.choice([{'$patch': 'delete'}, {'$patch': 'replace', some: here.get(some)}, {'$retainKeys': [some]}, {'$retainKeys': [some], some: here.get(some)},
                                {'$retainKeys': 'x'}, {some: None}, {'$patch': 5}, {'$patch': 'merge', some: here.get(some)}, {'$unknown': 1}, {'$retainKeys': list(here)}])
            body = wrap(w, live, path, inner)
        else:
            body = {'metadata': {'labels': {'$patch': rng.choice(['replace', 'delete']), 'x': 'y'}}}
        if rng.random() < 0.1:
            body['metadata'] = {**(body.get('metadata') or {}), 'resourceVersion': rng.choice(['<live>', '1', ''])}
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name) + query(rng), 'headers': STRATEGIC, 'body': body}
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


def story_json_patch(w, name):
    """JSON patches that mostly succeed."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(5):
        if answer['code'] not in (200, 201):
            return
        live = {k: v for k, v in answer['body'].items()}
        live['metadata'] = {k: v for k, v in live['metadata'].items() if k not in SERVER_SET}
        spots = list(places(live))
        lists = [p for p in spots if isinstance(at(live, p), list) and at(live, p)]
        operations = []
        for _ in range(rng.choice([1, 2, 3])):
            path = rng.choice(spots)
            value, there = at(live, path), pointer(path)
            operations.append(rng.choice([
                {'op': 'test', 'path': there, 'value': value}, {'op': 'test', 'path': there, 'value': w.grower.any()}, {'op': 'test', 'path': there + '/nope', 'value': None},
                {'op': 'add', 'path': '/metadata/labels', 'value': {'x': 'y'}}, {'op': 'add', 'path': '/metadata/labels/x~1y', 'value': 'z'},
                {'op': 'replace', 'path': '/metadata/labels/nope', 'value': 'z'}, {'op': 'remove', 'path': '/metadata/labels/nope'},
                {'op': 'copy', 'from': there, 'path': '/metadata/annotations'}, {'op': 'move', 'from': '/metadata/labels', 'path': '/metadata/annotations'},
                {'op': 'copy', 'from': '/nope', 'path': there}, {'op': 'move', 'from': there, 'path': there}, {'op': 'remove', 'path': there},
                {'op': 'replace', 'path': there, 'value': value}, {'op': 'add', 'path': there, 'value': value}, {'op': 'add', 'path': '', 'value': live},
                {'op': 'replace', 'path': there}, {'op': 'test', 'path': '/metadata/name', 'value': 'other'}, {'op': 'replace', 'path': '/metadata/name', 'value': 'other'},
                {'op': 'add', 'path': '/apiVersion', 'value': 'x/v1'}, {'op': 'replace', 'path': '/kind', 'value': 'X'}, {'op': 'remove', 'path': '/kind'}]))
            if lists and rng.random() < 0.5:
                path = rng.choice(lists)
                items, there = at(live, path), pointer(path)
                index = rng.choice(['0', '-', str(len(items)), str(len(items) + 1), '-1', '01', 'x', '1e0'])
                operations.append(rng.choice([
                    {'op': 'add', 'path': there + '/' + index, 'value': items[0]}, {'op': 'remove', 'path': there + '/' + index},
                    {'op': 'replace', 'path': there + '/' + index, 'value': items[-1]}, {'op': 'test', 'path': there + '/' + index, 'value': items[0]},
                    {'op': 'move', 'from': there + '/0', 'path': there + '/' + index}, {'op': 'copy', 'from': there + '/' + index, 'path': there + '/-'}]))
        yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name) + query(rng), 'headers': PATCH, 'body': operations}
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


# ------------------------------------------------------------------ ownership

def part_of(rng, value, chance):
    """Some members of an object, with the keys by which lists are merged."""
    if isinstance(value, dict):
        return {k: part_of(rng, v, chance) for k, v in value.items()
                if k in ('name', 'containerPort', 'port', 'protocol', 'key', 'mountPath', 'ip', 'type', 'topologyKey') or rng.random() < chance}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [part_of(rng, v, chance) for v in value if rng.random() < max(chance, 0.7)]
    return value


def story_owners(w, name):
    """Several appliers and updaters of one object."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    sample['metadata'].pop('namespace', None)
    path = w.kind.path(w.ns, name)
    if rng.random() < 0.5:
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + rng.choice(['', '?fieldManager=kubectl-create']), 'headers': JSON, 'body': sample}
    for _ in range(7):
        manager = rng.choice(['alice', 'bob', 'carol'])
        config = part_of(rng, sample, rng.choice([0.5, 0.8, 0.95, 1]))
        config['apiVersion'], config['kind'] = w.kind.api_version, w.kind.name
        config['metadata'] = {k: v for k, v in (config.get('metadata') or {}).items()}
        config['metadata']['name'] = name
        if rng.random() < 0.6:
            config = w.changed(config, times=rng.choice([1, 1, 2]))
            if not isinstance(config.get('metadata'), dict):
                config['metadata'] = {'name': name}
        meta = config['metadata']
        if rng.random() < 0.3:
            meta['labels'] = {rng.choice(['a', 'b', 'c']): rng.choice(['1', '2'])}
        if rng.random() < 0.15:
            meta['finalizers'] = rng.sample(['example.com/a', 'example.com/b', 'example.com/c'], rng.randint(0, 3))
        if rng.random() < 0.1:
            meta['ownerReferences'] = [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'x', 'uid': rng.choice(['u', 'v'])}]
        if rng.random() < 0.12:
            rng.choice([lambda: meta.update(name='other'), lambda: meta.pop('name'), lambda: meta.update(namespace='elsewhere'), lambda: meta.update(uid='x'),
                        lambda: meta.update(resourceVersion='1'), lambda: meta.update(resourceVersion='<live>'), lambda: config.update(kind='Other'),
                        lambda: config.update(apiVersion='x/v1'), lambda: config.pop('kind'), lambda: config.pop('apiVersion'), lambda: meta.update(managedFields=[]),
                        lambda: meta.update(managedFields=[{'manager': 'x', 'operation': 'Apply', 'apiVersion': 'v1', 'fieldsType': 'FieldsV1', 'fieldsV1': {}}]),
                        lambda: meta.update(managedFields=[{'manager': 'x', 'operation': 'Nope'}]), lambda: meta.update(managedFields=None), lambda: meta.update(uid='<uid>'),
                        lambda: meta.update(creationTimestamp=None), lambda: meta.update(generateName='x-'), lambda: meta.update(managedFields='x')])()
        how, sub = rng.random(), None
        subs = [s for s in w.kind.subresources if s in ('status', 'scale', 'resize', 'ephemeralcontainers')]
        if subs and rng.random() < 0.2:
            sub = rng.choice(subs)
        if sub == 'scale':
            config = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': name}, 'spec': {'replicas': rng.choice([1, 2, 3])}}
        if how < 0.72:
            options = 'fieldManager=' + manager + rng.choice(['', '', '&force=true', '&force=true', '&force=false']) + rng.choice(['', '', '', '&dryRun=All', '&fieldValidation=Strict', '&fieldValidation=Warn'])
            if rng.random() < 0.03:
                options = 'force=true'
            yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, sub) + '?' + options, 'headers': APPLY, 'body': config}
        elif how < 0.88:
            yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name, sub) + '?fieldManager=' + rng.choice(['kubectl-edit', 'alice', 'before-first-apply']),
                   'headers': rng.choice([MERGE, STRATEGIC]), 'body': {k: v for k, v in config.items() if k not in ('apiVersion', 'kind', 'metadata')}}
        else:
            answer = yield {'method': 'GET', 'path': path}
            if answer['code'] == 200:
                body = w.changed(answer['body'], times=1)
                body['metadata'] = {'name': name, 'labels': body['metadata'].get('labels')}
                managed = rng.random()
                if managed < 0.1:
                    body['metadata']['managedFields'] = rng.choice([[], [{}], None])
                yield {'method': 'PUT', 'path': path + '?fieldManager=' + rng.choice(['updater', 'alice']), 'headers': JSON, 'body': body}
        answer = yield {'method': 'GET', 'path': path}


# ------------------------------------------------------------------ lists and watches

FIELDS = {'Pod': ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName', 'status.phase', 'status.podIP', 'status.nominatedNodeName', 'spec.hostNetwork'],
          'Event': ['involvedObject.kind', 'involvedObject.name', 'involvedObject.namespace', 'involvedObject.uid', 'reason', 'type', 'source', 'reportingComponent', 'involvedObject.fieldPath'],
          'Secret': ['type'], 'Service': ['spec.clusterIP', 'spec.type'], 'Namespace': ['status.phase', 'name'], 'Node': ['spec.unschedulable'], 'ReplicaSet': ['status.replicas'],
          'ReplicationController': ['status.replicas'], 'Job': ['status.successful'], 'CertificateSigningRequest': ['spec.signerName'], 'ResourceSlice': ['spec.driver', 'spec.nodeName']}
SELECTORS = ['labelSelector=n%3D0', 'labelSelector=n%21%3D0', 'labelSelector=n', 'labelSelector=%21n', 'labelSelector=n%20in%20(0,1)', 'labelSelector=n%20notin%20(0)', 'labelSelector=n%3E0',
             'labelSelector=n%3Cx', 'labelSelector=n%3D%3D1,app', 'labelSelector=,', 'labelSelector=n%20in%20()', 'labelSelector=a%2Fb%2Fc', 'labelSelector=n%3Da%20b', 'labelSelector=-n',
             'labelSelector=n%3D' + 'x' * 64, 'labelSelector=n%20in%20(0', 'labelSelector=(n)', 'labelSelector=n%3D%3D%3D0', 'labelSelector=n%20n', 'labelSelector=n%3D0,m%21%3D1,%21z']


def selectors(w, name):
    rng = w.rng
    if rng.random() < 0.6:
        return rng.choice(SELECTORS)
    field = rng.choice(['metadata.name', 'metadata.namespace', 'spec.x', 'metadata.labels', ''] + FIELDS.get(w.kind.name, []) * 3)
    value = rng.choice([name + '0', w.ns, 'Pending', 'Opaque', 'true', 'false', '', 'a,b', 'a%5C%2Cb', '0', 'ClusterIP', 'Always'])
    return 'fieldSelector=' + field + rng.choice(['%3D', '%21%3D', '%3D%3D', '']) + value


def story_collection(w, name):
    """Lists, pages, tables and deletion of a few objects."""
    rng, kind = w.rng, w.kind
    if not kind.namespaced:
        return
    count = rng.choice([2, 3, 4])
    for i in range(count):
        sample = w.valid(name + str(i))
        sample['metadata']['name'] = name + str(i)
        labels = dict(sample['metadata'].get('labels') or {})
        sample['metadata']['labels'] = {**labels, 'n': str(i), **({'m': '1'} if rng.random() < 0.5 else {})}
        yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(6):
        accept = rng.choice([{}, {}, TABLE, PARTIAL_LIST, {'Accept': 'application/yaml'}, PARTIAL])
        options = [selectors(w, name)]
        if rng.random() < 0.3:
            options.append(rng.choice(['limit=1', 'limit=2', 'limit=0', 'limit=10']))
        if rng.random() < 0.3:
            options.append(rng.choice(['resourceVersion=0', 'resourceVersion=<live>&resourceVersionMatch=Exact', 'resourceVersion=<live>&resourceVersionMatch=NotOlderThan', 'resourceVersion=<live>',
                                       'resourceVersionMatch=Exact', 'resourceVersion=0&resourceVersionMatch=Exact', 'resourceVersion=0&resourceVersionMatch=NotOlderThan', 'resourceVersion=1&resourceVersionMatch=Nope',
                                       'resourceVersion=x', 'sendInitialEvents=true', 'sendInitialEvents=false', 'timeoutSeconds=5',
                                       'allowWatchBookmarks=true', 'resourceVersion=99999999999']))
        if accept is TABLE and rng.random() < 0.5:
            options.append('includeObject=' + rng.choice(['None', 'Object', 'Metadata', 'Nope']))
        yield {'method': 'GET', 'path': kind.path(w.ns) + '?' + '&'.join(options), 'headers': accept}
    page = yield {'method': 'GET', 'path': kind.path(w.ns) + '?limit=1', 'headers': rng.choice([{}, TABLE, PARTIAL_LIST])}
    if isinstance(page['body'], dict) and (page['body'].get('metadata') or {}).get('continue'):
        for options in rng.sample(['', '&resourceVersion=5', '&resourceVersionMatch=Exact', '&labelSelector=n', '&fieldSelector=metadata.name%3Dx', '&resourceVersion=0'], 2):
            page = yield {'method': 'GET', 'path': kind.path(w.ns) + '?limit=1&continue=<continue>' + options}
            if not isinstance(page['body'], dict) or not (page['body'].get('metadata') or {}).get('continue'):
                break
    if 'deletecollection' in kind.verbs:
        yield {'method': 'DELETE', 'path': kind.path(w.ns) + '?' + '&'.join([selectors(w, name)] + rng.choice([[], [], ['dryRun=All'], ['propagationPolicy=Orphan'], ['gracePeriodSeconds=0'], ['limit=1'], ['resourceVersion=0']]))}
        yield {'method': 'GET', 'path': kind.path(w.ns)}
        yield {'method': 'DELETE', 'path': kind.path(w.ns), **rng.choice([{}, {'headers': JSON, 'body': {'kind': 'DeleteOptions', 'apiVersion': 'v1', 'preconditions': {'uid': 'x'}}},
                                                                           {'headers': JSON, 'body': {'propagationPolicy': 'Foreground'}}, {'headers': JSON, 'body': 'x'}])}
        yield {'method': 'GET', 'path': kind.path(w.ns)}


def story_watch(w, name):
    """Events of a watch with a selector for objects that are created, changed and deleted."""
    rng, kind = w.rng, w.kind
    if not kind.namespaced or 'watch' not in kind.verbs:
        return
    yield {'method': 'GET', 'path': kind.path(w.ns)}  # Where the watch starts.
    start = {'method': 'GET', 'path': kind.path(w.ns), 'remember': True}
    yield start
    for i in range(2):
        sample = w.valid(name + str(i))
        sample['metadata']['name'] = name + str(i)
        sample['metadata']['labels'] = {**(sample['metadata'].get('labels') or {}), 'n': str(i)}
        answer = yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': sample}
        if answer['code'] != 201:
            return
    for _ in range(4):
        body = rng.choice([{'metadata': {'labels': {'n': rng.choice(['0', '1', None])}}}, {'metadata': {'annotations': {'a': rng.choice(['1', '2'])}}}, {'metadata': {'finalizers': rng.choice([None, ['example.com/a']])}}])
        yield {'method': 'PATCH', 'path': kind.path(w.ns, name + rng.choice('01')), 'headers': MERGE, 'body': body}
    yield {'method': 'DELETE', 'path': kind.path(w.ns, name + '0') + rng.choice(['', '?gracePeriodSeconds=0'])}
    for _ in range(2):
        accept = rng.choice([{}, {}, TABLE, PARTIAL, {'Accept': 'application/yaml'}])
        yield {'method': 'GET', 'path': kind.path(w.ns) + '?watch=1&timeoutSeconds=1&resourceVersion=<remembered>&' + selectors(w, name), 'headers': accept}
    yield {'method': 'GET', 'path': kind.path(w.ns) + '?watch=true&timeoutSeconds=1&' + rng.choice([
        'resourceVersion=0', '', 'sendInitialEvents=true', 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', 'resourceVersionMatch=Exact', 'limit=1', 'continue=x',
        'sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<remembered>', 'resourceVersion=-1', 'labelSelector=x%20y', 'fieldSelector=nope%3D1'])}


# ------------------------------------------------------------------ malformed requests

ACCEPTS = ['application/json', '*/*', 'application/*', 'text/html', 'text/plain', 'application/xml', 'application/json;q=0.5,application/yaml', 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
           'application/json;as=Table;v=v2;g=meta.k8s.io', 'application/json;as=Table;v=v1;g=x', 'application/json;as=Nope;v=v1;g=meta.k8s.io', 'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
           'application/json;stream=watch', 'application/yaml;as=Table;v=v1;g=meta.k8s.io', 'application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io', 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
           'application/json;charset=utf-8', 'application/json;pretty=1', '', 'x', 'application/json;', 'application/json;as', ';', 'application/cbor-seq', 'application/json, */*;q=0.1', 'application/json;as=Table;g=meta.k8s.io']
TYPES = ['application/json', 'application/yaml', 'text/plain', 'application/xml', '', 'application/json; charset=utf-8', 'application/json;x=y', 'application/x-www-form-urlencoded', 'x', 'application/merge-patch+json',
         'application/apply-patch+yaml', 'application/strategic-merge-patch+json', 'application/json-patch+json', 'application/yaml;charset=utf-8', 'Application/JSON', 'application/apply-patch+cbor']


def story_negotiate(w, name):
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': {'Content-Type': rng.choice(TYPES), 'Accept': rng.choice(ACCEPTS)}, 'body': sample}
    yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    for _ in range(6):
        path = rng.choice([w.kind.path(w.ns, name), w.kind.path(w.ns, name), w.kind.path(w.ns) + '?fieldSelector=metadata.name%3D' + name, w.kind.path(w.ns, 'nope'), w.kind.path(w.ns, name, 'nope')])
        method = rng.choice(['GET', 'GET', 'PUT', 'PATCH', 'DELETE', 'POST', 'HEAD', 'OPTIONS'])
        headers = {'Accept': rng.choice(ACCEPTS)}
        request = {'method': method, 'path': path, 'headers': headers}
        if method in ('PUT', 'PATCH', 'POST', 'DELETE'):
            headers['Content-Type'] = rng.choice(TYPES)
            request['body'] = rng.choice([{'metadata': {'labels': {'x': 'y'}}}, sample, '', '{', '[]', 'null', '5', '"x"', '{}', 'a: b', '{} {}', '\ufeff{}', '{"kind":5}', '{"apiVersion":"v1","kind":"Nope"}'])
        if method == 'DELETE' and '?' in path:
            continue
        yield request


def raw_json(rng, value, where, depth=0):
    """JSON text with a duplicate or unknown member, or one in a different case."""
    if isinstance(value, dict):
        members = [(k, raw_json(rng, v, where, depth + 1)) for k, v in value.items()]
        where[0] -= 1
        if where[0] == 0:
            move = rng.random()
            if members and move < 0.4:
                members.insert(rng.randint(0, len(members)), rng.choice(members))
            elif members and move < 0.6:
                k, v = members.pop(rng.randrange(len(members)))
                members.append((rng.choice([k.upper(), k.capitalize(), k + ' ']), v))
            else:
                members.insert(rng.randint(0, len(members)), (rng.choice(['unknown', 'x.y', 'a b', 'Name', '', 'ü']), rng.choice(['1', 'null', '{}', '[1]', '"x"', '{"a":1,"a":2}'])))
        return '{' + ','.join(json.dumps(k) + ':' + v for k, v in members) + '}'
    if isinstance(value, list):
        return '[' + ','.join(raw_json(rng, v, where, depth + 1) for v in value) + ']'
    return json.dumps(value)


def raw_yaml(rng, value, where, indent=0):
    pad = '  ' * indent
    if isinstance(value, dict) and value:
        lines = []
        for k, v in value.items():
            key = k if k.replace('-', '').isalnum() and not k.isdigit() and k not in ('y', 'n', 'on', 'off', 'true', 'null') else json.dumps(k)
            inner = raw_yaml(rng, v, where, indent + 1)
            lines.append(pad + key + ':' + ('\n' + inner if isinstance(v, (dict, list)) and v else ' ' + inner.strip()))
        where[0] -= 1
        if where[0] == 0:
            lines.insert(rng.randint(0, len(lines)), rng.choice([rng.choice(lines), pad + 'unknown: 1', pad + 'unknown: {a: 1}', pad + '5: x', pad + 'true: x', pad + '? [a]\n' + pad + ': b']))
        return '\n'.join(lines)
    if isinstance(value, list) and value:
        return '\n'.join(pad + '-' + ('\n' + raw_yaml(rng, v, where, indent + 1) if isinstance(v, (dict, list)) and v else ' ' + raw_yaml(rng, v, where, 0).strip()) for v in value)
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    if isinstance(value, str) and rng.random() < 0.5 and value.isalpha() and value.lower() not in ('true', 'false', 'null', 'none', 'yes', 'no', 'on', 'off', 'y', 'n'):
        return value
    return json.dumps(value)


def story_strict(w, name):
    """Duplicate and unknown members at any depth, in JSON and YAML, with each fieldValidation."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    objects = 2 + sum(1 for p in places(sample) if isinstance(at(sample, p), dict))
    for i in range(5):
        where = [rng.randint(1, objects)]
        body = raw_json(rng, sample, where) if rng.random() < 0.6 else raw_yaml(rng, sample, where)
        headers = {'Content-Type': 'application/json' if body.startswith('{') else 'application/yaml'}
        validation = rng.choice(['', '&fieldValidation=Strict', '&fieldValidation=Strict', '&fieldValidation=Warn', '&fieldValidation=Ignore'])
        move = rng.random()
        if move < 0.5:
            yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All' + validation, 'headers': headers, 'body': body}
        elif move < 0.75:
            yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name) + '?fieldManager=m&force=true' + validation, 'headers': APPLY, 'body': body}
        else:
            yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
            yield {'method': 'PATCH', 'path': w.kind.path(w.ns, name) + '?dryRun=All' + validation, 'headers': rng.choice([MERGE, STRATEGIC]), 'body': raw_json(rng, sample, [rng.randint(1, objects)])}


def story_types(w, name):
    """Values of the wrong type, in several places, one at a time."""
    rng, sample = w.rng, w.valid(name)
    spots = [p for p in places(sample) if p[:2] != ('metadata', 'name')]
    for path in rng.sample(spots, min(6, len(spots))):
        body = copy.deepcopy(sample)
        at(body, path[:-1])[path[-1]] = w.grower.any() if rng.random() < 0.8 else rng.choice([1e30, 1.5, -0.0, '', 99999999999, 1e2])
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All' + rng.choice(['', '&fieldValidation=Strict']), 'headers': rng.choice([JSON, JSON, {'Content-Type': 'application/yaml'}]), 'body': body}


def story_mistakes(w, name):
    """One mistake at a time in a valid object: the rules of each field."""
    rng, sample = w.rng, w.valid(name)
    spots = [p for p in places(sample) if p[:2] != ('metadata', 'name')]
    for path in [rng.choice(spots) for _ in range(8)]:
        body = copy.deepcopy(sample)
        holder, value = at(body, path[:-1]), at(body, path)
        if isinstance(value, str):
            holder[path[-1]] = rng.choice(['', value * 64, value + '!', value.upper(), '-' + value, value + '.', value + '/' + value, ' ' + value] + TEXTS)
        elif isinstance(value, bool):
            holder[path[-1]] = not value
        elif isinstance(value, (int, float)):
            holder[path[-1]] = rng.choice([-1, 0, value + 1, 2147483647, 65536, -value])
        elif isinstance(value, list):
            holder[path[-1]] = rng.choice([[], value + value, value[:1] * 3, value[1:], None, value * 20])
        elif isinstance(value, dict):
            names = list(w.grower.schema_at(w.kind.schema, path).get('properties', {}))
            move = rng.random()
            if names and move < 0.6:
                field = rng.choice(names)
                value[field] = w.grower.grow(w.grower.schema_at(w.kind.schema, path + (field,)), rng.choice([0, 1, 2]))
            elif value and move < 0.8:
                del value[rng.choice(list(value))]
            else:
                holder[path[-1]] = {}
        else:
            del holder[path[-1]]
        yield {'method': 'POST', 'path': w.kind.path(w.ns) + '?dryRun=All', 'headers': JSON, 'body': body}


def story_immutable(w, name):
    """Updates of an object, one change at a time."""
    rng, sample = w.rng, w.valid(name)
    name = sample['metadata']['name']
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    if answer['code'] != 201:
        return
    for _ in range(7):
        answer = yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}
        if answer['code'] != 200:
            return
        live = answer['body']
        live['metadata'] = {k: v for k, v in live['metadata'].items() if k not in SERVER_SET}
        body = w.changed(live, times=1)
        sub = 'status' if 'status' in w.kind.subresources and rng.random() < 0.25 else None
        yield {'method': 'PUT', 'path': w.kind.path(w.ns, name, sub) + rng.choice(['', '?dryRun=All']), 'headers': JSON, 'body': body}


def story_scale(w, name):
    rng, sample = w.rng, w.valid(name)
    if 'scale' not in w.kind.subresources:
        return
    name = sample['metadata']['name']
    yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': sample}
    path = w.kind.path(w.ns, name, 'scale')
    whole = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': name}, 'spec': {'replicas': 3}}
    for _ in range(6):
        body = copy.deepcopy(whole)
        rng.choice([lambda: None, lambda: body['spec'].update(replicas=rng.choice([0, -1, 5, 'x', None, 2147483648, 1.5])), lambda: body.pop('spec'), lambda: body['metadata'].update(resourceVersion=rng.choice(['1', '<live>'])),
                    lambda: body['metadata'].update(name='other'), lambda: body.update(kind='Other'), lambda: body.update(apiVersion='apps/v1'), lambda: body['metadata'].update(uid='x'), lambda: body.update(status={'replicas': 9}),
                    lambda: body['metadata'].update(labels={'a': 'b'}), lambda: body['metadata'].update(namespace='x'), lambda: body['spec'].update(unknown=1), lambda: body['metadata'].pop('name')])()
        yield rng.choice([{'method': 'GET', 'path': path}, {'method': 'PUT', 'path': path + query(rng), 'headers': JSON, 'body': body}, {'method': 'PATCH', 'path': path + query(rng), 'headers': MERGE, 'body': body},
                          {'method': 'PATCH', 'path': path + query(rng), 'headers': STRATEGIC, 'body': body},
                          {'method': 'PATCH', 'path': path, 'headers': PATCH, 'body': [{'op': rng.choice(['replace', 'test', 'remove', 'add']), 'path': rng.choice(['/spec/replicas', '/status/replicas', '/metadata/labels', '/spec']), 'value': rng.choice([3, 'x', {}])}]},
                          {'method': 'PATCH', 'path': path + '?fieldManager=scaler' + rng.choice(['', '&force=true']), 'headers': APPLY, 'body': body}, {'method': 'GET', 'path': path, 'headers': TABLE}])
        yield {'method': 'GET', 'path': w.kind.path(w.ns, name)}


def comes_to_be_served(w, definition):
    """Creates a definition of a kind and waits for it; false if it was rejected."""
    answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': definition}
    if answer['code'] != 201:
        return False
    for _ in range(20):
        answer = yield {'method': 'GET', 'path': '/apis/%s/v1' % definition['spec']['group'], 'wait': True}
        if answer['code'] == 200:
            break
    return True


def story_custom(w, name):
    """Objects of a custom kind whose schema uses every feature."""
    if w.kind.name != 'CustomResourceDefinition':
        return
    rng, definition = w.rng, w.named(w.kind.samples[-1], name)
    definition['spec']['scope'] = 'Cluster'
    group = definition['spec']['group']
    if not (yield from comes_to_be_served(w, definition)):
        return
    widget = {'apiVersion': group + '/v1', 'kind': 'Widget', 'metadata': {'name': 'w', 'labels': {'a': 'b'}},
              'spec': {'size': 3, 'color': 'blue', 'replicas': 2, 'items': [{'name': 'a', 'value': 1}, {'name': 'b', 'value': 'x'}], 'tags': ['x', 'y'],
                       'any': {'k': [1, {'z': None}]}, 'more': {'k': 'v'}, 'maybe': None}}
    one = w.of(type(w.kind)(group, 'v1', {'kind': 'Widget', 'name': 'widgets', 'namespaced': False, 'verbs': w.kind.verbs}, ['status', 'scale']),
               {'type': 'object', 'properties': {**definition['spec']['versions'][0]['schema']['openAPIV3Schema']['properties'], 'metadata': {'type': 'object'}}})
    path = one.kind.path(w.ns)
    for _ in range(8):
        body = one.changed(widget) if rng.random() < 0.85 else copy.deepcopy(widget)
        move = rng.random()
        if move < 0.35:
            yield {'method': 'POST', 'path': path + query(rng), 'headers': JSON, 'body': body}
        elif move < 0.5:
            yield {'method': 'PUT', 'path': path + '/w' + query(rng), 'headers': JSON, 'body': body}
        elif move < 0.65:
            yield {'method': 'PATCH', 'path': path + '/w' + rng.choice(['', '/status']) + query(rng), 'headers': MERGE, 'body': {k: v for k, v in body.items() if k not in ('apiVersion', 'kind', 'metadata')}}
        elif move < 0.9:
            yield {'method': 'PATCH', 'path': path + '/w' + rng.choice(['', '', '/status']) + '?fieldManager=' + rng.choice(['alice', 'bob']) + rng.choice(['', '&force=true']), 'headers': APPLY, 'body': body}
        else:
            yield {'method': 'PATCH', 'path': path + '/w', 'headers': PATCH, 'body': json_patch(rng, one, widget)}
        yield {'method': 'GET', 'path': path + '/w', 'headers': rng.choice([{}, TABLE, PARTIAL])}
    yield {'method': 'GET', 'path': path + '?' + rng.choice(['fieldSelector=spec.color%3Dblue', 'fieldSelector=spec.size%3D3', 'labelSelector=a']), 'headers': rng.choice([{}, TABLE])}
    yield {'method': 'GET', 'path': path + '/w/scale'}
    yield {'method': 'GET', 'path': '/apis/%s/v1beta1/widgets/w' % group}
    yield {'method': 'DELETE', 'path': path + '/w'}


STORIES = {name[len('story_'):]: story for name, story in sorted(globals().items()) if name.startswith('story_')}
