// Many documents: their texts are sent some at a time, and the answers are shown and kept.

import { fits, Replaced } from './answer.js';
import { at, counted, number, rest } from './base.js';
import { TextFile } from './file.js';
import { download, Results } from './results.js';
import { ask, isAborted, wellFormed } from './server.js';

const CHUNK = 32; // texts a request
const AT_ONCE = 2; // requests: while one is computed the next is on its way
const PATIENCE = 20; // times that a busy server is asked again

export class Documents {
  // `question` says how to classify now, `readAgain` reads labels that were replaced, `oneText` shows a text
  constructor({ question, taxonomy, readAgain, oneText, fail }) {
    Object.assign(this, { question, taxonomy, readAgain, fail });
    this.file = new TextFile({ changed: () => this.stop(), oneText, fail });
    this.results = new Results(index => oneText(this.file.texts[index]));
    at('#run').addEventListener('click', () => this.run());
    at('#cancel').addEventListener('click', () => this.asked?.abort());
    at('#close-documents').addEventListener('click', () => { this.stop(); at('#documents').hidden = true; at('#choose').focus(); });
    at('#as-csv').addEventListener('click', () => download(this.file.name, 'csv', this.results.csv(this.file)));
    at('#as-jsonl').addEventListener('click', () => download(this.file.name, 'jsonl', this.results.jsonLines(this.file)));
  }

  open(file) { return this.file.open(file); }

  stop() { // nothing of before is shown
    this.asked?.abort();
    this.asked = null;
    at('#running').hidden = at('#results').hidden = true;
    at('#run-told').textContent = '';
    rest(at('#run'), false);
  }

  async run(isAgain = false) {
    if (!this.taxonomy()) { this.readAgain(); return; } // the page could not start
    const asked = this.begin(), { texts } = this.file;
    let problem = null;
    try { await this.classifyAll(texts, asked.signal); } catch (error) { problem = error; asked.abort(); }
    if (this.asked !== asked) return; // another file, or none
    if (problem instanceof Replaced && !isAgain) {
      await this.readAgain();
      if (this.asked === asked) this.run(true);
    } else this.end(problem);
  }

  begin() {
    this.asked?.abort();
    this.results.begin(this.file.texts, this.taxonomy(), this.question().model);
    at('#running').hidden = false;
    at('#run-told').textContent = `Classifying ${counted(this.file.texts.length, 'text')} …`;
    rest(at('#run'), true);
    this.progress(0, 0);
    return this.asked = new AbortController();
  }

  end(problem) {
    if (at('#running').contains(document.activeElement)) at('#run').focus();
    at('#running').hidden = true;
    rest(at('#run'), false);
    at('#run').textContent = 'Classify again';
    this.results.draw();
    at('#run-told').textContent = at('#made-with').textContent;
    if (problem && !isAborted(problem)) this.fail(problem);
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
      const answered = await ask('v1/predict', body, { signal, patience: PATIENCE });
      if (!fits(this.results.taxonomy, answered)) throw new Replaced();
      this.results.add(from, answered.documents, answered.decisions);
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
