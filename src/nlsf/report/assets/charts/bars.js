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
