// ---- scales and ticks

function scale(domain, range, log) {
  const forward = log ? Math.log10 : (v) => v;
  const back = log ? (v) => 10 ** v : (v) => v;
  const [a, b] = domain.map(forward);
  const slope = (range[1] - range[0]) / (b - a || 1);
  const map = (value) => range[0] + (forward(value) - a) * slope;
  map.invert = (pixel) => back(a + (pixel - range[0]) / slope);
  map.domain = domain;
  map.range = range;
  return map;
}

function tickStep(low, high, count, whole) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough * 0.999) || 10);
  return whole ? Math.max(1, Math.round(step)) : step;
}

function linearTicks([low, high], count, { whole = false, percent = false } = {}) {
  const step = tickStep(low, high, count, whole);
  const factor = percent ? 100 : 1;
  const decimals = clamp(-Math.floor(Math.log10(step * factor) + 1e-9), 0, 12);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || step < 1e-5;
  const ticks = [];
  for (let i = first; i <= last; i += 1) {
    const value = i * step + 0; // never minus zero
    const text = large
      ? plainNumber(Number(value.toPrecision(12)), 6)
      : (value * factor).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    ticks.push({ value, text: sign(text === "-0" ? "0" : text) + (percent ? " %" : "") });
  }
  return ticks;
}

function logTicks([low, high], count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high / low);
  const skip = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const parts = decades <= 1 ? [1, 1.5, 2, 3, 5, 7] : decades <= 2.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = first; power <= last; power += skip) {
    for (const part of parts) {
      const value = part * 10 ** power;
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push({ value, text: number(value, 3) });
    }
  }
  return ticks;
}

function extent(values, log) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

// An axis that ends on ticks and shows zero where zero is near.
function niceDomain([low, high], count, log, zero) {
  if (log) {
    const decades = Math.log10(high / low);
    const room = decades < 1e-9 ? 2 : 10 ** (0.04 * decades);
    return [low / room, high * room];
  }
  if (zero || (low > 0 && low < 0.4 * high)) low = Math.min(low, 0);
  if (zero || (high < 0 && high > 0.4 * low)) high = Math.max(high, 0);
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return zero && low === 0 ? [0, 1] : [low - room, high + room];
  }
  const step = tickStep(low, high, count, false);
  return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
}
