// Colours, as the style sheet has them, and the colour of each message type.

const theme = { colors: {}, types: new Map() };

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "card", "ink", "soft", "faint", "line", "lane", "band", "hover", "accent", "past", "future", "alarm", "pruned"]) {
    theme.colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  theme.hues = Array.from({ length: 8 }, (_, i) => style.getPropertyValue(`--t${i}`).trim());
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  readTheme();
}

// The eight commonest types have colours of their own.
function nameTypes(types) {
  theme.types.clear();
  types.slice(0, 8).forEach((type, i) => theme.types.set(type, i));
}

function colorOf(type) {
  const hue = theme.types.get(type);
  return hue === undefined ? theme.colors.soft : theme.hues[hue];
}
