"""Stories about objects that depend on others: limits, quotas, security levels, and classes with defaults. Each story
creates the surroundings, waits for the caches of kube-apiserver's admission plugins, and then creates objects in them."""
from stories import APPLY, JSON, MERGE

AMOUNTS = ['0', '1m', '100m', '500m', '1', '1500m', '2', '4', '10']
SIZES = ['0', '1', '32Mi', '64Mi', '128Mi', '1Gi', '2Gi', '100M']
NAMES = ['cpu', 'memory', 'ephemeral-storage', 'example.com/gpu', 'hugepages-2Mi']


def amount(rng, name):
    if name in ('cpu',):
        return rng.choice(AMOUNTS)
    if name == 'example.com/gpu':
        return rng.choice(['0', '1', '2'])
    return rng.choice(['2Mi', '4Mi']) if name.startswith('hugepages') else rng.choice(SIZES)


def amounts(rng, names, chance=0.5):
    return {n: amount(rng, n) for n in names if rng.random() < chance}


def resources(rng):
    out = {}
    for part in ('requests', 'limits'):
        if rng.random() < 0.6:
            out[part] = amounts(rng, NAMES, 0.4)
    return out


def pod(rng, name, **spec):
    containers = [{'name': 'c%d' % i, 'image': 'x', 'resources': resources(rng)} for i in range(rng.choice([1, 1, 2]))]
    out = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {'containers': containers, **spec}}
    if rng.random() < 0.4:
        out['spec']['initContainers'] = [{'name': 'i%d' % i, 'image': 'x', 'resources': resources(rng), **rng.choice([{}, {'restartPolicy': 'Always'}])} for i in range(rng.choice([1, 2]))]
    if rng.random() < 0.2:
        out['spec']['resources'] = {part: amounts(rng, ['cpu', 'memory'], 0.7) for part in ('requests', 'limits') if rng.random() < 0.7}
    return out


def claim(rng, name):
    spec = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': rng.choice(SIZES)}}}
    rng.choice([lambda: None, lambda: None, lambda: spec.update(storageClassName=rng.choice(['', 'fast', 'slow'])),
                lambda: spec.update(volumeAttributesClassName=rng.choice(['gold', 'silver'])), lambda: spec['resources'].update(limits={'storage': '2Gi'})])()
    out = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': name}, 'spec': spec}
    if rng.random() < 0.15:
        out['metadata']['annotations'] = {'volume.beta.kubernetes.io/storage-class': rng.choice(['', 'fast'])}
    return out


def made(path, body):
    """Part of the surroundings: created, not compared, and given time to arrive in caches."""
    return {'method': 'POST', 'path': path, 'headers': JSON, 'body': body, 'wait': True}


def limit(rng):
    kind = rng.choice(['Container', 'Container', 'Pod', 'PersistentVolumeClaim'])
    names = ['storage'] if kind == 'PersistentVolumeClaim' else NAMES
    item = {'type': kind}
    for part in ('max', 'min') + (('default', 'defaultRequest') if kind == 'Container' else ()):
        if rng.random() < 0.5:
            item[part] = amounts(rng, names)
    if kind != 'PersistentVolumeClaim' and rng.random() < 0.3:
        item['maxLimitRequestRatio'] = {rng.choice(['cpu', 'memory']): rng.choice(['1', '2', '3'])}
    return item


def story_limits(w, name):
    """Pods and claims in a namespace with LimitRanges: defaults that are set, and violations, several at once."""
    if w.kind.name not in ('Pod', 'PersistentVolumeClaim'):
        return
    rng, base = w.rng, '/api/v1/namespaces/%s/' % w.ns
    for _ in range(6):  # Most random limits contradict each other and are rejected. (Several LimitRanges are applied in random order.)
        answer = yield made(base + 'limitranges', {'metadata': {'name': 'l'}, 'spec': {'limits': [limit(rng) for _ in range(rng.choice([1, 2, 3]))]}})
        if answer['code'] == 201:
            break
    for i in range(6):
        body = pod(rng, name + str(i)) if w.kind.name == 'Pod' else claim(rng, name + str(i))
        answer = yield {'method': 'POST', 'path': w.kind.path(w.ns), 'headers': JSON, 'body': body}
        if answer['code'] == 201 and rng.random() < 0.5:
            path = w.kind.path(w.ns, name + str(i))
            if w.kind.name == 'Pod':
                yield {'method': 'PATCH', 'path': path + '/resize', 'headers': MERGE, 'body': {'spec': {'containers': [{**answer['body']['spec']['containers'][0], 'resources': resources(rng)}]}}}
            else:
                yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'spec': {'resources': {'requests': {'storage': rng.choice(SIZES)}}}}}


HARD = ['pods', 'requests.cpu', 'limits.cpu', 'cpu', 'memory', 'requests.memory', 'limits.memory', 'requests.example.com/gpu', 'requests.ephemeral-storage', 'requests.storage',
        'persistentvolumeclaims', 'fast.storageclass.storage.k8s.io/requests.storage', 'fast.storageclass.storage.k8s.io/persistentvolumeclaims', 'services', 'services.nodeports',
        'services.loadbalancers', 'configmaps', 'secrets', 'count/configmaps', 'count/pods', 'count/services', 'count/deployments.apps', 'replicationcontrollers', 'hugepages-2Mi']


def story_quotas(w, name):
    """Objects in a namespace with quotas: what is counted, what must be specified, and what is exceeded."""
    rng, base = w.rng, '/api/v1/namespaces/%s/' % w.ns
    if w.kind.name not in ('Pod', 'PersistentVolumeClaim', 'Service', 'ConfigMap', 'Deployment'):
        return
    for i in range(rng.choice([1, 1, 2])):
        hard = {n: rng.choice(['0', '1', '2', '3', '1Gi', '500m']) if '.' in n or n in ('cpu', 'memory') else rng.choice(['0', '1', '2', '3']) for n in rng.sample(HARD, rng.choice([1, 2, 4]))}
        spec = {'hard': hard}
        rng.choice([lambda: None, lambda: None, lambda: None, lambda: spec.update(scopes=[rng.choice(['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'PriorityClass', 'CrossNamespacePodAffinity'])]),
                    lambda: spec.update(scopeSelector={'matchExpressions': [{'scopeName': 'PriorityClass', 'operator': rng.choice(['In', 'Exists', 'NotIn', 'DoesNotExist']), 'values': ['system-cluster-critical']}]})])()
        quota = {'metadata': {'name': 'q%d' % i}, 'spec': spec}
        answer = yield made(base + 'resourcequotas', quota)
        if answer['code'] == 201 and rng.random() < 0.9:
            quota['status'] = {'hard': hard, 'used': {n: '0' for n in hard if rng.random() < 0.95}}
            yield {'method': 'PUT', 'path': base + 'resourcequotas/q%d/status' % i, 'headers': JSON, 'body': quota, 'wait': True}
    for i in range(5):
        body = {'Pod': lambda: pod(rng, name + str(i), **rng.choice([{}, {}, {'activeDeadlineSeconds': 10}])), 'PersistentVolumeClaim': lambda: claim(rng, name + str(i)),
                'Service': lambda: {'metadata': {'name': 's%d' % i}, 'spec': {'type': rng.choice(['ClusterIP', 'NodePort', 'LoadBalancer']), 'ports': [{'port': 80 + k, 'name': 'p%d' % k} for k in range(rng.choice([1, 2]))]}},
                }.get(w.kind.name, lambda: w.named(w.valid(name), name + str(i)))()
        answer = yield {'method': 'POST', 'path': w.kind.path(w.ns) + rng.choice(['', '', '', '?dryRun=All']), 'headers': JSON, 'body': body}
        if answer['code'] == 201 and rng.random() < 0.4:
            path = w.kind.path(w.ns, body['metadata']['name'])
            if w.kind.name == 'Service':
                yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'spec': {'type': rng.choice(['NodePort', 'LoadBalancer', 'ClusterIP'])}}}
            elif w.kind.name == 'PersistentVolumeClaim':
                yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'metadata': {'labels': {'a': 'b'}}}}
            else:
                yield {'method': 'DELETE', 'path': path + '?gracePeriodSeconds=0'}
        for q in ('q0', 'q1'):
            yield {'method': 'GET', 'path': base + 'resourcequotas/' + q}


LEVELS = ['privileged', 'baseline', 'restricted', 'nope', '']
VERSIONS = ['latest', 'v1.0', 'v1.7', 'v1.8', 'v1.18', 'v1.19', 'v1.22', 'v1.24', 'v1.25', 'v1.27', 'v1.32', 'v1.35', 'v1.36', 'v1.37', 'v1.99', 'x', '']


def security_context(rng, of_pod):
    options = {'runAsNonRoot': [True, False, None], 'runAsUser': [0, 1000], 'seccompProfile': [{'type': 'RuntimeDefault'}, {'type': 'Unconfined'}, {'type': 'Localhost', 'localhostProfile': 'a'}],
               'seLinuxOptions': [{'type': 'container_t'}, {'type': 'spc_t'}, {'user': 'x'}, {'role': 'y'}, {'level': 's0'}, {'type': 'container_engine_t'}],
               'appArmorProfile': [{'type': 'RuntimeDefault'}, {'type': 'Unconfined'}, {'type': 'Localhost', 'localhostProfile': 'a'}],
               'windowsOptions': [{'hostProcess': True}, {'hostProcess': False}, {'runAsUserName': 'x'}]}
    if of_pod:
        options['sysctls'] = [[{'name': n, 'value': '1'}] for n in ('kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_keepalive_time', 'kernel.msgmax', 'net.ipv4.tcp_rmem', 'net.ipv4.ip_local_reserved_ports')]
    else:
        options.update(privileged=[True, False], allowPrivilegeEscalation=[True, False, False], procMount=['Default', 'Unmasked'],
                       capabilities=[{'drop': ['ALL']}, {'drop': ['ALL'], 'add': ['NET_BIND_SERVICE']}, {'add': ['NET_ADMIN']}, {'add': ['CHOWN', 'SYS_TIME']}, {'drop': ['NET_RAW']}])
    return {k: rng.choice(v) for k, v in options.items() if rng.random() < 0.35}


def secured(rng):
    spec = {'containers': [{'name': 'c%d' % i, 'image': 'x', 'securityContext': security_context(rng, False)} for i in range(rng.choice([1, 1, 2, 3]))], 'securityContext': security_context(rng, True)}
    if rng.random() < 0.3:
        spec['initContainers'] = [{'name': 'i', 'image': 'x', 'securityContext': security_context(rng, False)}]
    for key, value in (('hostNetwork', True), ('hostPID', True), ('hostIPC', True), ('hostUsers', False), ('os', {'name': 'windows'}), ('os', {'name': 'linux'}), ('runtimeClassName', 'nope')):
        if rng.random() < 0.08:
            spec[key] = value
    for i, volume in enumerate([{'hostPath': {'path': '/x'}}, {'nfs': {'server': 'a', 'path': '/b'}}, {'emptyDir': {}}, {'secret': {'secretName': 's'}}, {'csi': {'driver': 'a.b'}}, {'iscsi': {'targetPortal': '1.2.3.4', 'iqn': 'iqn.2001-04.com.example:storage', 'lun': 0}}]):
        if rng.random() < 0.12:
            spec.setdefault('volumes', []).append({'name': 'v%d' % i, **volume})
    if rng.random() < 0.15:
        spec['containers'][0]['ports'] = [{'containerPort': 80, 'hostPort': rng.choice([0, 80])}]
    if rng.random() < 0.1:
        spec['containers'][0]['livenessProbe'] = {'httpGet': {'port': 80, 'host': 'a.b'}}
    return spec


def story_security(w, name):
    """Pods and objects with pod templates in a namespace with levels of Pod Security, and changes of its labels."""
    rng, kind = w.rng, w.kind
    if kind.name not in ('Pod', 'Deployment', 'Job', 'CronJob', 'DaemonSet', 'StatefulSet', 'ReplicaSet', 'ReplicationController', 'PodTemplate'):
        return
    prefix, base = 'pod-security.kubernetes.io/', '/api/v1/namespaces/' + w.ns

    def labels():
        out = {}
        for mode in ('enforce', 'audit', 'warn'):
            if rng.random() < 0.7:
                out[prefix + mode] = rng.choice(LEVELS[1:3] if rng.random() < 0.75 else LEVELS)
            if rng.random() < 0.5:
                out[prefix + mode + '-version'] = rng.choice(VERSIONS)
        return out

    yield {'method': 'PATCH', 'path': base, 'headers': MERGE, 'body': {'metadata': {'labels': labels()}}, 'remember': False}
    yield {'method': 'GET', 'path': base, 'wait': True}
    sample = w.valid(name)
    for i in range(8):
        spec = secured(rng)
        if kind.name == 'Pod':
            body = {'metadata': {'name': name + str(i)}, 'spec': spec}
            if rng.random() < 0.15:
                body['metadata']['annotations'] = {rng.choice(['seccomp.security.alpha.kubernetes.io/pod', 'container.seccomp.security.alpha.kubernetes.io/c0', 'container.apparmor.security.beta.kubernetes.io/c0']): rng.choice(['runtime/default', 'unconfined', 'localhost/a'])}
        else:
            body = {**sample, 'metadata': {'name': name + str(i)}}
            holder = body['spec']['jobTemplate']['spec'] if kind.name == 'CronJob' else body if kind.name == 'PodTemplate' else body['spec']
            template = holder.get('template') or {'metadata': {'labels': {'a': 'b'}}}
            if kind.name in ('Job', 'CronJob'):
                spec['restartPolicy'] = 'Never'
            holder['template'] = {**template, 'spec': spec}
        answer = yield {'method': 'POST', 'path': kind.path(w.ns) + '?dryRun=All', 'headers': JSON, 'body': body}
        if kind.name == 'Pod' and i < 4:
            answer = yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': body}
            if answer['code'] == 201 and rng.random() < 0.5:
                yield {'method': 'PATCH', 'path': kind.path(w.ns, name + str(i)) + '/ephemeralcontainers', 'headers': {'Content-Type': 'application/strategic-merge-patch+json'},
                       'body': {'spec': {'ephemeralContainers': [{'name': 'd', 'image': 'x', 'securityContext': security_context(rng, False)}]}}}
    for _ in range(3):  # Warnings about the pods that exist.
        yield {'method': 'PATCH', 'path': base + '?dryRun=All', 'headers': MERGE, 'body': {'metadata': {'labels': labels()}}}


def story_classes(w, name):
    """Pods, claims and Ingresses with classes, named or by default, and with what the classes add."""
    rng, kind = w.rng, w.kind
    if kind.name not in ('Pod', 'PersistentVolumeClaim', 'Ingress'):
        return
    group, plural, bodies = {
        'Pod': ('node.k8s.io', 'runtimeclasses', [{'handler': 'h', **rng.choice([{}, {'overhead': {'podFixed': amounts(rng, ['cpu', 'memory'])}}]),
                                                   **rng.choice([{}, {'scheduling': {'nodeSelector': {'a': rng.choice('bc')}, 'tolerations': [{'key': 'k', 'operator': 'Exists'}]}}])} for _ in range(2)]),
        'PersistentVolumeClaim': ('storage.k8s.io', 'storageclasses', [{'provisioner': 'p', 'allowVolumeExpansion': rng.random() < 0.5} for _ in range(2)]),
        'Ingress': ('networking.k8s.io', 'ingressclasses', [{'spec': {'controller': 'a.b/c'}} for _ in range(2)])}[kind.name]
    annotation = {'PersistentVolumeClaim': 'storageclass.kubernetes.io/is-default-class', 'Ingress': 'ingressclass.kubernetes.io/is-default-class'}.get(kind.name)
    names = []
    for i, body in enumerate(bodies):
        metadata = {'name': '%s-%d' % (name, i)}
        if annotation and rng.random() < 0.6:
            metadata['annotations'] = {rng.choice([annotation, annotation, annotation.replace('storageclass', 'storageclass.beta')]): rng.choice(['true', 'true', 'false', 'x'])}
        yield made('/apis/%s/v1/%s' % (group, plural), {'metadata': metadata, **body})
        names.append(metadata['name'])
    for i in range(4):
        chosen = rng.choice(names + [None, None, 'nope'] + ([''] if kind.name != 'Pod' else []))
        if kind.name == 'Pod':
            body = pod(rng, name + str(i))
            rng.choice([lambda: None, lambda: None, lambda: body['spec'].update(overhead={'cpu': '100m'}), lambda: body['spec'].update(nodeSelector={'a': 'b'}), lambda: body['spec'].update(tolerations=[{'key': 'k', 'operator': 'Exists'}, {'key': 'z'}])])()
            if chosen is not None:
                body['spec']['runtimeClassName'] = chosen
        elif kind.name == 'Ingress':
            body = {'metadata': {'name': name + str(i)}, 'spec': {'defaultBackend': {'service': {'name': 's', 'port': {'number': 80}}}}}
            if chosen is not None:
                body['spec']['ingressClassName'] = chosen
            if rng.random() < 0.2:
                body['metadata']['annotations'] = {'kubernetes.io/ingress.class': 'x'}
        else:
            body = claim(rng, name + str(i))
            if chosen is not None:
                body['spec']['storageClassName'] = chosen
        answer = yield {'method': 'POST', 'path': kind.path(w.ns), 'headers': JSON, 'body': body}
        if answer['code'] == 201 and kind.name == 'PersistentVolumeClaim':
            path = kind.path(w.ns, name + str(i))
            yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'spec': {'resources': {'requests': {'storage': '5Gi'}}}}}
            bound = {'apiVersion': 'v1', 'kind': kind.name, 'metadata': {'name': name + str(i)}, 'status': {'phase': 'Bound', 'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadWriteOnce']}}
            yield {'method': 'PATCH', 'path': path + '/status?fieldManager=a&force=true', 'headers': APPLY, 'body': bound}
            yield {'method': 'PATCH', 'path': path, 'headers': MERGE, 'body': {'spec': {'resources': {'requests': {'storage': rng.choice(['5Gi', '1', '3Gi'])}}}}}
    for one in names:
        yield {'method': 'DELETE', 'path': '/apis/%s/v1/%s/%s' % (group, plural, one), 'wait': True}


STORIES = {'limits': story_limits, 'quotas': story_quotas, 'security': story_security, 'classes': story_classes}
