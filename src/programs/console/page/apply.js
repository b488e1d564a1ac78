// Apply with open eyes: what a manifest would change, whose fields it would take, and a decision for each of them.
//
//   manifest --read--> objects --dry run--> changes, conflicts --decide--> resolved configuration --dry run--> apply
//
// Nothing is stored before Apply is pressed. Force is used only for fields that were decided to be taken: the resolved
// configuration is tried without force first, and carries the resourceVersion that the decisions were made on.
import {advice, apply, ApiError, get, key_of, path_of, tool} from './api.js';
import {announce, count, h, labelled, notice, replace, timed} from './dom.js';
import {link, load_resources, resource_by_kind, session, tell_done} from './main.js';
import {Managers} from './managers.js';
import {changes_between, tree_of} from './owners.js';

const kDecisions = [
  ['take', 'Take', 'yours is stored; they lose the field'],
  ['share', 'Share', 'the live value stays; you own it as well'],
  ['yield', 'Yield', 'you leave the field out; it stays theirs'],
];
const kExample = `apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {color: blue}
`;

export async function show_apply({content, params, signal}) {
  const managers = new Managers();
  const text = h('textarea', {rows: '14', spellcheck: 'false', autocomplete: 'off', placeholder: kExample, value: sessionStorage.getItem('manifest') || '', 'data-search': true,
    oninput: () => sessionStorage.setItem('manifest', text.value)});
  sessionStorage.removeItem('manifest');
  const manager = h('input', {value: params.manager || 'holdfast-console', autocomplete: 'off', spellcheck: 'false', required: true, maxlength: '128'});
  const files = h('input', {type: 'file', multiple: true, accept: '.yaml,.yml,.json', onchange: () => read_files([...files.files])});
  const results = h('div', {class: 'results', 'aria-live': 'polite'});
  const check = h('button', {type: 'submit', class: 'main'}, 'Check');
  const form = h('form', {class: 'manifest', onsubmit: (event) => {
    event.preventDefault();
    run();
  }},
  labelled('Manifest (YAML or JSON; several documents are fine)', text, 'Paste it, drop files here, or choose some. Nothing is stored before you press Apply.'),
  h('div', {class: 'toolbar'}, labelled('Apply as the manager', manager, 'A manifest that declares its own manager (metadata.options.fieldManager) is applied as that one.'), labelled('Files', files)),
  h('div', {class: 'actions'}, check));
  content.append(h('h1', {}, 'Apply'), form, results);
  tell_done();

  async function read_files(chosen) {
    const texts = await Promise.all(chosen.filter((file) => /\.(ya?ml|json)$/i.test(file.name)).map((file) => file.text()));
    if (texts.length === 0) return replace(results, notice('error', 'No manifests', 'None of these files ends in .yaml, .yml or .json.'));
    text.value = texts.join('\n---\n');
    text.focus();
    return announce(`${count(texts.length, 'file')} read`);
  }
  form.addEventListener('dragover', (event) => event.preventDefault());
  form.addEventListener('drop', (event) => {
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    read_files([...event.dataTransfer.files]);
  });

  async function run() {
    check.disabled = true;
    replace(results, h('p', {class: 'empty'}, 'Trying it out…'));
    try {
      const {objects} = await tool('manifest', text.value);
      if (objects.length === 0) {
        replace(results, notice('empty', 'No objects', 'The manifest contains none.'));
        return;
      }
      const cards = objects.map(({where, object}) => new Card(where, object, manager.value.trim(), managers, signal));
      replace(results, cards.length > 1 ? h('p', {class: 'summary'}, count(cards.length, 'object')) : null, cards.map((card) => card.element));
      // One after the other, since a later object may need an earlier one.
      for (const card of cards) {
        await card.check();
        if (card === cards[0]) results.scrollIntoView({block: 'start'});
      }
    } catch (error) {
      replace(results, notice('error', 'The manifest cannot be read', error.message, h('p', {}, advice(error))));
    } finally {
      check.disabled = false;
    }
  }
}

const is_field_conflict = (error) => error instanceof ApiError && error.status === 409 && (error.body?.details?.causes || []).some((cause) => cause.reason === 'FieldManagerConflict');

class Card {
  constructor(where, config, manager, managers, signal) {
    Object.assign(this, {where, config, managers, signal});
    this.manager = config.metadata?.options?.fieldManager || manager;
    this.decisions = new Map();
    this.live = null;
    this.body = h('div', {});
    const name = `${config.kind} ${config.metadata?.name || '(no name)'}`;
    this.element = h('section', {class: 'card', 'aria-label': name}, h('h2', {}, name, h('span', {class: 'hint'}, ` ${where}, as ${this.manager}`)), this.body);
  }

  async check() {
    replace(this.body, h('p', {class: 'empty'}, 'Dry run…'));
    try {
      if (!this.config.metadata?.name) throw new ApiError(400, {message: 'metadata.name is missing: an apply needs it'});
      let resource = resource_by_kind(this.config.apiVersion, this.config.kind);
      if (!resource) {
        await load_resources();
        resource = resource_by_kind(this.config.apiVersion, this.config.kind);
      }
      if (!resource) throw new ApiError(404, {message: `this server does not serve ${this.config.kind} of ${this.config.apiVersion}`});
      this.resource = resource;
      this.namespace = resource.namespaced ? this.config.metadata.namespace || session.namespace : '';
      await this.read_live();
      await this.conflicts_of(this.config);
      if (this.conflicts.length > 0) this.show_conflicts();
      else await this.show_plan(this.config, false);
    } catch (error) {
      this.show_error(error);
    }
  }

  async read_live() {
    try {
      this.live = await get(`${path_of(this.resource, this.namespace)}/${encodeURIComponent(this.config.metadata.name)}`, {signal: this.signal});
    } catch (error) {
      if (error.status !== 404) throw error;
      this.live = null;
    }
  }

  dry(config, force) {
    return apply(this.resource, this.namespace, config, {manager: this.manager, force, dryRun: true});
  }

  async conflicts_of(config) {
    this.conflicts = [];
    try {
      await this.dry(config, false);
    } catch (error) {
      if (!is_field_conflict(error)) throw error;
      const told = await tool('conflicts', {config, live: this.live || {}, status: error.body, manager: this.manager});
      this.conflicts = told.conflicts;
    }
  }

  show_error(error) {
    replace(this.body, notice(error.status === 403 ? 'forbidden' : 'error', error.status === 403 ? 'Not allowed' : 'The server refuses it', error.message,
      (error.body?.details?.causes || []).length > 0 ? h('ul', {}, error.body.details.causes.map((cause) => h('li', {}, `${cause.field || ''} ${cause.message || ''}`))) : null,
      h('p', {}, advice(error)), h('button', {type: 'button', onclick: () => this.check()}, 'Check again')));
  }

  show_conflicts() {
    const proceed = h('button', {type: 'button', class: 'main', disabled: true, onclick: () => this.resolve()}, 'Show what would change');
    const update = () => {
      const open = this.conflicts.filter(({path}) => !this.decisions.has(path)).length;
      proceed.disabled = open > 0;
      left.textContent = open > 0 ? `${count(open, 'field')} left to decide` : 'All decided';
    };
    const left = h('span', {class: 'hint', role: 'status'});
    const everything = (decision) => {
      for (const {path} of this.conflicts) this.decisions.set(path, decision);
      this.show_conflicts();
    };
    replace(this.body,
      notice('warning', `${count(this.conflicts.length, 'field')} of others`, 'The manifest gives these fields another value than their owners do. Decide for each.'),
      this.conflicts.length > 1 ? h('div', {class: 'actions'}, kDecisions.map(([decision, title]) => h('button', {type: 'button', onclick: () => everything(decision)}, `${title} all`))) : null,
      h('ul', {class: 'conflicts'}, this.conflicts.map((conflict, number) => this.conflict_element(conflict, number, update))),
      h('div', {class: 'actions'}, proceed, left));
    update();
  }

  conflict_element(conflict, number, update) {
    const group = `${this.where}-${number}`;
    return h('li', {}, h('fieldset', {}, h('legend', {class: 'path'}, conflict.path),
      h('dl', {class: 'values'}, h('dt', {}, 'yours'), h('dd', {}, h('code', {}, conflict.ours)), h('dt', {}, 'live'), h('dd', {}, h('code', {}, conflict.live)),
        h('dt', {}, 'owner'), h('dd', {}, conflict.owners.map((owner) => h('span', {class: 'owner'}, this.managers.badge(owner.manager), h('strong', {}, owner.manager),
          ` ${owner.operation}${owner.subresource ? ` of ${owner.subresource}` : ''} `, timed(owner.time))))),
      h('div', {class: 'choices'}, kDecisions.map(([decision, title, means]) => h('label', {}, h('input', {type: 'radio', name: group, value: decision, checked: this.decisions.get(conflict.path) === decision, onchange: () => {
        this.decisions.set(conflict.path, decision);
        update();
      }}), h('strong', {}, title), h('span', {class: 'hint'}, ` ${means}`))))));
  }

  async resolve() {
    replace(this.body, h('p', {class: 'empty'}, 'Dry run…'));
    try {
      const decisions = [...this.decisions].map(([path, decision]) => ({path, decision}));
      const config = await tool('resolve', {config: this.config, live: this.live || {}, decisions});
      const known = this.conflicts;
      await this.conflicts_of(config);
      const fresh = this.conflicts.filter(({path}) => this.decisions.get(path) !== 'take');
      if (fresh.length > 0) {
        // Somebody else was faster.
        for (const {path} of fresh) this.decisions.delete(path);
        await this.read_live();
        this.show_conflicts();
        announce('New conflicts');
        return;
      }
      this.conflicts = known;
      await this.show_plan(config, decisions.some(({decision}) => decision === 'take'));
    } catch (error) {
      this.show_error(error);
    }
  }

  async show_plan(config, force) {
    const {object} = await this.dry(config, force);
    const before = tree_of(this.live || {}), after = tree_of(object);
    const changes = changes_between(before, after).filter(({path}) => path !== '.apiVersion' && path !== '.kind');
    // What changes more comes first.
    changes.sort((a, b) => (a.before === a.after) - (b.before === b.after));
    const secret = this.config.kind === 'Secret';
    const shown = (value, path) => (value === undefined ? h('span', {class: 'hint'}, '(none)') : secret && /^\.(data|stringData)\./.test(path) ? h('span', {class: 'hint'}, 'hidden') : h('code', {}, value.length > 200 ? `${value.slice(0, 200)}…` : value));
    const owners = (names) => (names.length ? names.map((name) => h('span', {class: 'owner'}, this.managers.badge(name), name)) : h('span', {class: 'hint'}, 'nobody'));
    const lost = changes.filter((change) => change.owners_before.some((name) => name !== this.manager && !change.owners_after.includes(name)));
    const go = h('button', {type: 'button', class: 'main', onclick: () => this.store(config, force)}, this.live ? 'Apply' : 'Create');
    const summary = !this.live ? 'The object does not exist yet; it would be created.'
      : changes.length === 0 ? 'Nothing would change: neither a value nor an owner.'
        : `${count(changes.filter((change) => change.before !== change.after).length, 'value')} and the owners of ${count(changes.filter((change) => change.owners_before.join() !== change.owners_after.join()).length, 'field')} would change${lost.length ? `; others would lose ${count(lost.length, 'field')}` : ''}.`;
    replace(this.body, h('p', {}, summary),
      changes.length ? h('div', {class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': `Changes of ${this.config.metadata.name}`}, h('table', {class: 'plan'},
        h('thead', {}, h('tr', {}, ['Field', 'Now', 'Then', 'Owners now', 'Owners then'].map((title) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, changes.slice(0, 500).map((change) => h('tr', {class: change.before === change.after ? 'same' : ''}, h('th', {scope: 'row', class: 'path'}, change.path),
          h('td', {'data-title': 'Now'}, shown(change.before, change.path)), h('td', {'data-title': 'Then'}, change.before === change.after ? h('span', {class: 'hint'}, 'the same') : shown(change.after, change.path)),
          h('td', {'data-title': 'Owners now'}, owners(change.owners_before)), h('td', {'data-title': 'Owners then'}, owners(change.owners_after))))))) : null,
      changes.length > 500 ? h('p', {class: 'hint'}, `The first 500 of ${changes.length} fields.`) : null,
      h('div', {class: 'actions'}, go, this.decisions.size ? h('button', {type: 'button', onclick: () => this.check()}, 'Decide again') : null));
  }

  async store(config, force) {
    replace(this.body, h('p', {class: 'empty'}, 'Applying…'));
    try {
      // Whoever writes in between makes it fail, so that nothing is taken that was not decided.
      const exact = force ? {...config, metadata: {...config.metadata, resourceVersion: this.live.metadata.resourceVersion}} : config;
      const {object, created} = await apply(this.resource, this.namespace, exact, {manager: this.manager, force});
      replace(this.body, notice('done', created ? 'Created' : 'Applied', `resourceVersion ${object.metadata.resourceVersion}`,
        h('a', {href: link('object', {kind: key_of(this.resource), ns: this.namespace, name: object.metadata.name})}, 'See its owners')));
    } catch (error) {
      if (is_field_conflict(error) || (error.status === 409 && force)) {
        this.decisions.clear();
        await this.check();
        this.body.prepend(notice('warning', 'The object has changed', 'Somebody wrote it meanwhile, so nothing was applied. Decide again on the new state.'));
      } else {
        this.show_error(error);
      }
    }
  }
}
