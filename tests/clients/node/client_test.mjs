// @kubernetes/client-node against a running server: CRUD, patches, watch, informer. Run by node_client_test.py.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const namespace = 'node-' + randomBytes(4).toString('hex');

const eventually = async (what, done) => {
  const end = Date.now() + 60_000;
  while (!(await done())) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

before(() => core.createNamespace({ body: { metadata: { name: namespace } } }));
after(() => core.deleteNamespace({ name: namespace }));

test('an object is created, read, replaced, patched and deleted', async () => {
  const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'crud' }, data: { a: '1' } } });
  assert.match(made.metadata.uid, /^[0-9a-f-]{36}$/);
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  const read = await core.readNamespacedConfigMap({ name: 'crud', namespace });
  assert.deepEqual(read.data, { a: '1' });
  read.data.b = '2';
  const replaced = await core.replaceNamespacedConfigMap({ name: 'crud', namespace, body: read });
  assert.deepEqual(replaced.data, { a: '1', b: '2' });
  await assert.rejects(core.replaceNamespacedConfigMap({ name: 'crud', namespace, body: { ...read, data: {} } }), { code: 409 });

  const patched = await core.patchNamespacedConfigMap(
    { name: 'crud', namespace, body: [{ op: 'remove', path: '/data/a' }] },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.JsonPatch),
  );
  assert.deepEqual(patched.data, { b: '2' });
  const merged = await core.patchNamespacedConfigMap(
    { name: 'crud', namespace, body: { data: { b: null, c: '3' } } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
  );
  assert.deepEqual(merged.data, { c: '3' });

  await core.deleteNamespacedConfigMap({ name: 'crud', namespace });
  await assert.rejects(core.readNamespacedConfigMap({ name: 'crud', namespace }), { code: 404 });
});

test('a deployment is applied by the server, and its scale is changed', async () => {
  const labels = { app: 'web' };
  const body = {
    apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace },
    spec: { replicas: 1, selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } } },
  };
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  const applied = await client.patch(body, undefined, undefined, 'node', true, k8s.PatchStrategy.ServerSideApply);
  assert.equal(applied.spec.strategy.type, 'RollingUpdate');
  assert.deepEqual(applied.metadata.managedFields.map((entry) => [entry.manager, entry.operation]), [['node', 'Apply']]);
  const scale = await apps.readNamespacedDeploymentScale({ name: 'web', namespace });
  scale.spec.replicas = 4;
  await apps.replaceNamespacedDeploymentScale({ name: 'web', namespace, body: scale });
  assert.equal((await apps.readNamespacedDeployment({ name: 'web', namespace })).spec.replicas, 4);
});

test('lists come in pages, and a bad object is refused with its causes', async () => {
  for (let i = 0; i < 5; ++i) {
    await core.createNamespacedSecret({ namespace, body: { metadata: { name: 'page-' + i, labels: { page: 'x' } }, stringData: { k: 'v' } } });
  }
  const names = [];
  let next;
  do {
    const page = await core.listNamespacedSecret({ namespace, labelSelector: 'page=x', limit: 2, _continue: next });
    names.push(...page.items.map((item) => item.metadata.name));
    next = page.metadata._continue;
  } while (next);
  assert.deepEqual(names, ['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
  await assert.rejects(core.createNamespacedPod({ namespace, body: { metadata: { name: 'p' }, spec: { containers: [] } } }), (error) => {
    assert.equal(error.code, 422);
    assert.match(JSON.stringify(error.body), /spec\.containers: Required value/);
    return true;
  });
});

test('a watch gives the events in order', async () => {
  const begin = await core.listNamespacedConfigMap({ namespace });
  const seen = [];
  const request = await new k8s.Watch(config).watch(
    `/api/v1/namespaces/${namespace}/configmaps`,
    { resourceVersion: begin.metadata.resourceVersion, fieldSelector: 'metadata.name=watched' },
    (type, object) => seen.push([type, object.data?.n]),
    () => {},
  );
  const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'watched' }, data: { n: '1' } } });
  made.data.n = '2';
  await core.replaceNamespacedConfigMap({ name: 'watched', namespace, body: made });
  await core.deleteNamespacedConfigMap({ name: 'watched', namespace });
  await eventually('all events arrive', () => seen.length >= 3);
  request.abort();
  assert.deepEqual(seen, [['ADDED', '1'], ['MODIFIED', '2'], ['DELETED', '2']]);
});

test('an informer follows', async () => {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
  const added = new Set();
  informer.on('add', (object) => added.add(object.metadata.name));
  let gone;
  informer.on('delete', (object) => { gone = object.metadata.name; });
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'early' } } });
  await informer.start();
  await eventually('what was there is told', () => added.has('early'));
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'late' } } });
  await eventually('what comes is told', () => informer.get('late', namespace) !== undefined);
  await core.deleteNamespacedConfigMap({ name: 'late', namespace });
  await eventually('what goes is told', () => gone === 'late');
  await informer.stop();
});
