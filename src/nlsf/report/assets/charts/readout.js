// ---- read-out

const tip = document.getElementById("tip");
const spoken = document.getElementById("spoken");

function hideTip() {
  tip.hidden = true;
}

// readout: {title, rows: [{swatch, name, value, strong}], notes: [text]}
function showTip(readout, x, y) {
  tip.replaceChildren(html("strong", {}, readout.title));
  for (const row of readout.rows) {
    tip.append(html("div", row.strong ? { class: "near" } : {}, row.swatch || null, html("span", {}, row.name), html("b", {}, row.value)));
  }
  for (const note of readout.notes) tip.append(html("em", {}, note));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const page = document.documentElement;
  const left = x + 16 + width < page.clientWidth - 4 ? x + 16 : x - 16 - width;
  const top = y - height - 12 > 4 ? y - height - 12 : y + 18;
  tip.style.left = `${clamp(left, 4, Math.max(4, page.clientWidth - width - 4))}px`;
  tip.style.top = `${clamp(top, 4, Math.max(4, window.innerHeight - height - 4))}px`;
}

function readoutText({ title, rows, notes }) {
  const near = rows.filter((row) => row.strong);
  const said = (near.length ? near : rows).map((row) => (row.name ? `${row.name}: ${row.value}` : row.value));
  return [title, ...said, ...notes].join(". ");
}

function swatch(i, look) {
  const box = svg("svg", { class: "swatch", width: 26, height: 14, viewBox: "0 0 26 14", "aria-hidden": "true" });
  const paint = svgLayer(box);
  if (look === "line") {
    paint("M1 7H25", { stroke: colour(i), width: 2.5, dash: DASHES[i % DASHES.length] });
  } else if (look === "faint") {
    paint("M1 7H25", { stroke: colour(i), width: 1.6, dash: DASHES[i % DASHES.length], opacity: 0.75 });
  } else if (look === "bar") {
    paint("M3 1H23V13H3Z", { fill: texture(box, i), stroke: colour(i), width: 1 });
  } else if (look === "ring") {
    paint(marker(0, 13, 7, 5), { stroke: "var(--wrong)", width: 2 });
  } else {
    paint(marker(markerKind(i), 13, 7, 5), { fill: colour(i) });
  }
  return box;
}
