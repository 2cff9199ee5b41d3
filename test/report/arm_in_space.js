// SPDX-License-Identifier: Apache-2.0
// What tests of the drawing run in a page; each part is one expression, named above it.

// --- tip: the centre [px] of what is drawn in the colour of the tip, and of how many pixels
() => {
    const canvas = document.querySelector('#in-space canvas');
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const probe = copy.getContext('2d', { willReadFrequently: true });
    probe.fillStyle = getComputedStyle(canvas).getPropertyValue('--blue');
    probe.fillRect(0, 0, 1, 1);
    const color = probe.getImageData(0, 0, 1, 1).data;
    probe.clearRect(0, 0, 1, 1);
    probe.drawImage(canvas, 0, 0);
    const image = probe.getImageData(0, 0, canvas.width, canvas.height);
    let [x, y, count] = [0, 0, 0];
    for (let k = 0; k < image.data.length; k += 4)
        if ([0, 1, 2].every(c => Math.abs(image.data[k + c] - color[c]) < 3)) {
            x += k / 4 % canvas.width + 0.5;
            y += Math.floor(k / 4 / canvas.width) + 0.5;
            count++;
        }
    const density = canvas.width / canvas.clientWidth;
    return [x / count / density, y / count / density, count];
}
// --- size: of the drawing [px]
() => {
    const canvas = document.querySelector('#in-space canvas');
    return [canvas.clientWidth, canvas.clientHeight];
}
// --- spy: keeps the lines and the texts that are drawn, in drawn.lines and drawn.texts [px]
const drawn = { lines: [], texts: [] }, prototype = CanvasRenderingContext2D.prototype;
let path = [];
const keep = {
    setTransform() { Object.assign(drawn, { lines: [], texts: [] }); }, // drawing begins anew
    beginPath() { path = []; },
    moveTo(...at) { path.push(at); },
    lineTo(...at) { path.push(at); },
    stroke() { drawn.lines.push([this.strokeStyle, this.lineWidth, path]); },
    fillText(text, x, y) { drawn.texts.push([text, x, y, this.measureText(text).width]); },
};
for (const [name, note] of Object.entries(keep)) {
    const real = prototype[name];
    prototype[name] = function (...given) { note.apply(this, given); real.apply(this, given); };
}
// --- orange: how much is drawn in orange, everywhere and on the border, and what is too large
() => {
    const canvas = document.querySelector('canvas');
    const image = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let [inside, border] = [0, 0];
    for (let k = 0; k < image.data.length; k += 4) {
        const [red, , blue, opaque] = image.data.slice(k, k + 4);
        if (!opaque || red < blue + 40) continue;
        const [x, y] = [k / 4 % canvas.width, Math.floor(k / 4 / canvas.width)];
        inside++;
        border += x < 2 || y < 2 || x >= canvas.width - 2 || y >= canvas.height - 2;
    }
    return [inside, border, document.querySelector('.too-large span').textContent];
}
