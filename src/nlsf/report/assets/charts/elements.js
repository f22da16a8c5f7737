"use strict";
// Draws the charts of the page from the JSON beside each place. No library, no request; nothing
// moves unasked. Text from the data reaches the page through text nodes and attributes only.
const MANY = 4000; // marks above which a canvas draws faster than SVG
const ROWS = 2000; // of a data table
const COLOURS = 8;
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 5", "4 2 1 2", "1 4", "14 3 3 3"];
const FONT = 12;

// ---- elements and texts

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const html = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const round = (value) => Math.round(value * 10) / 10;
const colour = (i) => `var(--c${i % COLOURS})`;
const plural = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const shorten = (text, size) => (text.length > size ? text.slice(0, size - 1) + "…" : text);

function listed(names, limit = 8) {
  const rest = names.length - limit;
  return names.slice(0, limit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

const FAMILY = getComputedStyle(document.body).fontFamily;
const pencil = document.createElement("canvas").getContext("2d");
function textWidth(text, size = FONT) {
  pencil.font = `${size}px ${FAMILY}`;
  return pencil.measureText(text).width;
}
function fitted(text, width, size = FONT) {
  while (text.length > 2 && textWidth(text, size) > width) text = shorten(text, text.length - 1);
  return text;
}

function plainNumber(value, digits) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) {
    const [base, power] = value.toExponential(Math.max(0, Math.min(digits, 4) - 1)).split("e");
    return `${Number(base)}e${Number(power)}`;
  }
  const short = Number(value.toPrecision(digits));
  return short.toLocaleString("en", { maximumFractionDigits: 10 });
}
const sign = (text) => text.replace(/^-/, "−").replace("e-", "e−");
const number = (value, digits = 5) => (value === null ? "no value" : sign(plainNumber(value, digits)));
const share = (value, digits = 3) => (value === null ? "no value" : `${number(100 * value, digits)} %`);
