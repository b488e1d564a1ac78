// Where the history of an object's ownership comes from. API servers keep the last write of each manager only, in
// managedFields; a source that knows more replaces these steps.

// {complete, steps: [{time, manager, operation, subresource, fields}]}, newest first. `complete`: whether the steps are
// all that happened, with what each of them changed.
export function history_of(tree, count_fields) {
  const steps = tree.entries.map((entry) => ({time: entry.time, manager: entry.manager, operation: entry.operation, subresource: entry.subresource, fields: count_fields(entry.set)}));
  steps.sort((a, b) => (b.time || '').localeCompare(a.time || ''));
  return {complete: false, steps};
}
