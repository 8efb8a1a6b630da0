// Unpacks the Chromium of @sparticuz/chromium beside this file's node_modules, once.
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const home = process.argv[2];
process.env.TMPDIR = join(home, "chromium");
mkdirSync(process.env.TMPDIR, { recursive: true });
const { inflate } = await import(join(home, "node_modules/@sparticuz/chromium/build/index.js"));
const packed = join(home, "node_modules/@sparticuz/chromium/bin");
for (const name of ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"]) await inflate(join(packed, name));
