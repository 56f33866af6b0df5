// What the server said of one text: how probable each label is, which are given, and up to which threshold.

const STEPS = 100; // of the slider, as the server counts them
const WITHOUT_THRESHOLDS = new Set(['single-path', 'top-k']);

export const hasThreshold = policy => !WITHOUT_THRESHOLDS.has(policy);

// Where the slider stands when labels are given as tuned, and what is told of it: there may be many thresholds.
export function tunedAt({ policy, threshold, stop }) {
  const value = hasThreshold(policy) ? threshold : stop;
  if (typeof value === 'number') return { value, words: value.toFixed(2) };
  return { value: .5, words: value ? 'by level' : 'by label' };
}

export class Replaced extends Error {
  constructor() { super('The model is being replaced. Try again in a moment.'); }
}

// Whether what the server answered is of these labels in this order; or else the model was loaded anew, with others.
export const fits = (taxonomy, answered) => answered.taxonomy === taxonomy.id;

export class Answer {
  constructor(taxonomy, record) {
    this.taxonomy = taxonomy;
    this.probabilities = Float64Array.from(record.probabilities);
    this.limits = record.limits ? Int16Array.from(record.limits, limit => Math.round(limit * STEPS)) : null;
    this.tuned = new Uint8Array(taxonomy.size);
    for (const name of record.labels) this.tuned[taxonomy.numbers.get(name)] = 1;
  }

  given(threshold = null) { // Uint8Array: which labels are given, as tuned or at a threshold
    if (threshold === null || !this.limits) return this.tuned;
    const step = Math.round(threshold * STEPS);
    return Uint8Array.from(this.limits, limit => (limit >= step ? 1 : 0)); // -1: given at none
  }
}

export const numbersOf = marked => Array.from(marked.keys()).filter(label => marked[label]);

export function likeliestPath(taxonomy, probabilities) {
  const path = [], best = labels => labels.reduce((one, other) => (probabilities[other] > probabilities[one] ? other : one));
  for (let labels = taxonomy.roots; labels.length; labels = taxonomy.children[path.at(-1)]) path.push(best(labels));
  return path;
}
