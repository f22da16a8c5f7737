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
