// Runs in a copy of the report, as the last element of its body: looks at what a reader would see.
(() => {
    const channels = (text) => (text.match(/[\d.]+/g) || []).map(Number);
    const light = (rgb) => {
        const linear = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.map((value) => linear(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one, other) => {
        const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    };
    // The background of an element: the nearest ancestor that is not transparent.
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const found = channels(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] > 0) {
                return found.slice(0, 3);
            }
        }
        return [255, 255, 255];
    };
    const result = {faint: [], small: [], cut: [], textsCompared: 0};
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        const element = node.parentElement;
        const box = element.getBoundingClientRect();
        if (!node.data.trim() || !box.width || element.closest("script,style,title,desc")) {
            continue;
        }
        const style = getComputedStyle(element);
        const svg = element.closest("svg");
        const colour = channels(svg ? style.fill : style.color).slice(0, 3);
        const ratio = contrast(colour, ground(svg ? svg.parentElement : element));
        const size = parseFloat(style.fontSize) * (svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1);
        const what = `${node.data.trim().slice(0, 40)}: `;
        result.textsCompared += 1;
        if (!(ratio >= 4.5)) {
            result.faint.push(what + ratio.toFixed(2));
        }
        if (!(size >= 13.95)) {
            result.small.push(what + size.toFixed(2));
        }
        const outer = svg && svg.getBoundingClientRect();
        // Half a pixel is rounding.
        if (svg && (box.left < outer.left - 0.5 || box.right > outer.right + 0.5 || box.top < outer.top - 2
            || box.bottom > outer.bottom + 2)) {
            result.cut.push(what + [box.left - outer.left, outer.right - box.right].map(Math.round));
        }
    }
    const figures = [...document.querySelectorAll("figure")];
    const level = (heading) => Number(heading.tagName[1]);
    const headings = [...document.querySelectorAll("h1,h2,h3,h4")];
    Object.assign(result, {
        requests: performance.getEntriesByType("resource").map((entry) => entry.name),
        viewport: window.innerWidth,
        scrollWidth: document.documentElement.scrollWidth,
        ground: getComputedStyle(document.body).backgroundColor,
        plots: figures.length,
        namelessPlots: figures.filter((figure) => !figure.querySelector("svg[role=img] > title")?.textContent.trim()).length,
        tableFirst: Boolean(document.querySelector("table").compareDocumentPosition(figures[0]) & Node.DOCUMENT_POSITION_FOLLOWING),
        skippedHeadings: headings.filter((one, at) => level(one) > (at ? level(headings[at - 1]) : 0) + 1).map((one) => one.textContent),
        headersWithoutScope: document.querySelectorAll("th:not([scope])").length,
        language: document.documentElement.lang,
    });
    const out = document.createElement("script");
    out.id = "probe";
    out.type = "application/json";
    out.textContent = JSON.stringify(result).replaceAll("<", "\\u003c");
    document.body.append(out);
})();
