// Files that are chosen, or dropped anywhere on the page.

import { at } from './base.js';

export function receiveFiles(open) {
  const field = at('#file'), { body } = document, hasFile = event => event.dataTransfer?.types.includes('Files');
  at('#choose').addEventListener('click', () => field.click());
  field.addEventListener('change', () => {
    const [file] = field.files;
    field.value = ''; // so that the same file can be chosen again
    if (file) open(file);
  });
  document.addEventListener('dragover', event => {
    if (!hasFile(event)) return; // a piece of text is dropped as usual
    event.preventDefault();
    body.classList.add('dropping');
  });
  document.addEventListener('dragleave', event => { if (!event.relatedTarget) body.classList.remove('dropping'); });
  document.addEventListener('drop', event => {
    body.classList.remove('dropping');
    if (!hasFile(event)) return;
    event.preventDefault();
    open(event.dataTransfer.files[0]);
  });
}
