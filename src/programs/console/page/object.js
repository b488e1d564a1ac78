// One object: its YAML with the owner of each line, live.
import {advice, ApiError, follow, get, path_of, tool} from './api.js';
import {ago, announce, count, h, notice, replace, timed} from './dom.js';
import {history_of} from './history.js';
import {fail, go, link, resource_by_key, tell} from './main.js';
import {Managers} from './managers.js';
import {changes_between, count_fields, names_of, tree_of, writers_between} from './owners.js';
import {Windowed} from './windowed.js';
import {lines_of, lines_of_owner} from './yaml.js';

const kFlashSeconds = 12;
const kLastApplied = '.metadata.annotations.kubectl.kubernetes.io/last-applied-configuration';

function how_owned(node) {
  if (node.missing && node.owners.length > 0) return 'missing';
  if (node.missing) return 'structure';
  if (node.owners.length === 0) return node.server ? 'server' : 'nobody';
  return new Set(names_of(node)).size > 1 ? 'shared' : 'one';
}

export function owner_text(entry) {
  return `${entry.manager}, ${entry.operation}${entry.subresource ? ` of ${entry.subresource}` : ''}`;
}

export async function show_object({content, params, signal}) {
  const resource = resource_by_key(params.kind || '');
  if (!resource || !params.name) throw new ApiError(404, {message: `this server does not serve "${params.kind || ''}"`});
  const secret = resource.kind === 'Secret' && resource.group === '';
  const where = resource.namespaced && params.ns ? `${params.ns}/` : '';

  const managers = new Managers();
  const folded = new Set();
  let tree = null, object = null, lines = [], only = params.manager || '', revealed = false, deleted = false;
  const flashes = new Map();  // By path: {until, who}.

  const legend = h('ul', {class: 'legend', 'aria-label': 'Managers of this object'});
  const legend_hint = h('p', {class: 'hint'});
  const body = h('div', {class: 'lines', role: 'tree', 'aria-label': `${resource.kind} ${params.name}`});
  const scroller = h('div', {class: 'yaml'}, body);
  const details = h('div', {class: 'details', role: 'status'});
  const events = h('ol', {class: 'events'});
  const timeline = h('ol', {class: 'timeline'});
  const banner = h('div', {class: 'banner'});
  const reveal = secret ? h('button', {type: 'button', 'aria-pressed': 'false', onclick: () => {
    revealed = !revealed;
    reveal.setAttribute('aria-pressed', String(revealed));
    reveal.textContent = revealed ? 'Hide values' : 'Show values';
    repaint();
  }}, 'Show values') : null;
  const actions = h('div', {class: 'actions'}, reveal,
    h('button', {type: 'button', onclick: () => {
      folded.clear();
      repaint();
    }}, 'Unfold all'));
  content.append(
    h('nav', {class: 'crumbs', 'aria-label': 'Place'}, h('a', {href: link('objects', {kind: params.kind, ns: params.ns})}, resource.plural), ' / ', where, h('strong', {}, params.name)),
    h('h1', {}, `${resource.kind} ${params.name}`), banner,
    h('div', {class: 'split'},
      h('section', {class: 'source', 'aria-label': 'Fields'}, legend, legend_hint, actions, scroller),
      h('section', {class: 'selected', 'aria-label': 'Selected field'}, h('h2', {}, 'Selected field'), details),
      h('aside', {class: 'side', 'aria-label': 'About the fields'},
        h('section', {}, h('h2', {}, 'Changes seen'), events),
        h('section', {}, h('h2', {}, 'Timeline'),
          h('p', {class: 'hint'}, 'This server keeps no history of ownership. These are the times of the last write of each manager, from managedFields; who owned a field before is not known.'), timeline))));

  const window_ = new Windowed({
    scroller, body,
    render: (index) => line_element(lines[index], lines[index - 1]),
    activate: (index) => toggle(lines[index]),
    moved: (index) => describe(lines[index]),
    key: (event, index) => {
      const line = lines[index];
      if (event.key === 'ArrowLeft') {
        if (line.kind === 'structure' && !line.folded) toggle(line);
        else {
          for (let i = index - 1; i >= 0; --i) {
            if (lines[i].node && lines[i].node.depth < (line.node?.depth ?? 0)) {
              window_.set_active(i);
              break;
            }
          }
        }
        return true;
      }
      if (event.key === 'ArrowRight') {
        if (line.folded) toggle(line);
        else window_.set_active(index + 1);
        return true;
      }
      return false;
    },
  });
  signal.addEventListener('abort', () => window_.close());
  body.addEventListener('pointerover', (event) => {
    const row = event.target.closest('[data-index]');
    if (row) describe(lines[Number(row.dataset.index)]);
  });
  body.addEventListener('pointerleave', () => {
    if (body.contains(document.activeElement)) describe(lines[window_.active]);
  });
  body.addEventListener('click', (event) => {
    const row = event.target.closest('[data-index]');
    if (!row) return;
    window_.set_active(Number(row.dataset.index));
    if (event.target.closest('.fold')) toggle(lines[window_.active]);
  });

  function toggle(line) {
    if (line.gap) {
      choose('');
      return;
    }
    if (line.kind !== 'structure') return;
    if (folded.has(line.node.path)) folded.delete(line.node.path);
    else folded.add(line.node.path);
    repaint();
  }

  function hidden(node) {
    if (!secret || revealed) return null;
    const path = node.path;
    if (path.startsWith('.data.') || path.startsWith('.stringData.')) return `•••••••• hidden, ${count(String(node.value).length, 'character')}`;
    return path === kLastApplied ? '•••••••• hidden: may contain values' : null;
  }

  function line_element(line, above) {
    if (line.gap) {
      return h('div', {class: 'line gap', role: 'treeitem', 'aria-level': '1'}, h('span', {class: 'gutter'}), h('code', {}, ' '.repeat(line.column), `⋯ ${count(line.gap, 'line')} of others`));
    }
    const {node} = line;
    const how = line.kind === 'structure' && node.owners.length === 0 ? 'structure' : how_owned(node);
    const names = names_of(node);
    // The same owners as on the line above are not named again.
    const again = names.length > 0 && !node.missing && above?.node && how_owned(above.node) === how && names_of(above.node).join('\n') === names.join('\n');
    const flash = flashes.get(node.path);
    const flashing = flash && flash.until > Date.now();
    const gutter = h('span', {class: `gutter ${how}${names.length ? ` ${managers.style(names[0])}` : ''}`, 'aria-hidden': 'true'},
      names.slice(0, 3).map((name) => managers.badge(name)),
      h('span', {class: 'who'}, again ? '' : how === 'missing' ? `unset by ${names.join(', ')}` : names.length ? names.join(', ') : how === 'server' ? 'server' : how === 'nobody' ? 'no owner' : ''));
    const fold = line.kind === 'structure' ? h('span', {class: 'fold', 'aria-hidden': 'true'}, line.folded ? '▸' : '▾') : null;
    const code = h('code', {}, ' '.repeat(line.column), line.dashes ? h('span', {class: 'dash'}, '- '.repeat(line.dashes)) : null,
      h('span', {class: 'key'}, line.name), line.name && line.text ? ' ' : null, h('span', {class: line.veiled ? 'veiled' : `value ${line.kind}`}, line.text));
    return h('div', {class: `line ${how}${flashing ? ' flash' : ''}`, role: 'treeitem', 'aria-level': String(node.depth + 1),
      'aria-expanded': line.kind === 'structure' ? String(!line.folded) : null},
    gutter, fold, code, h('span', {class: 'unseen'}, ` (${spoken(node, how)}) `), flashing ? h('span', {class: 'by'}, `by ${flash.who}`) : null);
  }

  function spoken(node, how) {
    const names = names_of(node).join(' and ');
    return {missing: `absent, owned by ${names}`, server: 'set by the server', nobody: 'no owner', shared: `shared by ${names}`, one: `owned by ${names}`, structure: 'group'}[how];
  }

  function describe(line) {
    if (!line || line.gap) return;
    const {node} = line;
    const how = how_owned(node);
    const text = {
      missing: 'Owned but absent: the owner keeps it unset.', server: 'Set by the server; never owned.', nobody: 'No owner: a default, or set before ownership was tracked. Anybody may apply it without a conflict.',
      shared: 'Shared: each owner applied the same value. It stays until the last of them lets it go.', one: 'Others who apply another value get a conflict.'}[how];
    const structural = node.children.length > 0 && node.owners.length === 0;
    replace(details, h('p', {class: 'path'}, node.path), structural ? h('p', {}, 'Only the fields below it have owners.') : h('p', {}, text),
      node.owners.length ? h('ul', {class: 'owners'}, node.owners.map((entry) => h('li', {}, managers.badge(entry.manager), h('strong', {}, entry.manager),
        h('span', {}, ` ${entry.operation}${entry.subresource ? ` of ${entry.subresource}` : ''} (${entry.version})`), h('br'), timed(entry.time)))) : null,
      line.items.length ? h('p', {class: 'hint'}, `The list item ${line.items[line.items.length - 1].path}: ${spoken(line.items[0], how_owned(line.items[0]))}.`) : null);
  }

  function choose(name) {
    only = only === name ? '' : name;
    show_legend();
    repaint();
    announce(only ? `Only lines of ${only}` : 'All lines');
  }

  function show_legend() {
    const by_name = new Map();
    for (const entry of tree.entries) {
      const known = by_name.get(entry.manager) || {fields: 0, how: new Set(), time: ''};
      known.fields += count_fields(entry.set);
      known.how.add(entry.operation + (entry.subresource ? `/${entry.subresource}` : ''));
      if ((entry.time || '') > known.time) known.time = entry.time;
      by_name.set(entry.manager, known);
    }
    managers.add(by_name.keys());
    if (only && !by_name.has(only)) only = '';
    const focused = legend.contains(document.activeElement) ? document.activeElement.dataset.manager : null;
    replace(legend, [...by_name].map(([name, known]) => h('li', {}, h('button', {type: 'button', 'data-manager': name, 'aria-pressed': String(only === name), title: `Last write ${known.time || 'unknown'}`, onclick: () => choose(name)},
      managers.badge(name), h('span', {class: 'name'}, name), h('span', {class: 'count'}, `${count(known.fields, 'field')} · ${[...known.how].join(', ')} · ${ago(known.time)}`)))));
    if (focused !== null) legend.querySelector(`[data-manager="${CSS.escape(focused)}"]`)?.focus();
    legend_hint.textContent = by_name.size === 0 ? 'managedFields is empty: no manager owns anything here.'
      : tree.entries.some((entry) => !entry.readable) ? 'Some entries are in a form that this page cannot read; their fields show as unowned.' : '';
    const history = history_of(tree, count_fields);
    replace(timeline, history.steps.map((step) => h('li', {}, managers.badge(step.manager), h('strong', {}, step.manager), ` ${step.operation}${step.subresource ? ` of ${step.subresource}` : ''}, ${count(step.fields, 'field')}`, h('br'), timed(step.time))));
  }

  function repaint() {
    const active = lines[window_.active]?.node?.path;
    lines = lines_of(tree.root, {hidden, folded: (path) => folded.has(path)});
    if (only) lines = lines_of_owner(lines, tree.root, only);
    const at = active === undefined ? -1 : lines.findIndex((line) => line.node?.path === active);
    if (at >= 0) window_.active = at;
    window_.refresh(lines.length);
  }

  function update(next) {
    const before = tree;
    object = next;
    tree = tree_of(next);
    managers.add(tree.entries.map((entry) => entry.manager));
    if (before) {
      const changes = changes_between(before, tree), who = writers_between(before, tree).join(', ') || 'an unknown manager';
      const until = Date.now() + kFlashSeconds * 1000;
      for (const change of changes) flashes.set(change.path, {until, who});
      if (changes.length > 0) {
        const text = changes.length === 1 ? changes[0].path : `${changes[0].path} and ${changes.length - 1} more`;
        events.prepend(h('li', {}, h('strong', {}, who), ` changed ${text}`, h('br'), timed(new Date().toISOString())));
        while (events.childElementCount > 20) events.lastChild.remove();
        announce(`${who} changed ${text}`);
        setTimeout(() => !signal.aborted && repaint(), kFlashSeconds * 1000 + 50);
      }
    }
    show_legend();
    repaint();
    if (!before) describe(lines[0]);
    no_events.hidden = events.childElementCount > 0;
  }
  const no_events = h('p', {class: 'hint'}, 'None since this page was opened.');
  events.after(no_events);

  function removed() {
    deleted = true;
    replace(banner, notice('error', 'Deleted', `${resource.kind} ${params.name} no longer exists. Below is its last state.`, h('a', {href: link('objects', {kind: params.kind, ns: params.ns})}, `All ${resource.plural}`)));
  }

  // What a manager applies, as the start of another apply: leaving fields out releases them.
  const edit = h('button', {type: 'button', onclick: async () => {
    const mine = only || tree.entries.find((entry) => entry.operation === 'Apply')?.manager || tree.entries[0]?.manager;
    if (!mine) return;
    try {
      const {yaml} = await tool('owned', {object, manager: mine});
      sessionStorage.setItem('manifest', yaml);
      go('apply', {manager: mine});
    } catch (error) {
      replace(banner, notice('error', 'That did not work', error.message, h('p', {}, advice(error))));
    }
  }}, 'Edit as manifest');
  // Values of a Secret stay where they are.
  if (!secret) actions.append(edit);

  const name = encodeURIComponent(params.name);
  const path = path_of(resource, params.ns);
  const read_again = async () => {
    const read = await get(`${path}/${name}`, {signal});
    if (deleted) replace(banner);
    deleted = false;
    update(read);
    return read.metadata.resourceVersion;
  };
  try {
    await follow({
      path, watch: {params: {fieldSelector: `metadata.name=${params.name}`}}, signal, state: tell, load: read_again,
      change: (event) => {
        if (event.type === 'DELETED') removed();
        else {
          if (deleted) replace(banner);
          deleted = false;
          update({kind: resource.kind, ...event.object});
        }
      },
    });
  } catch (error) {
    if (signal.aborted) return;
    if (tree) {
      tell({phase: 'failed'});
      replace(banner, notice('error', 'No longer live', error.message, h('p', {}, advice(error))));
    } else {
      content.querySelector('.split').remove();
      fail(content, error);
    }
  }
}
