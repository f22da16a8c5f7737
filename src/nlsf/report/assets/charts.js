"use strict";
// Draws the charts of the page from the JSON beside each place. No library, no request; nothing
// moves unasked. Text from the data reaches the page through text nodes and attributes only.
const MANY = 4000; // marks above which a canvas draws faster than SVG
const ROWS = 2000; // of a data table
const COLOURS = 8;
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 5", "4 2 1 2", "1 4", "14 3 3 3"];
const FONT = 12;

// ---- elements and texts

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const html = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const round = (value) => Math.round(value * 10) / 10;
const colour = (i) => `var(--c${i % COLOURS})`;
const plural = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const shorten = (text, size) => (text.length > size ? text.slice(0, size - 1) + "…" : text);

function listed(names, limit = 8) {
  const rest = names.length - limit;
  return names.slice(0, limit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

const FAMILY = getComputedStyle(document.body).fontFamily;
const pencil = document.createElement("canvas").getContext("2d");
function textWidth(text, size = FONT) {
  pencil.font = `${size}px ${FAMILY}`;
  return pencil.measureText(text).width;
}
function fitted(text, width, size = FONT) {
  while (text.length > 2 && textWidth(text, size) > width) text = shorten(text, text.length - 1);
  return text;
}

function plainNumber(value, digits) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) {
    const [base, power] = value.toExponential(Math.max(0, Math.min(digits, 4) - 1)).split("e");
    return `${Number(base)}e${Number(power)}`;
  }
  const short = Number(value.toPrecision(digits));
  return short.toLocaleString("en", { maximumFractionDigits: 10 });
}
const sign = (text) => text.replace(/^-/, "−").replace("e-", "e−");
const number = (value, digits = 5) => (value === null ? "no value" : sign(plainNumber(value, digits)));
const share = (value, digits = 3) => (value === null ? "no value" : `${number(100 * value, digits)} %`);

// ---- scales and ticks

function scale(domain, range, log) {
  const forward = log ? Math.log10 : (v) => v;
  const back = log ? (v) => 10 ** v : (v) => v;
  const [a, b] = domain.map(forward);
  const slope = (range[1] - range[0]) / (b - a || 1);
  const map = (value) => range[0] + (forward(value) - a) * slope;
  map.invert = (pixel) => back(a + (pixel - range[0]) / slope);
  map.domain = domain;
  map.range = range;
  return map;
}

function tickStep(low, high, count, whole) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough * 0.999) || 10);
  return whole ? Math.max(1, Math.round(step)) : step;
}

function linearTicks([low, high], count, { whole = false, percent = false } = {}) {
  const step = tickStep(low, high, count, whole);
  const factor = percent ? 100 : 1;
  const decimals = clamp(-Math.floor(Math.log10(step * factor) + 1e-9), 0, 12);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || step < 1e-5;
  const ticks = [];
  for (let i = first; i <= last; i += 1) {
    const value = i * step + 0; // never minus zero
    const text = large
      ? plainNumber(Number(value.toPrecision(12)), 6)
      : (value * factor).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    ticks.push({ value, text: sign(text === "-0" ? "0" : text) + (percent ? " %" : "") });
  }
  return ticks;
}

function logTicks([low, high], count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high / low);
  const skip = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const parts = decades <= 1 ? [1, 1.5, 2, 3, 5, 7] : decades <= 2.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = first; power <= last; power += skip) {
    for (const part of parts) {
      const value = part * 10 ** power;
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push({ value, text: number(value, 3) });
    }
  }
  return ticks;
}

function extent(values, log) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

// An axis that ends on ticks and shows zero where zero is near.
function niceDomain([low, high], count, log, zero) {
  if (log) {
    const decades = Math.log10(high / low);
    const room = decades < 1e-9 ? 2 : 10 ** (0.04 * decades);
    return [low / room, high * room];
  }
  if (zero || (low > 0 && low < 0.4 * high)) low = Math.min(low, 0);
  if (zero || (high < 0 && high > 0.4 * low)) high = Math.max(high, 0);
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return zero && low === 0 ? [0, 1] : [low - room, high + room];
  }
  const step = tickStep(low, high, count, false);
  return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
}

// ---- markers and layers

const POLYGONS = [
  null, // a circle
  [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
  [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]],
  [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]],
  [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  [[-0.6, -1.1], [0, -0.5], [0.6, -1.1], [1.1, -0.6], [0.5, 0], [1.1, 0.6], [0.6, 1.1], [0, 0.5], [-0.6, 1.1], [-1.1, 0.6], [-0.5, 0], [-1.1, -0.6]],
  [[-0.6, -1.05], [0.6, -1.05], [1.2, 0], [0.6, 1.05], [-0.6, 1.05], [-1.2, 0]],
];
// After one round of colours the markers shift by one, so that no pair comes twice in 64.
const markerKind = (i) => (i + Math.floor(i / COLOURS)) % POLYGONS.length;

function marker(kind, x, y, r) {
  const points = POLYGONS[kind];
  if (!points) {
    return `M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  }
  return `M${points.map(([dx, dy]) => `${round(x + r * dx)} ${round(y + r * dy)}`).join("L")}z`;
}

function svgLayer(group) {
  return (d, look) => {
    group.append(svg("path", { d, fill: look.fill || "none", stroke: look.stroke, "stroke-width": look.width, "stroke-dasharray": look.dash || null, opacity: look.opacity, "stroke-linejoin": "round" }));
  };
}

function canvasLayer(canvas, width, height, box) {
  const dense = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.ceil(width * dense);
  canvas.height = Math.ceil(height * dense);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  if (box) {
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
  }
  // A canvas knows no CSS variables: the browser works the colour out on an element.
  const known = new Map();
  const resolved = (text) => {
    if (!known.has(text)) {
      canvas.style.color = text;
      known.set(text, getComputedStyle(canvas).color);
    }
    return known.get(text);
  };
  return (d, look) => {
    const path = new Path2D(d);
    context.globalAlpha = look.opacity === undefined ? 1 : look.opacity;
    if (look.fill) {
      context.fillStyle = resolved(look.plain || look.fill);
      context.fill(path);
    }
    if (look.stroke) {
      context.strokeStyle = resolved(look.stroke);
      context.lineWidth = look.width;
      context.lineJoin = "round";
      context.setLineDash(look.dash ? look.dash.split(" ").map(Number) : []);
      context.stroke(path);
    }
  };
}

function label(x, y, text, attributes = {}) {
  return svg("text", { x: round(x), y: round(y), ...attributes }, text);
}

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

// ---- textures of bars

const TEXTURES = ["", "M-2 2L2 -2M0 8L8 0M6 10L10 6", "M2 2h2v2h-2zM6 6h2v2h-2z", "M-2 6L2 10M0 0L8 8M6 -2L10 2", "M0 4H8"];
let made = 0; // numbers the patterns and clips of the page

// A fill for the bars of series i: its colour, from the second series on with a pattern.
function texture(parent, i) {
  const drawn = TEXTURES[i % TEXTURES.length];
  if (!drawn) return colour(i);
  made += 1;
  const id = `texture-${made}`;
  const pattern = svg("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    svg("rect", { width: 8, height: 8, fill: colour(i) }),
    svg("path", { d: drawn, stroke: "var(--card)", "stroke-width": 1.4, fill: "none" }));
  parent.append(svg("defs", {}, pattern));
  return `url(#${id})`;
}

// ---- what all charts share

// A chart fills in: summary(), legend(), tables(), draw(width), spots (places that can be read
// out: {x, y, ...}), readout(spot), step(at, key) for the arrow keys, and if it can zoom(factor, x, y).
class Chart {
  constructor(place, data) {
    this.data = data;
    this.place = place;
    this.hidden = new Set();
    this.view = null; // null: everything
    this.spots = [];
    this.at = -1;
  }

  build() {
    const label = `${this.data.title}. ${this.summary()} Arrow keys read out values.`;
    this.plot = html("div", { class: "plot", tabindex: "0", role: "img", "aria-label": label });
    this.reset = html("button", { type: "button", class: "reset", title: "Escape or double click" }, "Show all");
    this.reset.addEventListener("click", () => this.show(null));
    this.top = html("div", { class: "top" }, this.heading(), html("div", { class: "tools" }, ...this.tools(), this.reset));
    this.note = html("p", { class: "note" });
    const below = this.data.type !== "HeatMap" && this.data.x_label;
    this.place.replaceChildren(
      this.buildLegend(), this.top, this.plot,
      below ? html("div", { class: "axis x" }, this.data.x_label) : "",
      this.note, this.buildTable());
    this.listen();
    this.width = 0;
    this.redraw();
    new ResizeObserver(() => {
      if (this.room() !== this.width) requestAnimationFrame(() => guarded(this.place, () => this.redraw()));
    }).observe(this.place);
  }

  // Rounded down: half a pixel too much would make the plot scroll.
  room() {
    return Math.floor(this.place.getBoundingClientRect().width);
  }

  heading() {
    return html("div", { class: "axis" }, this.data.y_label);
  }

  tools() {
    return [];
  }

  redraw() {
    this.width = this.room();
    if (this.width === 0) return;
    hideTip();
    this.reset.classList.toggle("idle", this.view === null);
    this.spots = [];
    this.note.textContent = "";
    this.plot.replaceChildren();
    this.draw(this.width);
    this.place.dataset.marks = this.spots.length;
  }

  // A drawing area: SVG for axes and few marks, below it a canvas if there are many marks.
  surface(width, height, marks, box) {
    this.drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const back = svg("g");
    const front = svg("g");
    this.cursor = svg("g", { class: "cursor" });
    const group = svg("g", { class: "marks" });
    front.append(group);
    let paint = svgLayer(group);
    if (marks > MANY) {
      const canvas = html("canvas");
      this.plot.append(canvas);
      paint = canvasLayer(canvas, width, height, box);
    } else if (box) {
      made += 1;
      const frame = svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
      front.append(svg("clipPath", { id: `clip-${made}` }, frame));
      group.setAttribute("clip-path", `url(#clip-${made})`);
    }
    this.drawing.append(back, front, this.cursor);
    this.plot.append(this.drawing);
    return { back, front, paint };
  }

  nothing() {
    this.plot.append(html("p", { class: "empty" }, "There is nothing to show."));
  }

  // Legend

  buildLegend() {
    const entries = this.legend();
    if (entries.length === 0) return "";
    const list = html("ul", { class: "legend", "aria-label": "Legend" });
    for (const entry of entries) {
      const content = [swatch(entry.i, entry.look), html("span", {}, entry.name)];
      if (entry.fixed) {
        list.append(html("li", {}, html("span", { class: "entry" }, ...content)));
        continue;
      }
      const button = html("button", { type: "button", class: "entry", "aria-pressed": "true", title: "Show or hide" }, ...content);
      button.addEventListener("click", () => {
        const gone = !this.hidden.delete(entry.i);
        if (gone) this.hidden.add(entry.i);
        button.setAttribute("aria-pressed", String(!gone));
        this.at = -1;
        guarded(this.place, () => this.redraw());
      });
      list.append(html("li", {}, button));
    }
    return list;
  }

  // Data table

  buildTable() {
    const details = html("details", {}, html("summary", {}, "Data as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      for (const table of this.tables()) details.append(...tableNodes(table, this.data.title));
    });
    return details;
  }

  // Pointer and keyboard

  listen() {
    const { plot } = this;
    plot.addEventListener("pointermove", (event) => this.hover(event));
    plot.addEventListener("pointerdown", (event) => this.hover(event));
    // What a finger has touched stays to be read when the finger is gone.
    plot.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.leave());
    plot.addEventListener("blur", () => this.leave());
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("dblclick", () => this.show(null));
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey || !this.zoom) return;
      event.preventDefault();
      const { x, y } = this.local(event);
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, x, y);
    }, { passive: false });
  }

  local(event) {
    const box = this.drawing.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  hover(event) {
    if (!this.drawing || this.dragging) return;
    const { x, y } = this.local(event);
    const near = this.nearest(x, y);
    if (near < 0) this.leave();
    else this.point(near);
  }

  leave() {
    if (this.cursor) this.cursor.replaceChildren();
    hideTip();
  }

  nearest(x, y) {
    let best = -1;
    let least = Infinity;
    this.spots.forEach((spot, i) => {
      const distance = this.distance(spot, x, y);
      if (distance < least) {
        least = distance;
        best = i;
      }
    });
    return best;
  }

  distance(spot, x, y) {
    return (spot.x - x) ** 2 + (spot.y - y) ** 2;
  }

  point(i) {
    this.at = i;
    const spot = this.spots[i];
    this.cursor.replaceChildren(...this.cursorMarks(spot));
    const box = this.drawing.getBoundingClientRect();
    const readout = this.readout(spot);
    showTip(readout, box.left + spot.x, box.top + spot.y);
    return readout;
  }

  cursorMarks(spot) {
    return [svg("circle", { cx: spot.x, cy: spot.y, r: 6 })];
  }

  key(event) {
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    if (event.key === "Escape") {
      this.leave();
      this.show(null);
      return;
    }
    if (this.zoom && (event.key === "+" || event.key === "-")) {
      const spot = this.spots[this.at] || { x: this.width / 2, y: 100 };
      this.zoom(event.key === "+" ? 0.6 : 1 / 0.6, spot.x, spot.y);
      event.preventDefault();
      return;
    }
    if (!/^(Arrow|Home$|End$)/.test(event.key) || this.spots.length === 0) return;
    event.preventDefault();
    const next = this.at < 0 || this.at >= this.spots.length ? 0 : this.step(this.at, event.key);
    const readout = this.point(clamp(next, 0, this.spots.length - 1));
    this.drawing.dataset.at = this.at;
    this.reveal(this.spots[this.at]);
    spoken.textContent = readoutText(readout);
  }

  reveal() {}

  show(view) {
    this.view = view;
    this.at = -1;
    guarded(this.place, () => this.redraw());
  }
}

function tableNodes({ caption, header, rows }, title) {
  const shown = rows.slice(0, ROWS);
  const cell = (value) => (value === null ? html("td", {}, "") : typeof value === "number" ? html("td", { class: "number" }, sign(String(value))) : html("td", {}, value));
  const table = html("table", {},
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...header.map((text) => html("th", { scope: "col" }, text)))),
    html("tbody", {}, ...shown.map((row) => html("tr", {}, ...row.map(cell)))));
  const box = html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: ${caption}` }, table);
  if (rows.length <= ROWS) return [box];
  return [box, html("p", { class: "note" }, `The first ${ROWS.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows.`)];
}

// ---- charts with an x and a y axis

// Fills in: fullX(), values(x0, x1), xTicks(X, width), marks(paint, X, Y), weight, count().
class Plot extends Chart {
  draw(width) {
    const full = this.fullX();
    if (!full) {
      this.nothing();
      return;
    }
    const { log_x: logX, log_y: logY, percent } = this.data;
    const view = this.view || full;
    const range = extent(this.values(view), logY) || [logY ? 1 : 0, 1];
    const tall = Math.round(clamp(width * 0.5, 200, 320));
    const rows = Math.floor(tall / 40);
    const domain = niceDomain(range, rows, logY, this.zero);
    const yTicks = logY ? logTicks(domain, rows) : linearTicks(domain, rows, { percent });
    let left = Math.ceil(Math.max(20, ...yTicks.map((tick) => textWidth(tick.text)))) + 10;
    const right = width - 12;
    let X = scale(view, [left, right], logX);
    let x = this.xTicks(X, right - left);
    // Turned labels of the first bars reach to the left of the axis.
    const out = x.turned ? Math.max(...x.ticks.map((tick) => 0.77 * textWidth(tick.text) + 4 - X(tick.value))) : 0;
    if (out > 0) {
      left += Math.ceil(out);
      X = scale(view, [left, right], logX);
      x = this.xTicks(X, right - left);
    }
    const box = { left, right, top: this.headroom, bottom: tall };
    const Y = scale(domain, [box.bottom, box.top], logY);
    Object.assign(this, { X, Y, box, full });
    // Markers on the edge are whole as long as nothing lies beyond it.
    const room = this.view ? 0 : 6;
    const clip = { left: left - room, right: right + room, top: box.top - room, bottom: tall + room };
    const layers = this.surface(width, tall + x.room, this.count(), clip);
    this.drawAxes(layers.back, x, yTicks);
    this.drawBehind(layers.back, view);
    this.drawMarks(layers);
    this.selection = svg("rect", { class: "selection", y: box.top, height: box.bottom - box.top, width: 0 });
    this.drawing.append(this.selection);
  }

  drawAxes(group, x, yTicks) {
    const { X, Y, box } = this;
    for (const tick of yTicks) {
      const y = round(Y(tick.value));
      if (y < box.top - 1 || y > box.bottom + 1) continue;
      group.append(svg("path", { class: "grid", d: `M${box.left} ${y}H${box.right}` }));
      group.append(label(box.left - 7, y + 4, tick.text, { class: "tick y", "text-anchor": "end" }));
    }
    group.append(svg("path", { class: "base", d: `M${box.left} ${box.bottom}H${box.right}` }));
    for (const tick of x.ticks) {
      const at = X(tick.value);
      if (at < box.left - 1 || at > box.right + 1) continue;
      if (x.lines) group.append(svg("path", { class: "base", d: `M${round(at)} ${box.bottom}v5` }));
      if (x.turned) {
        group.append(label(at + 4, box.bottom + 14, tick.text, { class: "tick x", "text-anchor": "end", transform: `rotate(-40 ${round(at + 4)} ${round(box.bottom + 14)})` }));
      } else {
        const half = textWidth(tick.text) / 2;
        group.append(label(clamp(at, half, this.width - half), box.bottom + 19, tick.text, { class: "tick x", "text-anchor": "middle" }));
      }
    }
  }

  drawBehind() {}

  // Zoom along x

  listen() {
    super.listen();
    const { plot } = this;
    let start = null;
    const stop = () => {
      start = null;
      this.dragging = false;
      if (this.selection) this.selection.setAttribute("width", 0);
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.isPrimary && this.X) start = this.local(event).x;
    });
    plot.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = this.local(event).x;
      if (!this.dragging && Math.abs(now - start) > 8) {
        this.dragging = true;
        this.leave();
        plot.setPointerCapture(event.pointerId);
      }
      if (this.dragging) {
        const [a, b] = this.span(start, now);
        this.selection.setAttribute("x", a);
        this.selection.setAttribute("width", b - a);
      }
    });
    plot.addEventListener("pointerup", (event) => {
      const span = this.dragging ? this.span(start, this.local(event).x) : null;
      stop();
      if (span && span[1] - span[0] > 8) this.showSpan(span);
    });
    plot.addEventListener("pointercancel", stop);
  }

  span(a, b) {
    const { left, right } = this.box;
    return [clamp(Math.min(a, b), left, right), clamp(Math.max(a, b), left, right)];
  }

  showSpan([a, b]) {
    const view = [Math.max(this.X.invert(a), this.full[0]), Math.min(this.X.invert(b), this.full[1])];
    const all = view[0] <= this.full[0] && view[1] >= this.full[1];
    if (all) this.show(null);
    else if (this.enough(view)) this.show(view);
  }

  enough([low, high]) {
    return high - low > 1e-9 * (this.full[1] - this.full[0]);
  }

  zoom(factor, x) {
    if (!this.box) return;
    const { left, right } = this.box;
    this.showSpan([x - (x - left) * factor, x + (right - x) * factor]);
  }

  distance(spot, x, y) {
    return (spot.x - x) ** 2 + this.weight * (spot.y - y) ** 2;
  }

  step(at, key) {
    const { series } = this.spots[at];
    if (key === "ArrowLeft") return at > 0 && this.spots[at - 1].series === series ? at - 1 : at;
    if (key === "ArrowRight") return at + 1 < this.spots.length && this.spots[at + 1].series === series ? at + 1 : at;
    const owners = this.spots.map((spot) => spot.series);
    if (key === "Home") return owners.indexOf(series);
    if (key === "End") return owners.lastIndexOf(series);
    const others = [...new Set(owners)];
    const turn = key === "ArrowDown" ? 1 : others.length - 1;
    const next = others[(others.indexOf(series) + turn) % others.length];
    let best = at;
    let least = Infinity;
    this.spots.forEach((spot, i) => {
      const distance = Math.abs(spot.x - this.spots[at].x);
      if (spot.series === next && distance < least) [best, least] = [i, distance];
    });
    return best;
  }
}

// ---- lines and points

class LineChart extends Plot {
  constructor(place, data) {
    super(place, data);
    this.headroom = data.marks.length || data.regions.length ? 24 : 12;
    this.weight = data.series.every((series) => series.points) ? 1 : 0.1;
    this.whole = data.series.every((series) => series.x.every(Number.isInteger));
  }

  look(i) {
    const series = this.data.series[i];
    return series.points ? "point" : series.faint ? "faint" : "line";
  }

  legend() {
    const { series } = this.data;
    return series.length < 2 ? [] : series.map(({ name }, i) => ({ i, name, look: this.look(i) }));
  }

  summary() {
    const { series, x_label: xLabel, y_label: yLabel, regions } = this.data;
    const x = extent(series.flatMap((one) => one.x));
    const y = extent(series.flatMap((one) => one.y));
    const kind = series.every((one) => one.points) ? "Points" : "Line chart";
    if (!x || !y) return `${kind} without values.`;
    return `${kind} of ${yLabel} against ${xLabel}: ${listed(series.map((one) => one.name))}. ` +
      `${xLabel} from ${number(x[0])} to ${number(x[1])}, ${yLabel} from ${number(y[0])} to ${number(y[1])}.` +
      (regions.length ? ` Shaded: ${listed(regions.map((region) => region.name))}.` : "");
  }

  shown() {
    return this.data.series.map((series, i) => ({ series, i })).filter(({ i }) => !this.hidden.has(i));
  }

  drawable(x, y) {
    return y !== null && !(this.data.log_y && y <= 0) && !(this.data.log_x && x <= 0);
  }

  count() {
    return this.shown().reduce((sum, { series }) => sum + series.x.length, 0);
  }

  fullX() {
    const { series, regions, log_x: log } = this.data;
    const xs = series.flatMap((one) => one.x);
    const range = extent([...xs, ...regions.flatMap((region) => [region.start, region.end])], log);
    if (!range || xs.length === 0) return null;
    if (range[0] === range[1]) return log ? [range[0] / 2, range[1] * 2] : [range[0] - 0.5, range[1] + 0.5];
    // Half of a marker on each side, so that points on the edge are whole.
    const room = log ? (range[1] / range[0]) ** 0.015 : (range[1] - range[0]) * 0.015;
    if (series.every((one) => !one.points && one.x.length > 30)) return range;
    return log ? [range[0] / room, range[1] * room] : [range[0] - room, range[1] + room];
  }

  *values([low, high]) {
    for (const { series } of this.shown()) {
      for (let i = 0; i < series.x.length; i += 1) {
        if (series.x[i] >= low && series.x[i] <= high && this.drawable(series.x[i], series.y[i])) yield series.y[i];
      }
    }
  }

  xTicks(X, width) {
    for (let count = Math.max(2, Math.floor(width / 64)); ; count -= 1) {
      const ticks = this.data.log_x ? logTicks(X.domain, count) : linearTicks(X.domain, count, { whole: this.whole });
      const wanted = Math.max(0, ...ticks.map((tick) => textWidth(tick.text))) + 18;
      const least = Math.min(Infinity, ...ticks.slice(1).map((tick, i) => X(tick.value) - X(ticks[i].value)));
      if (wanted <= least || count <= 1) return { ticks, room: 28, lines: true };
    }
  }

  drawBehind(group) {
    const { X, box, data } = this;
    data.regions.forEach((region, i) => {
      const low = data.log_x && region.start <= 0 ? X.domain[0] : region.start;
      const a = clamp(X(low), box.left, box.right);
      const b = clamp(X(region.end), box.left, box.right);
      if (b <= a) return;
      group.append(svg("rect", { class: `region r${i % 2}`, x: round(a), width: round(b - a), y: box.top, height: box.bottom - box.top }));
      if (textWidth(region.name, 11) < b - a - 6) group.append(label((a + b) / 2, box.top - 6, region.name, { class: "region", "text-anchor": "middle" }));
    });
    let free = -Infinity;
    for (const [x, text] of [...data.marks].sort((p, q) => p[0] - q[0])) {
      if (data.log_x && x <= 0) continue;
      const at = X(x);
      if (at < box.left - 1 || at > box.right + 1) continue;
      group.append(svg("path", { class: "mark", d: `M${round(at)} ${box.top - 4}V${box.bottom}` }));
      const size = textWidth(text, 11);
      const start = clamp(at + 4, box.left, Math.max(box.left, box.right - size));
      // A flag that would cover its neighbour is left out: the read-out still tells it.
      if (start < free || data.regions.length) continue;
      group.append(label(start, box.top - 8, text, { class: "mark" }));
      free = start + size + 8;
    }
  }

  drawMarks({ paint }) {
    const { X, Y, box } = this;
    let missing = 0;
    for (const { series, i } of this.shown()) {
      const few = series.x.length <= 30 && !series.faint;
      let line = "";
      let dots = "";
      let open = false;
      for (let k = 0; k < series.x.length; k += 1) {
        if (!this.drawable(series.x[k], series.y[k])) {
          missing += series.y[k] === null ? 0 : 1;
          open = false;
          continue;
        }
        const x = X(series.x[k]);
        const y = Y(series.y[k]);
        const alone = !open && !(k + 1 < series.x.length && this.drawable(series.x[k + 1], series.y[k + 1]));
        if (series.points || few || alone) dots += marker(markerKind(i), x, y, series.points ? this.radius() : 3);
        if (!series.points) line += `${open ? "L" : "M"}${round(x)} ${round(y)}`;
        open = true;
        if (x >= box.left - 1 && x <= box.right + 1) this.spots.push({ x: round(x), y: round(y), series: i, k });
      }
      const opacity = series.faint ? 0.6 : 1;
      if (line) paint(line, { stroke: colour(i), width: series.faint ? 1.2 : 2, dash: DASHES[i % DASHES.length], opacity });
      if (dots) paint(dots, { fill: colour(i), opacity: series.points && series.x.length > 300 ? 0.6 : opacity });
    }
    if (missing) this.note.textContent = `A logarithmic axis has no place for zero and below: ${plural(missing, "value")} left out.`;
  }

  radius() {
    return clamp(7 - Math.log10(1 + this.count()), 2, 4.5);
  }

  cursorMarks(spot) {
    const line = svg("path", { d: `M${spot.x} ${this.box.top}V${this.box.bottom}` });
    return [line, svg("circle", { cx: spot.x, cy: spot.y, r: 6 })];
  }

  nearest(x, y) {
    const near = super.nearest(x, y);
    const far = this.weight === 1 && near >= 0 && this.distance(this.spots[near], x, y) > 40 ** 2;
    return far ? -1 : near;
  }

  readout(spot) {
    const { series, x_label: xLabel, regions, marks } = this.data;
    const x = series[spot.series].x[spot.k];
    const rows = [];
    for (const { series: one, i } of this.shown()) {
      const near = i === spot.series;
      const k = near ? spot.k : one.points || rows.length > 11 ? -1 : one.x.indexOf(x);
      if (k >= 0) rows.push({ swatch: swatch(i, this.look(i)), name: one.name, value: number(one.y[k]), strong: near && series.length > 1 });
    }
    const notes = regions.filter((region) => x >= region.start && x <= region.end).map((region) => region.name).slice(0, 3);
    notes.push(...marks.filter((mark) => mark[0] === x).map((mark) => mark[1]));
    return { title: `${xLabel} ${number(x, 6)}`, rows, notes };
  }

  tables() {
    const { series, regions, marks, x_label: xLabel, y_label: yLabel } = this.data;
    const tables = [];
    const common = series.every((one) => one.x.length === series[0].x.length && one.x.every((x, k) => x === series[0].x[k]));
    if (common && series.length) {
      const rows = series[0].x.map((x, k) => [x, ...series.map((one) => one.y[k])]);
      tables.push({ caption: yLabel, header: [xLabel, ...series.map((one) => one.name)], rows });
    } else {
      const rows = series.flatMap((one) => one.x.map((x, k) => [one.name, x, one.y[k]]));
      tables.push({ caption: yLabel, header: ["Series", xLabel, yLabel], rows });
    }
    if (regions.length) tables.push({ caption: "Shaded stretches", header: ["Name", "From", "To"], rows: regions.map((r) => [r.name, r.start, r.end]) });
    if (marks.length) tables.push({ caption: "Marks", header: ["Mark", xLabel], rows: marks.map(([x, text]) => [text, x]) });
    return tables;
  }
}

// ---- bars

class BarChart extends Plot {
  constructor(place, data) {
    super(place, data);
    this.headroom = 20;
    this.weight = 1e-4;
    this.zero = !data.log_y;
    this.text = data.percent ? share : number;
  }

  legend() {
    const { series } = this.data;
    return series.length < 2 ? [] : series.map(([name], i) => ({ i, name, look: "bar" }));
  }

  summary() {
    const { series, categories, x_label: xLabel, y_label: yLabel } = this.data;
    const range = extent(series.flatMap(([, values]) => values));
    if (!range) return "Bar chart without values.";
    return `Bar chart of ${yLabel} for ${plural(categories.length, "value")} of ${xLabel}: ${listed(series.map(([name]) => name))}. ` +
      `From ${this.text(range[0])} to ${this.text(range[1])}.`;
  }

  shown() {
    return this.data.series.map(([name, values], i) => ({ name, values, i })).filter(({ i }) => !this.hidden.has(i));
  }

  range(i, k) {
    const whiskers = this.data.ranges[i];
    return (whiskers && whiskers[k]) || null;
  }

  count() {
    return this.shown().length * this.data.categories.length;
  }

  fullX() {
    const n = this.data.categories.length;
    return n && this.data.series.length ? [-0.5, n - 0.5] : null;
  }

  enough([low, high]) {
    return high - low >= 0.8;
  }

  *values([low, high]) {
    for (const { values, i } of this.shown()) {
      for (let k = Math.max(0, Math.ceil(low - 0.4)); k <= Math.min(values.length - 1, high + 0.4); k += 1) {
        yield values[k];
        const range = this.range(i, k);
        if (range) yield* range;
      }
    }
  }

  xTicks(X, width) {
    const { categories } = this.data;
    const band = width / (X.domain[1] - X.domain[0]);
    const first = Math.max(0, Math.ceil(X.domain[0]));
    const last = Math.min(categories.length - 1, Math.floor(X.domain[1]));
    const texts = categories.slice(first, last + 1).map((text) => shorten(text, 20));
    const widest = Math.max(0, ...texts.map((text) => textWidth(text)));
    const turned = widest + 8 > band && band >= 16;
    const every = turned ? 1 : Math.max(1, Math.ceil((widest + 8) / band));
    const ticks = texts.map((text, i) => ({ value: first + i, text })).filter((tick) => tick.value % every === 0);
    return { ticks, room: turned ? Math.ceil(widest * 0.64) + 26 : 28, lines: every > 1, turned };
  }

  drawMarks({ paint, front }) {
    const { X, Y, box, data } = this;
    const shown = this.shown();
    const band = X(1) - X(0);
    const room = band > 6 ? 0.68 * band : band > 3 ? band - 1 : band;
    const thick = Math.min(64, room / Math.max(1, shown.length));
    const gap = (band - thick * shown.length) / 2;
    const base = data.log_y ? box.bottom : clamp(Y(0), box.top, box.bottom);
    const texts = [];
    shown.forEach(({ values, i }, place) => {
      const look = { fill: texture(this.drawing, i), plain: colour(i), stroke: thick > 4 ? colour(i) : undefined, width: 1 };
      values.forEach((value, k) => {
        if (value === null || (data.log_y && value <= 0)) return;
        const left = X(k) - band / 2 + gap + place * thick + (thick > 8 ? 1 : 0);
        const right = X(k) - band / 2 + gap + (place + 1) * thick - (thick > 8 ? 1 : 0);
        const middle = (left + right) / 2;
        if (right < box.left || left > box.right) return;
        const end = Y(value);
        paint(`M${round(left)} ${round(base)}V${round(end)}H${round(right)}V${round(base)}Z`, look);
        const range = this.range(i, k);
        let top = Math.min(end, base);
        if (range) {
          const [low, high] = range.map((v) => (data.log_y && v <= 0 ? box.bottom : Y(v)));
          const cap = clamp(thick / 4, 2, 7);
          paint(`M${round(middle)} ${round(low)}V${round(high)}M${round(middle - cap)} ${round(low)}h${2 * cap}M${round(middle - cap)} ${round(high)}h${2 * cap}`, { stroke: "var(--text)", width: 1.6 });
          top = Math.min(top, low, high);
        }
        if (middle >= box.left && middle <= box.right) this.spots.push({ x: round(middle), y: round(end), series: i, k });
        const text = data.percent ? share(value, 3) : number(value, 3);
        texts.push({ middle, top, text });
      });
    });
    // Values above the bars: on all of them or on none.
    const widest = Math.max(0, ...texts.map(({ text }) => textWidth(text, 11)));
    if (widest + 4 > thick) return;
    for (const { middle, top, text } of texts) {
      if (middle >= box.left && middle <= box.right) front.append(label(middle, top - 5, text, { class: "value", "text-anchor": "middle" }));
    }
  }

  readout(spot) {
    const { categories, series, x_label: xLabel } = this.data;
    const rows = this.shown().slice(0, 12).map(({ name, values, i }) => ({
      swatch: swatch(i, "bar"), name, value: this.text(values[spot.k]), strong: i === spot.series && series.length > 1,
    }));
    const range = this.range(spot.series, spot.k);
    const notes = range ? [`from ${this.text(range[0])} to ${this.text(range[1])}`] : [];
    return { title: `${xLabel ? xLabel + ": " : ""}${categories[spot.k]}`, rows, notes };
  }

  tables() {
    const { categories, series, x_label: xLabel, y_label: yLabel, ranges } = this.data;
    const header = [xLabel];
    series.forEach(([name], i) => header.push(name, ...(ranges[i] ? [`${name}: low`, `${name}: high`] : [])));
    const rows = categories.map((category, k) => {
      const row = [category];
      series.forEach(([, values], i) => row.push(values[k], ...(ranges[i] ? ranges[i][k] || [null, null] : [])));
      return row;
    });
    return [{ caption: yLabel, header, rows }];
  }
}

// ---- heat maps

class HeatMap extends Chart {
  constructor(place, data) {
    super(place, data);
    this.text = data.kind === "share" ? share : number;
    const range = extent(data.values.flat()) || [0, 1];
    // Twice and half are equally far from 1, unless a gain has changed the sign.
    this.far = range[0] > 0 ? (value) => Math.abs(Math.log(value)) : (value) => Math.abs(value - 1);
    this.reach = Math.max(1e-9, ...range.map(this.far));
    this.ends = [Math.min(0, range[0]), range[1] || 1];
    if (data.kind === "gain") this.ends = range[0] > 0 ? [Math.exp(-this.reach), Math.exp(this.reach)] : [1 - this.reach, 1 + this.reach];
  }

  legend() {
    return [];
  }

  heading() {
    const { x_label: xLabel, y_label: yLabel } = this.data;
    return html("div", { class: "axis" }, `↓ ${yLabel}`, html("br"), `→ ${xLabel}`);
  }

  tools() {
    const gain = this.data.kind === "gain";
    const parts = [this.text(this.ends[0], 3), html("span", { class: gain ? "ramp gain" : "ramp" }), this.text(this.ends[1], 3)];
    return [html("div", { class: "key" }, ...parts, html("small", {}, gain ? "middle: 1" : ""))];
  }

  summary() {
    const { rows, columns, x_label: xLabel, y_label: yLabel } = this.data;
    const range = extent(this.data.values.flat());
    if (!range) return "Heat map without values.";
    return `Heat map, ${rows.length} rows (${yLabel}: ${listed(rows)}) and ${columns.length} columns ` +
      `(${xLabel}: ${listed(columns)}), from ${this.text(range[0])} to ${this.text(range[1])}.`;
  }

  // How far from the pale end, in percent, and towards which end.
  tone(value) {
    const [low, high] = this.ends;
    if (this.data.kind === "gain") return [Math.round((100 * this.far(value)) / this.reach), value < 1 ? "below" : "above"];
    return [Math.round((100 * (value - low)) / (high - low)), "strong"];
  }

  draw(width) {
    const { rows, columns, values } = this.data;
    if (rows.length === 0 || columns.length === 0) {
      this.nothing();
      return;
    }
    const names = rows.map((name) => fitted(shorten(name, 24), Math.min(150, width * 0.32)));
    const left = Math.ceil(Math.max(...names.map((name) => textWidth(name)))) + 10;
    const heads = columns.map((name) => shorten(name, 16));
    const widest = Math.max(...heads.map((name) => textWidth(name)));
    const cell = clamp((width - left - 2) / columns.length, columns.length > 48 ? 9 : 24, 96);
    const tall = clamp(Math.min(cell * 0.7, 620 / rows.length), rows.length > 48 ? 9 : 22, 40);
    const turned = widest + 6 > cell && cell >= 16;
    const every = turned ? 1 : Math.ceil((widest + 6) / cell);
    const top = turned ? Math.ceil(widest * 0.71) + 22 : 22;
    const ends = heads.map((name, j) => left + cell * (j + 0.5) + (turned ? 0.71 * textWidth(name) + 8 : 0));
    const full = Math.ceil(Math.max(left + cell * columns.length, ...ends));
    const height = Math.ceil(top + tall * rows.length + 2);
    const { back, front, paint } = this.surface(full, height, rows.length * columns.length);
    heads.forEach((name, j) => {
      if (j % every) return;
      const x = round(left + (j + 0.5) * cell);
      const turn = { transform: `rotate(-45 ${x} ${top - 7})`, "text-anchor": "start" };
      back.append(label(x, top - 7, name, { class: "tick", "text-anchor": "middle", ...(turned ? turn : {}) }));
    });
    const skip = Math.ceil(14 / tall);
    names.forEach((name, i) => {
      if (i % skip === 0) back.append(label(left - 8, top + (i + 0.5) * tall + 4, name, { class: "tick", "text-anchor": "end" }));
    });
    const written = values.map((row) => row.map((value) => this.short(value)));
    const fits = tall >= 16 && cell >= 20 && Math.max(...written.flat().map((text) => textWidth(text, 11))) + 6 <= cell;
    const gap = cell > 12 ? 1 : 0;
    values.forEach((row, i) => row.forEach((value, j) => {
      const x = left + j * cell;
      const y = top + i * tall;
      const [much, end] = value === null ? [0, "strong"] : this.tone(value);
      const fill = value === null ? "var(--shade)" : `color-mix(in oklab, var(--${end}) ${much}%, var(--pale))`;
      paint(`M${round(x)} ${round(y)}h${round(cell - gap)}v${round(tall - gap)}h${-round(cell - gap)}z`, { fill });
      this.spots.push({ x: round(x + cell / 2), y: round(y + tall / 2), i, j, cell, tall });
      if (fits) front.append(label(x + cell / 2, y + tall / 2 + 4, written[i][j], { class: much > 67 ? "over" : "cell", "text-anchor": "middle" }));
    }));
  }

  short(value) {
    if (value === null) return "–";
    if (this.data.kind === "share") return value > 0 && value < 0.005 ? "<1" : String(Math.round(100 * value));
    return this.data.kind === "gain" ? sign(value.toFixed(2)) : number(value, 3);
  }

  nearest(x, y) {
    return this.spots.findIndex((spot) => Math.abs(spot.x - x) <= spot.cell / 2 && Math.abs(spot.y - y) <= spot.tall / 2);
  }

  cursorMarks({ x, y, cell, tall }) {
    return [svg("rect", { x: x - cell / 2, y: y - tall / 2, width: cell, height: tall })];
  }

  step(at, key) {
    const n = this.data.columns.length;
    const column = at % n;
    if (key === "ArrowLeft") return column > 0 ? at - 1 : at;
    if (key === "ArrowRight") return column < n - 1 ? at + 1 : at;
    if (key === "ArrowUp") return at >= n ? at - n : at;
    if (key === "ArrowDown") return at + n < this.spots.length ? at + n : at;
    return key === "Home" ? at - column : at - column + n - 1;
  }

  reveal(spot) {
    this.plot.scrollLeft = clamp(this.plot.scrollLeft, spot.x + spot.cell - this.plot.clientWidth, Math.max(0, spot.x - 2 * spot.cell));
    this.point(this.at);
  }

  readout({ i, j }) {
    const { rows, columns, values, x_label: xLabel, y_label: yLabel } = this.data;
    return { title: `${yLabel}: ${rows[i]}`, rows: [{ name: `${xLabel}: ${columns[j]}`, value: this.text(values[i][j]) }], notes: [] };
  }

  tables() {
    const { rows, columns, values, x_label: xLabel, y_label: yLabel } = this.data;
    return [{ caption: `Rows: ${yLabel}, columns: ${xLabel}`, header: [yLabel, ...columns], rows: rows.map((name, i) => [name, ...values[i]]) }];
  }
}

// ---- images

// In a grid, or with data.moving one column at a time, played as a film when asked to.
class Pictures extends Chart {
  constructor(place, data) {
    super(place, data);
    const range = extent(data.images.flat(3)) || [0, 1];
    this.signed = range[0] < 0;
    this.reach = Math.max(1e-9, ...range.map(Math.abs));
    this.frame = 0;
  }

  build() {
    super.build();
    if (this.data.moving && this.data.columns.length > 1) this.plot.after(this.controls());
  }

  controls() {
    const last = this.data.columns.length - 1;
    const button = html("button", { type: "button" }, "Play");
    const slider = html("input", { type: "range", min: 0, max: last, value: 0, "aria-label": "Frame" });
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
    };
    const go = (frame) => {
      this.frame = frame;
      slider.value = frame;
      slider.setAttribute("aria-valuetext", this.data.columns[frame]);
      guarded(this.place, () => this.redraw());
    };
    button.addEventListener("click", () => {
      if (timer !== null) {
        stop();
        return;
      }
      button.textContent = "Pause";
      timer = setInterval(() => go((this.frame + 1) % (last + 1)), 160);
    });
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    return html("div", { class: "film" }, button, slider);
  }

  legend() {
    return [];
  }

  heading() {
    return html("div", { class: "axis" });
  }

  tools() {
    const low = number(this.signed ? -this.reach : 0, 3);
    const ramp = html("span", { class: this.signed ? "ramp gain" : "ramp" });
    return [html("div", { class: "key" }, low, ramp, number(this.reach, 3))];
  }

  summary() {
    const { rows, columns, moving } = this.data;
    const many = moving ? "shown one at a time" : "side by side";
    return `Images: ${listed(rows)}; ${plural(columns.length, "column")} ${many}: ${listed(columns)}.`;
  }

  // The images to show, row by row: which image, and what is written above it.
  cells() {
    const { rows, columns, moving } = this.data;
    if (moving) return [rows.map((name, i) => ({ i, j: this.frame, text: `${name}, ${columns[this.frame]}` }))];
    return rows.map((name, i) => columns.map((text, j) => ({ i, j, text })));
  }

  draw(width) {
    const { rows, columns, images, moving } = this.data;
    if (rows.length === 0 || columns.length === 0) {
      this.nothing();
      return;
    }
    const cells = this.cells();
    const across = cells[0].length;
    const gap = 10;
    const [tall, wide] = [images[0][0].length, images[0][0][0].length];
    const side = Math.min((width - gap * (across - 1)) / across, 260);
    const pixel = side / wide;
    const names = moving ? 0 : 22;
    const line = names + 18 + tall * pixel + gap;
    this.surface(width, Math.ceil(line * cells.length), 0);
    const canvas = html("canvas");
    this.plot.prepend(canvas);
    const paint = canvasLayer(canvas, width, Math.ceil(line * cells.length));
    cells.forEach((row, r) => {
      const top = r * line + names + 18;
      if (names) this.drawing.append(label(0, r * line + 14, fitted(rows[r], width)));
      row.forEach(({ i, j, text }, c) => {
        const left = c * (side + gap);
        this.drawing.append(label(left, top - 5, fitted(text, side), { class: "tick" }));
        this.image(paint, images[i][j], left, top, pixel);
        const height = tall * pixel;
        this.spots.push({ x: round(left + side / 2), y: round(top + height / 2), i, j, side, height, left, top });
      });
    });
  }

  // One path a tone: a thousand pixels are then some fifty strokes of the brush.
  image(paint, values, left, top, pixel) {
    const tones = new Map();
    values.forEach((row, y) => row.forEach((value, x) => {
      if (value === null) return;
      const much = Math.round((100 * Math.abs(value)) / this.reach);
      const end = !this.signed ? "strong" : value < 0 ? "below" : "above";
      const fill = `color-mix(in oklab, var(--${end}) ${much}%, var(--pale))`;
      // A little larger than a pixel, so that no seams show.
      const d = `M${left + x * pixel} ${top + y * pixel}h${pixel + 0.4}v${pixel + 0.4}h${-pixel - 0.4}z`;
      tones.set(fill, (tones.get(fill) || "") + d);
    }));
    for (const [fill, d] of tones) paint(d, { fill });
  }

  nearest(x, y) {
    return this.spots.findIndex((s) => Math.abs(s.x - x) <= s.side / 2 && Math.abs(s.y - y) <= s.height / 2);
  }

  cursorMarks({ left, top, side, height }) {
    return [svg("rect", { x: left, y: top, width: side, height })];
  }

  readout({ i, j }) {
    const [low, high] = extent(this.data.images[i][j].flat()) || [null, null];
    const rows = [{ name: "smallest", value: number(low) }, { name: "largest", value: number(high) }];
    return { title: `${this.data.rows[i]}, ${this.data.columns[j]}`, rows, notes: [] };
  }

  step(at, key) {
    if (key === "Home") return 0;
    if (key === "End") return this.spots.length - 1;
    const across = this.cells()[0].length;
    return at + { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[key];
  }

  tables() {
    const { rows, columns, images } = this.data;
    const lines = rows.flatMap((name, i) => columns.map((text, j) => [name, text, ...(extent(images[i][j].flat()) || [null, null])]));
    return [{ caption: "Range of each image", header: ["Row", "Column", "Smallest", "Largest"], rows: lines }];
  }
}

// ---- graphs

class GraphDrawing extends Chart {
  constructor(place, data) {
    super(place, data);
    this.neighbours = data.positions.map(() => []);
    for (const [a, b] of data.edges) {
      this.neighbours[a].push(b);
      this.neighbours[b].push(a);
    }
  }

  legend() {
    const used = new Set(this.data.group);
    const entries = this.data.groups.map((name, i) => ({ i, name, look: "point" })).filter(({ i }) => used.has(i));
    if (this.data.wrong.includes(true)) entries.push({ i: 0, name: "outlined: differs from the label", look: "ring", fixed: true });
    return entries;
  }

  heading() {
    const { positions, edges } = this.data;
    return html("div", { class: "axis" }, `${plural(positions.length, "node")}, ${plural(edges.length, "edge")}`);
  }

  tools() {
    const button = (text, name, factor) => {
      const made = html("button", { type: "button", "aria-label": name, title: name }, text);
      made.addEventListener("click", () => this.zoom(factor, this.width / 2, this.height / 2));
      return made;
    };
    return [button("+", "Zoom in", 0.6), button("−", "Zoom out", 1 / 0.6)];
  }

  summary() {
    const { positions, edges, groups, wrong } = this.data;
    return `Drawing of a graph with ${plural(positions.length, "node")} and ${plural(edges.length, "edge")} in ` +
      `${plural(groups.length, "group")}: ${listed(groups)}. ${plural(wrong.filter(Boolean).length, "node")} outlined.`;
  }

  draw(width) {
    const { positions, edges, group, wrong, groups } = this.data;
    if (positions.length === 0) {
      this.nothing();
      return;
    }
    const [left, right] = extent(positions.map((p) => p[0]));
    const [low, high] = extent(positions.map((p) => p[1]));
    const wide = right - left || 1;
    const tall = high - low || 1;
    const room = 14;
    const height = Math.round(clamp(((width - 2 * room) * tall) / wide + 2 * room, 180, Math.min(560, Math.max(300, width * 0.8))));
    const unit = Math.min((width - 2 * room) / wide, (height - 2 * room) / tall);
    this.height = height;
    const { k, x: dx, y: dy } = this.view || { k: 1, x: 0, y: 0 };
    const place = ([x, y]) => [
      (width / 2 + (x - (left + right) / 2) * unit) * k + dx,
      (height / 2 - (y - (low + high) / 2) * unit) * k + dy,
    ];
    this.plot.style.touchAction = this.view ? "none" : "pan-y";
    const at = positions.map(place);
    const seen = (i) => !this.hidden.has(group[i]);
    const { paint } = this.surface(width, height, positions.length + edges.length, { left: 0, top: 0, right: width, bottom: height });
    const line = (a, b) => `M${round(at[a][0])} ${round(at[a][1])}L${round(at[b][0])} ${round(at[b][1])}`;
    this.line = line;
    const drawn = edges.filter(([a, b]) => seen(a) && seen(b)).map(([a, b]) => line(a, b));
    if (drawn.length) paint(drawn.join(""), { stroke: "var(--edge)", width: edges.length > 1500 && k < 2 ? 0.6 : 1 });
    const r = round(clamp(0.17 * Math.sqrt((width * height) / positions.length), 2.6, 8) * Math.min(2, Math.sqrt(k)));
    groups.forEach((_, g) => {
      const paths = ["", ""];
      at.forEach(([x, y], i) => {
        if (group[i] === g && seen(i)) paths[wrong[i] ? 1 : 0] += marker(markerKind(g), x, y, r);
      });
      if (paths[0]) paint(paths[0], { fill: colour(g), stroke: "var(--card)", width: 0.7 });
      if (paths[1]) paint(paths[1], { fill: colour(g), stroke: "var(--wrong)", width: clamp(r / 3, 1.2, 2.4) });
    });
    at.forEach(([x, y], i) => {
      if (seen(i)) this.spots.push({ x: round(x), y: round(y), i, r });
    });
  }

  nearest(x, y) {
    const near = super.nearest(x, y);
    return near >= 0 && this.distance(this.spots[near], x, y) < 26 ** 2 ? near : -1;
  }

  cursorMarks({ x, y, i, r }) {
    const lines = this.neighbours[i].filter((j) => !this.hidden.has(this.data.group[j])).map((j) => this.line(i, j));
    return [svg("path", { d: lines.join("") || "M0 0" }), svg("circle", { cx: x, cy: y, r: r + 4 })];
  }

  readout({ i }) {
    const { texts, groups, group, wrong } = this.data;
    const row = { swatch: swatch(group[i], "point"), name: groups[group[i]], value: "" };
    const notes = [plural(this.neighbours[i].length, "drawn neighbour")];
    if (wrong[i]) notes.unshift("differs from the label");
    return { title: texts[i], rows: [row], notes };
  }

  step(at, key) {
    if (key === "Home") return 0;
    if (key === "End") return this.spots.length - 1;
    return key === "ArrowRight" || key === "ArrowDown" ? at + 1 : at - 1;
  }

  reveal({ x, y }) {
    if (x > 0 && x < this.width && y > 0 && y < this.height) return;
    const { at } = this;
    this.move(this.width / 2 - x, this.height / 2 - y);
    this.point(at);
  }

  // Zoom and pan

  listen() {
    super.listen();
    const { plot } = this;
    const fingers = new Map();
    plot.addEventListener("pointerdown", (event) => {
      if (event.button === 0) fingers.set(event.pointerId, this.local(event));
    });
    plot.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = this.local(event);
      const other = [...fingers.entries()].find(([id]) => id !== event.pointerId);
      if (!this.dragging && !other && Math.hypot(now.x - before.x, now.y - before.y) < 5) return;
      if (!this.dragging) plot.setPointerCapture(event.pointerId);
      this.dragging = true;
      this.leave();
      fingers.set(event.pointerId, now);
      if (other) {
        const [, fixed] = other;
        const spread = (p) => Math.hypot(p.x - fixed.x, p.y - fixed.y) || 1;
        this.zoom(spread(before) / spread(now), fixed.x, fixed.y);
      } else {
        this.move(now.x - before.x, now.y - before.y);
      }
    });
    const stop = (event) => {
      fingers.delete(event.pointerId);
      if (fingers.size === 0) this.dragging = false;
    };
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) plot.addEventListener(name, stop);
  }

  zoom(factor, x, y) {
    const view = this.view || { k: 1, x: 0, y: 0 };
    const k = clamp(view.k / factor, 1, 40);
    const ratio = k / view.k;
    this.go({ k, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio });
  }

  move(dx, dy) {
    const view = this.view || { k: 1, x: 0, y: 0 };
    this.go({ k: view.k, x: view.x + dx, y: view.y + dy });
  }

  // The drawing always covers its frame, so that it cannot be lost.
  go({ k, x, y }) {
    const inside = { k, x: clamp(x, this.width * (1 - k), 0), y: clamp(y, this.height * (1 - k), 0) };
    this.show(k === 1 ? null : inside);
  }

  tables() {
    const { texts, groups, group, wrong, edges } = this.data;
    return [
      { caption: "Nodes", header: ["Node", "Group", "Differs from the label"], rows: texts.map((text, i) => [text, groups[group[i]], wrong[i] ? "yes" : ""]) },
      { caption: "Edges", header: ["From", "To"], rows: edges.map(([a, b]) => [texts[a], texts[b]]) },
    ];
  }
}

// ---- the page

// An error in one chart is shown in its place and stops no other.
function guarded(place, action) {
  try {
    action();
  } catch (error) {
    place.replaceChildren(html("p", { class: "failed", role: "alert" }, `This chart could not be drawn: ${error.message}`));
  }
}

const KINDS = { LineChart, BarChart, HeatMap, GraphDrawing, Pictures };
const charts = [];
for (const place of document.querySelectorAll(".drawn")) {
  guarded(place, () => {
    const data = JSON.parse(place.nextElementSibling.textContent);
    const chart = new KINDS[data.type](place, data);
    chart.build();
    charts.push(chart);
  });
}

// Canvases hold colours, not variables.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) guarded(chart.place, () => chart.redraw());
});
addEventListener("scroll", hideTip, { passive: true });
// Before the touched chart shows its own read-out.
addEventListener("pointerdown", () => charts.forEach((chart) => chart.leave()), { capture: true });

const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    for (const [id, link] of links) link.setAttribute("aria-current", String(id === target.id));
  }
}, { rootMargin: "-15% 0px -80% 0px" });
for (const section of document.querySelectorAll("main section")) watcher.observe(section);
