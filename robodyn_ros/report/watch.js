// SPDX-License-Identifier: Apache-2.0
// Shows what a node reports of an arm, as it comes over a WebSocket. SI units.
'use strict';
(() => {
  const figure = document.getElementById('in-space');
  const rows = [...document.querySelectorAll('#live .row:not(.head)')];
  const state = document.getElementById('state');
  const facts = document.getElementById('facts');
  const PARTS = ['gravity', 'inertial', 'coriolis', 'friction', 'feedback', 'effort'];
  const NEWTONS = 50, LEAST = 2, SILENT = 1500; // a full arrow [N], the least [N], [ms]
  const limits = rows.map(row => Number(row.dataset.full));
  const bands = rows.map(row => Number(row.dataset.band));
  let heard = 0, frames = 0, shown = 0;

  const written = x => (Math.abs(x) < 5e-4 ? 0 : x).toPrecision(3).replace('-', '\u2212');
  const finite = list => list.every(Number.isFinite);

  // A frame, as live_frame of watch_page.py makes it; an error where it is none.
  function read(buffer) {
    const n = rows.length, from = 4 + new DataView(buffer).getUint32(0, true);
    const words = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, from - 4)));
    const numbers = [...new Float64Array(buffer.slice(from))];
    const names = ['q', 'total', ...PARTS, 'external'];
    if (numbers.length !== names.length * n + 3) throw new RangeError('another arm');
    const message = { ...words, force: numbers.slice(-3) };
    names.forEach((name, k) => { message[name] = numbers.slice(k * n, (k + 1) * n); });
    return message;
  }

  function show(message) {
    if (!finite(message.q) || !finite(message.total)) return;
    const force = finite(message.force) ? message.force : null;
    figure.dispatchEvent(new CustomEvent('told', {
      detail: { q: message.q, torques: message.total, force, full: NEWTONS, least: LEAST },
    }));
    const outside = finite(message.external) ? message.external : null;
    rows.forEach((row, i) => {
      for (const part of PARTS) {
        const value = finite(message[part]) ? message[part][i] : 0;
        const bar = row.querySelector(`.${part}`);
        bar.style.width = `${Math.min(50, 50 * Math.abs(value) / limits[i])}%`;
        bar.classList.toggle('minus', value < 0);
      }
      const at = 50 + 50 * Math.max(-1, Math.min(1, message.total[i] / limits[i]));
      row.querySelector('.total').style.left = `${at}%`;
      row.querySelector('.torque').textContent = written(message.total[i]);
      const residual = row.querySelector('.residual');
      const inside = row.querySelector('.outside');
      inside.textContent = outside ? written(outside[i]) : '\u2013';
      const share = outside ? outside[i] / (2 * bands[i]) : 0;
      residual.style.left = `${50 + 50 * Math.max(-1, Math.min(1, share))}%`;
      row.classList.toggle('beyond', outside !== null && Math.abs(outside[i]) > bands[i]);
    });
    const pushed = message.contact === true;
    figure.classList.toggle('contact', pushed);
    facts.querySelector('.contact').textContent = pushed
      ? `contact${typeof message.link === 'string' && message.link ? `, likely on ${message.link}` : ''}`
      : 'no contact';
    facts.querySelector('.force').textContent = force ? `${written(Math.hypot(...force))} N` : '\u2013';
    facts.querySelector('.mode').textContent = typeof message.mode === 'string' ? message.mode : '';
    frames += 1;
    document.body.dataset.frames = frames;
  }

  let latest = null;
  function draw() {
    if (latest !== null) show(latest);
    latest = null;
  }

  function say(text, good) {
    state.textContent = text;
    state.classList.toggle('good', good);
  }

  let wait = 500;
  function connect() {
    const socket = new WebSocket(`ws://${location.host}/live`);
    socket.binaryType = 'arraybuffer';
    socket.onmessage = event => {
      if (!(event.data instanceof ArrayBuffer) || event.data.byteLength > 65536) return;
      let message;
      try { message = read(event.data); } catch { return; }
      heard = performance.now();
      wait = 500;
      if (latest === null) requestAnimationFrame(draw);
      latest = message;
    };
    socket.onclose = () => {
      say('not connected: the watch has ended, or is busy', false);
      setTimeout(connect, wait);
      wait = Math.min(8000, 2 * wait);
    };
  }
  setInterval(() => {
    const now = performance.now();
    if (heard && now - heard < SILENT) {
      say(`${Math.round((frames - shown) / 0.5)} frames a second`, true);
    } else if (state.classList.contains('good')) {
      say('the node says nothing', false);
    }
    shown = frames;
  }, 500);
  connect();
})();
