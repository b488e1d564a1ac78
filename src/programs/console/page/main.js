// Session, navigation between the views, and the state of the connection.
import {about, advice, discover, get, key_of, open_session, post} from './api.js';
import {ago, h, notice, replace} from './dom.js';
import {show_apply} from './apply.js';
import {show_object} from './object.js';
import {show_objects} from './objects.js';
import {show_whole} from './whole.js';

const views = {
  objects: {title: 'Objects', show: show_objects},
  apply: {title: 'Apply', show: show_apply},
  whole: {title: 'Ownership', show: show_whole},
  object: {title: 'Object', show: show_object},
};

const main = document.getElementById('main');
const state = document.getElementById('state');

// --- Addresses of views: #objects?kind=pods&ns=default

export function link(view, params = {}) {
  const set = Object.entries(params).filter(([, value]) => value !== '' && value !== undefined && value !== null);
  return `#${view}${set.length ? '?' + new URLSearchParams(set) : ''}`;
}

export function place() {
  const [view, query = ''] = location.hash.slice(1).split('?', 2);
  return {view: views[view] ? view : 'objects', params: Object.fromEntries(new URLSearchParams(query))};
}

// Remembers the filters of a view in its address, without making it a new one.
export function remember(params) {
  history.replaceState(null, '', link(place().view, params));
  show_navigation();
}

export function go(view, params) {
  location.hash = link(view, params);
}

// --- What is shown of the connection

let phase = {phase: 'loading'};
export function tell(next) {
  phase = next;
  show_state();
}
// For tasks that only load: no connection is kept.
export function tell_done(text = '') {
  tell({phase: 'done', text});
}

function show_state() {
  const texts = {
    loading: () => phase.text || 'Loading…',
    live: () => 'Live',
    lost: () => `Not connected; data as of ${ago(new Date(phase.since).toISOString())}. Trying again…`,
    done: () => phase.text,
    failed: () => 'Stopped',
  };
  const text = texts[phase.phase]();
  state.className = `state ${phase.phase}`;
  if (state.textContent !== text) state.textContent = text;
}
setInterval(() => phase.phase === 'lost' && show_state(), 1000);

function show_navigation() {
  const here = place();
  const ns = here.params.ns;
  replace(document.getElementById('views'), ['objects', 'apply', 'whole'].map((view) => h('a', {
    href: link(view, view === 'apply' ? {} : {ns}), 'aria-current': (here.view === 'object' ? 'objects' : here.view) === view ? 'page' : null}, views[view].title)));
}

// --- The session

export const session = {server: '', namespace: 'default', resources: [], user: '', namespaces: null};

export function resource_by_key(key) {
  return session.resources.find((resource) => key_of(resource) === key);
}
export function resource_by_kind(api_version, kind) {
  const [group, version] = api_version.includes('/') ? api_version.split('/') : ['', api_version];
  const found = session.resources.find((resource) => resource.group === group && resource.kind === kind);
  return found && {...found, version};
}

export async function load_resources() {
  session.resources = await discover();
}

async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token) {
    history.replaceState(null, '', location.pathname);
    try {
      await open_session(token);
    } catch (error) {
      // An address that was opened before works in the browser in which it was.
      if (!(await about().catch(() => null))) throw error;
    }
  }
  const facts = await about();
  session.server = facts.server;
  session.namespace = facts.namespace;
  const [, namespaces, user] = await Promise.all([
    load_resources(),
    get('/api/v1/namespaces?limit=5000', {accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json'}).then(
      (list) => list.items.map((item) => item.metadata.name).sort(), () => null),
    post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview'}).then(
      (review) => review.status?.userInfo?.username, () => ''),
  ]);
  session.namespaces = namespaces;
  session.user = user;
  replace(document.getElementById('server'), h('span', {class: 'url'}, facts.server), user ? [' as ', h('span', {class: 'user'}, user)] : null);
}

let running = null;
async function show() {
  running?.abort();
  running = new AbortController();
  const {signal} = running;
  const {view, params} = place();
  const focus_first = document.activeElement && document.activeElement !== document.body;
  document.title = `${views[view].title} · Holdfast console`;
  show_navigation();
  tell({phase: 'loading'});
  const content = h('div', {class: `view ${view}`});
  main.replaceChildren(content);
  if (focus_first) main.focus();
  try {
    await views[view].show({content, params, signal});
  } catch (error) {
    if (signal.aborted) return;
    fail(content, error);
  }
}

export function fail(content, error) {
  tell({phase: 'failed'});
  const kind = error.status === 403 ? 'forbidden' : 'error';
  const title = error.status === 403 ? 'Not allowed' : error.status === 404 ? 'Not found' : error.reason === 'ConsoleSession' ? 'No session' : 'That did not work';
  content.append(notice(kind, title, error.message, h('p', {}, advice(error)),
    h('button', {type: 'button', onclick: () => location.reload()}, 'Try again')));
}

try {
  await start();
  addEventListener('hashchange', show);
  // The one key that works everywhere.
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.closest('input, textarea, select')) return;
    const search = document.querySelector('[data-search]');
    if (search) {
      event.preventDefault();
      search.focus();
    }
  });
  await show();
} catch (error) {
  main.replaceChildren();
  fail(main, error);
}
