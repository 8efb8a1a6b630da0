// Unpacks the Chromium of @sparticuz/chromium beside this file's node_modules, once.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const home = process.argv[2];
process.env.TMPDIR = join(home, "chromium");
mkdirSync(process.env.TMPDIR, { recursive: true });
const { inflate } = await import(join(home, "node_modules/@sparticuz/chromium/build/index.js"));
const packed = join(home, "node_modules/@sparticuz/chromium/bin");
for (const name of ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"]) await inflate(join(packed, name));
// The packed list of font folders names other places. Without any font Chromium stops.
const fonts = join(process.env.TMPDIR, "fonts");
writeFileSync(join(fonts, "fonts.conf"), `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><dir>/usr/share/fonts</dir><cachedir>${fonts}/cache</cachedir></fontconfig>
`);
