// Calls of the API server, through the console that served this page.
import {visible} from './dom.js';

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message || `the server responded with ${status}`);
    this.status = status;
    this.reason = body?.reason || '';
    this.body = body;
  }
}

// What to do about an error, in a sentence.
export function advice(error) {
  if (error.reason === 'ConsoleSession') return 'Open the address that holdfast console printed; it is valid once. If it was used, start the command again.';
  if (error.reason === 'ConsoleUnreachable') return 'Check that the API server is running and that the kubeconfig names the right one. This page tries again by itself.';
  if (error.reason === 'ConsoleRefused') return 'The console itself refuses this request; it reads and applies only.';
  if (error.status === 401) return 'The API server does not accept the credentials of the kubeconfig. Renew them, then start holdfast console again.';
  if (error.status === 403) return 'Your user may not do this. Ask for a role that allows it, or choose another namespace or kind.';
  if (error.status === 404) return 'It was deleted, or this server does not serve it.';
  if (error.status === 410) return 'The list has expired on the server; load it again.';
  if (error.status === 429 || error.status >= 500) return 'The API server is overloaded or has a problem. Try again in a moment.';
  if (error.status === undefined) return 'The console does not respond. Check that holdfast console is still running.';
  return '';
}

async function send(path, {method = 'GET', accept = 'application/json', body, type, signal} = {}) {
  const headers = {accept};
  if (type) headers['content-type'] = type;
  const response = await fetch(path, {method, headers, body, signal, cache: 'no-store', redirect: 'error'});
  if (response.ok) return response;
  let status = null;
  const text = await response.text();
  try {
    status = JSON.parse(text);
  } catch {
    status = {message: visible(text.slice(0, 300))};
  }
  throw new ApiError(response.status, status);
}

export async function get(path, options) {
  return (await send('api' + path, options)).json();
}
export async function post(path, body) {
  return (await send('api' + path, {method: 'POST', type: 'application/json', body: JSON.stringify(body)})).json();
}
export async function tool(name, body) {
  return (await send('tools/' + name, {method: 'POST', type: 'application/json', body: typeof body === 'string' ? body : JSON.stringify(body)})).json();
}
export async function about() {
  return (await send('about')).json();
}
export async function open_session(token) {
  await send('session', {method: 'POST', type: 'text/plain', body: token});
}

// Server-Side Apply; `config` is JSON, which is YAML.
export async function apply(resource, namespace, config, {manager, force = false, dryRun = false}) {
  const query = new URLSearchParams({fieldManager: manager, force: String(force)});
  if (dryRun) query.set('dryRun', 'All');
  const path = `${path_of(resource, namespace)}/${encodeURIComponent(config.metadata.name)}?${query}`;
  const response = await send('api' + path, {method: 'PATCH', type: 'application/apply-patch+yaml', body: JSON.stringify(config)});
  return {object: await response.json(), created: response.status === 201};
}

// --- Discovery

export const key_of = (resource) => (resource.group ? `${resource.plural}.${resource.group}` : resource.plural);

export function path_of(resource, namespace) {
  const base = resource.group ? `/apis/${resource.group}/${resource.version}` : `/api/${resource.version}`;
  const space = resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${base}${space}/${resource.plural}`;
}

function resource_from(group, version, entry) {
  return {group, version, plural: entry.resource, kind: entry.responseKind?.kind || entry.resource, namespaced: entry.scope === 'Namespaced', verbs: entry.verbs || []};
}

// Of servers older than 1.27.
async function separate_discovery() {
  const groups = [{name: '', path: '/api/v1', version: 'v1'}];
  for (const group of (await get('/apis')).groups || []) {
    const {version, groupVersion} = group.preferredVersion;
    groups.push({name: group.name, path: `/apis/${groupVersion}`, version});
  }
  const lists = await Promise.all(groups.map((group) => get(group.path).then((list) => list.resources || [], () => [])));
  return groups.flatMap((group, i) => lists[i].filter((entry) => !entry.name.includes('/')).map((entry) => (
    {group: group.name, version: group.version, plural: entry.name, kind: entry.kind, namespaced: entry.namespaced, verbs: entry.verbs || []})));
}

// One version of each resource that can be listed: the preferred one.
export async function discover() {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
  const answers = await Promise.all(['/api', '/apis'].map((path) => get(path, {accept})));
  let all = [];
  if (answers.every((answer) => answer.kind === 'APIGroupDiscoveryList')) {
    for (const group of answers.flatMap((answer) => answer.items || [])) {
      for (const version of group.versions || []) {
        for (const entry of version.resources || []) all.push(resource_from(group.metadata?.name || '', version.version, entry));
      }
    }
  } else {
    all = await separate_discovery();
  }
  const seen = new Set();
  return all.filter((resource) => {
    const key = key_of(resource);
    if (!resource.verbs.includes('list') || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

// --- Lists and watches

const kTable = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const kMetadata = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
const kDrop = ';drop=metadata.managedFields';
// A server that does not know the parameter takes the second clause.
export const kTables = {without: `${kTable}${kDrop},${kTable},application/json`, with: `${kTable},application/json`};

// Pages of a list. The list continues at the newest state if the server has forgotten that of the first page.
export async function* pages(path, {accept, params = {}, limit = 500, signal} = {}) {
  let next = '';
  do {
    const query = new URLSearchParams({...params, limit: String(limit)});
    if (next) query.set('continue', next);
    let page;
    try {
      page = await get(`${path}?${query}`, {accept, signal});
    } catch (error) {
      if (error.status !== 410 || !error.body?.metadata?.continue) throw error;
      next = error.body.metadata.continue;
      continue;
    }
    next = page.metadata?.continue || '';
    yield page;
  } while (next);
}
export const metadata_pages = (path, options) => pages(path, {...options, accept: `${kMetadata},application/json`});

// The events of one watch, until the server ends it.
export async function* events(path, {accept, params = {}, signal, opened} = {}) {
  const query = new URLSearchParams({...params, watch: '1', allowWatchBookmarks: 'true'});
  const response = await send(`api${path}?${query}`, {accept, signal});
  opened?.();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        if (!line) continue;
        const event = JSON.parse(line);
        if (event.type === 'ERROR') throw new ApiError(event.object.code, event.object);
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, {once: true});
  });
}

// Keeps something up to date: `load` reads all of it and returns the resourceVersion, `change` takes each event. When
// the connection breaks, it reconnects after growing delays and continues where it was, or loads again if the server has
// forgotten that version. `state` is told what goes on: {phase: 'loading' | 'live' | 'lost', error, since}.
export async function follow({load, path, watch, change, state, signal}) {
  let version = '', delay = 500, last = Date.now();
  while (!signal.aborted) {
    try {
      if (!version) {
        state({phase: 'loading'});
        version = await load();
      }
      const params = {...watch.params, resourceVersion: version};
      const opened = () => {
        last = Date.now();
        delay = 500;
        state({phase: 'live'});
      };
      for await (const event of events(path, {...watch, params, signal, opened})) {
        last = Date.now();
        const seen = event.object.metadata?.resourceVersion || event.object.rows?.[0]?.object?.metadata?.resourceVersion;
        if (event.type !== 'BOOKMARK') change(event);
        if (seen) version = seen;
      }
      // Servers end every watch after a while; one that ends at once would be asked without pause.
      if (Date.now() - last < 200) await wait(200, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 410) {
        version = '';
        continue;
      }
      state({phase: 'lost', error, since: last});
      if ([401, 403, 404, 405].includes(error.status)) throw error;
      await wait(delay, signal).catch(() => {});
      delay = Math.min(delay * 2, 15000);
    }
  }
}
