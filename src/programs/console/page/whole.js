// Who owns what in a namespace or in the cluster, what ownership costs, and managers that look wrong.
import {advice, key_of, metadata_pages, path_of} from './api.js';
import {ago, bytes, count, h, labelled, notice, replace} from './dom.js';
import {go, link, session, tell, tell_done} from './main.js';
import {Managers} from './managers.js';
import {count_fields} from './owners.js';
import {namespace_select} from './objects.js';

const kQuietDays = 90;

// Changes of one letter, or of two neighbours, that make one name of the other; 3 means more than two.
export function distance(a, b) {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let before = [], row = [...Array(b.length + 1).keys()];
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      const same = a[i - 1] === b[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return Math.min(3, row[b.length]);
}

// [{name, why}]: managers that are probably not meant to be.
export function unusual_managers(managers, now) {
  const found = [];
  const names = [...managers.keys()];
  for (const [name, {objects, last}] of managers) {
    const near = names.find((other) => other !== name && managers.get(other).objects >= objects && (managers.get(other).objects > objects || other < name) && name.length > 4 &&
      (other.toLowerCase() === name.toLowerCase() || distance(name, other) === 1));
    if (near) found.push({name, why: `differs from “${near}” by a letter: a typo?`});
    if (/(?:[-_.@/]v?\d+\.\d+)|[-_][0-9a-f]{7,}$|[-_][a-z0-9]{5,10}-[a-z0-9]{5}$/.test(name)) found.push({name, why: 'contains a version or an id: each new one leaves another entry behind'});
    if (name === '(no name)' || name === 'unknown') found.push({name, why: 'has no name: its client sends no User-Agent and no fieldManager'});
    if (name === 'before-first-apply') found.push({name, why: 'holds what was set before the first apply; nobody writes as it'});
    if (last && now - Date.parse(last) > kQuietDays * 86400000) found.push({name, why: `wrote last ${ago(last)}: its controller may be gone, its fields still cause conflicts`});
  }
  return found;
}

export async function show_whole({content, params, signal}) {
  const ns = params.ns || '';
  const colours = new Managers();
  const managers = new Map();  // {objects, fields, bytes, last, kinds}
  const kinds = new Map();  // {resource, objects, bytes, managers: name -> fields}
  const refused = [];
  let objects = 0, cost = 0, entries = 0, unowned = 0;

  const picture = h('div', {class: 'picture'});
  const progress = h('p', {class: 'summary', role: 'status'});
  content.append(h('h1', {}, ns ? `Ownership of the namespace ${ns}` : 'Ownership of the cluster'),
    h('form', {class: 'toolbar', onsubmit: (event) => event.preventDefault()}, labelled('Namespace', namespace_select(ns, (name) => go('whole', {ns: name}), 'The whole cluster'))),
    progress, picture);

  function add(resource, item) {
    const key = key_of(resource);
    if (!kinds.has(key)) kinds.set(key, {resource, objects: 0, bytes: 0, managers: new Map()});
    const kind = kinds.get(key);
    ++objects;
    ++kind.objects;
    const list = item.metadata?.managedFields || [];
    if (list.length === 0) ++unowned;
    const seen = new Set();
    for (const entry of list) {
      const name = entry.manager || '(no name)', size = JSON.stringify(entry).length + 1, fields = count_fields(entry.fieldsV1 || {});
      if (!managers.has(name)) managers.set(name, {objects: 0, fields: 0, bytes: 0, last: '', kinds: new Set(), operations: new Set()});
      const manager = managers.get(name);
      if (!seen.has(name)) ++manager.objects;
      seen.add(name);
      manager.fields += fields;
      manager.bytes += size;
      manager.kinds.add(key);
      manager.operations.add(entry.operation + (entry.subresource ? `/${entry.subresource}` : ''));
      if ((entry.time || '') > manager.last) manager.last = entry.time;
      kind.managers.set(name, (kind.managers.get(name) || 0) + fields);
      kind.bytes += size;
      cost += size;
      ++entries;
    }
  }

  const resources = session.resources.filter((resource) => (!ns || resource.namespaced) && resource.verbs.includes('list') && resource.group !== 'events.k8s.io');
  tell({phase: 'loading'});
  let done = 0;
  const read = async (resource) => {
    try {
      for await (const page of metadata_pages(path_of(resource, ns), {signal})) for (const item of page.items || []) add(resource, item);
    } catch (error) {
      if (signal.aborted) throw error;
      // Kinds that cannot be listed are named below; the rest is still true.
      refused.push({resource, error});
      if (error.status === undefined || error.reason === 'ConsoleSession') throw error;
    }
    progress.textContent = `Reading ${++done} of ${resources.length} kinds, ${count(objects, 'object')}`;
  };
  const queue = [...resources];
  await Promise.all([1, 2, 3].map(async () => {
    while (queue.length > 0) await read(queue.shift());
  }));
  tell_done(`As of ${new Date().toLocaleTimeString()}`);

  const fields = [...managers.values()].reduce((sum, manager) => sum + manager.fields, 0);
  progress.textContent = `${count(objects, 'object')} of ${count(kinds.size, 'kind')}, ${count(managers.size, 'manager')}, ${count(fields, 'owned field')}`;
  if (objects === 0 && refused.length > 0) {
    replace(picture, notice('forbidden', 'You may list nothing here', refused[0].error.message, h('p', {}, advice(refused[0].error)), h('a', {href: link('whole', {ns: session.namespace})}, `Look at the namespace ${session.namespace}`)));
    return;
  }
  if (objects === 0) {
    replace(picture, notice('empty', 'Nothing here', `The namespace ${ns} has no objects.`, h('a', {href: link('whole')}, 'Look at the whole cluster')));
    return;
  }

  const by_fields = [...managers].sort((a, b) => b[1].fields - a[1].fields);
  colours.add(by_fields.map(([name]) => name));
  const share = (part, all) => `${all === 0 ? 0 : Math.round((part / all) * 1000) / 10}%`;
  // A bar of parts: [[name, number]].
  const bar = (parts, all, of) => {
    const element = h('div', {class: 'bar', role: 'img', 'aria-label': parts.map(([name, number]) => `${name} ${share(number, all)}`).join(', ')});
    for (const [name, number] of parts) {
      const part = h('span', {class: `part ${colours.style(name)}`, title: `${name}: ${number.toLocaleString('en')} (${share(number, all)})`}, number / all > 0.035 ? colours.letter(name) : '');
      part.style.flexGrow = String(number);
      element.append(part);
    }
    element.style.width = of === undefined ? '100%' : `${Math.max(2, (all / of) * 100)}%`;
    return element;
  };
  const largest = Math.max(...[...kinds.values()].map((kind) => [...kind.managers.values()].reduce((a, b) => a + b, 0)));
  const by_kind = [...kinds].map(([key, kind]) => ({key, ...kind, fields: [...kind.managers.values()].reduce((a, b) => a + b, 0)})).sort((a, b) => b.fields - a.fields);
  const odd = unusual_managers(managers, Date.now());
  const objects_of = (key, manager) => link('objects', {kind: key, ns, manager});

  replace(picture,
    h('section', {class: 'panel wide'}, h('h2', {}, 'Who owns the fields'), bar(by_fields.map(([name, manager]) => [name, manager.fields]), fields),
      h('div', {class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Managers'}, h('table', {},
        h('thead', {}, h('tr', {}, ['Manager', 'Fields', 'Objects', 'managedFields', 'Last write', 'Kinds'].map((title) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, by_fields.map(([name, manager]) => h('tr', {}, h('th', {scope: 'row'}, colours.badge(name), name),
          h('td', {'data-title': 'Fields'}, `${manager.fields.toLocaleString('en')} (${share(manager.fields, fields)})`), h('td', {'data-title': 'Objects'}, manager.objects.toLocaleString('en')),
          h('td', {'data-title': 'managedFields'}, bytes(manager.bytes)), h('td', {'data-title': 'Last write'}, h('time', {datetime: manager.last, title: manager.last}, ago(manager.last))),
          h('td', {'data-title': 'Kinds', class: 'links'}, [...manager.kinds].sort().slice(0, 4).map((key) => [h('a', {href: objects_of(key, name)}, key.split('.')[0]), ' ']), manager.kinds.size > 4 ? `and ${manager.kinds.size - 4} more` : null))))))),
    h('section', {class: 'panel wide'}, h('h2', {}, 'By kind'), h('ul', {class: 'kinds'}, by_kind.map((kind) => h('li', {},
      h('a', {href: link('objects', {kind: kind.key, ns})}, kind.key), h('span', {class: 'hint'}, `${count(kind.objects, 'object')}, ${count(kind.fields, 'field')}`),
      kind.fields ? bar([...kind.managers].sort((a, b) => b[1] - a[1]), kind.fields, largest) : h('span', {class: 'hint'}, 'no owned fields'))))),
    h('section', {class: 'panel'}, h('h2', {}, 'Managers to look at'),
      odd.length ? h('ul', {class: 'odd'}, odd.map(({name, why}) => h('li', {}, colours.badge(name), h('strong', {}, name), ` ${why}`))) : h('p', {}, 'None looks unusual: no near-duplicates, versions, missing names or long silence.')),
    h('section', {class: 'panel'}, h('h2', {}, 'What ownership costs'),
      h('p', {}, h('strong', {}, bytes(cost)), ` of managedFields in ${count(entries, 'entry', 'entries')}, ${bytes(Math.round(cost / objects))} for each object. A client that lists all of this receives them each time; one that opts out of managedFields saves exactly that.`),
      unowned ? h('p', {class: 'hint'}, `${count(unowned, 'object has', 'objects have')} no managedFields.`) : null,
      h('ul', {class: 'costs'}, [...by_kind].sort((a, b) => b.bytes - a.bytes).slice(0, 6).map((kind) => h('li', {}, `${kind.key}: ${bytes(kind.bytes)} (${share(kind.bytes, cost)})`)))),
    refused.length ? h('section', {class: 'panel'}, h('h2', {}, 'Not counted'), h('p', {}, 'These kinds could not be listed:'),
      h('ul', {class: 'odd'}, refused.map(({resource, error}) => h('li', {}, h('strong', {}, key_of(resource)), ` ${error.status === 403 ? 'not allowed' : error.message}`)))) : null);
}
