// The lines of an object as YAML, each with the field that it shows.
//
//   line: {column, dashes, name, text, node, items, kind, folded}
//
// kind is 'structure' for the first line of a map or list, 'leaf', 'more' for further lines of a text, 'missing' for a
// field that is owned but absent. `items` are the list items that begin on the line, one for each dash.

const kPlain = /^[A-Za-z_/][A-Za-z0-9_./@-]*(?: [A-Za-z0-9_./@-]+)*$/;
const kWords = /^(?:y|n|yes|no|on|off|true|false|null|~|nan|inf|infinity)$/i;

function scalar(value) {
  if (typeof value !== 'string') return JSON.stringify(value);
  return kPlain.test(value) && !kWords.test(value) ? value : JSON.stringify(value);
}
const key_text = (key) => (/^[A-Za-z0-9_./-]+$/.test(key) && !kWords.test(key) && !/^[0-9.]+$/.test(key) ? key : JSON.stringify(key));

// `hidden(node)`: what to show instead of a value, or null. `folded(path)`: whether what is below is left out.
export function lines_of(root, {hidden, folded}) {
  const lines = [];
  // The first child continues the line that its list items began.
  const add_children = (node, first_column, items, column) => {
    node.children.forEach((child, i) => {
      const own = node.list ? [child] : [];
      if (i === 0) add(child, first_column, [...items, ...own], node.list);
      else add(child, column, own, node.list);
    });
  };
  const add = (node, column, items, is_item) => {
    const inner = column + 2 * items.length;
    const has_children = node.children.length > 0;
    const fold = has_children && folded(node.path);
    if (is_item && has_children && !node.missing && !fold) return add_children(node, column, items, inner);
    const name = !is_item ? `${key_text(String(node.key))}:` : node.missing ? String(node.key) : '';
    const line = {column, dashes: items.length, name, text: '', node, items, kind: 'leaf', folded: fold};
    lines.push(line);
    if (has_children) {
      line.kind = 'structure';
      if (fold) line.text = `… ${node.children.length}`;
      else add_children(node, node.list ? inner : inner + 2, [], node.list ? inner : inner + 2);
      return undefined;
    }
    if (node.missing) {
      line.kind = 'missing';
      line.text = '(absent)';
      return undefined;
    }
    const veil = hidden(node);
    if (veil !== null) {
      line.veiled = true;
      line.text = veil;
    } else if (typeof node.value === 'string' && node.value.trimEnd().includes('\n')) {
      const rows = node.value.split('\n');
      line.text = rows[rows.length - 1] === '' ? '|' : '|-';
      if (line.text === '|') rows.pop();
      for (const row of rows) lines.push({column: inner + 2, dashes: 0, name: '', text: row, node, items: [], kind: 'more', folded: false});
    } else {
      line.text = Array.isArray(node.value) ? '[]' : node.value !== null && typeof node.value === 'object' ? '{}' : scalar(node.value);
    }
    return undefined;
  };
  add_children(root, 0, [], 0);
  return lines;
}

// The lines of one manager, with their parents; others become one line for each gap: {gap: number of lines}.
export function lines_of_owner(lines, root, manager) {
  const kept = new Set();
  const visit = (node) => {
    let keep = node.owners.some((entry) => entry.manager === manager);
    for (const child of node.children) keep = visit(child) || keep;
    if (keep) kept.add(node);
    return keep;
  };
  visit(root);
  const chosen = [];
  for (const line of lines) {
    if (kept.has(line.node) || line.items.some((item) => item.owners.some((entry) => entry.manager === manager))) chosen.push(line);
    else if (chosen.length > 0 && chosen[chosen.length - 1].gap) ++chosen[chosen.length - 1].gap;
    else chosen.push({gap: 1, column: line.column});
  }
  return chosen;
}
