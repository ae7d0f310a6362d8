// The page holds one table of heads and one choice (layer, head, length, metric);
// charts, card and table of heads all show that choice.

const payload = JSON.parse(document.getElementById("payload").textContent);
const columns = Object.entries(payload.heads);
const rows = payload.heads.n.map((_, i) =>
  Object.fromEntries(columns.map(([name, values]) => [name, values[i]])),
);
const key = ({ layer, head, n }) => `${layer}.${head}.${n}`;
const byKey = new Map(rows.map((row) => [key(row), row]));

const form = document.querySelector(".controls");
const card = document.getElementById("card");
const table = document.getElementById("heads");
const body = table.tBodies[0];
const views = {};

const started = payload.charts.phases.params;
const param = (name) => started.find((p) => p.name === name).value;
const choice = {
  layer: param("chosen_layer"),
  head: param("chosen_head"),
  n: param("chosen_n"),
};

// The same rule as largeprompt.report.numbers.show.
function show(value) {
  if (value === null || value === "") return "–";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  const plain = (digits) =>
    value.toLocaleString("en", {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
  if (Number.isInteger(value) && size < 1e7) return plain(0);
  if (size < 1e-3 || size >= 1e7) return value.toExponential(2).replace("e+", "e");
  return plain(Math.max(0, 2 - Math.floor(Math.log10(size))));
}

function fill(element, row) {
  if (row.phase) element.dataset.phase = row.phase;
  for (const place of element.querySelectorAll("[data-field]")) {
    place.textContent = show(row[place.dataset.field]);
  }
}

// Charts.

function signal(view) {
  return view
    .signal("chosen_layer", choice.layer)
    .signal("chosen_head", choice.head)
    .signal("chosen_n", choice.n)
    .runAsync();
}

async function draw(name, spec) {
  const { view } = await vegaEmbed(
    document.getElementById(`chart-${name}`),
    { ...spec, datasets: { ...spec.datasets, heads: rows } },
    {
      actions: false,
      defaultStyle: false,
      renderer: "svg",
      tooltip: { disableDefaultStyle: true },
    },
  );
  views[name]?.finalize();
  views[name] = view;
  view.addEventListener("click", (_, item) => {
    if (byKey.has(key(item?.datum ?? {}))) choose(item.datum);
  });
  await signal(view);
}

function drawMap() {
  const option = form.elements.metric.selectedOptions[0];
  document.getElementById("metric-note").textContent = option.dataset.note;
  return draw("map", payload.charts.maps[option.value]);
}

// The choice.

function choose({ layer, head, n }) {
  if (n !== choice.n) fillTable(n);
  Object.assign(choice, { layer, head, n });
  const row = byKey.get(key(choice));
  fill(card, row);
  fill(form.querySelector("output"), row);
  form.elements.n.value = n;
  reveal(markRow());
  return Promise.all(Object.values(views).map(signal));
}

function fillTable(n) {
  document.getElementById("table-n").textContent = show(n);
  for (const line of body.rows) fill(line, recordOf(line, n));
}

function recordOf(line, n) {
  return byKey.get(key({ ...line.dataset, n }));
}

function markRow() {
  body.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const { layer, head } = choice;
  const line = body.querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
  line.setAttribute("aria-current", "true");
  return line;
}

function reveal(line) {
  const room = body.closest(".scroll");
  const above = line.offsetTop - table.tHead.offsetHeight;
  const below = line.offsetTop + line.offsetHeight - room.clientHeight;
  if (room.scrollTop > above) room.scrollTop = above;
  if (room.scrollTop < below) room.scrollTop = below;
}

// The table sorts by what its rows are, not by how they are written.

function sortBy(heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  table.querySelector("[aria-sort]")?.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = (line) => recordOf(line, choice.n)[heading.dataset.column];
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
  };
  body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
}

// What the reader does.

const STEPS = {
  ArrowLeft: { layer: -1, head: 0 },
  ArrowRight: { layer: 1, head: 0 },
  ArrowUp: { layer: 0, head: -1 },
  ArrowDown: { layer: 0, head: 1 },
};

document.getElementById("chart-map").addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const { layer, head, n } = choice;
  const next = { layer: layer + step.layer, head: head + step.head, n };
  if (byKey.has(key(next))) choose(next);
});
form.addEventListener("submit", (event) => event.preventDefault());
form.elements.metric.addEventListener("change", drawMap);
for (const radio of form.querySelectorAll("[name=n]")) {
  radio.addEventListener("change", () => choose({ ...choice, n: Number(radio.value) }));
}
table.tHead.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading) sortBy(heading);
});
body.addEventListener("click", (event) => {
  const line = event.target.closest("tr");
  if (line) choose(recordOf(line, choice.n));
});

for (const hidden of document.querySelectorAll("#explorer [hidden]")) {
  hidden.hidden = false;
}
markRow();
await Promise.all([
  drawMap(),
  ...["ess", "errors", "phases"].map((name) => draw(name, payload.charts[name])),
]);
document.documentElement.dataset.drawn = "true";
