// The page holds one table of heads and one choice (layer, head, length, metric, and
// which heads the filter leaves out); charts, card and table all show that choice.

// Compressed JSON in base 64: unpacked here, nothing is asked for from anywhere.
const packed = atob(document.getElementById("payload").textContent);
const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const payload = await new Response(plain).json();
const columns = Object.entries(payload.heads);
const rows = payload.heads.n.map((_, i) =>
  Object.fromEntries(columns.map(([name, values]) => [name, values[i]])),
);
const key = ({ layer, head, n }) => `${layer}.${head}.${n}`;
const place = ({ layer, head }) => `${layer}.${head}`;
const byKey = new Map(rows.map((row) => [key(row), row]));

const form = document.querySelector(".controls");
const filter = document.querySelector(".filter");
const card = document.getElementById("card");
const table = document.getElementById("heads");
const body = table.tBodies[0];
const views = {};

const choice = { ...payload.start, leftOut: {} };

// The same rule as largeprompt.report.numbers.show.
function show(value) {
  if (value === null || value === "") return "–";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "yes" : "no";
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
  if (row.move) element.dataset.move = row.move;
  for (const place of element.querySelectorAll("[data-field]")) {
    place.textContent = show(row[place.dataset.field]);
  }
}

// Lists of tokens of the chosen head: what a token says is shown, never obeyed.

function fillTokens() {
  const { words, lists, heads } = payload.tokens;
  const mine = heads[place(choice)] ?? {};
  for (const element of card.querySelectorAll("[data-tokens]")) {
    const list = lists[mine[element.dataset.tokens]];
    element.hidden = !list?.length;
    const items = (list ?? []).map(([at, word, number]) => {
      const item = document.createElement("li");
      const said = document.createElement("code");
      said.textContent = word < 0 ? "token" : visible(words[word]);
      const note = document.createElement("span");
      note.textContent = `${show(at)} · ${show(number)}`;
      item.append(said, note);
      return item;
    });
    element.querySelector("ul").replaceChildren(...items);
  }
}

function visible(word) {
  return word.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "␣") || "∅";
}

// Charts.

function curvesOf(head) {
  const { lists, heads } = payload.curves;
  return (heads[place(head)] ?? []).flatMap(([profile, x, measured, law]) =>
    lists[x].map((at, i) => ({
      profile,
      x: at,
      measured: lists[measured][i],
      law: lists[law]?.[i] ?? null,
    })),
  );
}

function firstWith(profile) {
  return rows.find((row) => curvesOf(row).some((point) => point.profile === profile));
}

function signal(name) {
  const view = views[name];
  if (payload.profiles.includes(name)) {
    const mine = curvesOf(choice).filter((point) => point.profile === name);
    document.getElementById(`chart-${name}`).parentElement.hidden = !mine.length;
    if (mine.length) view.data("curves", mine);
  } else {
    view
      .signal("chosen_layer", choice.layer)
      .signal("chosen_head", choice.head)
      .signal("chosen_n", choice.n)
      .signal("left_out", choice.leftOut);
  }
  return view.runAsync();
}

async function draw(name, spec) {
  const own = payload.profiles.includes(name)
    ? { curves: curvesOf(firstWith(name)) }
    : { heads: rows };
  const { view } = await vegaEmbed(
    document.getElementById(`chart-${name}`),
    { ...spec, datasets: { ...spec.datasets, ...own } },
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
  await signal(name);
}

function drawSwitched() {
  const option = form.elements.metric.selectedOptions[0];
  document.getElementById("metric-note").textContent = option.dataset.note;
  return Promise.all(
    Object.entries(payload.switched).map(([name, specs]) =>
      draw(name, specs[option.value]),
    ),
  );
}

// The choice.

const signalAll = () => Promise.all(Object.keys(views).map(signal));

function choose({ layer, head, n }) {
  const moved = n !== choice.n;
  Object.assign(choice, { layer, head, n });
  if (moved) {
    fillTable();
    applyFilter();
  }
  const row = byKey.get(key(choice));
  fill(card, row);
  fillTokens();
  fill(form.querySelector("output"), row);
  form.elements.n.value = n;
  reveal(markRow());
  return signalAll();
}

function fillTable() {
  document.getElementById("table-n").textContent = show(choice.n);
  for (const line of body.rows) fill(line, recordOf(line));
}

function recordOf(line) {
  return byKey.get(key({ ...line.dataset, n: choice.n }));
}

function markRow() {
  body.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const { layer, head } = choice;
  const line = body.querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
  line.setAttribute("aria-current", "true");
  return line;
}

function reveal(line) {
  if (line.hidden) return;
  const room = body.closest(".scroll");
  const above = line.offsetTop - table.tHead.offsetHeight;
  const below = line.offsetTop + line.offsetHeight - room.clientHeight;
  if (room.scrollTop > above) room.scrollTop = above;
  if (room.scrollTop < below) room.scrollTop = below;
}

// The table sorts and filters by what its rows are, not by how they are written.

function sortBy(heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  table.querySelector("[aria-sort]")?.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = (line) => recordOf(line)[heading.dataset.column];
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
  };
  body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
}

function wanted(row) {
  const { words, column, relation, bound } = filter.elements;
  for (const select of filter.querySelectorAll("[name=choice]")) {
    const asked = select.selectedIndex > 0;
    if (asked && String(row[select.dataset.column]) !== select.value) return false;
  }
  const text = Object.values(row)
    .filter((value) => typeof value === "string")
    .concat(`layer ${row.layer}`, `head ${row.head}`)
    .join("\n")
    .toLowerCase();
  const sought = words.value.toLowerCase().split(",");
  const found = sought.every((phrase) => {
    const asked = phrase.trim();
    return /\d$/.test(asked)
      ? new RegExp(`${asked.replace(/[^\w ]/g, "\\$&")}(?!\\d)`).test(text)
      : text.includes(asked);
  });
  if (!found) return false;
  if (bound.value === "") return true;
  const value = row[column.value];
  if (value === null) return false;
  return relation.value === "most" ? value <= bound.value : value >= bound.value;
}

function applyFilter() {
  choice.leftOut = {};
  for (const line of body.rows) {
    line.hidden = !wanted(recordOf(line));
    if (line.hidden) choice.leftOut[place(line.dataset)] = true;
  }
  const all = body.rows.length;
  const left = all - Object.keys(choice.leftOut).length;
  filter.elements.left.value = `${show(left)} of ${show(all)} head${all === 1 ? "" : "s"}`;
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
form.elements.metric.addEventListener("change", drawSwitched);
for (const radio of form.querySelectorAll("[name=n]")) {
  radio.addEventListener("change", () => choose({ ...choice, n: Number(radio.value) }));
}
table.tHead.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading) sortBy(heading);
});
body.addEventListener("click", (event) => {
  const line = event.target.closest("tr");
  if (line) choose(recordOf(line));
});
filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", () => {
  applyFilter();
  signalAll();
});
filter.addEventListener("reset", () =>
  setTimeout(() => {
    applyFilter();
    signalAll();
  }),
);

// The lengths one after the other, from the shortest; stops at the longest.

const BEAT = 900; // ms
const lengths = [...form.querySelectorAll("[name=n]")].map((radio) => Number(radio.value));
let playing = null;

function stop() {
  clearTimeout(playing);
  playing = null;
  form.elements.play.setAttribute("aria-pressed", "false");
}

async function step() {
  const next = lengths[lengths.indexOf(choice.n) + 1];
  if (next === undefined) return stop();
  await choose({ ...choice, n: next });
  if (playing !== null) playing = setTimeout(step, BEAT);
}

form.elements.play?.addEventListener("click", () => {
  if (playing !== null) return stop();
  form.elements.play.setAttribute("aria-pressed", "true");
  if (choice.n === lengths.at(-1)) choose({ ...choice, n: lengths[0] });
  playing = setTimeout(step, BEAT);
});

for (const hidden of document.querySelectorAll("#explorer [hidden]")) {
  hidden.hidden = false;
}
markRow();
fillTokens();
await Promise.all([
  drawSwitched(),
  ...Object.entries(payload.charts).map(([name, spec]) => draw(name, spec)),
]);
document.documentElement.dataset.drawn = "true";
