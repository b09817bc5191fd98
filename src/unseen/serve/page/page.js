"use strict";
// The page: asks the server and writes what it answers, always as text and never as HTML.

const $ = (id) => document.getElementById(id);
let about = {};

function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

const label = (entry) => entry.name ?? String(entry.id);
const number = (value) => value.toLocaleString(undefined, { maximumSignificantDigits: 4 });

// Writes numbers that stand below each other with the same number of digits after the point.
function aligned(values) {
  const largest = Math.max(...values.map(Math.abs), 1e-12);
  const digits = Math.min(12, Math.max(0, 3 - Math.max(0, Math.floor(Math.log10(largest))) - (largest < 1 ? Math.ceil(Math.log10(largest)) : 0)));
  return (value) => value.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function drawn(viewBox, ...shapes) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [name, value] of Object.entries({ viewBox, preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, value);
  for (const { tag, ...properties } of shapes) {
    const shape = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(properties)) shape.setAttribute(name, value);
    svg.append(shape);
  }
  return svg;
}

function named(entry) {
  return entry.name === undefined ? [String(entry.id)] : [entry.name, " ", make("span", { className: "id" }, String(entry.id))];
}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer, content;
  try {
    answer = await fetch(path, options);
    content = await answer.json();
  } catch {
    throw new Error("The server does not answer.");
  }
  if (!answer.ok) throw new Error(content.error.message);
  return content;
}

function problem(error) {
  $("problem").textContent = error ? error.message : "";
  $("problem").hidden = !error;
}

// Runs an action of the user: an answer that is late never replaces a newer one.
const latest = {};
async function run(name, action) {
  const turn = latest[name] = (latest[name] ?? 0) + 1;
  try {
    const show = await action();
    if (turn === latest[name]) { problem(null); show?.(); }
  } catch (error) {
    if (turn === latest[name]) problem(error);
  }
}

// -- finding an id ---------------------------------------------------------------------

function finder(place, choose) {
  const side = place.dataset.side, key = `${side}-${place.dataset.pick ?? "find"}`;
  const input = make("input", {
    id: key, type: "search", autocomplete: "off", role: "combobox", "aria-expanded": "false",
    "aria-controls": `${key}-options`, "aria-autocomplete": "list", maxLength: 200,
  });
  const options = make("ul", { id: `${key}-options`, role: "listbox", hidden: true, "aria-label": "Found" });
  place.append(make("label", { for: key }, `Search a ${about[side]} by id or name`), input, options);
  if (place.dataset.pick !== "map" && about.examples[side].length) {
    place.after(make("div", { className: "starts" }, "Or begin with", make("div", { className: "chips" }, ...about.examples[side].map((entry) => {
      const chip = make("button", { type: "button" }, label(entry));
      chip.addEventListener("click", () => choose(entry));
      return chip;
    }))));
  }
  let found = [], at = -1;

  const close = () => { options.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const mark = (next) => {
    at = next;
    [...options.children].forEach((option, position) => option.setAttribute("aria-selected", String(position === at)));
    const option = options.children[at];
    if (option) { input.setAttribute("aria-activedescendant", option.id); option.scrollIntoView({ block: "nearest" }); }
  };
  const take = (entry) => { input.value = place.dataset.pick ? "" : label(entry); close(); choose(entry); };
  const look = () => run(key, async () => {
    const words = input.value;
    const answer = await ask(`/v1/search?side=${side}&q=${encodeURIComponent(words)}`);
    return () => {
      found = answer.found;
      options.replaceChildren(...found.map((entry, position) => {
        const option = make("li", { role: "option", id: `${key}-${position}`, "aria-selected": "false" }, ...named(entry));
        option.addEventListener("mousedown", (event) => { event.preventDefault(); take(entry); });
        return option;
      }));
      if (!found.length) options.append(make("li", { role: "option", "aria-disabled": "true" }, "Nothing found"));
      options.hidden = false;
      input.setAttribute("aria-expanded", "true");
      at = -1;
    };
  });
  input.addEventListener("input", look);
  input.addEventListener("focus", () => { if (!found.length) look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (options.hidden) look();
      else if (found.length) mark((at + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length);
    } else if (event.key === "Enter") {
      if (!options.hidden && found.length) take(found[Math.max(at, 0)]);
    } else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
}

// -- tables ----------------------------------------------------------------------------

function fill(table, items, cells) {
  table.tBodies[0].replaceChildren(...items.map((item, position) =>
    make("tr", {}, make("td", {}, String(position + 1)), ...cells(item))));
  table.hidden = !items.length;
  $("said").textContent = `${items.length} listed`;
}

const linked = (entry, choose) => {
  if (choose === showColumn && !about.compares) return make("span", {}, ...named(entry));
  const link = make("button", { className: "link", type: "button" }, ...named(entry));
  link.addEventListener("click", () => choose(entry));
  return link;
};
const scored = (items) => {
  const score = aligned(items.map((item) => item.score));
  return (item) => [make("td", {}, linked(item, showColumn)), make("td", { className: "n" }, score(item.score))];
};

// Where nine of ten values, or fits that are as good, are expected, on a scale that all lines of a list share.
const SPREAD = 1.645;
function ranged(items) {
  const spread = aligned(items.map((item) => item.std));
  const low = Math.min(...items.map((item) => item.score - SPREAD * item.std));
  const high = Math.max(...items.map((item) => item.score + SPREAD * item.std));
  const at = (value) => 3 + 94 * (value - low) / (high - low || 1);
  return (item) => make("td", { className: "n sure" }, `± ${spread(SPREAD * item.std)}`, drawn("0 0 100 14",
    { tag: "line", x1: 0, x2: 100, y1: 7, y2: 7, class: "whole" },
    { tag: "line", x1: at(item.score - SPREAD * item.std), x2: at(item.score + SPREAD * item.std), y1: 7, y2: 7, class: "range", "stroke-width": 7 },
    { tag: "rect", x: at(item.score) - 1.5, y: 2, width: 3, height: 10, class: "point" }));
}

// -- a row -----------------------------------------------------------------------------

const showRow = (entry) => run("row", async () => {
  select("row");
  const body = { rows: [entry.id], k: 20 };
  const [lists, near, seen] = await Promise.all([
    ask("/v1/recommend", about.spread ? { ...body, std: true } : body),
    about.compares ? ask("/v1/similar", { rows: [entry.id], k: 8 }) : null,
    ask(`/v1/seen?row=${encodeURIComponent(entry.id)}`),
  ]);
  return () => {
    $("row-title").textContent = label(entry);
    $("row-hint").textContent = seen.known
      ? "What is known already is left out."
      : "The model does not say which cells it was fitted to, so what is known may be listed.";
    $("why").hidden = true;
    const items = lists.lists[0].items, line = scored(items), sure = about.spread && items.length ? ranged(items) : () => make("td", { className: "n sure" });
    const sureHead = document.querySelector("#row-list th.sure");
    sureHead.hidden = !about.spread;
    sureHead.textContent = about.spread === "values" ? "90 % of values" : "90 % of equal fits";
    fill($("row-list"), items, (item) => {
      const why = make("button", { type: "button", "aria-label": `Why ${label(item)}?`, "aria-pressed": "false" }, "Why?");
      why.addEventListener("click", () => explain(entry, item, why));
      const spread = sure(item);
      spread.hidden = !about.spread;
      return [...line(item), spread, make("td", { className: "n" }, why)];
    });
    const counted = (value) => make("span", { className: "n" }, value);
    several("row-near", near ? near.lists[0].items : [], (item) => [linked(item, showRow), counted(item.score.toFixed(2))]);
    several("row-seen", seen.cells, (cell) => [linked(cell, showColumn), cell.value === undefined ? "" : counted(number(cell.value))]);
    $("row-title").focus();
  };
});

function several(id, items, content) {
  $(id).hidden = !items.length;
  $(id).querySelector("ol").replaceChildren(...items.map((item) => make("li", {}, ...content(item))));
}

const PARTS = {
  mean: () => "mean of all", row: () => `${about.row} alone`, col: () => `${about.col} alone`, factors: () => "factors together",
  constant: () => `average ${about.row} and ${about.col}`, bilinear: () => "features together", low_rank: () => "not explained by features",
};

const explain = (row, col, pressed) => run("why", async () => {
  const found = await ask("/v1/explain", { row: row.id, col: col.id });
  return () => {
    const box = $("why").querySelector("div");
    const value = aligned([found.prediction]);
    box.replaceChildren(make("p", {}, make("strong", {}, label(col))), make("p", { className: "big" }, value(found.prediction)));
    if (found.std !== undefined) {
      const ends = `${value(found.prediction - SPREAD * found.std)} and ${value(found.prediction + SPREAD * found.std)}`;
      box.append(make("p", { className: "hint" }, about.spread === "values"
        ? `About 90 % of values lie between ${ends}.`
        : `About 90 % of fits that are as good say between ${ends}. Single values lie further out.`));
    }
    bars(box, "Parts", Object.entries(found.parts).filter(([, value]) => value).map(([name, value]) => [PARTS[name]?.() ?? name, value]));
    if (found.cells?.length) bars(box, "Known cells that move it most", found.cells.slice(0, 8).map((cell) => [label(cell), cell.adds]));
    if (found.features?.length) {
      bars(box, "Features that move it most", found.features.slice(0, 8).map((one) => [`${one.name} (${about[one.of]})`, one.adds]));
      box.append(make("p", { className: "hint" }, "Against the same with the average of the feature."));
    }
    for (const other of document.querySelectorAll("#row-list [aria-pressed]")) other.setAttribute("aria-pressed", String(other === pressed));
    $("why").hidden = false;
    $("why").scrollIntoView({ block: "nearest" });
  };
});

function bars(box, title, parts) {
  const values = parts.map(([, value]) => value), largest = Math.max(...values.map(Math.abs), 1e-12), written = aligned(values);
  box.append(make("h3", {}, title), ...parts.map(([name, value]) => {
    const width = 48 * Math.abs(value) / largest;
    const svg = drawn("-50 0 100 10",
      { tag: "line", x1: 0, x2: 0, y1: 0, y2: 10, class: "zero" },
      { tag: "rect", x: value < 0 ? -width : 0, y: 1, width, height: 8, rx: 1, class: value < 0 ? "down" : "up" });
    return make("div", { className: "bar" }, make("span", {}, name), svg, make("span", { className: "n" }, written(value)));
  }));
}

// -- a column --------------------------------------------------------------------------

const showColumn = (entry) => run("col", async () => {
  select("col");
  const near = await ask("/v1/similar", { cols: [entry.id], k: 20 });
  return () => {
    $("col-title").textContent = label(entry);
    $("col-hint").textContent = "";
    fill($("col-list"), near.lists[0].items, scored(near.lists[0].items));
    $("to-map").hidden = false;
    $("to-map").onclick = () => onMap(entry);
    $("col-title").focus();
  };
});

// -- try it yourself -------------------------------------------------------------------

const picked = new Map();

function pick(entry) {
  if (picked.has(entry.id)) return;
  const value = make("input", { type: "number", step: "any", value: String(about.typical), "aria-label": `Value of ${label(entry)}` });
  const drop = make("button", { type: "button", "aria-label": `Remove ${label(entry)}` }, "×");
  const line = make("li", {}, make("span", {}, ...named(entry)), value, drop);
  picked.set(entry.id, value);
  value.addEventListener("input", tryIt);
  drop.addEventListener("click", () => { picked.delete(entry.id); line.remove(); tryIt(); $("col-try").focus(); });
  $("picked").append(line);
  tryIt();
}

const tryIt = () => run("try", async () => {
  const cells = [...picked].filter(([, input]) => input.value !== "").map(([col, input]) => ({ col, value: input.valueAsNumber }));
  const lists = cells.length ? await ask("/v1/recommend", { cells, k: 15 }) : { lists: [{ items: [] }] };
  return () => fill($("try-list"), lists.lists[0].items, scored(lists.lists[0].items));
});

// -- cold start ------------------------------------------------------------------------

function coldForm() {
  const form = $("cold-form"), groups = new Map();
  if (!about.row_features.length) {
    $("cold-hint").textContent = `This model was fitted without features of a ${about.row}: try picking a few cells instead.`;
    return;
  }
  $("cold-hint").textContent = `Describe a ${about.row} that the model has never seen; the list follows.`;
  $("cold-card").hidden = false;
  about.row_features.forEach((name, place) => {
    const [key, category] = name.split(/=(.*)/s), usual = about.typical_row?.[place] ?? 0;
    groups.set(key, [...(groups.get(key) ?? []), { category, usual }]);
  });
  for (const [name, parts] of groups) { // the form begins with what is usual
    const most = parts.reduce((one, other) => other.usual > one.usual ? other : one);
    const input = most.category === undefined
      ? make("input", { type: "number", step: "any", value: String(Number(most.usual.toPrecision(3))) })
      : make("select", {}, ...parts.map(({ category }) => make("option", { value: category, selected: category === most.category }, category)));
    input.dataset.feature = name;
    form.append(make("label", {}, name, input));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", cold);
  cold();
}

const cold = () => run("cold", async () => {
  const row_features = {};
  for (const input of $("cold-form").querySelectorAll("[data-feature]")) {
    if (input.value === "") return () => {};
    row_features[input.dataset.feature] = input.type === "number" ? input.valueAsNumber : input.value;
  }
  const lists = await ask("/v1/recommend", { row_features, k: 15 });
  return () => fill($("cold-list"), lists.lists[0].items, scored(lists.lists[0].items));
});

// -- tabs and map ----------------------------------------------------------------------

let map;
const showMap = () => run("map", async () => {
  if (map) return null;
  const found = await ask("/v1/map");
  return () => {
    map = new PointMap($("map"), (text) => { $("map-said").textContent = text; }, showColumn);
    map.show(found.points);
    if (found.points.length < found.n_cols) $("map-said").textContent = `${found.points.length.toLocaleString()} of ${found.n_cols.toLocaleString()} are shown.`;
    $("map-in").addEventListener("click", () => map.zoom(1.6));
    $("map-out").addEventListener("click", () => map.zoom(1 / 1.6));
    $("map-all").addEventListener("click", () => { map.all(); map.draw(); });
  };
});

const onMap = async (entry) => {
  select("map");
  await showMap();
  if (!map.goTo(entry.id)) $("map-said").textContent = `${label(entry)} is not among those that are shown.`;
};

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(name, focus = false) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen) tab.scrollIntoView({ block: "nearest", inline: "center" });
    if (chosen && focus) tab.focus();
  }
  if (name === "map") showMap();
}

tabs.forEach((tab, place) => {
  const name = tab.id.slice("tab-".length);
  tab.addEventListener("click", () => select(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((one) => !one.hidden);
    select(shown[(shown.indexOf(tab) + step + shown.length) % shown.length].id.slice("tab-".length), true);
    event.preventDefault();
  });
});

run("start", async () => {
  about = await ask("/v1/model");
  return () => {
    $("about").textContent = about.model;
    const facts = [`${about.n_rows.toLocaleString()} × ${about.n_cols.toLocaleString()} (${about.row} × ${about.col})`];
    if (about.n_cells !== null) facts.push(`${about.n_cells.toLocaleString()} known cells`);
    if (about.row_features.length) facts.push(`${about.row_features.length.toLocaleString()} features of a ${about.row}`);
    $("facts").replaceChildren(...facts.map((fact) => make("li", {}, fact)));
    for (const name of ["col", "map"]) $(`tab-${name}`).hidden = !about.compares;
    for (const word of document.querySelectorAll("[data-word]")) word.textContent = about[word.dataset.word];
    for (const place of document.querySelectorAll(".finder")) {
      const found = { row: showRow, col: showColumn, try: pick, map: onMap };
      finder(place, found[place.dataset.pick ?? place.dataset.side]);
    }
    if (!about.new_rows_by_cells) {
      $("try-hint").textContent = `This model needs features of a new ${about.row}: use the next tab.`;
      for (const part of $("view-try").querySelectorAll(".finder, .starts")) part.hidden = true;
    }
    coldForm();
    document.body.dataset.ready = "yes";
  };
});
