// The console in a real browser, against a server that console_test.py has started.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import http from 'node:http';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {chromium} from 'playwright-core';

const {HOLDFAST_BINARY, CHROMIUM, SCREENSHOTS, PICTURES} = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const kFlags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// --- The command line

function holdfast(args, input) {
  const done = spawnSync(HOLDFAST_BINARY, args, {input, encoding: 'utf8', timeout: 60000});
  assert.equal(done.status, 0, `holdfast ${args.join(' ')}: ${done.stderr}${done.stdout}`);
  return done.stdout;
}
const apply = (manager, object, ...more) => holdfast(['apply', `--field-manager=${manager}`, ...more, '-f', '-'], JSON.stringify(object));
const config_map = (name, data, metadata = {}) => ({apiVersion: 'v1', kind: 'ConfigMap', metadata: {name, ...metadata}, data});

// -> {url, stop}
function start_console(...args) {
  const process_ = spawn(HOLDFAST_BINARY, ['console', ...args], {stdio: ['ignore', 'pipe', 'inherit']});
  const ended = new Promise((resolve) => process_.on('exit', resolve));
  return new Promise((resolve, reject) => {
    let text = '';
    process_.stdout.on('data', (piece) => {
      text += piece;
      const found = text.match(/http:\S+/);
      if (found) resolve({url: found[0], stop: () => (process_.kill('SIGTERM'), ended)});
    });
    process_.on('exit', () => reject(new Error(`the console ended: ${text}`)));
  });
}

// --- The browser

const kScript = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
let browser, profile, console_, context, page, problems = [];

async function open(view, {size = {width: 1280, height: 800}, scheme = 'light'} = {}) {
  await page.setViewportSize(size);
  await page.emulateMedia({colorScheme: scheme});
  const base = console_.url.split('#')[0];
  await page.goto('about:blank');
  await page.goto(`${base}#${view}`);
  await page.waitForSelector('h1');
}
const text_of = (selector) => page.locator(selector).innerText();
const shown = (selector, text) => page.locator(selector).filter({hasText: text}).first().waitFor();

async function check_accessibility(what) {
  // By the protocol of the debugger: the page's policy lets no other script in.
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  const found = violations.map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message || ''}`).join('; ')}`);
  assert.deepEqual(found, [], what);
}

before(async () => {
  apply('alice', config_map('shared', {color: 'red', size: '3', shape: 'round', text: 'one\ntwo\n'}, {labels: {app: 'web'}}));
  apply('bob', config_map('shared', {shape: 'round', legacy: {k8s_io__value: 'unset'}}), '--force-conflicts');
  apply('helm', {apiVersion: 'apps/v1', kind: 'Deployment', metadata: {name: 'web'}, spec: {replicas: 3, selector: {matchLabels: {app: 'web'}}, template: {metadata: {labels: {app: 'web'}},
    spec: {containers: [{name: 'web', image: 'nginx:1.27', ports: [{containerPort: 80, name: 'http'}]}, {name: 'log', image: 'busybox'}]}}}});
  apply('autoscaler', {apiVersion: 'apps/v1', kind: 'Deployment', metadata: {name: 'web'}, spec: {replicas: 3}});
  apply('alice', {apiVersion: 'v1', kind: 'Secret', metadata: {name: 'login'}, stringData: {password: 'hunter2-in-the-clear'}});
  apply(kScript, config_map('evil', {key: kScript, [`k${'\u202e'}`.slice(0, 1)]: 'x'}, {annotations: {note: kScript, bidi: 'a\u202eb'}}));
  apply('helmm', config_map('typo', {a: 'b'}));
  for (const chunk of [0, 1, 2, 3]) {
    holdfast(['apply', '--field-manager=bulk', '-f', '-'], Array.from({length: 100}, (_, i) => JSON.stringify(config_map(`bulk-${chunk}-${String(i).padStart(3, '0')}`, {n: String(i)}))).join('\n'));
  }
  console_ = await start_console();
  profile = mkdtempSync(path.join(tmpdir(), 'holdfast-chromium-'));
  context = await chromium.launchPersistentContext(profile, {executablePath: CHROMIUM, headless: true, args: kFlags, reducedMotion: 'reduce', locale: 'en-GB'});
  browser = context;
  page = context.pages()[0] || await context.newPage();
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && !/Failed to load resource/.test(message.text()) && problems.push(message.text()));
  page.on('request', (request) => !request.url().startsWith(console_.url.split('#')[0]) && !request.url().startsWith('about:') && problems.push(`request to ${request.url()}`));
});

after(async () => {
  await browser?.close();
  await console_?.stop();
  if (profile) rmSync(profile, {recursive: true, force: true});
});

const check = (name, story) => test(name, async () => {
  problems = [];
  await story();
  assert.deepEqual(problems, [], 'errors in the page');
});

check('the address signs in once and leaves no token behind', async () => {
  await page.goto(console_.url);
  await page.waitForSelector('h1');
  assert.ok(!page.url().includes('token'));
  const cookies = await context.cookies();
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly && cookies[0].sameSite === 'Strict' && cookies[0].path.length > 10);
  assert.equal(await page.evaluate(() => document.cookie), '');
  assert.match(await text_of('header'), /https:\/\/127/);
  const other = await browser.browser()?.newContext().catch(() => null);
  if (other) {
    const stranger = await other.newPage();
    await stranger.goto(console_.url);
    await stranger.getByText('No session').waitFor();
    await other.close();
  }
});

check('objects: columns of the server, filters, live changes', async () => {
  await open('objects?kind=configmaps&ns=default');
  await shown('.state', 'Live');
  const all = parseInt(await text_of('.summary'), 10);
  assert.ok(all > 400, 'test data');
  await page.getByRole('gridcell', {name: 'bulk-0-000'}).waitFor();
  assert.ok(await page.locator('.rows .row').count() < 100, 'only rows in sight are in the page');
  await page.keyboard.press('/');
  await page.keyboard.type('bulk-3-07');
  await shown('.summary', `10 of ${all} objects`);
  await page.getByLabel('Filter').fill('');
  holdfast(['create', '-f', '-'], JSON.stringify(config_map('a-new-one', {})));
  await shown('.summary', `${all + 1} objects`);
  holdfast(['delete', 'configmap', 'a-new-one']);
  await shown('.summary', `${all} objects`);
});

check('objects: everything that a manager owns', async () => {
  await open('objects?kind=configmaps&manager=bob');
  await shown('.summary', '1 of');
  await page.getByRole('gridcell', {name: 'shared'}).waitFor();
});

check('objects: rows by keyboard, to the last one and into an object', async () => {
  await open('objects?kind=configmaps&ns=default');
  await shown('.state', 'Live');
  await page.locator('.rows [tabindex="0"]').focus();
  await page.keyboard.press('End');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-rowindex')), await page.getByRole('grid').getAttribute('aria-rowcount'));
  assert.match(await page.evaluate(() => document.activeElement.innerText), /typo/);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await shown('h1', 'ConfigMap shared');
});

check('one object: owners told apart without colours, and explained by keyboard and pointer', async () => {
  await open('object?kind=configmaps&ns=default&name=shared');
  const line = (text) => page.getByRole('treeitem', {name: text});
  await line(/^color: red \(owned by alice\)/).waitFor();
  await line(/^shape: round \(shared by (alice and bob|bob and alice)\)/).waitFor();
  await line(/^legacy: \(absent\) \(absent, owned by bob\)/).waitFor();
  await line(/^kind: ConfigMap \(set by the server\)/).waitFor();
  await line(/^color/).hover();
  await shown('.details', '.data.color');
  assert.match(await text_of('.details'), /alice Apply \(v1\)\s*\d+s ago \(20/);
  await page.locator('.lines [tabindex="0"]').focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Home');
  await shown('.details', '.apiVersion');
  await page.keyboard.press('ArrowDown');
  await shown('.details', '.kind');
});

check('one object: fold by owner and by structure', async () => {
  await open('object?kind=configmaps&ns=default&name=shared');
  await page.getByRole('button', {name: /bob/}).click();
  await page.getByRole('treeitem', {name: /^legacy/}).waitFor();
  assert.equal(await page.getByRole('treeitem', {name: /^color/}).count(), 0);
  await page.getByRole('button', {name: /bob/}).click();
  await page.getByRole('treeitem', {name: /^data:/}).click();
  await page.keyboard.press('ArrowLeft');
  assert.equal(await page.getByRole('treeitem', {name: /^data:/}).getAttribute('aria-expanded'), 'false');
  assert.equal(await page.getByRole('treeitem', {name: /^color/}).count(), 0);
  await page.keyboard.press('ArrowRight');
  await page.getByRole('treeitem', {name: /^color/}).waitFor();
});

check('one object: list items have owners by their keys', async () => {
  await open('object?kind=deployments.apps&ns=default&name=web');
  await page.getByRole('treeitem', {name: /^replicas: 3 \(shared by (helm and autoscaler|autoscaler and helm)\)/}).waitFor();
  const image = page.getByRole('treeitem', {name: /^image: "nginx:1.27" \(owned by helm\)/});
  await image.click();
  await shown('.details', '.spec.template.spec.containers[name="web"].image');
  await page.getByRole('treeitem', {name: /^imagePullPolicy: IfNotPresent \(no owner\)/}).first().waitFor();
});

check('one object: changes flash with who made them', async () => {
  await open('object?kind=configmaps&ns=default&name=shared');
  await shown('.state', 'Live');
  apply('carol', config_map('shared', {size: '4'}), '--force-conflicts');
  await shown('.line.flash', 'by carol');
  await shown('.events', 'carol changed .data.size');
  await page.getByRole('treeitem', {name: /^size: "4" \(owned by carol\)/}).waitFor();
});

const kOdd = {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'odd', annotations: {'a/b.c': 'x: y', yes: 'no', '1': '2', '': 'empty', 'a: b': '- c', '#': '# d', "it's": '"q"'}},
  data: {empty: '', space: ' x ', lines: 'one\n  two\n\nthree', end: 'one\ntwo\n', quoted: "'", tilde: '~', date: '2026-01-02', number: '0x10', sexagesimal: '1:30', long: 'word '.repeat(60).trim(), tab: 'a\tb', null: 'null', unicode: 'grüße ☃', star: '*a', amp: '&a', pipe: '|'},
  nested: [[1, [2, {a: [{b: null}, {c: true, d: [[]]}]}]], {}, [], 1.5, -3, 'x', {list: [], map: {}}]};

check('one object: its lines are YAML for it, whatever it contains', async () => {
  await open('apply');
  const {text, read} = await page.evaluate(async (object) => {
    const [{lines_of}, {tree_of}, {tool}] = await Promise.all(['yaml.js', 'owners.js', 'api.js'].map((name) => import(new URL(name, location.href))));
    const text = lines_of(tree_of(object).root, {hidden: () => null, folded: () => false})
      .map((line) => ' '.repeat(line.column) + '- '.repeat(line.dashes) + line.name + (line.name && line.text ? ' ' : '') + line.text).join('\n') + '\n';
    return {text, read: await tool('manifest', text)};
  }, kOdd);
  assert.deepEqual(read.objects[0].object, kOdd, text);
});

check('secrets: values are shown when asked for', async () => {
  await open('object?kind=secrets&ns=default&name=login');
  await page.getByRole('treeitem', {name: /^password: •+ hidden/}).waitFor();
  const value = Buffer.from('hunter2-in-the-clear').toString('base64');
  assert.ok(!(await page.content()).includes(value));
  await page.getByRole('button', {name: 'Show values'}).click();
  await shown('.lines', value);
  await page.getByRole('button', {name: 'Hide values'}).click();
  assert.ok(!(await page.content()).includes(value));
});

check('apply: conflicts are decided field by field', async () => {
  apply('alice', config_map('contested', {color: 'red', size: '3', shape: 'round'}));
  await open('apply');
  await page.getByLabel(/^Manifest/).fill('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: contested}\ndata: {color: blue, size: "9", shape: square, extra: mine}\n');
  await page.getByLabel('Apply as the manager').fill('dora');
  await page.getByRole('button', {name: 'Check'}).click();
  await shown('.card', '3 fields of others');
  const field = (name) => page.getByRole('group', {name});
  assert.match(await field('.data.color').innerText(), /blue[\s\S]*red[\s\S]*alice/);
  await field('.data.color').getByLabel(/^Take/).check();
  await field('.data.size').getByLabel(/^Share/).check();
  assert.ok(await page.getByRole('button', {name: 'Show what would change'}).isDisabled());
  await field('.data.shape').getByLabel(/^Yield/).focus();
  await page.keyboard.press('Space');
  await page.getByRole('button', {name: 'Show what would change'}).click();
  await shown('.plan', '.data.color');
  const plan = await text_of('.plan');
  assert.match(plan, /\.data\.color\s+"red"\s+"blue"/);
  assert.doesNotMatch(plan, /\.data\.shape/);
  assert.equal(JSON.parse(holdfast(['get', 'configmap', 'contested', '-o', 'json'])).data.color, 'red', 'a dry run stores nothing');
  await page.getByRole('button', {name: 'Apply', exact: true}).click();
  await shown('.card', 'Applied');
  assert.deepEqual(JSON.parse(holdfast(['get', 'configmap', 'contested', '-o', 'json'])).data, {color: 'blue', extra: 'mine', shape: 'round', size: '3'});
  const blame = holdfast(['blame', 'configmap', 'contested']);
  assert.match(blame, /color: blue.*dora/);
  assert.doesNotMatch(blame, /color: blue.*alice/);
  assert.match(blame, /size:.*alice.*dora/);
  assert.doesNotMatch(blame, /shape:.*dora/);
  await page.getByRole('link', {name: 'See its owners'}).click();
  await shown('h1', 'ConfigMap contested');
});

check('apply: nothing is taken from somebody who wrote meanwhile', async () => {
  apply('alice', config_map('raced', {color: 'red', size: '3'}));
  await open('apply');
  await page.getByLabel(/^Manifest/).fill('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: raced}\ndata: {color: blue}\n');
  await page.getByRole('button', {name: 'Check'}).click();
  await page.getByLabel(/^Take/).check();
  await page.getByRole('button', {name: 'Show what would change'}).click();
  await shown('.plan', '.data.color');
  apply('alice', config_map('raced', {color: 'green', size: '3'}));
  await page.getByRole('button', {name: 'Apply', exact: true}).click();
  await shown('.card', 'The object has changed');
  assert.equal(JSON.parse(holdfast(['get', 'configmap', 'raced', '-o', 'json'])).data.color, 'green');
});

check('apply: a manifest with an error says where', async () => {
  await open('apply');
  await page.getByLabel(/^Manifest/).fill('apiVersion: v1\nkind: [\n');
  await page.getByRole('button', {name: 'Check'}).click();
  await shown('.notice.error', 'manifest:');
});

check('the whole: owners, cost and managers that look wrong', async () => {
  await open('whole?ns=default');
  await shown('.panel', 'Who owns the fields');
  assert.match(await text_of('.odd'), /helmm\s+differs from “helm”/);
  assert.match(await text_of('.picture'), /of managedFields in/);
  await page.getByRole('row', {name: /^bulk/}).getByRole('link', {name: 'configmaps'}).click();
  await shown('.summary', '400 of');
});

check('script in names of managers, values and annotations stays text', async () => {
  for (const view of ['objects?kind=configmaps&ns=default&manager=' + encodeURIComponent(kScript), 'object?kind=configmaps&ns=default&name=evil', 'whole?ns=default',
    'objects?kind=' + encodeURIComponent(kScript), 'object?kind=configmaps&ns=default&name=' + encodeURIComponent(kScript), 'object?kind=configmaps&ns=' + encodeURIComponent('../../' + kScript) + '&name=x']) {
    await open(view);
    await page.locator('.state:not(.loading)').waitFor();
    assert.match(await page.title(), /Holdfast console$/, view);
    assert.equal(await page.locator('main img, main script').count(), 0, view);
  }
  await open('object?kind=configmaps&ns=default&name=evil');
  await shown('.lines', 'onerror');
  await shown('.lines', 'a\\u202eb');
  await assert.rejects(page.evaluate(() => {
    document.body.innerHTML = '<b>x</b>';
  }), /TrustedHTML/);
  problems = [];  // The page says so on its console as well.
});

check('other sites reach nothing: another name, another origin, a form, a frame, a WebSocket', async () => {
  const base = console_.url.split('#')[0];
  const attacker = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<title>attacker</title><body>');
  });
  await new Promise((resolve) => attacker.listen(0, '127.0.0.1', resolve));
  after(() => attacker.close());
  const origin = `http://127.0.0.1:${attacker.address().port}/`;
  const evil = await context.newPage();
  await evil.goto(origin);
  const sent = new Set();
  evil.on('request', (request) => sent.add(request.url()));
  evil.on('websocket', (socket) => sent.add(socket.url()));
  const got = await evil.evaluate(async (target) => {
    const results = {};
    const attempt = async (name, work) => {
      results[name] = await work().catch(() => 'failed');
    };
    await attempt('fetch', async () => (await fetch(`${target}about`, {credentials: 'include'})).text());
    await attempt('no-cors', async () => (await fetch(`${target}api/api/v1/secrets`, {credentials: 'include', mode: 'no-cors'})).text());
    await attempt('post', async () => (await fetch(`${target}tools/manifest`, {method: 'POST', credentials: 'include', body: 'a: b', mode: 'no-cors'})).text());
    await attempt('script', () => new Promise((resolve) => {
      const script = document.createElement('script');
      script.src = `${target}main.js`;
      script.type = 'module';
      script.onload = () => resolve('loaded');
      script.onerror = () => resolve('failed');
      document.body.append(script);
    }));
    await attempt('socket', () => new Promise((resolve) => {
      const socket = new WebSocket(`${target.replace('http', 'ws')}api/api/v1/pods?watch=1`);
      socket.onopen = () => resolve('opened');
      socket.onerror = () => resolve('failed');
    }));
    await attempt('frame', () => new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.src = target;
      frame.onload = () => {
        try {
          resolve(frame.contentDocument ? 'readable' : 'failed');
        } catch {
          resolve('failed');
        }
      };
      document.body.append(frame);
    }));
    return results;
  }, base);
  assert.deepEqual(new Set(Object.values(got)), new Set(['failed']), JSON.stringify(got));
  assert.equal(sent.size, 6, 'the attempts were made');
  const form = await Promise.all([evil.waitForResponse((response) => response.url().includes('tools/manifest')), evil.evaluate((target) => {
    const element = document.createElement('form');
    element.method = 'post';
    element.enctype = 'text/plain';
    element.action = `${target}tools/manifest`;
    document.body.append(element);
    element.submit();
  }, base)]);
  assert.equal(form[0].status(), 403);
  await evil.close();
  // A name that resolves to this machine, as after DNS rebinding.
  const url = new URL(base);
  const answer = await new Promise((resolve, reject) => {
    http.get({host: '127.0.0.1', port: url.port, path: url.pathname, headers: {host: `rebound.example:${url.port}`}}, resolve).on('error', reject);
  });
  assert.equal(answer.statusCode, 421);
  answer.resume();
});

check('states: nothing there, not found, no such kind', async () => {
  await open('objects?kind=jobs.batch&ns=default');
  await shown('.notice.empty', 'No jobs');
  await open('objects?kind=configmaps&ns=default&q=nothing-like-this');
  await shown('.notice.empty', 'Nothing matches');
  await open('object?kind=configmaps&ns=default&name=missing');
  await shown('.notice.error', 'Not found');
  await open('objects?kind=nonsense');
  await shown('.notice.error', 'does not serve');
});

check('states: forbidden, as a user without rights', async () => {
  const other = await start_console('--as=nobody');
  const here = await context.newPage();
  await here.goto(other.url);
  await here.locator('.notice.forbidden').filter({hasText: 'You may not list'}).waitFor();
  await here.goto(`${other.url.split('#')[0]}#whole`);
  await here.locator('.notice.forbidden').filter({hasText: 'You may list nothing here'}).waitFor();
  await here.close();
  await other.stop();
});

check('states: the connection breaks, the data stays, and it says how old it is', async () => {
  const other = await start_console();
  const here = await context.newPage();
  await here.goto(other.url);
  await here.goto(`${other.url.split('#')[0]}#object?kind=configmaps&ns=default&name=shared`);
  await here.locator('.state').filter({hasText: 'Live'}).waitFor();
  await other.stop();
  await here.locator('.state').filter({hasText: 'Not connected; data as of'}).waitFor();
  assert.ok(await here.getByRole('treeitem', {name: /^color/}).count() > 0);
  await here.close();
});

const kViews = {
  objects: ['objects?kind=configmaps&ns=default', '.rows .row'],
  object: ['object?kind=deployments.apps&ns=default&name=web', '.line'],
  unset: ['object?kind=configmaps&ns=default&name=shared', '.line'],
  secret: ['object?kind=secrets&ns=default&name=login', '.line'],
  apply: ['apply', 'textarea'],
  conflicts: ['apply', '.conflicts', async () => {
    await page.getByLabel(/^Manifest/).fill('apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 5\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: web, image: "nginx:1.29"}\n');
    await page.getByRole('button', {name: 'Check'}).click();
  }],
  plan: ['apply', '.plan', async () => {
    await kViews.conflicts[2]();
    await page.getByRole('button', {name: 'Take all'}).click();
    await page.getByRole('button', {name: 'Show what would change'}).click();
  }],
  whole: ['whole?ns=default', '.kinds'],
  empty: ['objects?kind=jobs.batch&ns=default', '.notice'],
  missing: ['object?kind=configmaps&ns=default&name=missing', '.notice'],
};
// Those of docs/console.md.
const kPictures = new Set(['objects-800-light', 'object-800-light', 'unset-800-dark', 'object-320-dark', 'conflicts-800-light', 'plan-800-light', 'whole-800-light', 'empty-320-light']);
const kSizes = {320: {width: 320, height: 640}, 800: {width: 800, height: 700}, 1600: {width: 1600, height: 900}};

check('every view at every width, dark and light: accessible, and no wider than the window', async () => {
  for (const [name, [view, ready, prepare]] of Object.entries(kViews)) {
    for (const [width, size] of Object.entries(kSizes)) {
      // Colours do not depend on the width.
      for (const scheme of SCREENSHOTS || width === '800' || width === '320' && PICTURES ? ['light', 'dark'] : ['light']) {
        const what = `${name} at ${width} px, ${scheme}`;
        await open(view, {size, scheme});
        await prepare?.();
        await page.locator(ready).first().waitFor();
        if (SCREENSHOTS || width === (scheme === 'dark' ? '800' : '320')) await check_accessibility(what);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} scrolls sideways`);
        const file = `${name}-${width}-${scheme}`;
        if (SCREENSHOTS) await page.screenshot({path: path.join(SCREENSHOTS, `${file}.png`)});
        if (PICTURES && kPictures.has(file)) await page.screenshot({path: path.join(PICTURES, `${file}.png`)});
      }
    }
  }
});
