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
