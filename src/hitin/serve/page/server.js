// What is asked of the server. Errors come with words for people; a busy server is asked again, a key is asked for.

import { at, pause } from './base.js';

const KEY = 'hitin-api-key'; // in sessionStorage: gone with the tab
const LONGEST_WAIT = 10; // seconds, whatever a busy server asks for

const sentence = text => text[0].toUpperCase() + text.slice(1) + (/[.!?:]$/.test(text) ? '' : '.');

export class Refused extends Error {
  constructor(status, { kind = '', message = '', remedy = null } = {}) {
    super([message, remedy].filter(Boolean).map(sentence).join(' '));
    this.status = status;
    this.kind = kind;
  }
}

export const isAborted = error => error?.name === 'AbortError';

const NO_KEY = { message: 'The server answers only those who have an API key.', remedy: 'You are asked for it when you type.' };

async function refusal(response) {
  if (response.status === 401) return new Refused(401, NO_KEY); // the server’s words are for programs
  let said = null;
  try { said = (await response.json()).error; } catch { /* not one of ours: a proxy, perhaps */ }
  return new Refused(response.status, said?.message ? said : {
    message: `The server answered with ${response.status}.`, remedy: 'Its log may tell why.',
  });
}

async function send(path, body, signal) {
  const headers = {}, key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers['Content-Type'] = 'application/json';
  try {
    const how = body ? { method: 'POST', body: JSON.stringify(body) } : { cache: 'no-cache' };
    return await fetch(path, { ...how, headers, signal });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Refused(0, { message: 'The server does not answer.', remedy: 'Is “hitin serve” still running? Try again then.' });
  }
}

// The answer to a request. `patience` says how often a busy server is asked again; `waits` hears why, each time.
export async function ask(path, body, { signal, patience = 2, waits } = {}) {
  const sent = sessionStorage.getItem(KEY);
  const response = await send(path, body, signal);
  if (response.ok) return response.json();
  if (response.status === 401 && await newKey(sent)) return ask(path, body, { signal, patience, waits });
  const refused = await refusal(response);
  if ((response.status !== 429 && response.status !== 503) || patience <= 0) throw refused;
  waits?.(refused);
  const wait = Number(response.headers.get('Retry-After')) || 1;
  await pause(1000 * Math.min(wait, LONGEST_WAIT), signal);
  return ask(path, body, { signal, patience: patience - 1, waits });
}

// Whole texts only: half of a pair of surrogates is no character, and the server refuses it.
export const wellFormed = text => (text.toWellFormed ? text.toWellFormed() : text.replace(/\p{Cs}/gu, '\ufffd'));

let asking = null;

async function newKey(sent) { // whether there is another key to try; those who ask at once wait for one dialog
  if (sent !== sessionStorage.getItem(KEY)) return true;
  asking ??= askForKey(sent !== null).finally(() => { asking = null; });
  return asking;
}

function askForKey(wasWrong) {
  const dialog = at('#key-dialog'), field = at('#key');
  at('#key-told').textContent = wasWrong ? 'The server did not take that key.' : 'The server answers only those who have one.';
  sessionStorage.removeItem(KEY);
  field.value = '';
  dialog.showModal();
  return new Promise(done => {
    const form = at('form', dialog);
    const end = event => {
      event.preventDefault();
      const given = event.type === 'submit';
      if (given) sessionStorage.setItem(KEY, field.value.trim());
      form.removeEventListener('submit', end);
      at('#key-cancel').removeEventListener('click', end);
      dialog.removeEventListener('cancel', end);
      dialog.close();
      done(given);
    };
    form.addEventListener('submit', end);
    at('#key-cancel').addEventListener('click', end);
    dialog.addEventListener('cancel', end);
  });
}
