// A set on several nodes, with lines of its own: lines_set.toml says how they look. A node tells the others what it was given, once.
const lines = require("readline").createInterface({ input: process.stdin });
let nodes = [];
const all = new Set();
const say = (line) => console.log(JSON.stringify(line));

lines.on("line", (text) => {
  const line = JSON.parse(text);
  if (line.nodes) {
    nodes = line.nodes;
  } else if (line.heard !== undefined) {
    all.add(line.heard);
  } else if (line.add !== undefined) {
    all.add(line.add);
    nodes.forEach((to) => say({ to, heard: line.add }));
    say({ to: line.me, ticket: line.ticket });
  } else {
    say({ to: line.me, ticket: line.ticket, all: [...all] });
  }
});
