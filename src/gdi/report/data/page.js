"use strict";
// Draws the report from its data. All text is inserted as text, never as markup.

const plotConfig = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = new Map(); // the keys of each figure's menus, kept when the data change
let arrays = [], drawn = [], shape = "";

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Lists that several views share are stored once.
function resolve(value) {
  if (Array.isArray(value)) return value.map(resolve);
  if (value === null || typeof value !== "object") return value;
  if ("array" in value && Object.keys(value).length === 1) return arrays[value.array];
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item)]));
}

function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// The data name colors of series. The page's own colors depend on light or dark.
function themed(layout) {
  const axis = { gridcolor: color("--line"), linecolor: color("--soft"), zeroline: false, ticks: "outside", automargin: true };
  const out = {
    paper_bgcolor: color("--page"), plot_bgcolor: color("--page"),
    font: { family: "system-ui, sans-serif", size: 13, color: color("--ink") },
    margin: { l: 70, r: 20, t: 30, b: 50 }, hoverlabel: { align: "left" }, modebar: { color: color("--soft"), bgcolor: "rgba(0,0,0,0)" },
    legend: { orientation: "h", y: -0.2 }, ...layout,
  };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(out).filter(name => /^[xy]axis\d*$/.test(name))]))
    out[name] = { ...axis, ...out[name] };
  return out;
}

function inked(value) {
  if (value === "ink") return color("--ink");
  if (value === "soft") return color("--soft");
  if (Array.isArray(value) || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, inked(item)]));
}

class Figure {
  constructor(block) {
    this.block = block;
    this.plot = make("div", { class: "plot", role: "group", "aria-label": block.caption });
    this.plot.style.minHeight = `${block.height}px`;
    this.frame = make("img", { class: "frame", alt: "", hidden: "" });
    this.panel = make("div", { class: "panel" }, this.plot, this.frame);
    this.tableBody = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The numbers in the figure" });
    this.details = make("details", {}, make("summary", {}, "The numbers in this figure"), this.tableBody);
    this.details.addEventListener("toggle", () => this.fillTable());
    // A menu with one option is no choice.
    const menus = block.menus.map((menu, place) => (menu.options.length > 1 ? this.menu(menu, place) : "")).filter(Boolean);
    this.element = make("figure", { "data-figure": block.name }, ...(menus.length ? [make("div", { class: "menus" }, ...menus)] : []), this.panel,
      make("figcaption", {}, block.caption), this.details);
  }

  keys() {
    const kept = chosen.get(this.block.name) ?? [];
    return this.block.menus.map((menu, place) => {
      const known = menu.options.map(([key]) => key);
      return known.includes(kept[place]) ? kept[place] : known[0];
    });
  }

  choose(place, key) {
    const keys = this.keys();
    keys[place] = key;
    chosen.set(this.block.name, keys);
    this.draw();
  }

  menu(menu, place) {
    return menu.tabs ? this.tabs(menu, place) : this.list(menu, place);
  }

  list(menu, place) {
    const select = make("select", {}, ...menu.options.map(([key, label]) => make("option", { value: key }, label)));
    select.value = this.keys()[place];
    select.addEventListener("change", () => this.choose(place, select.value));
    return make("label", {}, menu.label, select);
  }

  tabs(menu, place) {
    const panelId = `panel-${this.block.name}`;
    this.panel.id = panelId;
    this.panel.setAttribute("role", "tabpanel");
    this.panel.setAttribute("aria-label", menu.label);
    const buttons = menu.options.map(([key, label]) => make("button", { role: "tab", type: "button", "aria-controls": panelId, "data-key": key }, label));
    const mark = () => buttons.forEach(button => {
      const on = button.dataset.key === this.keys()[place];
      button.setAttribute("aria-selected", on);
      button.tabIndex = on ? 0 : -1;
    });
    buttons.forEach((button, i) => {
      button.addEventListener("click", () => { this.choose(place, button.dataset.key); mark(); });
      button.addEventListener("keydown", event => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = buttons[(i + step + buttons.length) % buttons.length];
        next.click();
        next.focus();
      });
    });
    mark();
    return make("div", { class: "tabs", role: "tablist", "aria-label": menu.label }, ...buttons);
  }

  view() {
    const view = this.block.views[this.keys().join("/")];
    return view && { data: view.data.map(trace => inked(resolve(trace))), layout: inked(resolve(view.layout)) };
  }

  draw() {
    const view = this.view();
    this.plot.hidden = !view;
    if (!view) return;
    const height = view.layout.height ?? this.block.height;
    Plotly.react(this.plot, view.data, themed({ height, ...view.layout }), plotConfig);
    if (this.block.frames.length && !this.follows) this.followPointer();
    this.fillTable();
  }

  // The picture of the state under the pointer, beside it.
  followPointer() {
    this.follows = true;
    this.plot.on("plotly_hover", ({ points: [point], event }) => {
      const source = this.block.frames[point.customdata?.[0]];
      if (!source) return;
      const edge = this.panel.getBoundingClientRect();
      const x = event.clientX - edge.left, y = event.clientY - edge.top;
      this.frame.src = source;
      this.frame.style.left = `${x > edge.width / 2 ? x - 120 : x + 24}px`;
      this.frame.style.top = `${Math.max(0, y - 120)}px`;
      this.frame.hidden = false;
    });
    this.plot.on("plotly_unhover", () => { this.frame.hidden = true; });
  }

  // The table holds what the view draws, one column per series with the same x.
  fillTable() {
    if (!this.details.open) return this.tableBody.replaceChildren();
    const traces = (this.view()?.data ?? []).filter(trace => trace.meta !== "band");
    this.tableBody.replaceChildren(...traces.map(trace => traceTable(trace)));
  }
}

const MOST_ROWS = 1000;

function traceTable(trace) {
  const name = plain(trace.name ?? "");
  const head = trace.z ? ["x", ...(trace.meta?.rows ?? trace.y).slice(0, trace.z.length).map(shown)] : [trace.meta?.x ?? "x", trace.meta?.y ?? "y"];
  const columns = trace.z ? trace.z : [trace.y];
  const xs = trace.x ?? [];
  const count = Math.min(columns[0]?.length ?? 0, MOST_ROWS);
  const rows = [];
  for (let i = 0; i < count; i++) {
    const x = trace.z && xs.length > columns[0].length ? xs[i + 1] : xs[i];
    rows.push([plain(x), ...columns.map(column => column[i])]);
  }
  return plainTable(name, head, rows);
}

function plain(value) {
  if (typeof value !== "string") return value;
  return value.replace(/<br>/g, " ").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
}

function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? value.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : String(value);
}

function plainTable(caption, head, rows) {
  const kind = value => (typeof value === "number" || value === null ? { class: "number" } : {});
  return make("table", {}, ...(caption ? [make("caption", {}, caption)] : []),
    make("thead", {}, make("tr", {}, ...head.map(text => make("th", { scope: "col" }, shown(text))))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(value => make("td", kind(value), shown(value)))))));
}

function spark({ values, low, high }) {
  const known = values.filter(value => value !== null);
  const bounds = [...known, ...[low, high].filter(value => value !== null)];
  let bottom = Math.min(...bounds), top = Math.max(...bounds);
  if (top === bottom) { bottom -= 1; top += 1; }
  const y = value => 20 - 20 * (value - bottom) / (top - bottom);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ class: "spark", viewBox: "-1 -1 102 22", preserveAspectRatio: "none", "aria-hidden": "true" }))
    svg.setAttribute(name, value);
  const band = document.createElementNS(svg.namespaceURI, "rect");
  const upper = y(high ?? top), lower = y(low ?? bottom);
  for (const [name, value] of Object.entries({ x: 0, width: 100, y: upper, height: Math.max(lower - upper, 0.8) })) band.setAttribute(name, value);
  const line = document.createElementNS(svg.namespaceURI, "polyline");
  line.setAttribute("points", values.map((v, i) => [100 * i / Math.max(values.length - 1, 1), v]).filter(([, v]) => v !== null)
    .map(([x, v]) => `${x.toFixed(1)},${y(v).toFixed(2)}`).join(" "));
  svg.append(band, line);
  return svg;
}

function table(block) {
  const heads = block.columns.map((column, place) => {
    const button = make("button", { type: "button" }, column.label);
    const head = make("th", { scope: "col", ...(column.numeric ? { class: "number" } : {}) }, button);
    button.addEventListener("click", () => sort(head, place));
    return head;
  });
  if (block.sparks.length) heads.push(make("th", { scope: "col" }, "over the run"));
  const rows = block.rows.map((row, number) => {
    const cells = row.map((cell, place) => {
      const [text, value] = Array.isArray(cell) ? cell : [cell, null];
      return make("td", { ...(block.columns[place].numeric ? { class: "number" } : {}), ...(value === null ? {} : { "data-value": value }) }, text);
    });
    if (block.sparks[number]) cells.push(make("td", {}, spark(block.sparks[number])));
    return make("tr", block.marked.includes(number) ? { class: "marked" } : {}, ...cells);
  });
  const body = make("table", {}, make("caption", {}, block.caption), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": block.caption }, body);
  return make("div", { "data-table": block.name }, scroll, ...block.notes.map(note => make("p", { class: "note" }, note)));
}

function sort(head, place) {
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = head.closest("table").tBodies[0];
  const key = row => row.cells[place].dataset.value ?? row.cells[place].textContent;
  const rows = [...body.rows].sort((a, b) => {
    const x = parseFloat(key(a)), y = parseFloat(key(b));
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || key(a).localeCompare(key(b));
    return x - y;
  });
  body.append(...(down ? rows.reverse() : rows));
}

const BUILD = {
  text: block => block.style === "code" ? make("pre", { class: "code", tabindex: "0" }, block.text) : make("p", { class: block.style }, block.text),
  facts: block => make("dl", {}, ...block.items.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)])),
  table,
  image: block => make("figure", {}, make("img", { src: block.source, alt: block.caption }), make("figcaption", {}, block.caption)),
  video: block => make("figure", {}, make("video", { src: block.source, controls: "", "aria-label": block.caption }), make("figcaption", {}, block.caption)),
};

function build(block) {
  if (block.kind !== "figure") return BUILD[block.kind](block);
  const figure = new Figure(block);
  drawn.push(figure);
  return figure.element;
}

// The parts of a report that decide which elements the page has. While they stay, figures are redrawn in place.
function shapeOf(report) {
  return JSON.stringify(report.sections.map(s => [s.name, s.blocks.map(b => [b.kind, b.name, b.menus])]));
}

function show(report) {
  arrays = report.arrays;
  document.title = report.title;
  document.querySelector("h1").textContent = report.title;
  if (shapeOf(report) === shape) return update(report);
  shape = shapeOf(report);
  drawn = [];
  const main = document.querySelector("main");
  main.replaceChildren(...report.sections.map(section => make("section", { id: section.name, "aria-labelledby": `h-${section.name}` },
    make("h2", { id: `h-${section.name}` }, section.title), ...section.blocks.map(build))));
  document.querySelector("nav ul").replaceChildren(
    ...report.sections.map(section => make("li", {}, make("a", { href: `#${section.name}` }, section.title))));
  drawn.forEach(figure => figure.draw());
}

function update(report) {
  const blocks = report.sections.flatMap(section => section.blocks);
  const elements = [...document.querySelectorAll("main > section")].flatMap(section => [...section.children].slice(1));
  let figure = 0;
  blocks.forEach((block, i) => {
    if (block.kind !== "figure") return elements[i].replaceWith(build(block));
    drawn[figure].block = block;
    drawn[figure++].draw();
  });
}

function say(text) {
  const status = document.getElementById("status");
  if (status.textContent !== text) status.textContent = text;
}

// A served page asks for new data, and says when the server or the run is gone.
async function follow(source, everySeconds) {
  let newest = "";
  for (;;) {
    try {
      const answer = await fetch(source, { cache: "no-store" });
      const text = await answer.text();
      if (!answer.ok) say(text || "The run is gone.");
      else {
        if (text !== newest) show(JSON.parse(text));
        newest = text;
        say("");
      }
    } catch {
      say("The server does not answer. The page shows the last data that arrived.");
    }
    document.body.dataset.ready = "yes";
    await new Promise(wake => setTimeout(wake, 1000 * everySeconds));
  }
}

dark.addEventListener("change", () => drawn.forEach(figure => figure.draw()));
const embedded = document.getElementById("report");
if (embedded) {
  show(JSON.parse(embedded.textContent));
  document.body.dataset.ready = "yes";
} else {
  follow(`/data${location.search}`, 2);
}
