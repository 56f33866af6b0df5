// Many documents: their texts are sent some at a time, and the answers are shown and kept.

import { at, counted, number } from './base.js';
import { TextFile } from './file.js';
import { download, Results } from './results.js';
import { ask, isAborted, wellFormed } from './server.js';

const CHUNK = 32; // texts a request
const AT_ONCE = 2; // requests: while one is computed the next is on its way
const PATIENCE = 20; // times that a busy server is asked again

export class Documents {
  constructor({ question, taxonomy, oneText, fail }) { // `question` says how to classify now, `oneText` shows a text
    Object.assign(this, { question, taxonomy, fail });
    this.file = new TextFile({ changed: () => this.stop(), oneText, fail });
    this.results = new Results(index => oneText(this.file.texts[index]));
    at('#run').addEventListener('click', () => this.run());
    at('#cancel').addEventListener('click', () => this.asked?.abort());
    at('#close-documents').addEventListener('click', () => { this.stop(); at('#documents').hidden = true; });
    at('#as-csv').addEventListener('click', () => download(this.file.name, 'csv', this.results.csv(this.file)));
    at('#as-jsonl').addEventListener('click', () => download(this.file.name, 'jsonl', this.results.jsonLines(this.file)));
  }

  open(file) { return this.file.open(file); }

  stop() { // nothing of before is shown
    this.asked?.abort();
    this.asked = null;
    at('#running').hidden = at('#results').hidden = true;
  }

  async run() {
    this.asked?.abort();
    const asked = this.asked = new AbortController(), { texts } = this.file;
    this.results.begin(texts, this.taxonomy());
    at('#running').hidden = false;
    at('#run').disabled = true;
    this.progress(0, 0);
    let problem = null;
    try { await this.classifyAll(texts, asked.signal); } catch (error) { problem = error; asked.abort(); }
    at('#run').disabled = false;
    at('#run').textContent = 'Classify again';
    if (problem && !isAborted(problem)) this.fail(problem);
    if (this.asked !== asked) return; // another file, or none
    at('#running').hidden = true;
    this.results.draw();
  }

  async classifyAll(texts, signal) {
    const question = this.question(), started = performance.now();
    let next = 0, done = 0;
    const work = async () => {
      while (next < texts.length && !signal.aborted) {
        const from = next, to = next = Math.min(next + CHUNK, texts.length);
        await this.classify(question, texts.slice(from, to), from, signal);
        done += to - from;
        this.progress(done, performance.now() - started);
        this.results.drawFirst();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  // A text that the server refuses is told apart from the others: halves are tried.
  async classify(question, texts, from, signal) {
    try {
      const body = { ...question, texts: texts.map(wellFormed) };
      const { documents, decisions } = await ask('v1/predict', body, { signal, patience: PATIENCE });
      this.results.add(from, documents, decisions);
    } catch (error) {
      if (error.status !== 413) throw error;
      if (texts.length === 1) { this.results.add(from, [{ problem: error.message }]); return; }
      const half = Math.ceil(texts.length / 2);
      await this.classify(question, texts.slice(0, half), from, signal);
      await this.classify(question, texts.slice(half), from + half, signal);
    }
  }

  progress(done, milliseconds) {
    const all = this.file.texts.length, left = done ? milliseconds / 1000 / done * (all - done) : 0;
    const time = left < 1 ? '' : left < 90 ? counted(Math.round(left), 'second') : counted(Math.round(left / 60), 'minute');
    at('#progress').value = done / all;
    at('#progress-words').textContent = `${number(done)} of ${number(all)}${time && `, ${time} left`}`;
  }
}
