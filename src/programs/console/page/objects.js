// The objects of one kind: a live table with the columns of the server.
import {advice, ApiError, follow, key_of, kTables, pages, path_of} from './api.js';
import {age, announce, count, h, labelled, notice, replace} from './dom.js';
import {go, link, remember, resource_by_key, session, tell} from './main.js';
import {Windowed} from './windowed.js';

// A select with the kinds, grouped by API group.
export function kind_select(chosen, change, more = []) {
  const groups = new Map();
  for (const resource of session.resources) {
    if (!groups.has(resource.group)) groups.set(resource.group, []);
    groups.get(resource.group).push(resource);
  }
  const option = (resource) => h('option', {value: key_of(resource), selected: key_of(resource) === chosen}, resource.plural);
  return h('select', {onchange: (event) => change(event.target.value)}, more, [...groups].map(([group, resources]) => (
    h('optgroup', {label: group || 'core'}, resources.sort((a, b) => a.plural.localeCompare(b.plural)).map(option)))));
}

// A select, or a text field for those who may not list namespaces.
export function namespace_select(chosen, change, all = 'All namespaces') {
  const changed = (event) => change(event.target.value.trim());
  if (!session.namespaces) return h('input', {value: chosen, onchange: changed, placeholder: all, autocomplete: 'off', spellcheck: 'false'});
  const names = [...new Set([...session.namespaces, chosen].filter((name) => name))];
  return h('select', {onchange: changed}, h('option', {value: '', selected: !chosen}, all),
    names.map((name) => h('option', {value: name, selected: name === chosen}, name)));
}

export async function show_objects({content, params, signal}) {
  const key = params.kind || 'configmaps';
  const resource = resource_by_key(key);
  const filters = {kind: key, ns: params.ns ?? '', labels: params.labels || '', q: params.q || '', manager: params.manager || ''};
  const load_again = (change) => go('objects', {...filters, ...change});

  // Rows: {uid, space, name, cells, created, managers}. Those that the filters let through are in `shown`.
  let rows = new Map(), shown = [], columns = [], total = 0, loaded = false;
  const managers = new Set();

  const summary = h('p', {class: 'summary', role: 'status'});
  const search = h('input', {type: 'search', value: filters.q, 'data-search': true, placeholder: 'any cell', autocomplete: 'off', spellcheck: 'false',
    oninput: (event) => {
      filters.q = event.target.value;
      remember(filters);
      select();
    }});
  const manager_list = h('datalist', {id: 'managers'});
  const toolbar = h('form', {class: 'toolbar', role: 'search', onsubmit: (event) => event.preventDefault()},
    labelled('Kind', kind_select(key, (kind) => load_again({kind}))),
    !resource || resource.namespaced ? labelled('Namespace', namespace_select(filters.ns, (ns) => load_again({ns}))) : null,
    labelled('Filter', search),
    labelled('Labels', h('input', {value: filters.labels, placeholder: 'app=web', autocomplete: 'off', spellcheck: 'false', onchange: (event) => load_again({labels: event.target.value.trim()})})),
    labelled('Manager', h('input', {value: filters.manager, list: 'managers', placeholder: 'owns any field', autocomplete: 'off', spellcheck: 'false', onchange: (event) => load_again({manager: event.target.value.trim()})})),
    manager_list);
  const head = h('div', {class: 'row head', role: 'row', 'aria-rowindex': '1'});
  const body = h('div', {role: 'rowgroup', class: 'rows'});
  const grid = h('div', {class: 'grid', role: 'grid', 'aria-label': `${resource?.plural || key}`, 'aria-colcount': '1', 'aria-rowcount': '-1'},
    h('div', {role: 'rowgroup', class: 'heads'}, head), body);
  const under = h('div', {class: 'under'});
  content.append(h('h1', {}, resource ? resource.kind : key), toolbar, summary, grid, under);
  if (!resource) throw new ApiError(404, {message: `this server does not serve "${key}", or it cannot be listed`});

  const across = resource.namespaced && !filters.ns;
  const shown_columns = () => {
    // The columns that fit; the others are shown with the object.
    const chosen = columns.map((column, index) => ({...column, index})).filter((column) => column.priority === 0 || grid.clientWidth > 1300);
    const room = Math.max(1, Math.floor((grid.clientWidth - 40) / 130) - (across ? 1 : 0));
    return chosen.slice(0, room);
  };
  const window_ = new Windowed({
    scroller: grid, body,
    render: (index) => {
      const row = shown[index];
      const cells = [...(across ? [row.space] : []), ...shown_columns().map((column) => (column.name === 'Age' && row.created
        ? h('time', {datetime: row.created, title: row.created}, age((Date.now() - Date.parse(row.created)) / 1000)) : String(row.cells[column.index] ?? '')))];
      const name_at = across ? 1 : 0;
      return h('div', {class: `row${row.fresh > Date.now() ? ' fresh' : ''}`, role: 'row', 'aria-rowindex': String(index + 2), onclick: () => open_row(index)},
        cells.map((cell, i) => h('div', {role: 'gridcell', class: `cell${i === name_at ? ' name' : ''}`, title: typeof cell === 'string' && cell.length > 14 ? cell : null}, cell)));
    },
    activate: (index) => open_row(index),
  });
  signal.addEventListener('abort', () => window_.close());
  const open_row = (index) => go('object', {kind: key, ns: shown[index].space, name: shown[index].name});

  function show_head() {
    const list = shown_columns();
    grid.style.setProperty('--columns', String(list.length + (across ? 1 : 0)));
    grid.setAttribute('aria-colcount', String(list.length + (across ? 1 : 0)));
    replace(head, across ? h('div', {role: 'columnheader', class: 'cell'}, 'Namespace') : null,
      list.map((column) => h('div', {role: 'columnheader', class: 'cell', title: column.description}, column.name)));
  }
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (Math.abs(grid.clientWidth - width) < 2) return;
    width = grid.clientWidth;
    if (columns.length) show_head();
    window_.refresh();
  });
  observer.observe(grid);
  signal.addEventListener('abort', () => observer.disconnect());

  function matches(row) {
    if (filters.manager && !row.managers?.includes(filters.manager)) return false;
    if (!filters.q) return true;
    const wanted = filters.q.toLowerCase();
    return row.name.toLowerCase().includes(wanted) || row.space.toLowerCase().includes(wanted) || row.cells.some((cell) => String(cell).toLowerCase().includes(wanted));
  }

  function select() {
    shown = [];
    for (const row of rows.values()) if (matches(row)) shown.push(row);
    window_.refresh(shown.length);
    grid.setAttribute('aria-rowcount', String(shown.length + 1));
    const all = loaded ? rows.size : Math.max(total, rows.size);
    const parts = [shown.length === rows.size ? count(rows.size, 'object') : `${shown.length.toLocaleString('en')} of ${count(rows.size, 'object')}`];
    if (!loaded) parts.push(`loading, ${all.toLocaleString('en')} in all`);
    const text = parts.join('; ');
    if (summary.textContent !== text) summary.textContent = text;
    if (manager_list.childElementCount !== managers.size) replace(manager_list, [...managers].sort().map((name) => h('option', {value: name})));
    const nothing = loaded && shown.length === 0;
    grid.hidden = nothing;
    replace(under, !nothing ? null : rows.size > 0
      ? notice('empty', 'Nothing matches', filters.manager ? `No object here has an entry of the manager “${filters.manager}” and matches the filter.` : `None of ${count(rows.size, 'object')} contains “${filters.q}”.`,
        h('a', {href: link('objects', {kind: key, ns: filters.ns})}, 'Remove the filters'))
      : notice('empty', `No ${resource.plural}`, filters.ns ? `The namespace ${filters.ns} has none${filters.labels ? ' with these labels' : ''}.` : 'The cluster has none.',
        filters.ns ? h('a', {href: link('objects', {kind: key})}, 'Look in all namespaces') : h('a', {href: link('apply')}, 'Apply a manifest')));
  }
  // Many events make one repaint.
  let scheduled = false;
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => {
      scheduled = false;
      if (!signal.aborted) select();
    }, 150);
  }

  function row_of(row) {
    const metadata = row.object?.metadata || {};
    const made = {uid: metadata.uid || `${metadata.namespace}/${metadata.name}`, space: metadata.namespace || '', name: metadata.name || String(row.cells[0]), cells: row.cells, created: metadata.creationTimestamp, fresh: 0};
    if (filters.manager || metadata.managedFields) {
      made.managers = [...new Set((metadata.managedFields || []).map((entry) => entry.manager))];
      for (const name of made.managers) managers.add(name);
    }
    return made;
  }

  const path = path_of(resource, filters.ns);
  // managedFields are only asked for where they are needed to find a manager's objects.
  const accept = filters.manager ? kTables.with : kTables.without;
  const query = {includeObject: 'Metadata', ...(filters.labels ? {labelSelector: filters.labels} : {})};
  try {
    await follow({
      path, watch: {accept, params: query}, signal, state: tell,
      load: async () => {
        const fresh = new Map();
        let version = '';
        loaded = false;
        for await (const page of pages(path, {accept, params: query, signal})) {
          if (page.kind !== 'Table') throw new ApiError(406, {message: 'the server does not print tables for this kind'});
          version = page.metadata.resourceVersion;
          if (page.columnDefinitions) columns = page.columnDefinitions;
          for (const row of page.rows || []) {
            const made = row_of(row);
            fresh.set(made.uid, made);
          }
          total = fresh.size + (page.metadata.remainingItemCount || 0);
          const first = rows !== fresh;
          rows = fresh;
          if (first) show_head();
          tell({phase: 'loading', text: `Loading ${fresh.size.toLocaleString('en')} of ${total.toLocaleString('en')}`});
          select();
        }
        loaded = true;
        select();
        return version;
      },
      change: (event) => {
        if (event.object.columnDefinitions?.length) columns = event.object.columnDefinitions;
        for (const row of event.object.rows || []) {
          const made = row_of(row);
          if (event.type === 'DELETED') {
            rows.delete(made.uid);
          } else {
            made.fresh = Date.now() + 4000;
            rows.set(made.uid, made);
          }
        }
        schedule();
      },
    });
  } catch (error) {
    if (signal.aborted) return;
    grid.hidden = true;
    tell({phase: 'failed'});
    summary.textContent = '';
    announce(error.message);
    replace(under, notice(error.status === 403 ? 'forbidden' : 'error', error.status === 403 ? `You may not list ${resource.plural}${filters.ns ? ` in ${filters.ns}` : ' in all namespaces'}` : 'The list cannot be read', error.message,
      h('p', {}, advice(error)), h('button', {type: 'button', onclick: () => load_again({})}, 'Try again'),
      across ? h('p', {}, h('a', {href: link('objects', {...filters, ns: session.namespace})}, `Look in the namespace ${session.namespace}`)) : null));
  }
}
