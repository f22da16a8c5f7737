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
