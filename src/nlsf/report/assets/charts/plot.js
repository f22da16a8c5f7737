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
