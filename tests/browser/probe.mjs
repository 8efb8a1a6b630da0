// Opens pages in Chromium and prints as JSON what happened: errors, requests, what each menu and tab drew, axe's findings.
// Each line of its input is a list of pages, and each line of its output says what happened in them.
import { appendFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { home, browser, env } = JSON.parse(process.argv[2]);
const { chromium } = await import(join(home, "node_modules/playwright-core/index.mjs"));
const axe = join(home, "node_modules/axe-core/axe.min.js");
const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
const shell = await chromium.launch({ executablePath: browser, args, env: { ...process.env, ...env } });
for await (const line of createInterface({ input: process.stdin })) {
  const results = [];
  for (const asked of JSON.parse(line)) results.push(await open(asked));
  console.log(JSON.stringify(results));
}
await shell.close();

async function open({ url, scheme, width, screenshot, walk, events }) {
  // axe is put into the page by the test, which the page's own policy would refuse.
  const context = await shell.newContext({ colorScheme: scheme, viewport: { width: width ?? 1100, height: 900 }, bypassCSP: walk !== false });
  const page = await context.newPage();
  const errors = [], requests = [];
  page.on("console", message => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
  page.on("pageerror", error => errors.push(String(error)));
  page.on("request", request => { if (request.url() !== url && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) requests.push(request.url()); });
  const begin = Date.now();
  await page.goto(url, { waitUntil: "load" });
  const ready = await page.waitForSelector('body[data-ready="yes"]', { timeout: 30000 }).then(() => Date.now() - begin, () => null);
  const out = { errors, requests, ready, title: await page.title(), heading: await page.textContent("h1").catch(() => null) };
  out.text = await page.innerText("body");
  out.labels = await page.$$eval("svg text", texts => texts.map(text => text.textContent));
  out.markup = await page.$$eval("main script, main b, main img[src='x'], svg script", found => found.length);
  out.background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  out.plotBackground = await page.evaluate(() => document.querySelector(".main-svg")?.style.background ?? null);
  if (walk !== false) {
    out.views = await page.evaluate(walkMenus);
    await page.addScriptTag({ path: axe });
    out.axe = await page.evaluate(async () => (await window.axe.run()).violations
      .filter(found => ["serious", "critical"].includes(found.impact))
      .map(found => ({ id: found.id, nodes: found.nodes.map(node => node.html.slice(0, 200)).slice(0, 3) })));
  }
  out.seen = [];
  for (const event of events ?? []) out.seen.push(await happen(event, page, context));
  if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });
  await context.close();
  return out;
}

// Let something happen to what the page shows. Return how many milliseconds the page took to say so, or null.
async function happen({ append, rename, offline, says }, page, context) {
  if (append) appendFileSync(...append);
  if (rename) renameSync(...rename);
  if (offline !== undefined) await context.setOffline(offline);
  const begin = Date.now();
  const said = text => document.body.innerText.includes(text);
  return page.waitForFunction(said, says, { timeout: 30000 }).then(() => Date.now() - begin, () => null);
}

// Runs in the page: choose every option of every menu and every tab, open every table, sort every column.
async function walkMenus() {
  const drawn = [];
  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const plot = figure.querySelector(".plot");
    const look = what => {
      const empty = plot.hidden;
      drawn.push({ figure: figure.dataset.figure, what, empty, traces: plot.data?.length ?? 0, marks: plot.querySelectorAll(".trace, .hm, .imagelayer image, .heatmaplayer image").length });
    };
    look("first");
    for (const menu of figure.querySelectorAll("select")) {
      const first = menu.value;
      for (const option of menu.options) {
        menu.value = option.value;
        menu.dispatchEvent(new Event("change"));
        await new Promise(done => setTimeout(done, 0));
        look(option.textContent);
      }
      menu.value = first;
      menu.dispatchEvent(new Event("change"));
    }
    const tabs = [...figure.querySelectorAll("[role=tab]")];
    for (const tab of tabs) {
      tab.click();
      await new Promise(done => setTimeout(done, 0));
      look(`${tab.textContent} ${tab.getAttribute("aria-selected")}`);
    }
    if (tabs.length) {
      tabs.at(-1).dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      look(`arrow ${tabs[0].getAttribute("aria-selected")}`);
    }
    const details = figure.querySelector("details");
    details.open = true;
    await new Promise(done => setTimeout(done, 20));
    drawn.push({ figure: figure.dataset.figure, what: "numbers", rows: details.querySelectorAll("tbody tr").length, empty: plot.hidden });
    details.open = false;
  }
  for (const head of document.querySelectorAll("[data-table] th button")) head.click();
  drawn.push({ figure: "", what: "sorted", rows: document.querySelectorAll("[data-table] th[aria-sort]").length });
  return drawn;
}
