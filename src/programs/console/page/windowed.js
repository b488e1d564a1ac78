// A long list of rows of equal height, of which only those in sight are in the page. One row is active: it has the focus
// when the list has it, and stays in the page when it is scrolled out of sight.
import {h} from './dom.js';

export class Windowed {
  // `scroller` scrolls, `body` holds the rows. `render(index)` makes a row; `activate(index, event)` is called for Enter,
  // `moved(index)` when another row becomes active, `key(event, index)` for other keys.
  constructor({scroller, body, render, activate, moved, key}) {
    Object.assign(this, {scroller, body, render, activate, moved, key});
    this.count = 0;
    this.active = 0;
    this.rows = new Map();
    this.height = 0;
    body.classList.add('windowed');
    scroller.addEventListener('scroll', () => this.show(), {passive: true});
    body.addEventListener('keydown', (event) => this.pressed(event));
    body.addEventListener('focusin', (event) => {
      const row = event.target.closest('[data-index]');
      if (row) this.set_active(Number(row.dataset.index), false);
    });
    this.observer = new ResizeObserver(() => this.show());
    this.observer.observe(scroller);
  }

  close() {
    this.observer.disconnect();
  }

  // The rows have changed.
  refresh(count = this.count) {
    const focused = this.body.contains(document.activeElement);
    this.count = count;
    this.active = Math.max(0, Math.min(this.active, count - 1));
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.show();
    if (focused) this.rows.get(this.active)?.focus({preventScroll: true});
  }

  row_height() {
    if (this.height) return this.height;
    const probe = h('div', {class: 'row-height'});
    this.scroller.append(probe);
    this.height = probe.getBoundingClientRect().height || 28;
    probe.remove();
    return this.height;
  }

  show() {
    const height = this.row_height();
    this.body.style.height = `${this.count * height}px`;
    const top = Math.max(0, this.scroller.scrollTop - this.body.offsetTop);
    const first = Math.max(0, Math.floor(top / height) - 8);
    const last = Math.min(this.count, Math.ceil((top + this.scroller.clientHeight) / height) + 8);
    for (const [index, row] of this.rows) {
      if ((index < first || index >= last) && index !== this.active) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; ++index) this.add(index, height);
    if (this.count > 0) this.add(this.active, height);
  }

  add(index, height) {
    if (this.rows.has(index)) return;
    const row = this.render(index);
    row.dataset.index = String(index);
    row.tabIndex = index === this.active ? 0 : -1;
    row.style.transform = `translateY(${index * height}px)`;
    // In the order of the rows, which is that of reading.
    let after = null;
    for (const other of this.body.children) {
      if (Number(other.dataset.index) > index) {
        after = other;
        break;
      }
    }
    this.body.insertBefore(row, after);
    this.rows.set(index, row);
  }

  set_active(index, focus = true) {
    if (this.count === 0) return;
    const to = Math.max(0, Math.min(index, this.count - 1));
    const before = this.rows.get(this.active);
    if (before) before.tabIndex = -1;
    const changed = to !== this.active;
    this.active = to;
    if (focus) this.reveal(to);
    this.show();
    const row = this.rows.get(to);
    row.tabIndex = 0;
    if (focus) row.focus({preventScroll: true});
    if (changed || focus) this.moved?.(to);
  }

  reveal(index) {
    const height = this.row_height(), top = this.body.offsetTop + index * height;
    const head = this.body.offsetTop;
    if (top - head < this.scroller.scrollTop) this.scroller.scrollTop = top - head;
    const bottom = top + height + 4;
    if (bottom > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = bottom - this.scroller.clientHeight;
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.row_height()) - 2);
    const steps = {ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.count - 1};
    if (event.key in steps) this.set_active(steps[event.key]);
    else if ((event.key === 'Enter' || event.key === ' ') && this.activate) this.activate(this.active, event);
    else if (!this.key?.(event, this.active)) return;
    event.preventDefault();
  }
}
