"""Objects that use many fields, for stories to mutate. Names and namespaces are set by the stories."""

META = {'labels': {'app': 'web'}}


def container(name, **more):
    return {'name': name, 'image': 'example.com/app:1', **more}


FULL_CONTAINER = container(
    'app', command=['sh', '-c'], args=['sleep 1'], workingDir='/srv',
    ports=[{'name': 'http', 'containerPort': 80}, {'name': 'dns', 'containerPort': 53, 'protocol': 'UDP', 'hostPort': 0}],
    env=[{'name': 'A', 'value': '1'}, {'name': 'B', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}},
         {'name': 'C', 'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k', 'optional': True}}},
         {'name': 'D', 'valueFrom': {'configMapKeyRef': {'name': 'c', 'key': 'k'}}},
         {'name': 'E', 'valueFrom': {'resourceFieldRef': {'resource': 'limits.cpu', 'divisor': '1m'}}}],
    envFrom=[{'prefix': 'P_', 'configMapRef': {'name': 'c'}}, {'secretRef': {'name': 's', 'optional': False}}],
    resources={'requests': {'cpu': '100m', 'memory': '64Mi', 'ephemeral-storage': '1Gi', 'example.com/gpu': '1'},
               'limits': {'cpu': '1', 'memory': '128Mi', 'example.com/gpu': '1'}},
    volumeMounts=[{'name': 'config', 'mountPath': '/etc/config', 'readOnly': True, 'subPath': 'a/b'},
                  {'name': 'scratch', 'mountPath': '/scratch', 'mountPropagation': 'HostToContainer'}],
    livenessProbe={'httpGet': {'path': '/healthz', 'port': 'http', 'scheme': 'HTTPS',
                               'httpHeaders': [{'name': 'X-A', 'value': 'b'}]}, 'periodSeconds': 5,
                   'terminationGracePeriodSeconds': 10},
    readinessProbe={'tcpSocket': {'port': 80}, 'initialDelaySeconds': 1, 'successThreshold': 2},
    startupProbe={'exec': {'command': ['true']}, 'failureThreshold': 30},
    lifecycle={'preStop': {'sleep': {'seconds': 1}}, 'postStart': {'exec': {'command': ['true']}}},
    securityContext={'runAsUser': 1000, 'runAsNonRoot': True, 'allowPrivilegeEscalation': False, 'privileged': False,
                     'capabilities': {'add': ['NET_ADMIN'], 'drop': ['ALL']}, 'readOnlyRootFilesystem': True,
                     'seccompProfile': {'type': 'RuntimeDefault'}, 'procMount': 'Default'},
    terminationMessagePolicy='FallbackToLogsOnError', imagePullPolicy='Always')

VOLUMES = [
    {'name': 'config', 'configMap': {'name': 'c', 'items': [{'key': 'k', 'path': 'p/q', 'mode': 256}], 'defaultMode': 420}},
    {'name': 'scratch', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Gi'}},
    {'name': 'secret', 'secret': {'secretName': 's', 'optional': True}},
    {'name': 'host', 'hostPath': {'path': '/var', 'type': 'Directory'}},
    {'name': 'claim', 'persistentVolumeClaim': {'claimName': 'data', 'readOnly': True}},
    {'name': 'down', 'downwardAPI': {'items': [{'path': 'labels', 'fieldRef': {'fieldPath': 'metadata.labels'}}]}},
    {'name': 'all', 'projected': {'defaultMode': 420, 'sources': [
        {'secret': {'name': 's'}}, {'configMap': {'name': 'c', 'items': [{'key': 'a', 'path': 'a'}]}},
        {'serviceAccountToken': {'path': 'token', 'expirationSeconds': 3600, 'audience': 'x'}},
        {'downwardAPI': {'items': [{'path': 'cpu', 'resourceFieldRef': {'containerName': 'app', 'resource': 'limits.cpu'}}]}},
        {'clusterTrustBundle': {'path': 'ca', 'name': 'x'}}]}},
    {'name': 'own', 'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': ['ReadWriteOnce'],
                                                                  'resources': {'requests': {'storage': '1Gi'}}}}}},
    {'name': 'nfs', 'nfs': {'server': 'nfs.example.com', 'path': '/x'}},
    {'name': 'csi', 'csi': {'driver': 'csi.example.com', 'volumeAttributes': {'a': 'b'}}},
    {'name': 'img', 'image': {'reference': 'example.com/x:1', 'pullPolicy': 'IfNotPresent'}},
    {'name': 'iscsi', 'iscsi': {'targetPortal': '10.0.2.15:3260', 'iqn': 'iqn.2001-04.com.example:storage.kube.sys1.xyz', 'lun': 0}},
    {'name': 'fc', 'fc': {'targetWWNs': ['500a0982991b8dc5'], 'lun': 2}},
    {'name': 'ceph', 'cephfs': {'monitors': ['10.16.154.78:6789'], 'user': 'admin'}},
    {'name': 'rbd', 'rbd': {'monitors': ['10.16.154.78:6789'], 'image': 'foo', 'pool': 'kube'}},
    {'name': 'azf', 'azureFile': {'secretName': 's', 'shareName': 'x'}},
    {'name': 'gce', 'gcePersistentDisk': {'pdName': 'd', 'fsType': 'ext4', 'partition': 1}},
    {'name': 'aws', 'awsElasticBlockStore': {'volumeID': 'v', 'partition': 0}},
    {'name': 'gl', 'glusterfs': {'endpoints': 'e', 'path': 'p'}},
    {'name': 'flex', 'flexVolume': {'driver': 'example.com/x', 'options': {'a': 'b'}}},
]

FULL_POD_SPEC = {
    'containers': [FULL_CONTAINER, container('sidecar', ports=[{'containerPort': 9090}])],
    'initContainers': [container('setup', command=['true']), container('proxy', restartPolicy='Always')],
    'volumes': VOLUMES,
    'affinity': {
        'nodeAffinity': {
            'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [
                {'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a', 'b']}],
                 'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n']}]}]},
            'preferredDuringSchedulingIgnoredDuringExecution': [
                {'weight': 5, 'preference': {'matchExpressions': [{'key': 'disk', 'operator': 'Gt', 'values': ['5']}]}}]},
        'podAntiAffinity': {
            'requiredDuringSchedulingIgnoredDuringExecution': [
                {'topologyKey': 'kubernetes.io/hostname', 'labelSelector': {'matchLabels': {'app': 'web'}}, 'namespaces': ['a']}],
            'preferredDuringSchedulingIgnoredDuringExecution': [
                {'weight': 100, 'podAffinityTerm': {'topologyKey': 'zone', 'labelSelector': {
                    'matchExpressions': [{'key': 'app', 'operator': 'NotIn', 'values': ['x']}]}, 'namespaceSelector': {},
                    'matchLabelKeys': ['pod-template-hash']}}]}},
    'tolerations': [{'key': 'a', 'operator': 'Exists', 'effect': 'NoExecute', 'tolerationSeconds': 5},
                    {'key': 'b', 'value': 'c', 'effect': 'NoSchedule'}],
    'topologySpreadConstraints': [{'maxSkew': 1, 'topologyKey': 'zone', 'whenUnsatisfiable': 'DoNotSchedule', 'minDomains': 2,
                                   'labelSelector': {'matchLabels': {'app': 'web'}}, 'nodeTaintsPolicy': 'Honor'}],
    'securityContext': {'runAsUser': 1000, 'fsGroup': 2000, 'supplementalGroups': [1, 2], 'sysctls': [{'name': 'kernel.shm_rmid_forced', 'value': '0'}],
                        'fsGroupChangePolicy': 'OnRootMismatch', 'seLinuxOptions': {'level': 's0'}, 'seccompProfile': {'type': 'Localhost', 'localhostProfile': 'a.json'}},
    'dnsPolicy': 'None', 'dnsConfig': {'nameservers': ['1.1.1.1'], 'searches': ['example.com'], 'options': [{'name': 'ndots', 'value': '2'}]},
    'hostAliases': [{'ip': '127.0.0.1', 'hostnames': ['foo.local']}], 'imagePullSecrets': [{'name': 'pull'}],
    'hostname': 'web', 'subdomain': 'sub', 'terminationGracePeriodSeconds': 10, 'nodeSelector': {'disk': 'ssd'},
    'readinessGates': [{'conditionType': 'example.com/ready'}], 'schedulerName': 's', 'serviceAccountName': 'sa',
    'overhead': {}, 'shareProcessNamespace': True, 'enableServiceLinks': False, 'preemptionPolicy': 'PreemptLowerPriority',
    'resourceClaims': [{'name': 'gpu', 'resourceClaimName': 'claim'}], 'os': {'name': 'linux'}, 'setHostnameAsFQDN': False,
}
del FULL_POD_SPEC['overhead']

SMALL_TEMPLATE = {'metadata': {'labels': {'app': 'web'}}, 'spec': {'containers': [container('app')]}}
TEMPLATE = {'metadata': {'labels': {'app': 'web', 'tier': 'front'}, 'annotations': {'a': 'b'}},
            'spec': {'containers': [container('app', ports=[{'containerPort': 80}, {'containerPort': 81, 'name': 'x'}],
                                              env=[{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '2'}],
                                              volumeMounts=[{'name': 'v', 'mountPath': '/v'}]),
                                    container('side')],
                     'volumes': [{'name': 'v', 'emptyDir': {}}, {'name': 'w', 'secret': {'secretName': 's'}}],
                     'tolerations': [{'key': 'a', 'operator': 'Exists'}], 'imagePullSecrets': [{'name': 'p'}]}}
JOB_TEMPLATE = {'metadata': {'labels': {'a': 'b'}}, 'spec': {'restartPolicy': 'Never', 'containers': [container('main')]}}
SELECTOR = {'matchLabels': {'app': 'web'}}
CLAIM = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}, 'storageClassName': 'fast', 'volumeMode': 'Filesystem'}
RULE = {'apiGroups': ['apps'], 'apiVersions': ['v1'], 'operations': ['CREATE', 'UPDATE'], 'resources': ['deployments', 'deployments/scale'], 'scope': 'Namespaced'}
WEBHOOK = {'name': 'a.example.com', 'clientConfig': {'service': {'name': 's', 'namespace': 'n', 'path': '/p', 'port': 443}}, 'rules': [RULE],
           'admissionReviewVersions': ['v1'], 'sideEffects': 'None', 'failurePolicy': 'Ignore', 'timeoutSeconds': 5,
           'namespaceSelector': {'matchLabels': {'never': 'there'}}, 'objectSelector': {'matchLabels': {'never': 'there'}},
           'matchConditions': [{'name': 'x', 'expression': 'true'}]}

_ALL = {
    ('v1', 'Pod'): [{'spec': FULL_POD_SPEC}, {'spec': {'containers': [container('a'), container('b')]}},
                    {'spec': {'containers': [FULL_CONTAINER], 'volumes': VOLUMES[:2]}}],
    ('v1', 'PodTemplate'): [{'template': TEMPLATE}],
    ('v1', 'ReplicationController'): [{'spec': {'replicas': 2, 'selector': {'app': 'web'}, 'template': TEMPLATE}}],
    ('v1', 'ConfigMap'): [{'data': {'a': '1', 'b.c': '2'}, 'binaryData': {'d': 'YQ=='}, 'immutable': False}, {'data': {'a': '1'}, 'immutable': True}],
    ('v1', 'Secret'): [{'type': 'Opaque', 'data': {'a': 'YQ=='}, 'stringData': {'b': 'x'}}, {'type': 'kubernetes.io/basic-auth', 'stringData': {'username': 'u', 'password': 'p'}},
                       {'type': 'kubernetes.io/dockerconfigjson', 'data': {'.dockerconfigjson': 'e30='}}, {'type': 'kubernetes.io/ssh-auth', 'stringData': {'ssh-privatekey': 'x'}},
                       {'type': 'kubernetes.io/tls', 'stringData': {'tls.crt': '', 'tls.key': ''}}, {'immutable': True, 'stringData': {'a': 'b'}}],
    ('v1', 'Service'): [{'spec': {'selector': {'app': 'web'}, 'ports': [{'name': 'http', 'port': 80, 'targetPort': 'web'}, {'name': 'dns', 'port': 53, 'protocol': 'UDP', 'targetPort': 5353}]}},
                        {'spec': {'type': 'LoadBalancer', 'selector': {'a': 'b'}, 'ports': [{'port': 80}], 'externalTrafficPolicy': 'Local', 'loadBalancerSourceRanges': ['10.0.0.0/8'],
                                  'allocateLoadBalancerNodePorts': True, 'loadBalancerClass': 'example.com/lb', 'sessionAffinity': 'ClientIP',
                                  'sessionAffinityConfig': {'clientIP': {'timeoutSeconds': 10}}, 'internalTrafficPolicy': 'Cluster', 'externalIPs': ['192.0.2.1']}},
                        {'spec': {'type': 'ExternalName', 'externalName': 'x.example.com'}}, {'spec': {'clusterIP': 'None', 'publishNotReadyAddresses': True}}],
    ('v1', 'Endpoints'): [{'subsets': [{'addresses': [{'ip': '192.0.2.1', 'nodeName': 'n', 'targetRef': {'kind': 'Pod', 'name': 'x'}}],
                                        'notReadyAddresses': [{'ip': '192.0.2.2'}], 'ports': [{'name': 'a', 'port': 80}, {'name': 'b', 'port': 81, 'protocol': 'UDP'}]}]}],
    ('v1', 'PersistentVolumeClaim'): [{'spec': CLAIM}, {'spec': {**CLAIM, 'volumeName': 'v', 'selector': SELECTOR, 'dataSource': {'kind': 'PersistentVolumeClaim', 'name': 'x'}}},
                                      {'spec': {**CLAIM, 'dataSourceRef': {'apiGroup': 'snapshot.storage.k8s.io', 'kind': 'VolumeSnapshot', 'name': 'x'}, 'volumeAttributesClassName': 'gold'}}],
    ('v1', 'PersistentVolume'): [{'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadWriteOnce'], 'hostPath': {'path': '/x'}, 'persistentVolumeReclaimPolicy': 'Retain',
                                           'claimRef': {'namespace': 'a', 'name': 'b'}, 'mountOptions': ['ro'], 'nodeAffinity': {'required': {'nodeSelectorTerms': [
                                               {'matchExpressions': [{'key': 'a', 'operator': 'In', 'values': ['b']}]}]}}}},
                                 {'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadWriteMany'], 'storageClassName': 'fast', 'csi': {
                                     'driver': 'csi.example.com', 'volumeHandle': 'h', 'fsType': 'ext4', 'nodeStageSecretRef': {'name': 'a', 'namespace': 'b'}}}},
                                 {'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadWriteOnce'], 'local': {'path': '/x'}, 'volumeMode': 'Block', 'nodeAffinity': {
                                     'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'a', 'operator': 'Exists'}]}]}}}}],
    ('v1', 'ServiceAccount'): [{'secrets': [{'name': 'a'}], 'imagePullSecrets': [{'name': 'b'}, {'name': 'c'}], 'automountServiceAccountToken': False}],
    ('v1', 'LimitRange'): [{'spec': {'limits': [{'type': 'Container', 'max': {'cpu': '2'}, 'min': {'cpu': '100m'}, 'default': {'cpu': '1'}, 'defaultRequest': {'cpu': '500m'},
                                                 'maxLimitRequestRatio': {'cpu': '10'}}, {'type': 'PersistentVolumeClaim', 'max': {'storage': '10Gi'}, 'min': {'storage': '1Gi'}},
                                                {'type': 'Pod', 'max': {'memory': '1Gi'}}]}}],
    ('v1', 'ResourceQuota'): [{'spec': {'hard': {'pods': '100', 'requests.cpu': '1', 'count/deployments.apps': '100', 'services.nodeports': '5'}}},
                              {'spec': {'hard': {'pods': '100'}, 'scopes': ['BestEffort'], 'scopeSelector': {'matchExpressions': [
                                  {'scopeName': 'PriorityClass', 'operator': 'In', 'values': ['high']}]}}}],
    ('v1', 'Node'): [{'spec': {'podCIDR': '10.1.0.0/24', 'podCIDRs': ['10.1.0.0/24'], 'providerID': 'x://y', 'unschedulable': True,
                               'taints': [{'key': 'a', 'value': 'b', 'effect': 'NoSchedule'}, {'key': 'a', 'effect': 'NoExecute'}]},
                      'status': {'capacity': {'cpu': '4', 'memory': '8Gi', 'pods': '110'}, 'allocatable': {'cpu': '4'}, 'addresses': [{'type': 'InternalIP', 'address': '192.0.2.1'}],
                                 'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'x', 'message': 'y'}],
                                 'images': [{'names': ['a:1'], 'sizeBytes': 5}], 'nodeInfo': {'kubeletVersion': 'v1.36.0', 'machineID': '', 'systemUUID': '', 'bootID': '', 'kernelVersion': '',
                                            'osImage': '', 'containerRuntimeVersion': 'c://1', 'kubeProxyVersion': '', 'operatingSystem': 'linux', 'architecture': 'amd64'}}}],
    ('apps/v1', 'Deployment'): [{'spec': {'replicas': 2, 'selector': SELECTOR, 'template': TEMPLATE, 'minReadySeconds': 1, 'revisionHistoryLimit': 3, 'progressDeadlineSeconds': 60,
                                          'strategy': {'type': 'RollingUpdate', 'rollingUpdate': {'maxSurge': '25%', 'maxUnavailable': 1}}}},
                                {'spec': {'selector': SELECTOR, 'template': SMALL_TEMPLATE, 'strategy': {'type': 'Recreate'}, 'paused': True}},
                                {'spec': {'selector': SELECTOR, 'template': {**SMALL_TEMPLATE, 'spec': FULL_POD_SPEC}}}],
    ('apps/v1', 'ReplicaSet'): [{'spec': {'replicas': 2, 'selector': SELECTOR, 'template': TEMPLATE, 'minReadySeconds': 1}}],
    ('apps/v1', 'StatefulSet'): [{'spec': {'serviceName': 's', 'replicas': 2, 'selector': SELECTOR, 'template': TEMPLATE, 'podManagementPolicy': 'Parallel',
                                           'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': {'partition': 1, 'maxUnavailable': 1}}, 'minReadySeconds': 1,
                                           'persistentVolumeClaimRetentionPolicy': {'whenDeleted': 'Delete', 'whenScaled': 'Retain'}, 'ordinals': {'start': 1},
                                           'volumeClaimTemplates': [{'metadata': {'name': 'data'}, 'spec': CLAIM}], 'revisionHistoryLimit': 1}},
                                 {'spec': {'selector': SELECTOR, 'template': SMALL_TEMPLATE, 'updateStrategy': {'type': 'OnDelete'}}}],
    ('apps/v1', 'DaemonSet'): [{'spec': {'selector': SELECTOR, 'template': TEMPLATE, 'minReadySeconds': 1, 'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': {'maxSurge': 0, 'maxUnavailable': '10%'}}}},
                               {'spec': {'selector': SELECTOR, 'template': SMALL_TEMPLATE, 'updateStrategy': {'type': 'OnDelete'}}}],
    ('batch/v1', 'Job'): [{'spec': {'template': JOB_TEMPLATE, 'parallelism': 2, 'completions': 3, 'completionMode': 'Indexed', 'backoffLimit': 2, 'activeDeadlineSeconds': 10,
                                    'ttlSecondsAfterFinished': 5, 'podFailurePolicy': {'rules': [
                                        {'action': 'FailJob', 'onExitCodes': {'containerName': 'main', 'operator': 'In', 'values': [1, 2]}},
                                        {'action': 'Ignore', 'onPodConditions': [{'type': 'DisruptionTarget', 'status': 'True'}]}]},
                                    'successPolicy': {'rules': [{'succeededIndexes': '0-1', 'succeededCount': 1}]}, 'podReplacementPolicy': 'Failed'}},
                          {'spec': {'template': JOB_TEMPLATE, 'completionMode': 'Indexed', 'completions': 2, 'backoffLimitPerIndex': 1, 'maxFailedIndexes': 1, 'suspend': True, 'managedBy': 'example.com/x'}},
                          {'spec': {'template': JOB_TEMPLATE, 'manualSelector': True, 'selector': {'matchLabels': {'a': 'b'}}}}],
    ('batch/v1', 'CronJob'): [{'spec': {'schedule': '*/5 * * * *', 'timeZone': 'Europe/Berlin', 'concurrencyPolicy': 'Forbid', 'startingDeadlineSeconds': 10, 'suspend': True,
                                        'successfulJobsHistoryLimit': 1, 'failedJobsHistoryLimit': 1, 'jobTemplate': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'template': JOB_TEMPLATE}}}}],
    ('networking.k8s.io/v1', 'Ingress'): [{'spec': {'ingressClassName': 'nginx', 'defaultBackend': {'service': {'name': 's', 'port': {'number': 80}}}, 'tls': [{'hosts': ['a.example.com'], 'secretName': 't'}],
                                                    'rules': [{'host': 'a.example.com', 'http': {'paths': [{'path': '/a', 'pathType': 'Prefix', 'backend': {'service': {'name': 's', 'port': {'name': 'http'}}}},
                                                                                                           {'path': '/b', 'pathType': 'Exact', 'backend': {'resource': {'apiGroup': 'example.com', 'kind': 'X', 'name': 'y'}}}]}},
                                                              {'host': '*.example.com'}]}}],
    ('networking.k8s.io/v1', 'IngressClass'): [{'spec': {'controller': 'example.com/x', 'parameters': {'apiGroup': 'example.com', 'kind': 'X', 'name': 'y', 'scope': 'Namespace', 'namespace': 'n'}}}],
    ('networking.k8s.io/v1', 'NetworkPolicy'): [{'spec': {'podSelector': SELECTOR, 'policyTypes': ['Ingress', 'Egress'], 'ingress': [
        {'from': [{'ipBlock': {'cidr': '10.0.0.0/8', 'except': ['10.1.0.0/16']}}, {'namespaceSelector': {}, 'podSelector': SELECTOR}], 'ports': [{'protocol': 'TCP', 'port': 80, 'endPort': 90}, {'port': 'http'}]}],
        'egress': [{'to': [{'podSelector': {'matchExpressions': [{'key': 'a', 'operator': 'Exists'}]}}]}, {}]}}],
    ('networking.k8s.io/v1', 'ServiceCIDR'): [{'spec': {'cidrs': ['192.168.0.0/24', '2001:db8::/64']}}],
    ('autoscaling/v2', 'HorizontalPodAutoscaler'): [{'spec': {'scaleTargetRef': {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'name': 'x'}, 'minReplicas': 1, 'maxReplicas': 5, 'metrics': [
        {'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 50}}},
        {'type': 'Pods', 'pods': {'metric': {'name': 'p', 'selector': SELECTOR}, 'target': {'type': 'AverageValue', 'averageValue': '1k'}}},
        {'type': 'Object', 'object': {'describedObject': {'kind': 'Service', 'name': 's', 'apiVersion': 'v1'}, 'metric': {'name': 'o'}, 'target': {'type': 'Value', 'value': '5'}}},
        {'type': 'External', 'external': {'metric': {'name': 'e'}, 'target': {'type': 'AverageValue', 'averageValue': '30'}}},
        {'type': 'ContainerResource', 'containerResource': {'name': 'memory', 'container': 'app', 'target': {'type': 'AverageValue', 'averageValue': '1Mi'}}}],
        'behavior': {'scaleDown': {'stabilizationWindowSeconds': 60, 'selectPolicy': 'Min', 'policies': [{'type': 'Percent', 'value': 10, 'periodSeconds': 60}]}, 'scaleUp': {'policies': [{'type': 'Pods', 'value': 4, 'periodSeconds': 15}]}}}}],
    ('autoscaling/v1', 'HorizontalPodAutoscaler'): [{'spec': {'scaleTargetRef': {'kind': 'Deployment', 'name': 'x', 'apiVersion': 'apps/v1'}, 'maxReplicas': 5, 'minReplicas': 2, 'targetCPUUtilizationPercentage': 50}}],
    ('policy/v1', 'PodDisruptionBudget'): [{'spec': {'minAvailable': '50%', 'selector': SELECTOR, 'unhealthyPodEvictionPolicy': 'AlwaysAllow'}}, {'spec': {'maxUnavailable': 1, 'selector': {}}}],
    ('rbac.authorization.k8s.io/v1', 'Role'): [{'rules': [{'apiGroups': ['', 'apps'], 'resources': ['pods', 'deployments/scale'], 'verbs': ['get', '*'], 'resourceNames': ['x']}]}],
    ('rbac.authorization.k8s.io/v1', 'ClusterRole'): [{'rules': [{'nonResourceURLs': ['/x', '/y/*'], 'verbs': ['get']}, {'apiGroups': ['*'], 'resources': ['*'], 'verbs': ['*']}]},
                                                      {'aggregationRule': {'clusterRoleSelectors': [SELECTOR]}, 'rules': []}],
    ('rbac.authorization.k8s.io/v1', 'RoleBinding'): [{'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'view'}, 'subjects': [
        {'kind': 'User', 'name': 'u', 'apiGroup': 'rbac.authorization.k8s.io'}, {'kind': 'ServiceAccount', 'name': 's', 'namespace': 'n'}, {'kind': 'Group', 'name': 'g'}]}],
    ('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding'): [{'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'view'}, 'subjects': [
        {'kind': 'ServiceAccount', 'name': 's', 'namespace': 'n'}, {'kind': 'Group', 'name': 'g', 'apiGroup': 'rbac.authorization.k8s.io'}]}],
    ('storage.k8s.io/v1', 'StorageClass'): [{'provisioner': 'example.com/x', 'parameters': {'a': 'b'}, 'reclaimPolicy': 'Retain', 'mountOptions': ['ro'], 'allowVolumeExpansion': True,
                                             'volumeBindingMode': 'WaitForFirstConsumer', 'allowedTopologies': [{'matchLabelExpressions': [{'key': 'zone', 'values': ['a', 'b']}]}]}],
    ('scheduling.k8s.io/v1', 'PriorityClass'): [{'value': 5, 'preemptionPolicy': 'Never', 'description': 'x'}],
    ('coordination.k8s.io/v1', 'Lease'): [{'spec': {'holderIdentity': 'x', 'leaseDurationSeconds': 15, 'acquireTime': '2026-01-01T00:00:00.000000Z', 'renewTime': '2026-01-01T00:00:00.123456Z',
                                                    'leaseTransitions': 1, 'strategy': 'OldestEmulationVersion', 'preferredHolder': 'y'}}],
    ('discovery.k8s.io/v1', 'EndpointSlice'): [{'addressType': 'IPv4', 'endpoints': [{'addresses': ['192.0.2.1'], 'conditions': {'ready': True, 'serving': True, 'terminating': False}, 'hostname': 'h', 'nodeName': 'n', 'zone': 'z',
                                                                                     'targetRef': {'kind': 'Pod', 'name': 'p', 'namespace': 'n'}, 'hints': {'forZones': [{'name': 'z'}]}, 'deprecatedTopology': {'a': 'b'}}],
                                                'ports': [{'name': 'a', 'port': 80, 'protocol': 'TCP', 'appProtocol': 'http'}, {'name': 'b', 'port': 81}]}],
    ('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'): [{'webhooks': [WEBHOOK, {**WEBHOOK, 'name': 'b.example.com', 'clientConfig': {'url': 'https://example.com/x'}}]}],
    ('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'): [{'webhooks': [{**WEBHOOK, 'reinvocationPolicy': 'IfNeeded', 'matchPolicy': 'Exact'}, {**WEBHOOK, 'name': 'b.example.com'}]}],
    ('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy'): [{'spec': {
        'paramKind': {'apiVersion': 'v1', 'kind': 'ConfigMap'}, 'matchConstraints': {'resourceRules': [{**RULE, 'resourceNames': ['never']}], 'namespaceSelector': {'matchLabels': {'never': 'there'}}},
        'validations': [{'expression': 'object.spec.replicas <= 5', 'message': 'too many', 'reason': 'Invalid'}, {'expression': "has(params.data)", 'messageExpression': "'x' + 'y'"}],
        'failurePolicy': 'Ignore', 'auditAnnotations': [{'key': 'k', 'valueExpression': "'v'"}], 'matchConditions': [{'name': 'a', 'expression': 'true'}], 'variables': [{'name': 'v', 'expression': '1 + 1'}]}}],
    ('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding'): [{'spec': {'policyName': 'never.there', 'validationActions': ['Deny', 'Audit'], 'paramRef': {'name': 'p', 'namespace': 'n', 'parameterNotFoundAction': 'Deny'},
                                                                                        'matchResources': {'resourceRules': [{**RULE, 'resourceNames': ['x']}], 'objectSelector': SELECTOR, 'matchPolicy': 'Exact'}}}],
    ('apiextensions.k8s.io/v1', 'CustomResourceDefinition'): [{'spec': {
        'scope': 'Namespaced', 'names': {'plural': 'widgets', 'kind': 'Widget', 'singular': 'widget', 'shortNames': ['wd'], 'categories': ['all'], 'listKind': 'WidgetList'},
        'versions': [{'name': 'v1', 'served': True, 'storage': True, 'subresources': {'status': {}, 'scale': {'specReplicasPath': '.spec.replicas', 'statusReplicasPath': '.status.replicas', 'labelSelectorPath': '.status.selector'}},
                      'additionalPrinterColumns': [{'name': 'Size', 'type': 'integer', 'jsonPath': '.spec.size', 'priority': 1}], 'selectableFields': [{'jsonPath': '.spec.color'}],
                      'schema': {'openAPIV3Schema': {'type': 'object', 'required': ['spec'], 'properties': {
                          'spec': {'type': 'object', 'properties': {
                              'size': {'type': 'integer', 'minimum': 1, 'maximum': 10, 'default': 5}, 'color': {'type': 'string', 'enum': ['red', 'blue'], 'default': 'red'}, 'replicas': {'type': 'integer'},
                              'items': {'type': 'array', 'maxItems': 5, 'items': {'type': 'object', 'required': ['name'], 'properties': {'name': {'type': 'string', 'pattern': '^[a-z]+$'}, 'value': {'x-kubernetes-int-or-string': True}}},
                                        'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name']},
                              'tags': {'type': 'array', 'items': {'type': 'string'}, 'x-kubernetes-list-type': 'set'}, 'any': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True},
                              'more': {'type': 'object', 'additionalProperties': {'type': 'string', 'maxLength': 5}}, 'maybe': {'type': 'string', 'nullable': True}}},
                          'status': {'type': 'object', 'properties': {'replicas': {'type': 'integer'}, 'selector': {'type': 'string'}}}}}}},
                     {'name': 'v1beta1', 'served': True, 'storage': False, 'deprecated': True, 'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]}}],
}

SAMPLES = {key: [{'apiVersion': key[0], 'kind': key[1], 'metadata': dict(META), **sample} for sample in samples] for key, samples in _ALL.items()}
