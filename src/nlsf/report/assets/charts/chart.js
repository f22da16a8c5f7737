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
