// The owners of each field of an object: its managedFields mapped onto its tree.
//
//   node: {key, path, value, owners: [entries], children, list, missing, server}
//
// An owner is an entry of managedFields: {manager, operation, subresource, version, time}. Items of lists are found by
// the keys, values or positions in the field sets. A map or list that is owned and in which nothing is owned has one
// owner for all of it.

const kServerMetadata = new Set(['name', 'namespace', 'creationTimestamp', 'selfLink', 'uid', 'generation', 'resourceVersion']);

const is_map = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const is_member = (set) => '.' in set || Object.keys(set).length === 0;

// Equal JSON whatever the order of members.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!is_map(value)) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
}

export function entries_of(object) {
  return (object.metadata?.managedFields || []).map((entry) => ({
    manager: entry.manager || '(no name)', operation: entry.operation || '', subresource: entry.subresource || '', version: entry.apiVersion || '',
    time: entry.time, set: is_map(entry.fieldsV1) ? entry.fieldsV1 : {}, readable: is_map(entry.fieldsV1)}));
}

function item_label(element) {
  const rest = element.slice(2);
  try {
    if (element.startsWith('k:')) return `[${Object.entries(JSON.parse(rest)).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join()}]`;
    if (element.startsWith('v:')) return `[=${rest}]`;
  } catch {
    return `[${element}]`;
  }
  return `[${rest}]`;
}
const label_of = (element) => (element.startsWith('f:') ? `.${element.slice(2)}` : item_label(element));

// Finds the element of the field sets that stands for an item.
function item_finder(elements) {
  const by_key = new Map(), by_value = new Map(), by_index = new Map();
  for (const element of elements) {
    try {
      if (element.startsWith('k:')) {
        const key = JSON.parse(element.slice(2)), names = Object.keys(key).sort();
        const shape = JSON.stringify(names);
        if (!by_key.has(shape)) by_key.set(shape, {names, items: new Map()});
        by_key.get(shape).items.set(names.map((name) => canonical(key[name])).join('\n'), element);
      } else if (element.startsWith('v:')) {
        by_value.set(canonical(JSON.parse(element.slice(2))), element);
      } else if (element.startsWith('i:')) {
        by_index.set(Number(element.slice(2)), element);
      }
    } catch {
      // Not an element that an item could have: it is shown as one without a value.
    }
  }
  return (item, position) => {
    if (is_map(item)) {
      for (const {names, items} of by_key.values()) {
        const found = names.every((name) => name in item) && items.get(names.map((name) => canonical(item[name])).join('\n'));
        if (found) return found;
      }
    }
    return (by_value.size ? by_value.get(canonical(item)) : undefined) || by_index.get(position);
  };
}

const elements_of = (sets) => new Set(sets.flatMap(({set}) => Object.keys(set).filter((element) => element !== '.')));

function node_of(key, element, path, value, sets, whole, depth) {
  const own = sets.filter(({set}) => element in set).map(({entry, set}) => ({entry, set: set[element]}));
  const owners = [...new Set([...whole, ...own.filter(({set}) => is_member(set)).map(({entry}) => entry)])];
  const node = {key, path, value, owners, children: [], list: Array.isArray(value), missing: value === undefined, server: false, depth};
  const atomic = whole.length > 0 || (owners.length > 0 && elements_of(own).size === 0);
  fill(node, own, atomic ? owners : []);
  return node;
}

function fill(node, sets, whole) {
  const elements = elements_of(sets), known = new Set();
  const depth = node.depth + 1;
  if (Array.isArray(node.value)) {
    const find = item_finder(elements);
    node.value.forEach((item, position) => {
      const element = find(item, position) || `i:${position}`;
      known.add(element);
      node.children.push(node_of(position, element, node.path + label_of(element), item, sets, whole, depth));
    });
  } else if (is_map(node.value)) {
    for (const name of node.depth < 0 ? root_order(node.value) : Object.keys(node.value)) {
      const value = node.value[name];
      if (node.path === '.metadata' && name === 'managedFields') continue;
      const element = `f:${name}`;
      known.add(element);
      node.children.push(node_of(name, element, `${node.path}.${name}`, value, sets, whole, depth));
    }
  }
  for (const element of elements) {
    if (known.has(element)) continue;
    const key = element.startsWith('f:') ? element.slice(2) : item_label(element);
    node.children.push(node_of(key, element, node.path + label_of(element), undefined, sets, [], depth));
  }
}

// As people write objects: apiVersion, kind, metadata, then the rest as it came.
function root_order(object) {
  const first = ['apiVersion', 'kind', 'metadata'];
  return [...first.filter((name) => name in object), ...Object.keys(object).filter((name) => !first.includes(name))];
}

export function tree_of(object) {
  const entries = entries_of(object);
  const root = {key: '', path: '', value: object, owners: [], children: [], list: false, missing: false, server: false, depth: -1};
  fill(root, entries.map((entry) => ({entry, set: entry.set})), []);
  for (const child of root.children) {
    child.server = child.key === 'apiVersion' || child.key === 'kind';
    if (child.key === 'metadata') for (const field of child.children) field.server = kServerMetadata.has(field.key);
  }
  return {root, entries};
}

// Visits every node below the root.
export function walk(node, visit) {
  for (const child of node.children) {
    visit(child);
    walk(child, visit);
  }
}

export const names_of = (node) => [...new Set(node.owners.map((entry) => entry.manager))];

// The leaves by path: {text, owners}.
export function leaves_of(tree) {
  const leaves = new Map();
  walk(tree.root, (node) => {
    if (node.children.length === 0) leaves.set(node.path, {text: node.missing ? undefined : JSON.stringify(node.value), owners: names_of(node), node});
  });
  return leaves;
}

// Bookkeeping of the server that changes with every write.
const kBookkeeping = new Set(['.metadata.resourceVersion', '.metadata.generation', '.metadata.uid', '.metadata.creationTimestamp']);

// [{path, before, after, owners_before, owners_after}]: leaves whose value or owners differ.
export function changes_between(before, after) {
  const old = leaves_of(before), now = leaves_of(after), changes = [];
  for (const path of new Set([...old.keys(), ...now.keys()])) {
    if (kBookkeeping.has(path)) continue;
    const a = old.get(path), b = now.get(path);
    if (a && b && a.text === b.text && a.owners.join('\n') === b.owners.join('\n')) continue;
    changes.push({path, before: a?.text, after: b?.text, owners_before: a?.owners || [], owners_after: b?.owners || [], node: b?.node || a?.node});
  }
  return changes;
}

// The managers that made the step from one state to the other: their entry is new, or has another time. If there is none,
// those whose fields are others; with one, that is what they lost or share now.
export function writers_between(before, after) {
  const identity = (entry) => [entry.manager, entry.operation, entry.subresource, entry.version].join('\n');
  const old = new Map(before.entries.map((entry) => [identity(entry), entry]));
  const was = (entry) => old.get(identity(entry));
  let writers = after.entries.filter((entry) => !was(entry) || was(entry).time !== entry.time);
  if (writers.length === 0) writers = after.entries.filter((entry) => canonical(was(entry).set) !== canonical(entry.set));
  return [...new Set(writers.map((entry) => entry.manager))];
}

// The number of fields in a set: its leaves.
export function count_fields(set) {
  let fields = 0;
  for (const [element, below] of Object.entries(set)) {
    if (element === '.') continue;
    fields += is_map(below) && Object.keys(below).some((inner) => inner !== '.') ? count_fields(below) : 1;
  }
  return fields;
}
