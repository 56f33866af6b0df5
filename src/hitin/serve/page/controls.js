// How labels are given: the policy, which the server is asked for, and the threshold, which acts at once.

import { at, counted, options, rest } from './base.js';
import { hasThreshold, tunedAt } from './answer.js';

const WORDS = {
  consistent: 'consistent: the likeliest set',
  'top-down': 'top-down: level by level',
  raw: 'raw: each label by itself',
  'single-path': 'single-path: one path',
  'top-k': 'top-k: the k best labels',
};

export class Controls {
  constructor({ asked, moved }) { // `asked`: the server must answer anew; `moved`: the slider was
    this.threshold = null; // as tuned
    at('#policy').addEventListener('change', () => { this.tuned(); this.drawOptions(); asked(); });
    at('#k').addEventListener('input', () => { if (at('#k').reportValidity()) asked(); }); // none: the tuned one
    at('#slider').addEventListener('input', () => { this.threshold = Number(at('#slider').value); this.tell(); moved(); });
    at('#as-tuned').addEventListener('click', () => { this.tuned(); this.tell(); moved(); });
  }

  show(model) {
    this.decisions = this.own = model.decisions;
    options(at('#policy'), [['', `the model’s own (${this.own.policy})`],
      ...model.policies.map(policy => [policy, WORDS[policy] || policy])], '');
    this.tuned();
    this.drawOptions();
  }

  get policy() { return at('#policy').value || this.own.policy; }

  get hasThreshold() { return hasThreshold(this.policy); }

  drawOptions() {
    const isTop = at('#policy').value === 'top-k';
    at('#k-label').hidden = !isTop;
    at('#k').value = '';
    at('#k').placeholder = 'tuned';
    at('#slider-label').textContent = this.hasThreshold ? 'Threshold' : 'Stop below';
    this.tell();
  }

  answered(decisions) { // as the server used them
    this.decisions = decisions;
    if (this.threshold === null) this.tell();
  }

  tuned() { this.threshold = null; }

  tell() {
    const isTuned = this.threshold === null, slider = at('#slider');
    const tuned = this.decisions.policy === this.policy ? tunedAt(this.decisions) : { value: .5, words: '' };
    if (isTuned) slider.value = tuned.value;
    slider.classList.toggle('tuned', isTuned);
    slider.style.setProperty('--at', `${100 * slider.value}%`);
    at('#slider-value').textContent = isTuned ? tuned.words : this.threshold.toFixed(2);
    at('#as-tuned').setAttribute('aria-pressed', isTuned);
    rest(at('#as-tuned'), isTuned);
  }

  tellOf(labels) { // for those who do not see the tree
    const words = this.threshold === null ? 'as tuned' : this.threshold.toFixed(2);
    at('#slider').setAttribute('aria-valuetext', `${words}: ${counted(labels, 'label')} given`);
  }

  question() { // of a text whose slider is moved here
    const policy = at('#policy').value, k = Number(at('#k').value);
    return { ...(policy && { policy }), ...(policy === 'top-k' && k > 0 && { k }) };
  }

  wholeQuestion() { // of texts whose labels are to be as they are shown now
    const value = this.threshold;
    return { ...this.question(), ...(value !== null && { [this.hasThreshold ? 'threshold' : 'stop']: value }) };
  }
}
