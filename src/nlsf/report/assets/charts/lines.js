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
