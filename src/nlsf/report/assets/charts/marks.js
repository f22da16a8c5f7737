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
