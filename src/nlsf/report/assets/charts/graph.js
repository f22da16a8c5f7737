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
