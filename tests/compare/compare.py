#!/usr/bin/env python3
"""Sends the same random requests to Holdfast and to a real kube-apiserver, and compares the responses.

  compare.py --ours URL --theirs URL --token T [--seed N] [--stories N] [--kind Name,...] [--without Name,...] [--about WORD] [--story N] [--keep FILE]

Both servers accept the token, run no controllers and have the admission plugins ServiceAccount and Priority off (as
run.sh starts them). A story is a short sequence of
requests in its own namespace, generated from the objects in tests/vectors and from the published schemas: objects with
fields that are missing, of another type, out of range, unknown; updates, patches, applies, lists, tables, dry runs. Values
chosen by each server (uid, time, resourceVersion, addresses) are normalized first. The seed reproduces a run.
"""
import argparse, collections, copy, http.client, json, random, re, ssl, sys, threading, time
from urllib.parse import urlsplit

try:
    import yaml
except ImportError:  # YAML responses are then compared as text.
    yaml = None

from grow import Writer, load_kinds
import formats, stories, stories_custom, stories_evolve, stories_more, stories_reviews, stories_rules, stories_surroundings
from stories import APPLY, JSON, MERGE

FILES = (stories, stories_more, stories_custom, stories_evolve, stories_reviews, stories_rules, stories_surroundings)
STORIES = {name: story for file in FILES for name, story in file.STORIES.items()}
assert len(STORIES) == sum(len(file.STORIES) for file in FILES), 'two stories of one name'


class Server:
    def __init__(self, url, token):
        self.where, self.token, self.open, self.last = urlsplit(url).netloc, token, None, b''

    def connection(self):
        if self.open is None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.open = http.client.HTTPSConnection(self.where, context=context, timeout=30)
        return self.open

    def send(self, request):
        headers = {'Authorization': 'Bearer ' + self.token, 'Accept': 'application/json', 'User-Agent': 'compare'}
        headers.update(request.get('headers', {}))
        body = request.get('body')
        if request.get('again'):
            body = self.last  # Values that this server returned before.
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body, ensure_ascii=False)
        if isinstance(body, str):
            body = body.encode()
        for attempt in (0, 1):
            try:
                connection = self.connection()
                connection.request(request['method'], request['path'], body or None, headers)
                response = connection.getresponse()
                data = response.read()
                break
            except (http.client.HTTPException, OSError):
                self.open = None
                if attempt:
                    return {'code': 0, 'type': None, 'warnings': [], 'body': 'the connection was closed'}
        answer = {'code': response.status, 'type': response.headers.get('Content-Type'),
                  'warnings': sorted(response.headers.get_all('Warning') or [])}
        self.last, kind = data, answer['type'] or ''
        if data and ('protobuf' in kind or 'cbor' in kind):
            try:
                items = formats.protobuf(data) if 'protobuf' in kind else formats.cbor(data)
                answer['body'] = items if 'stream=watch' in kind or len(items) != 1 else items[0]
            except (ValueError, IndexError) as error:
                answer['body'] = 'not readable: %s: %s' % (error, data.hex())
            return answer
        try:
            answer['body'] = picked(json.loads(data), request.get('pick'))
            if isinstance(answer['body'], dict) and 'type' in answer['body'] and 'object' in answer['body']:
                answer['body'] = [answer['body']]  # A watch with one event.
        except ValueError:
            answer['body'] = data.decode('utf-8', 'replace')
            if yaml and 'yaml' in (answer['type'] or ''):
                answer['body'] = plain_yaml(answer['body'])
            elif 'watch=' in request['path']:
                try:
                    answer['body'] = [json.loads(line) for line in answer['body'].splitlines() if line]
                except ValueError:
                    pass
        return answer


def picked(body, group):
    """The part of a document about everything that concerns one group."""
    if not group or not isinstance(body, dict):
        return body
    if 'items' in body:
        return [i for i in body['items'] if (i.get('metadata') or {}).get('name') == group]
    backwards = '.'.join(reversed(group.split('.')))
    return {part: {k: v for k, v in (body.get(part) or {}).items() if group in k or backwards in k} for part in ('paths', 'definitions')}


def plain_yaml(text):
    """Reads a YAML response like JSON; times remain strings."""
    try:
        return {'yaml': yaml.load(text, Loader=getattr(yaml, 'CBaseLoader', yaml.BaseLoader))}
    except yaml.YAMLError:
        return text


# ------------------------------------------------------------------ values chosen by each server

UID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d')
RANDOM = re.compile(r'(gen-)[bcdfghjklmnpqrstvwxz2456789]{5}')
ADDRESS = re.compile(r'\b10\.(?:0|20\d)\.\d+\.\d+\b')  # Of the servers' range, and of ServiceCIDRs that stories have created.


def text(value):
    value = UID.sub('<uid>', value)
    value = TIME.sub('<time>', value)
    value = re.sub(r'\b(?:selfType|[A-Z][A-Za-z]+)\d{4,}(?=[.,)\'])', 'selfType', value)  # The Go type name of an object contains a random number.
    value = value.replace('proto:\u00a0', 'proto: ')  # Go's Protobuf library uses one or the other, depending on the build.
    value = re.sub(r'<time>\.\d+', '<time>.<fraction>', value)
    value = RANDOM.sub(r'\1<random>', value)
    value = re.sub(r'(resourceVersion|ResourceVersion)(\W+)\d+', r'\1\2<rv>', value)
    value = re.sub(r'in scheme (\\*")[^"\\]*', r'in scheme \1', value)
    value = re.sub(r'(Too large resource version: \d+, current: )\d+', r'\1<rv>', value)
    value = re.sub(r'in object meta: \d+', 'in object meta: <rv>', value)
    value = re.sub(r'in record \(\d+\)', 'in record (<rv>)', value)
    value = re.sub(r'([nN]odePort\W+|\d:|Duplicate value: )3[0-2]\d{3}\b', r'\1<port>', value)
    value = re.sub(r'eyJ2Ijoi[\w-]{20,}', '<continue>', value)
    value = re.sub(r'eyJhbGci[\w.-]+', '<token>', value)
    return ADDRESS.sub('<ip>', value)


# Conditions written by controllers inside kube-apiserver.
ITS_OWN = ('api-priority-and-fairness-config-consumer-v1', 'kube-apiserver')


def normal(value, key=''):
    if key == 'managedFields' and isinstance(value, list):
        # Entries of the same second are ordered by name, others by time, which depends on timing here.
        value = sorted((v for v in value if v.get('manager') not in ITS_OWN),
                       key=lambda v: (v.get('manager', ''), v.get('operation', ''), v.get('subresource', ''), v.get('apiVersion', ''), json.dumps(v.get('fieldsV1'))))
    if isinstance(value, dict):
        if value.get('kind') in ('FlowSchemaList', 'APIServiceList') and isinstance(value.get('items'), list):
            value = {**value, 'items': [{'kind': value['kind'][:-4], **item} for item in value['items']]}
        if value.get('kind') in ('FlowSchema', 'APIService') and isinstance(value.get('metadata'), dict):
            # kube-apiserver has controllers that write their conditions.
            value = {k: v for k, v in value.items() if k != 'status'}
            value['metadata'] = {k: v for k, v in value['metadata'].items() if k != 'managedFields'}
        if value.get('kind') == 'Namespace' and isinstance(value.get('metadata'), dict) and value['metadata'].get('finalizers'):
            # A DELETE that changes the finalizers of a namespace leaves them in random order.
            value = {**value, 'metadata': {**value['metadata'], 'finalizers': sorted(value['metadata']['finalizers'])}}
        return {k if not k.startswith('k:') else text(k): normal(v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [normal(v, key) for v in value]
        # Of a SelfSubjectRulesReview: in the random order in which kube-apiserver visits bindings.
        return sorted(items, key=json.dumps) if key in ('resourceRules', 'nonResourceRules') else items
    if isinstance(value, str):
        if key in ('resourceVersion', 'continue') and value:
            return '<' + key + '>'
        return text(value)
    if key in ('nodePort', 'healthCheckNodePort') and value:
        return '<port>'
    if key == 'remainingItemCount':
        return '<count>'
    return value


def pieces(message):
    """Several errors for one object may come in any order, because Go's maps are unordered."""
    return sorted(re.split(r', (?=[a-z<][A-Za-z0-9.\[\]<>]*: |(?:max|min)imum \S+ usage per |\S+ max limit to request ratio per )',
                           message.replace(': [', ': ').replace('forbidden: ', 'forbidden, ').rstrip(']')))


def without_descriptions(value):
    if isinstance(value, dict):
        if len(value.get('allOf') or []) == 1 and set(value['allOf'][0]) == {'$ref'}:
            value = {**{k: v for k, v in value.items() if k != 'allOf'}, **value['allOf'][0]}  # As it is written next to a description.
        if 'x-kubernetes-group-version-kind' in value and len(value['x-kubernetes-group-version-kind']) > 1:
            value = {k: v for k, v in value.items() if k != 'x-kubernetes-group-version-kind'}  # DeleteOptions of every version.
        if isinstance(value.get('parameters'), list):
            value = {**value, 'parameters': [p for p in value['parameters'] if p.get('name') != 'showManagedFields']}
        if value.get('parameters') == []:
            value = {k: v for k, v in value.items() if k != 'parameters'}
        value = {k: v for k, v in value.items() if k not in ('fieldsV2', 'options', 'x-kubernetes-unset-marker') and ';mf=' not in k and ';drop=' not in k}  # Ours.
        return {k: without_descriptions(v) for k, v in value.items() if k != 'description' or isinstance(v, dict) or v in ('about it', 'a thing')}
    return [without_descriptions(v) for v in value] if isinstance(value, list) else value


def comparable(answer):
    body = normal(answer['body'])
    if isinstance(body, dict) and ('components' in body or 'definitions' in body):
        body = without_descriptions(body)  # They differ: see docs/differences.md.
    if isinstance(body, dict) and body.get('kind') == 'Status' and isinstance(body.get('message'), str):
        head, mark, lines = body['message'].partition('errors:\n')
        body['message'] = pieces(head) + sorted(lines.split('\n')) if mark else pieces(body['message'])
        details = body.get('details')
        if isinstance(details, dict) and len(details.get('causes') or []) > 1:
            details['causes'] = sorted(details['causes'], key=json.dumps)
            body['message'] = ''  # Repeats the causes.
    if isinstance(body, dict) and isinstance(body.get('yaml'), dict):
        body = body['yaml']
    for table in [body] + [e.get('object') for e in body if isinstance(e, dict)] if isinstance(body, list) else [body]:
        if not isinstance(table, dict) or table.get('kind') != 'Table':
            continue
        for column in table.get('columnDefinitions') or []:
            column['description'] = ''  # A documented difference: docs/differences.md.
        dangling = [i for i, column in enumerate(table.get('columnDefinitions') or []) if column['name'] == 'MissingPL']
        for row in table.get('rows') or []:
            for i in dangling:
                row['cells'][i] = '<condition>'  # Of a FlowSchema, written by a controller.
            row['cells'] = [re.sub(r'^\d+(s|m|m\d+s)$', '<age>', c) if isinstance(c, str) else c for c in row['cells']]
    out = {'code': answer['code'], 'type': answer['type'], 'warnings': [text(w) for w in answer['warnings']], 'body': body}
    if answer['type'] == 'application/json' and isinstance(body, dict) and body.get('kind') != 'Status' and 'metadata' in body:
        out['order'] = members(body)
    return out


def members(value):
    """The member names of an object in printed order, except in maps with arbitrary keys."""
    if isinstance(value, list):
        return [members(v) for v in value]
    if isinstance(value, dict):
        return [[k, members(v)] for k, v in value.items() if k != 'fieldsV1']
    return None


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


def chosen(answer):
    """The uid, address and ports that a server assigned to each object of a response, in order."""
    body = answer['body']
    objects = [body] + list(body.get('items') or []) if isinstance(body, dict) else []
    for o in objects:
        meta, spec = (o.get('metadata') or {}, o.get('spec') or {}) if isinstance(o, dict) else ({}, {})
        if isinstance(meta, dict) and meta.get('uid'):
            yield meta['uid']
            if isinstance(spec, dict) and o.get('kind') == 'Service':
                yield spec.get('clusterIP', '') if '.' in spec.get('clusterIP', '') else ''
                for port in [spec.get('healthCheckNodePort')] + [p.get('nodePort') for p in spec.get('ports') or []]:
                    yield 'Port": %d' % port if port else ''


def with_live(request, answer, remembered, known):
    """Inserts each server's own resourceVersion, uids and continue token into a request."""
    live = answer['body'].get('metadata') if isinstance(answer['body'], dict) else None
    live = live if isinstance(live, dict) else {}
    marks = {'<live>': live.get('resourceVersion', ''), '<uid>': live.get('uid', ''), '<continue>': live.get('continue', ''), '<remembered>': remembered}
    marks.update(known)
    out = dict(request)
    for mark, value in marks.items():
        out['path'] = out['path'].replace(mark, value)
        if isinstance(out.get('body'), (dict, list)) and mark in json.dumps(out['body']):
            out['body'] = json.loads(json.dumps(out['body']).replace(mark, value))
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


def order_matters(theirs, request, answers):
    """Whether the order of causes is deterministic: the real server repeats it. (Small Go maps begin with the same entry
    seven times out of eight.)"""
    said = [a['body'].get('message') if isinstance(a['body'], dict) and a['code'] == 422 else None for a in answers]
    said = [normal(m) if isinstance(m, str) else None for m in said]
    if said[0] == said[1]:
        return False
    return all(normal(theirs.send(request)['body'].get('message')) == said[1] for _ in range(40))


def around_difference(one, other, most=600):
    """Both texts, or if they are long, the part in which they begin to differ."""
    if max(len(one), len(other)) <= most:
        return one, other
    first = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    begin = max(0, first - most // 3)
    return tuple(('... ' if begin else '') + text[begin:begin + most] for text in (one, other))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ours', required=True)
    parser.add_argument('--theirs', required=True)
    parser.add_argument('--token', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--stories', type=int, default=200)
    parser.add_argument('--story', type=int, help='only this story, with every request and response')
    parser.add_argument('--mark', default='', help='a suffix for all names, to repeat a run on the same servers')
    parser.add_argument('--kind', help='only these kinds, separated by commas')
    parser.add_argument('--without', default='', help='not these kinds')
    parser.add_argument('--each', action='store_true', help='use the kinds in turn')
    parser.add_argument('--about', choices=sorted(STORIES))
    parser.add_argument('--keep', help='write the requests of stories that differ to this file')
    parser.add_argument('--most', type=int, default=40, help='number of differences to print')
    args = parser.parse_args()
    servers = [Server(args.ours, args.token), Server(args.theirs, args.token)]
    kinds = [k for k in load_kinds(servers[1]) if (not args.kind or k.name in args.kind.split(',')) and k.name not in args.without.split(',') and k.schema and 'get' in k.verbs]
    seen, told, requests_sent, kept = collections.Counter(), 0, 0, []
    for number in range(args.stories) if args.story is None else [args.story]:
        rng = random.Random('%d/%d' % (args.seed, number))
        kind = kinds[number % len(kinds)] if args.each else rng.choice(kinds)
        about = args.about or rng.choice(sorted(STORIES))
        ns = 'c%d-%d%s' % (args.seed, number, args.mark)
        if kind.namespaced:
            create = {'method': 'POST', 'path': '/api/v1/namespaces', 'headers': JSON, 'body': {'metadata': {'name': ns}}}
            both(servers, [create, create])
        writer = Writer(kind, rng, ns, args.seed * 31 + number)
        story, answer, sent = STORIES[about](writer, ns + '-x'), None, []
        previous, remembered, known = [None, None], ['', ''], {}
        while True:
            try:
                request = next(story) if answer is None else story.send(answer)
            except StopIteration:
                break
            request = copy.deepcopy(request)
            if kind.name in ('FlowSchema', 'APIService') and isinstance(request.get('body'), dict):
                metadata = request['body'].get('metadata')
                if isinstance(metadata, dict):
                    metadata.pop('resourceVersion', None)  # kube-apiserver writes to them as well.
            pair = [request if p is None else with_live(request, p, r, k) for p, r, k in zip(previous, remembered, (known, {}))]
            answers = both(servers, pair)
            if '/customresourcedefinitions' in request['path'] and request['method'] != 'GET' and answers[1]['code'] in (200, 201):
                time.sleep(0.4)  # Wait for its controllers.
            if 'dryRun' not in request['path']:  # kube-apiserver would then choose 10.0.0.0 for all of them.
                known.update({t: o for t, o in zip(chosen(answers[1]), chosen(answers[0])) if t and o})
            requests_sent += 1
            sent.append(request)
            if request['method'] == 'GET' or previous[0] is None:
                previous = answers
            if request.get('remember'):
                remembered = [(a['body'].get('metadata') or {}).get('resourceVersion', '') for a in answers]
            answer = answers[1]
            if answers[1]['code'] == 0:
                break  # kube-apiserver panics on some requests.
            if request.get('wait'):
                time.sleep(0.2)
                continue
            ours, theirs = comparable(answers[0]), comparable(answers[1])
            found = list(differences(ours, theirs))
            if args.story is not None:
                print('%s %s %s' % (request['method'], request['path'], json.dumps(request.get('body'))))
                for name, said in (('ours', answers[0]), ('theirs', answers[1])):
                    print('  %-6s %d %s' % (name, said['code'], json.dumps(said['body'])))
            if found and request['method'] == 'GET' and 'watch=' not in request['path']:
                time.sleep(0.3)  # Built-in controllers write a little later.
                answers = both(servers, pair)
                ours, theirs = comparable(answers[0]), comparable(answers[1])
                found = list(differences(ours, theirs))
            if not found and order_matters(servers[1], pair[1], answers):
                found = [('.body.message', answers[0]['body']['message'], answers[1]['body']['message'])]
            if any(path.startswith('.body.details.causes') for path, _, _ in found):
                found = [f for f in found if not f[0].startswith('.body.message')]  # Repeats the causes.
            if not found:
                continue
            generic = re.sub(r'\[\d+\]', '[]', found[0][0])
            key = (kind.name, about if found[0][0] == '.code' else '', generic, str(found[0][2])[:40] if found[0][0] != '.code' else
                   str(ours['body'].get('message') if isinstance(ours['body'], dict) else '')[:60] +
                   str(theirs['body'].get('message') if isinstance(theirs['body'], dict) else '')[:60])
            key = tuple(re.sub(r'c\d+-\d+' + args.mark + '(-x)?', 'N', str(k)) for k in key)
            seen[key] += 1
            if seen[key] == 1 and told < args.most:
                told += 1
                print('--- seed %d story %d %s: %s %s %s' % (args.seed, number, about, kind.name, request['method'], request['path']))
                if request.get('headers') not in (None, JSON, APPLY):
                    print('    %s' % request['headers'])
                shown = json.dumps(request.get('body'))
                print('    sent   ' + (shown if len(shown) < 1500 else shown[:1500] + ' ...'))
                for path, one, other in found[:4]:
                    print('    at     ' + path)
                    for who, text in zip(('ours  ', 'theirs'), around_difference(json.dumps(one), json.dumps(other))):
                        print(f'    {who} {text}')
                if found[0][0] == '.code':
                    print('    ours said   ' + str(ours['body'].get('message') if isinstance(ours['body'], dict) else ours['body'])[:600])
                    print('    theirs said ' + str(theirs['body'].get('message') if isinstance(theirs['body'], dict) else theirs['body'])[:600])
                sys.stdout.flush()
            kept.append({'story': number, 'kind': kind.name, 'about': about, 'requests': sent})
            break
        # Free the names of cluster-scoped objects.
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
