// SPDX-License-Identifier: Apache-2.0
() => {
    const faults = [];
    const root = document.documentElement;
    if (root.scrollWidth > window.innerWidth)
        faults.push(`page ${root.scrollWidth} wide of ${window.innerWidth}`);
    for (const element of document.querySelectorAll('body *:not(svg *)')) {
        const scrolls = getComputedStyle(element).overflowX === 'auto';
        if (!scrolls && element.clientWidth && element.scrollWidth > element.clientWidth + 1)
            faults.push(`<${element.tagName}> ${element.textContent.slice(0, 40)}`);
    }
    for (const svg of document.querySelectorAll('figure svg')) {
        const paper = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')];
        const boxes = texts.map(text => text.getBoundingClientRect());
        boxes.forEach((box, i) => {
            const where = `${svg.getAttribute('aria-label')}: ${texts[i].textContent}`;
            if (box.left < paper.left - 2 || box.right > paper.right + 2
                || box.top < paper.top - 2 || box.bottom > paper.bottom + 2)
                faults.push(`outside: ${where}`);
            for (let j = 0; j < i; j++) {
                const other = boxes[j];
                const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
                const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
                if (wide > 3 && high > box.height / 3)
                    faults.push(`${texts[j].textContent} covers ${where}`);
            }
        });
    }
    return faults;
}
