// Elements. Text is only ever put into text nodes and attributes, so that nothing of an object becomes markup; the policy
// of the page (require-trusted-types-for) makes the functions that would parse markup throw.

const kHidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

// Characters that cannot be seen, or that reorder a line, as text: \u202e.
export function visible(text) {
  return String(text).replace(kHidden, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// h('p', {class: 'note', onclick: f}, 'text', child, ...). False, null and undefined are left out.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked') element[name] = value;
    else if (name === 'href' && !value.startsWith('#')) throw new Error('links stay in the page');
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(h('div', {}, ...children));
  element.replaceChildren(...element.firstChild.childNodes);
}

// A designed state instead of content: empty, forbidden, an error. `next` says what to do.
export function notice(kind, title, text, ...next) {
  return h('div', {class: `notice ${kind}`, role: kind === 'error' || kind === 'forbidden' ? 'alert' : 'note'},
    h('h2', {}, title), text ? h('p', {class: 'said'}, text) : null, ...next);
}

// A field with its label.
let fields = 0;
export function labelled(text, control, note) {
  control.id = control.id || `field-${++fields}`;
  return h('div', {class: 'field'}, h('label', {for: control.id}, text), control, note ? h('p', {class: 'hint'}, note) : null);
}

const announcer = h('div', {class: 'unseen', 'aria-live': 'polite'});
document.body.append(announcer);
// For screen readers.
export function announce(text) {
  announcer.textContent = visible(text);
}

export function count(number, one, many = one + 's') {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

export function bytes(number) {
  if (number < 10240) return `${number.toLocaleString('en')} B`;
  return number < 10485760 ? `${Math.round(number / 1024).toLocaleString('en')} KiB` : `${(number / 1048576).toFixed(1)} MiB`;
}

// "3m", as kubectl shows ages.
export function age(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return s < 63072000 ? `${Math.floor(s / 86400)}d` : `${Math.floor(s / 31536000)}y`;
}

export function ago(time) {
  if (!time) return 'time not recorded';
  return `${age((Date.now() - Date.parse(time)) / 1000)} ago`;
}

// Relative, with the exact time beside it.
export function timed(time) {
  return time ? h('time', {datetime: time, title: time}, `${ago(time)} (${time})`) : h('span', {class: 'hint'}, 'time not recorded');
}
