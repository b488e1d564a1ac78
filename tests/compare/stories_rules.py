"""Stories about the rules of a kind: one part of a valid object, anywhere in its schema, is filled with values that the
rules check."""
import copy
import re

from grow import NUMBERS, TEXTS
from stories import JSON

# Formats that some rule recognizes. Random strings rarely match them, and then further rules are never reached.
FORMS = ['iqn.2001-04.com.example:storage', 'eui.02004567A425678D', 'naa.12', 'host:80', '[::1]:80', 'a,b:1', '/', '//', '/a/../b', '..a',
         'a/b', 'kubernetes.io/x', 'x.k8s.io/y', 'example.com/x/y', 'Localhost', 'RuntimeDefault', 'Unconfined', 'localhost/a', 'runtime/default',
         'docker/default', 'unconfined', 'Managed', 'Shared', 'Dedicated', 'ReadWrite', 'ReadOnly', '/subscriptions/x', 'https://x.blob', 'linux',
         'windows', 'DOMAIN\\user', 'a\\b\\c', 'us er', '...', 'net.ipv4.x', 'kernel.sem', 'net/x.y', 'kernel.msg*', 'ReadWriteOnce', 'ReadWriteOncePod',
         'Recycle', 'Delete', 'Block', 'Filesystem', 'In', 'NotIn', 'Exists', 'Gt', 'NoExecute', 'NoSchedule', 'metadata.name', 'metadata.labels',
         'spec.nodeName', 'limits.cpu', 'requests.memory', 'limits.hugepages-2Mi', 'claim:x', 'Healthy', 'OnFailure', 'RestartContainer', 'Restart',
         'app', 'config', 'claim', 'own', 'scratch', 'Bidirectional', 'Enabled', 'IfNotPresent', 'FeatureA', 'FeatureA/b', 'featureB', ' x', 'x ',
         'failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone', 'node-role.kubernetes.io/master', 'LoadBalancer', 'ExternalName',
         'ClientIP', 'Local', 'SCTP', 'PersistentVolumeClaim', 'snapshot.storage.k8s.io', 'VolumeSnapshot', 'Persistent', 'Ephemeral', 'File',
         'ControllerResizeInProgress', 'fe80::1', '010.1.1.1', '127.0.0.1', '10.0.0.1/8', '169.254.1.1', 'https://example.com:443/x?y=z']
# What fields of these names are checked for, in forms that are just valid or just invalid.
BY_NAME = [(re.compile(pattern), texts) for pattern, texts in (
    (r'(?i)((^|[a-z])ips?|cidrs?|address(es)?|ranges|except|nameservers)$',
     ['10.1.2.3', '2001:db8::1', '2001:0DB8::1', '::ffff:1.2.3.4', '010.1.2.3', '1.2.3', '10.1.2.3/24', '10.1.2.0/24', '10.1.2.0/024', '2001:DB8::/64',
      '2001:db8::/64', '::ffff:10.0.0.0/120', '0.0.0.0', '::', '::1', '127.0.0.1', '224.0.0.1', 'fe80::1%eth0', '10.1.2.0/33', ' 10.1.2.3', 'None', '']),
    (r'(?i)(hosts?|hostname|subdomain|externalName|server|domains?|searches|sans?)$',
     ['a', 'a.b', 'A.b', 'a..b', 'a.b.', '*.example.com', '*', '*.*.com', 'a_b.com', '1.2.3.4', '-a', 'x' * 63, 'x' * 64, 'a.' * 130, '', 'example.com:80']),
    (r'(?i)path(s|Expr|Prefix)?$',
     ['/a', 'a', '/', '', '/a/../b', '..', '../a', 'a/..', '/a//b', '/a%2fb', 'C:\\a', '/a:b', '$(A)/b', '$(A', '/' + 'x' * 300, '.spec.a', '.status', '/a b']),
    (r'(?i)schedule$', ['* * * * *', '*/5 * * * *', '@hourly', '@every 5m', '@nope', '60 * * * *', '* * * *', 'TZ=UTC * * * * *', 'CRON_TZ=UTC * * * * *', '0 0 31 2 *', '* * * * MON', '']),
    (r'(?i)timeZone$', ['UTC', 'Etc/UTC', 'Europe/Berlin', 'europe/berlin', 'Nope/Nope', 'Local', ' UTC', '']),
    (r'(?i)(image|reference)$', ['a', 'a:b', 'a@sha256:x', ' a', 'a ', '', 'A', 'example.com:80/a:b']),
    (r'(?i)(keys?|topologyKey|labels?|resources?|resourceName|attribute)$',
     ['a', 'a/b', 'a/b/c', '/a', 'a/', 'example.com/A', 'Example.com/a', 'kubernetes.io/hostname', 'x' * 63, 'x' * 64, 'pods', 'pods/status', '*', '*/*', 'pods/*', '*/scale', '']),
    (r'(?i)(name|names|namespace|kind|class|claimName|ref)$',
     ['a', 'a-b', 'a.b', 'A', 'a_b', '-a', 'a-', '1', '1a', 'a' * 63, 'a' * 64, 'a' * 253, 'a' * 254, 'a/b', 'a%b', '..', '.', '', 'system:a', 'kube-system', 'default']),
    (r'(?i)(group|apiGroups?|apiVersions?|version)$', ['', 'v1', 'apps/v1', 'a/b/c', 'apps', 'Apps', 'example.com', 'example.com/', '/v1', '*', 'x y']),
    (r'(?i)(url|uri|endpoint|portal)$', ['https://a', 'http://a', 'https://a/b', 'https://a?b', 'https://a#b', 'https://u:p@a', 'https://', '//a', 'a', 'https://a:99999', 'unix:///a', '']),
    (r'(?i)(driver|provisioner|attacher|signerName|controller(Name)?|manager)$', ['a', 'a.b', 'A.b', 'a/b', 'a.b/c', 'a.b/C', 'a.b/c/d', 'a' * 64, 'x' * 254, 'kubernetes.io/x', '-', '']),
    (r'(?i)(expression|rule|messageExpression|reason)$', ['true', 'false', '1', 'object.metadata.name == "a"', 'x', 'object.', '"a"', 'self', '', ' ', 'a\nb']),
)]
LIMITS = [0, 1, 2, 9, 10, 255, 256, 511, 512, 599, 600, 3599, 3600, 86400, 86401, 4294967296, 4294967297, -1, 80, 65536]
KEYS = ['cpu', 'memory', 'storage', 'ephemeral-storage', 'hugepages-2Mi', 'hugepages-x', 'hugepages-3', 'example.com/x', 'x.kubernetes.io/y', 'pods', 'A b', 'a', 'gpu',
        'requests.storage', 'x.k8s.io', 'k8s.io/z']
AMOUNTS = ['1', '2', '0', '-1', '100m', '-500m', '1Gi', '3Mi', '2Mi', '1.5', '0.1m', 5, -1]
ANNOTATIONS = ['kubernetes.io/config.mirror', 'controller.kubernetes.io/pod-deletion-cost', 'seccomp.security.alpha.kubernetes.io/pod',
               'container.seccomp.security.alpha.kubernetes.io/app', 'container.apparmor.security.beta.kubernetes.io/app',
               'container.apparmor.security.beta.kubernetes.io/nope', 'volume.beta.kubernetes.io/storage-class',
               'volume.beta.kubernetes.io/mount-options', 'service.kubernetes.io/topology-mode', 'service.kubernetes.io/topology-aware-hints',
               'service.beta.kubernetes.io/load-balancer-source-ranges', 'scheduler.alpha.kubernetes.io/critical-pod',
               'kubernetes.io/enforce-mountable-secrets', 'kubernetes.io/service-account.name']
NOTES = ['', '1', '+1', '-7', '99999999999', 'x', 'unconfined', 'runtime/default', 'localhost/a', 'localhost/../a', 'localhost/ a', 'docker/default',
         '10.0.0.0/8', '10.0.0.0/8, x', 'Auto']


class Filler:
    def __init__(self, w):
        self.rng, self.resolve = w.rng, w.grower.resolve

    def text(self, name):
        """A text for a field of this name."""
        if self.rng.random() < 0.6:
            for pattern, texts in BY_NAME:
                if pattern.search(name):
                    return self.rng.choice(texts)
        return self.rng.choice(FORMS if self.rng.random() < 0.6 else TEXTS)

    def fill(self, schema, depth=0, name=''):
        rng, schema = self.rng, self.resolve(schema)
        kind = schema.get('type')
        if kind == 'object' and 'properties' in schema:
            chance = 0.5 if depth == 0 else 0.35
            return {n: self.fill(p, depth + 1, n) for n, p in schema['properties'].items()
                    if rng.random() < (0.8 if n in schema.get('required', []) else chance / (1 + depth // 2))}
        if kind == 'object':
            element = schema.get('additionalProperties')
            return {rng.choice(KEYS): self.fill(element, depth + 1) if isinstance(element, dict) else 'x' for _ in range(rng.randint(1, 3))}
        if kind == 'array':
            return [self.fill(schema['items'], depth + 1, name) for _ in range(rng.choice([1, 1, 2]))]
        if kind == 'string':
            if schema.get('format') == 'date-time':
                return '2026-01-02T03:04:05Z'
            if schema.get('format') == 'byte':
                return rng.choice(['YQ==', '', 'e30=', 'eA=='])
            return self.text(name)
        if kind in ('integer', 'number'):
            return rng.choice(LIMITS if rng.random() < 0.8 else NUMBERS[:-5])
        if kind == 'boolean':
            return rng.random() < 0.6
        if 'oneOf' in schema:
            return rng.choice(AMOUNTS if rng.random() < 0.7 else ['http', '5%', 80, 0])
        return rng.choice([{}, {'a': 1}])

    def plant(self, out, schema, without):
        """Fills one part of an object, at any depth of its schema."""
        rng, holder, here, depth = self.rng, out, self.resolve(schema), 0
        while True:
            names = [n for n in here.get('properties', {}) if depth > 0 or n not in without]
            if not names:
                return
            name = rng.choice(names)
            part = self.resolve(here['properties'][name])
            item = self.resolve(part['items']) if part.get('type') == 'array' else None
            inner = part if 'properties' in part else item if item and 'properties' in item else None
            if inner is None or rng.random() < 0.1:
                holder[name] = self.fill(part, name=name)
                return
            if rng.random() < 0.4:  # Often only one of several structs may be set.
                for other in [k for k, v in holder.items() if k != name and isinstance(v, dict) and depth > 0]:
                    del holder[other]
            if item is None:
                if not isinstance(holder.get(name), dict):
                    holder[name] = {}
                spot = holder[name]
            else:
                if not isinstance(holder.get(name), list):
                    holder[name] = []
                dicts = [i for i in holder[name] if isinstance(i, dict)]
                if not dicts or rng.random() < 0.2:
                    dicts = [self.fill(inner, 2)]
                    holder[name] += dicts
                spot = rng.choice(dicts)
            if depth >= 1 and rng.random() < 0.4:
                spot.update(self.fill(inner))
                return
            holder, here, depth = spot, inner, depth + 1


def changed(w, filler, sample, without):
    out = copy.deepcopy(sample)
    for _ in range(w.rng.choice([1, 1, 1, 2])):
        filler.plant(out, w.kind.schema, without)
    if w.rng.random() < 0.15:
        out.setdefault('metadata', {}).setdefault('annotations', {})[w.rng.choice(ANNOTATIONS)] = w.rng.choice(NOTES)
    return out


def story_rules(w, name):
    """Creates, updates and status updates with one part that the rules check; only the first object is kept."""
    rng, kind, filler = w.rng, w.kind, Filler(w)
    path, one = kind.path(w.ns), kind.path(w.ns, name)
    always = ('apiVersion', 'kind', 'metadata')
    for _ in range(5):
        yield {'method': 'POST', 'path': path + '?dryRun=All', 'headers': JSON, 'body': changed(w, filler, w.valid(name), always + ('status',))}
    answer = yield {'method': 'POST', 'path': path, 'headers': JSON, 'body': w.valid(name)}
    if answer['code'] != 201 or 'update' not in kind.verbs:
        return
    live = answer['body']
    live['metadata'] = {k: v for k, v in live['metadata'].items() if k in ('name', 'namespace', 'labels', 'annotations', 'finalizers')}
    for _ in range(4):
        yield {'method': 'PUT', 'path': one + '?dryRun=All', 'headers': JSON, 'body': changed(w, filler, live, always + ('status',))}
    subs = [s for s in kind.subresources if s in ('status', 'resize', 'ephemeralcontainers')]
    for _ in range(4 if subs else 0):
        sub = rng.choice(subs)
        spec = [k for k in w.grower.resolve(kind.schema).get('properties', {}) if k != ('status' if sub == 'status' else 'spec')]
        yield {'method': 'PUT', 'path': kind.path(w.ns, name, sub) + '?dryRun=All', 'headers': JSON, 'body': changed(w, filler, live, tuple(spec))}


STORIES = {'rules': story_rules}
