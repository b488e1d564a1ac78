// A letter and a colour for each manager of a view, in the order of their appearance. The letter and the pattern of the
// bar tell them apart without colours.
import {h} from './dom.js';

const kColours = 12;

export function letter_of(number) {
  return number < 26 ? String.fromCharCode(65 + number) : letter_of(Math.floor(number / 26) - 1) + letter_of(number % 26);
}

export class Managers {
  constructor() {
    this.numbers = new Map();
  }
  add(names) {
    for (const name of names) if (!this.numbers.has(name)) this.numbers.set(name, this.numbers.size);
  }
  letter(name) {
    this.add([name]);
    return letter_of(this.numbers.get(name));
  }
  // The class of the colour and pattern.
  style(name) {
    this.add([name]);
    return `m${this.numbers.get(name) % kColours}`;
  }
  badge(name) {
    return h('span', {class: `badge ${this.style(name)}`, 'aria-hidden': 'true'}, this.letter(name));
  }
  names() {
    return [...this.numbers.keys()];
  }
}
