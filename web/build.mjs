// build.mjs OUT - bundles the page into the folder OUT: index.html, main.js, chunks, style.css.
import { build } from "esbuild";
import { cp, mkdir, rm } from "node:fs/promises";

const out = process.argv[2] ?? "../build/web";
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
    entryPoints: { main: "src/main.tsx", style: "style.css" },
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    outdir: out,
    chunkNames: "chunk-[hash]",
});
await cp("index.html", `${out}/index.html`);
await cp("favicon.svg", `${out}/favicon.svg`);
