// SPDX-License-Identifier: Apache-2.0
// Draws an arm that a reader turns, out of the numbers of arm_in_space.py. SI units. Every canvas
// of the page shows the same pose from the same side: that of #in-space with the layers that its
// boxes choose, the others with those that they name.
'use strict';
(() => {
  const arm = JSON.parse(document.getElementById('arm-numbers').textContent);
  const figure = document.getElementById('in-space');
  const page = document.documentElement.classList;
  const canvases = [...document.querySelectorAll('canvas')];
  const rows = [...figure.querySelectorAll('.joint')];
  const n = arm.d.length;
  const q = [...arm.q];
  const view = { azimuth: arm.azimuth, elevation: arm.elevation };
  // Of a page that shows an arm as it moves: what its drives do, and a force on its tip.
  let told = null;
  const FRAME = 0.1, AXIS = 0.04, GROUND = 0.11, ARC = 0.055; // of the arm's size
  const SENSE = 0.035, ALONG = 0.07, SENSE_ARC = [0.35, 5.1]; // of it; [rad]
  const FULL_ARC = 5.2, CLEAR = 0.86; // [rad]; of half the canvas
  const DISC = 0.06, MOST_LABELS = 8; // of the canvas, of the largest mass
  const CLEAR_OF_TIP = 10; // [px], where an arrow ends

  // --- vectors, and transforms as [rotation, origin] ---------------------------------------------
  const add = (u, v) => u.map((x, i) => x + v[i]);
  const scaled = (s, v) => v.map(x => s * x);
  const less = (u, v) => u.map((x, i) => x - v[i]);
  const dot = (u, v) => u.reduce((sum, x, i) => sum + x * v[i], 0);
  const cross = (u, v) => [
    u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0],
  ];
  const turned = (R, v) => R.map(row => dot(row, v));
  const column = (R, k) => R.map(row => row[k]);
  const product = (A, B) => A.map(row => [0, 1, 2].map(k => dot(row, column(B, k))));
  const at = (frame, v) => add(turned(frame[0], v), frame[1]);
  const after = (frame, step) => [product(frame[0], step[0]), at(frame, step[1])];
  const split = T => [T.slice(0, 3).map(row => row.slice(0, 3)), column(T.slice(0, 3), 3)];

  /** Frame i in the one before: its constant rotation and step, then Rot(z, theta) Trans(z, d). */
  function step(i) {
    const angle = arm.theta[i] + (arm.prismatic[i] ? 0 : q[i]);
    const along = arm.d[i] + (arm.prismatic[i] ? q[i] : 0);
    const c = Math.cos(angle), s = Math.sin(angle), R = arm.rotations[i];
    return [
      product(R, [[c, -s, 0], [s, c, 0], [0, 0, 1]]),
      add(arm.steps[i], scaled(along, column(R, 2))),
    ];
  }

  /** Base, DH frames and tips, and the corners between a row's a and its d. */
  function posed() {
    const base = split(arm.base), frames = [], feet = [];
    for (let i = 0; i < n; i++) {
      const before = frames[arm.parents[i]] ?? base;
      feet.push(at(before, arm.steps[i]));
      frames.push(after(before, step(i)));
    }
    const tips = arm.tips.map((i, k) => after(frames[i], split(arm.tip_transforms[k])));
    return { base, frames, feet, tips };
  }

  /** Torques that hold the arm still against gravity [N m or N]. */
  function gravityTorques(frames) {
    return frames.map((joint, i) => {
      const z = column(joint[0], 2);
      let torque = 0;
      for (let j = i; j < arm.ends[i]; j++) {
        const mass = arm.moments[j][3];
        const weight = scaled(mass, arm.gravity);
        if (arm.prismatic[i]) {
          torque -= dot(z, weight);
        } else {
          const first = turned(frames[j][0], arm.moments[j].slice(0, 3));
          const lever = add(first, scaled(mass, less(frames[j][1], joint[1])));
          torque -= dot(z, cross(lever, arm.gravity));
        }
      }
      return torque;
    });
  }

  // --- paper -------------------------------------------------------------------------------------
  const ink = name => getComputedStyle(figure).getPropertyValue('--' + name).trim();
  let canvas, paper, colors, flat, scale, width, height, labels, room;
  // What the arm alone, its masses, and its ellipsoids fill: a centre, and of the outermost points
  // how far aside of that, and above or below, they are. It grows with a pose that needs more.
  let rooms = {};

  /** Points of the ellipsoids that are drawn. */
  function surfaces(frames) {
    return frames.flatMap((frame, i) => {
      const found = arm.ellipsoids[i];
      if (!found || arm.too_large[i]) return [];
      const axes = [0, 1, 2].map(k => column(found.half, k));
      return arm.around.map(u => at(frame, add(found.center, turned(axes, u))));
    });
  }
  const massCenter = (frame, i) =>
    at(frame, scaled(1 / arm.moments[i][3], arm.moments[i].slice(0, 3)));
  function see({ base, frames, feet, tips }) {
    const origins = [[0, 0, 0], ...[base, ...tips, ...frames].map(frame => frame[1])];
    const centers = frames.map(massCenter).filter((_, i) => drawn(i));
    const corners = [...origins, ...feet], masses = [...corners, ...centers];
    // An arm of one joint may be a single point.
    if (corners.every(p => Math.hypot(...p) < 1e-3)) corners.push(...centers);
    const ellipsoids = [...masses, ...surfaces(frames)];
    for (const [name, points] of Object.entries({ arm: corners, masses, ellipsoids })) {
      const of = k => points.map(p => p[k]);
      rooms[name] ??= {
        middle: [0, 1, 2].map(k => (Math.min(...of(k)) + Math.max(...of(k))) / 2),
        reach: [[1e-3, 1e-3]],
      };
      const { middle, reach } = rooms[name];
      for (const p of points) {
        const [x, y, z] = less(p, middle), aside = Math.hypot(x, y), above = Math.abs(z);
        // A little beyond is as good as within: the list stays short however long an arm moves.
        if (!reach.some(r => 1.02 * r[0] >= aside && 1.02 * r[1] >= above)) {
          reach.push([aside, above]);
        }
      }
    }
  }
  function look() {
    const [c, s] = [Math.cos(view.azimuth), Math.sin(view.azimuth)];
    const [C, S] = [Math.cos(view.elevation), Math.sin(view.elevation)];
    flat = [[c, s, 0], [-S * s, S * c, C], [-C * s, C * c, -S]]; // right, up, away
    room = rooms[['ellipsoids', 'masses'].find(shown) ?? 'arm'];
    const wide = Math.max(...room.reach.map(r => r[0]));
    const high = Math.max(...room.reach.map(r => Math.abs(S) * r[0] + Math.abs(C) * r[1]));
    scale = CLEAR / 2 * Math.min(width / wide, height / high);
  }
  const spot = p => {
    const [x, y] = turned(flat, less(p, room.middle));
    return [width / 2 + scale * x, height / 2 - scale * y];
  };
  const depth = p => dot(flat[2], p);

  function line(points, color, thickness, cap = 'round') {
    paper.beginPath();
    const [first, ...others] = points;
    if (cap === 'round' && others.every(p => Math.hypot(...less(p, first)) < 0.01)) {
      // A line without length is a dot; its caps are drawn by some browsers only.
      paper.arc(...first, thickness / 2, 0, 2 * Math.PI);
      paper.fillStyle = color;
      paper.fill();
      return;
    }
    points.forEach((p, k) => paper[k ? 'lineTo' : 'moveTo'](...p));
    Object.assign(paper, { strokeStyle: color, lineWidth: thickness, lineCap: cap });
    paper.lineJoin = 'round';
    paper.stroke();
  }
  function arrow(from, to, color, thickness) {
    line([from, to], color, thickness);
    head(from, to, color, 4 + 1.5 * thickness);
  }
  function head(from, to, color, size) {
    const [x, y] = less(to, from), long = Math.hypot(x, y);
    if (long < 3) return;
    const [u, v] = [size * x / long, size * y / long];
    paper.beginPath();
    paper.moveTo(to[0] + u / 2, to[1] + v / 2);
    paper.lineTo(to[0] - u / 2 - v / 2, to[1] - v / 2 + u / 2);
    paper.lineTo(to[0] - u / 2 + v / 2, to[1] - v / 2 - u / 2);
    paper.fillStyle = color;
    paper.fill();
  }
  /** A text for a point, at best beyond it as seen from another. */
  function label(text, point, color, from = point) {
    labels.push({ text, point, color, from });
  }
  function write(text, where, color) {
    Object.assign(paper, { font: '12px system-ui, sans-serif', lineWidth: 3, lineJoin: 'round' });
    Object.assign(paper, { strokeStyle: colors.paper, fillStyle: color });
    Object.assign(paper, { textAlign: 'center', textBaseline: 'middle' });
    paper.strokeText(text, ...where);
    paper.fillText(text, ...where);
  }
  /** Write the labels where they cover neither each other nor the border. */
  function placeLabels() {
    const taken = [];
    for (const { text, point, color, from } of labels) {
      const half = [3.6 * text.length + 2, 7], [x, y] = less(point, from);
      const long = Math.hypot(x, y) || 1;
      let best = null;
      for (let k = 0; k < 48; k++) {
        const angle = Math.PI / 8 * (k % 16), away = [Math.cos(angle), Math.sin(angle)];
        const far = 8 * (1 + Math.floor(k / 16));
        const where = [0, 1].map(i => Math.max(half[i], Math.min([width, height][i] - half[i],
          point[i] + away[i] * (far + half[i]))));
        const covered = taken.filter(other => [0, 1].every(i =>
          Math.abs(other.where[i] - where[i]) < other.half[i] + half[i]));
        const hidden = labels.filter(other => [0, 1].every(i =>
          Math.abs(other.point[i] - where[i]) < half[i] + 3));
        const cost = far + 12 * (1 - (x * away[0] + y * away[1]) / long)
          + 200 * covered.length + 20 * hidden.length;
        if (!best || cost < best.cost) best = { cost, where, half };
      }
      taken.push(best);
      write(text, best.where, color);
    }
  }
  /** Points of an ellipse with two half axes about a centre, on paper. */
  function ring(center, u, v, from = 0, to = 2 * Math.PI) {
    const count = 48;
    return Array.from({ length: count + 1 }, (_, k) => {
      const t = from + (to - from) * k / count;
      return spot(add(center, add(scaled(Math.cos(t), u), scaled(Math.sin(t), v))));
    });
  }

  function drawLinks({ base, frames, feet, tips }) {
    const pieces = [{ ends: [[0, 0, 0], base[1]], color: colors.body, thickness: 7 }];
    frames.forEach((frame, i) => {
      const start = (frames[arm.parents[i]] ?? base)[1];
      pieces.push({ ends: [start, feet[i]], color: colors.body, thickness: 7 });
      const [color, thickness] = arm.prismatic[i] ? [colors.orange, 3] : [colors.body, 7];
      pieces.push({ ends: [feet[i], frame[1]], color, thickness });
    });
    tips.forEach((tip, k) => {
      const ends = [frames[arm.tips[k]][1], tip[1]];
      pieces.push({ ends, color: colors.body, thickness: 7 });
    });
    frames.forEach((frame, i) => {
      const half = scaled(AXIS * arm.size, column(frame[0], 2));
      pieces.push({ ends: [less(frame[1], half), add(frame[1], half)], joint: i });
    });
    const away = ({ ends, joint }) =>
      depth(scaled(0.5, add(...ends))) - (joint === undefined ? 0 : 0.02 * arm.size);
    for (const piece of pieces.sort((x, y) => away(y) - away(x))) {
      const ends = piece.ends.map(spot);
      if (piece.joint === undefined) {
        line(ends, piece.color, piece.thickness);
      } else {
        const cap = arm.prismatic[piece.joint] ? 'butt' : 'round';
        line(ends, colors.text, 11, cap);
        line(ends, colors.paper, 8.6, cap);
      }
    }
  }
  function drawEllipsoids(frames) {
    frames.forEach((frame, i) => {
      const found = arm.ellipsoids[i];
      if (!found || arm.too_large[i]) return;
      const half = found.half.map(axis => turned(frame[0], axis));
      const center = at(frame, found.center), [x, y] = spot(center);
      // The outline: what the half axes make of a circle, seen from the side of the view.
      const rows = flat.slice(0, 2).map(row => half.map(axis => scale * dot(row, axis)));
      const [p, r, o] = [dot(rows[0], rows[0]), dot(rows[1], rows[1]), dot(rows[0], rows[1])];
      const mean = (p + r) / 2, off = Math.hypot((p - r) / 2, o);
      paper.beginPath();
      const [long, short] = [Math.sqrt(mean + off), Math.sqrt(Math.max(mean - off, 0))];
      paper.ellipse(x, y, long, short, -Math.atan2(2 * o, p - r) / 2, 0, 2 * Math.PI);
      paper.globalAlpha = 0.22;
      paper.fillStyle = colors.orange;
      paper.fill();
      paper.globalAlpha = 0.75;
      Object.assign(paper, { strokeStyle: colors.orange, lineWidth: 1 });
      paper.stroke();
      paper.globalAlpha = 0.45;
      for (const [u, v] of [[0, 1], [1, 2], [2, 0]]) {
        line(ring(center, half[u], half[v]), colors.orange, 0.8);
      }
      paper.globalAlpha = 1;
      line([[x, y], [x, y]], colors.text, 3);
    });
  }
  /** Discs, whose areas are the masses; the largest have their numbers. */
  function drawMasses(frames) {
    const masses = arm.moments.map(row => row[3]), largest = Math.max(...masses);
    const least = [...masses].sort((x, y) => y - x)[MOST_LABELS - 1] ?? 0;
    frames.forEach((frame, i) => {
      if (!drawn(i)) return;
      const center = spot(massCenter(frame, i));
      paper.globalAlpha = 0.55;
      const wide = 2 * DISC * Math.min(width, height) * Math.sqrt(masses[i] / largest);
      line([center, center], colors.orange, wide);
      paper.globalAlpha = 1;
      line([center, center], colors.text, 4);
      if (masses[i] >= least) label(`${i + 1}: ${written(masses[i])} kg`, center, colors.text);
    });
  }
  const isNamed = i => n <= MOST_LABELS || !i || i === n - 1 || (i + 1) % 5 === 0;
  function drawFrames(frames) {
    frames.forEach((frame, i) => {
      const [x, y, z] = [0, 1, 2].map(k => column(frame[0], k)), start = spot(frame[1]);
      for (const [axis, letter, name] of [[x, 'x', 'red'], [z, 'z', 'blue']]) {
        const end = spot(add(frame[1], scaled(FRAME * arm.size, axis)));
        arrow(start, end, colors[name], 1.7);
        if (isNamed(i) && (letter === 'z' || n <= MOST_LABELS)) {
          label(letter + (i + 1), end, colors[name], start);
        }
      }
      if (arm.prismatic[i]) return;
      // The way that the joint turns while q grows.
      const center = add(frame[1], scaled(ALONG * arm.size, z));
      const [u, v] = [x, y].map(axis => scaled(SENSE * arm.size, axis));
      const arc = ring(center, u, v, ...SENSE_ARC);
      line(arc, colors.blue, 1.1);
      head(arc[arc.length - 3], arc[arc.length - 1], colors.blue, 6);
    });
  }
  /** An arc the way that a torque turns, or an arrow the way that a force pushes. */
  function drawTorques(frames, torques) {
    frames.forEach((frame, i) => {
      const share = Math.max(-1, Math.min(1, torques[i] / arm.full[i]));
      const color = colors[Math.abs(share) === 1 && arm.limits[i] !== null ? 'red' : 'green'];
      if (Math.abs(share) < 1e-3) return;
      const [x, y, z] = [0, 1, 2].map(k => column(frame[0], k));
      if (arm.prismatic[i]) {
        const end = add(frame[1], scaled(3 * ARC * arm.size * share, z));
        arrow(spot(frame[1]), spot(end), color, 3);
        return;
      }
      const size = ARC * arm.size;
      const center = add(frame[1], scaled(AXIS * arm.size, z));
      const arc = ring(center, scaled(size, x), scaled(size, y), 0, FULL_ARC * share);
      line(arc, color, 3);
      head(arc[arc.length - 4], arc[arc.length - 1], color, 9);
    });
  }
  /** A force on the tip [N]: an arrow that ends there, as long as the arm where it is full. */
  function drawForce(tip, force) {
    const size = Math.hypot(...force);
    if (size < told.least) return;
    const long = Math.min(1, size / told.full) * arm.size / size;
    const from = spot(less(tip, scaled(long, force))), to = spot(tip);
    const [x, y] = less(to, from), short = CLEAR_OF_TIP / Math.max(Math.hypot(x, y), CLEAR_OF_TIP);
    arrow(from, [to[0] - short * x, to[1] - short * y], colors.red, 3);
  }
  function drawGround() {
    const size = GROUND * arm.size;
    const points = ring([0, 0, 0], [size, 0, 0], [0, size, 0]);
    line(points, colors.muted, 0.8);
    paper.fillStyle = colors.grid;
    paper.fill();
  }
  function drawScale() {
    const longest = 0.25 * width / scale, power = 10 ** Math.floor(Math.log10(longest));
    const length = Math.max(...[1, 2, 5].map(x => x * power).filter(x => x <= longest));
    const [x, y, end] = [12, height - 14, 12 + scale * length];
    line([[x, y - 4], [x, y + 4]], colors.muted, 1.2);
    line([[x, y], [end, y]], colors.muted, 1.2);
    line([[end, y - 4], [end, y + 4]], colors.muted, 1.2);
    paper.textAlign = 'left';
    const text = `${Number(length.toPrecision(1))} m`;
    write(text, [end + 10 + 3 * text.length, y], colors.text);
    const size = Math.hypot(...arm.gravity);
    const down = turned(flat, scaled(28 / (size || 1), arm.gravity));
    if (!size) return;
    const top = [width - 34, 34];
    arrow(top, [top[0] + down[0], top[1] - down[1]], colors.muted, 1.5);
    write('g', [top[0] - 12, top[1]], colors.text);
  }

  // --- the page ----------------------------------------------------------------------------------
  const written = (value, digits = 3) => {
    const size = Math.abs(value);
    if (size < 1e-9) return '0';
    const text = size < 1e6 && size >= 1e-4
      ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1);
    return text.replaceAll('-', '\u2212');
  };
  const boxes = [...figure.querySelectorAll('[data-layer]')];
  const chosen = name => boxes.some(box => box.dataset.layer === name && box.checked);
  const shown = name => (canvas.dataset.layers ? canvas.dataset.layers === name : chosen(name));
  const drawn = i => arm.moments[i][3] > 0 && !arm.far[i];

  function draw() {
    const pose = posed(), torques = told ? told.torques : gravityTorques(pose.frames);
    see(pose);
    colors = Object.fromEntries(
      ['text', 'muted', 'grid', 'paper', 'body', 'blue', 'orange', 'red', 'green']
        .map(name => [name, ink(name)]));
    for (canvas of canvases) drawOn(pose, torques);
    const left = arm.ellipsoids.flatMap((_, i) => (arm.too_large[i] ? [`q${i + 1}`] : []));
    const note = figure.querySelector('.too-large');
    note.hidden = !left.length || !chosen('ellipsoids');
    note.querySelector('span').textContent = left.join(', ');
    rows.forEach((row, i) => {
      const unit = arm.prismatic[i] ? 'm' : 'rad';
      const degrees = arm.prismatic[i] ? '' : ` (${written(q[i] * 180 / Math.PI)}°)`;
      row.querySelector('input').value = q[i];
      row.querySelector('input').setAttribute('aria-valuetext', `${written(q[i])} ${unit}`);
      row.querySelector('.position').textContent = `${written(q[i])}\u00a0${unit}${degrees}`;
      const percent = 100 * Math.abs(torques[i]) / arm.limits[i];
      const share = arm.limits[i] === null ? ''
        : `, ${percent && percent < 0.1 ? '< 0.1' : written(percent, 2)} %`;
      row.querySelector('.torque').textContent =
        `${written(torques[i])} ${arm.prismatic[i] ? 'N' : 'N\u00a0m'}${share}`;
      row.dataset.torque = torques[i];
    });
    figure.querySelector('.tip').textContent =
      pose.tips.map(tip => tip[1].map(x => written(x, 4)).join(', ')).join('; ');
    figure.dataset.tip = JSON.stringify(pose.tips.flatMap(tip => tip[1]));
  }
  function drawOn(pose, torques) {
    const density = page.contains('printed') ? 3 : window.devicePixelRatio || 1;
    paper = canvas.getContext('2d');
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    if (!width) return;
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    paper.setTransform(density, 0, 0, density, 0, 0);
    labels = [];
    look();
    drawGround();
    drawLinks(pose);
    if (shown('ellipsoids')) drawEllipsoids(pose.frames);
    if (shown('masses')) drawMasses(pose.frames);
    if (shown('frames')) drawFrames(pose.frames);
    if (shown('torques')) drawTorques(pose.frames, torques);
    drawScale();
    if (told && told.force) drawForce(pose.tips[0][1], told.force);
    pose.tips.forEach((frame, k) => {
      const tip = spot(frame[1]);
      line([tip, tip], colors.paper, 11);
      line([tip, tip], colors.blue, 8);
      label(arm.tip_names[k], tip, colors.text);
    });
    placeLabels();
    canvas.dataset.view = JSON.stringify({ middle: room.middle, scale });
  }

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }
  function lookFrom(azimuth, elevation) {
    view.azimuth = azimuth;
    view.elevation = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, elevation));
    redraw();
  }

  rows.forEach((row, i) => row.querySelector('input').addEventListener('input', event => {
    q[i] = event.target.valueAsNumber;
    redraw();
  }));
  figure.addEventListener('told', event => {
    if (!told) rooms = {};
    told = event.detail;
    told.q.forEach((x, i) => { q[i] = x; });
    redraw();
  });
  for (const button of figure.querySelectorAll('button[data-pose]')) {
    button.addEventListener('click', () => {
      arm[button.dataset.pose].forEach((x, i) => { q[i] = x; });
      rooms = {};
      redraw();
    });
  }
  for (const button of figure.querySelectorAll('button[data-azimuth]')) {
    button.addEventListener('click', () => lookFrom(
      Number(button.dataset.azimuth) * Math.PI / 180,
      Number(button.dataset.elevation) * Math.PI / 180));
  }
  for (const box of boxes) box.addEventListener('change', redraw);
  let held = null; // where the finger was last
  for (const each of canvases) {
    each.addEventListener('pointerdown', event => {
      each.setPointerCapture(event.pointerId);
      held = [event.clientX, event.clientY];
    });
    each.addEventListener('pointermove', event => {
      if (!held || !each.hasPointerCapture(event.pointerId)) return;
      const turn = 2.5 / Math.min(each.clientWidth, each.clientHeight);
      const [x, y] = less([event.clientX, event.clientY], held);
      held = [event.clientX, event.clientY];
      lookFrom(view.azimuth - turn * x, view.elevation + turn * y);
    });
    each.addEventListener('keydown', event => {
      const by = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (!by[event.key]) return;
      event.preventDefault();
      lookFrom(...[view.azimuth, view.elevation].map((x, k) => x + 0.1 * by[event.key][k]));
    });
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  const observer = new ResizeObserver(redraw);
  for (const each of canvases) observer.observe(each);
  // What is folded away on a screen is read on paper, and paper is light.
  addEventListener('beforeprint', () => {
    for (const each of document.querySelectorAll('details:not(.formulas)')) each.open = true;
    page.add('printed');
    draw();
  });
  addEventListener('afterprint', () => {
    page.remove('printed');
    draw();
  });
  for (const each of document.querySelectorAll('.drawn[hidden]')) each.hidden = false;
  draw();
})();
