// The modules of the console's page that need no browser.
import assert from 'node:assert/strict';
import path from 'node:path';
import {test} from 'node:test';

const {PAGE} = process.env;
const {lines_of, lines_of_owner} = await import(path.join(PAGE, 'yaml.js'));
const {changes_between, tree_of, walk, writers_between} = await import(path.join(PAGE, 'owners.js'));

const sample = (fields, value) => ({apiVersion: 'v1', kind: 'X', metadata: {name: 'x', managedFields: Object.entries(fields).map(([manager, fieldsV1]) => ({manager, operation: 'Apply', apiVersion: 'v1', time: '2026-01-02T03:04:05Z', fieldsType: 'FieldsV1', fieldsV1}))}, ...value});
function owners_by_path(object) {
  const found = {};
  walk(tree_of(object).root, (node) => {
    if (node.owners.length) found[node.path] = (node.missing ? '!' : '') + node.owners.map((entry) => entry.manager).join();
  });
  return found;
}

test('owners are found by names, keys, values and positions, and below atomic values', () => {
  assert.deepEqual(owners_by_path(sample({
    alice: {'f:spec': {'f:ports': {'k:{"port":80}': {'.': {}, 'f:port': {}}, 'k:{"port":99}': {'.': {}, 'f:port': {}}}, 'f:tags': {'v:"a"': {}}, 'f:whole': {}}},
    bob: {'f:spec': {'f:gone': {}, 'f:ports': {'k:{"port":80}': {'f:name': {}}}, 'f:tags': {'v:"a"': {}}, 'f:rows': {'i:1': {}}}},
  }, {spec: {ports: [{port: 443}, {port: 80, name: 'web'}], tags: ['b', 'a'], whole: {x: 1}, rows: [1, 2], free: 1}})), {
    '.spec.ports[port=80]': 'alice', '.spec.ports[port=80].port': 'alice', '.spec.ports[port=80].name': 'bob', '.spec.ports[port=99]': '!alice', '.spec.ports[port=99].port': '!alice',
    '.spec.tags[="a"]': 'alice,bob', '.spec.whole': 'alice', '.spec.whole.x': 'alice', '.spec.rows[1]': 'bob', '.spec.gone': '!bob'});
});

test('a change names its writer, not those who lost something by it', () => {
  const before = sample({alice: {'f:data': {'f:a': {}, 'f:b': {}}}}, {data: {a: '1', b: '2'}});
  const after_ = sample({alice: {'f:data': {'f:b': {}}}, bob: {'f:data': {'f:a': {}}}}, {data: {a: '3', b: '2'}});
  assert.deepEqual(changes_between(tree_of(before), tree_of(after_)).map(({path: at, before: old, after: now, owners_before, owners_after}) => [at, old, now, owners_before.join(), owners_after.join()]), [['.data.a', '"1"', '"3"', 'alice', 'bob']]);
  assert.deepEqual(writers_between(tree_of(before), tree_of(after_)), ['bob']);
});

test('fields sets that no object can have, and huge ones, are shown without failing', () => {
  for (const fields of [{'k:{': {}}, {'v:{': {}}, {'i:x': {}}, {'f:__proto__': {'f:x': {}}}, {'f:constructor': {}}, {'?': {}}, {'f:data': {'k:[1]': {}, 'k:null': {}, 'k:3': {}}}]) {
    tree_of(sample({alice: fields}, {data: {x: 1}, list: [null, 1, {a: 1}]}));
  }
  const keys = Array.from({length: 20000}, (_, i) => `k${i}`);
  const big = sample({alice: {'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}]))}}, {data: Object.fromEntries(keys.map((key) => [key, 'v']))});
  const {root} = tree_of(big);
  assert.ok(lines_of(root, {hidden: () => null, folded: () => false}).length > 20000);
  assert.equal(lines_of_owner(lines_of(root, {hidden: () => null, folded: () => false}), root, 'nobody').length, 1);
});
