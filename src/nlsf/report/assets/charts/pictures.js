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
