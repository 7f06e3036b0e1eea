// lib.mjs - what browser tests share: a server of their own, a browser, checks with pictures.
//
// Prints "ok NAME" or "FAIL NAME: why" for each check; screenshots go to $SHOTS (build/shots).

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

export const top = fileURLToPath(new URL("../..", import.meta.url)); // import.meta.dirname is not in Debian's Node.js
export const build = resolve(top, process.env.TRAINYARD_BUILD ?? "build");
export const shots = resolve(top, process.env.SHOTS ?? "build/shots");
const require = createRequire(join(top, "web/package.json"));
const { chromium } = require("playwright-core");

let shown = null; // the page that a failure is a picture of
let failed = 0;

export const show = (page) => (shown = page);

export async function check(name, body) {
    try {
        await body();
        console.log(`ok ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${String(error.message ?? error).split("\n").slice(0, 6).join(" / ")}`);
        const picture = join(shots, `failed-${failed}.png`);
        await shown?.screenshot({ path: picture }).then(() => console.log(`     the page: ${shown.url()}, ${picture}`), () => {});
    }
}

export function expect(condition, text) {
    if (!condition) throw new Error(text);
}

// Waits until `value()` pleases `test`: a page draws after it has shown its words.  `text` gets the last value.
export async function expectSoon(value, test, text) {
    let last = await value();
    for (const end = Date.now() + 5000; !test(last) && Date.now() < end; last = await value())
        await new Promise((done) => setTimeout(done, 50));
    expect(test(last), text(last));
}

export async function expectNoOverflow(page) {
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expectSoon(overflow, (pixels) => pixels <= 0, (pixels) => `the page is ${pixels} px wider than the screen`);
}

export const freePort = () => spawnSync(join(top, "tests/free_port.py"), { encoding: "utf8" }).stdout.trim();

export function trainyard(...args) {
    const run = spawnSync(join(build, "trainyard"), args, { encoding: "utf8", timeout: 60000 });
    if (run.status !== 0) throw new Error(`trainyard ${args.join(" ")}: ${run.stderr || run.stdout}`);
    return run.stdout;
}

// Starts the server; resolves with the process and its one-time link once it is ready.
export async function serve(folder, port, ...options) {
    const server = spawn(join(build, "trainyard"), ["serve", "--dir", folder, "--port", String(port), ...options], {
        stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    server.stderr.on("data", (data) => (output += data));
    const link = await new Promise((done, stop) => {
        const timer = setTimeout(() => stop(new Error(`server not ready in 20 s: ${output}`)), 20000);
        server.stdout.on("data", (data) => {
            output += data;
            const found = /https?:\/\/127\.0\.0\.1:\d+\/login[^\s]*/.exec(output);
            if (found) {
                clearTimeout(timer);
                done(found[0]);
            }
        });
        server.on("exit", (code) => stop(new Error(`server ended with ${code}: ${output}`)));
    });
    return { server, link };
}

mkdirSync(shots, { recursive: true });

export function launch() {
    return chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
}

export const newFolder = () => mkdtempSync(join(tmpdir(), "trainyard-web-"));

// Ends all and says how it went.
export async function finish(browser, server, folder) {
    await browser.close();
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
    await new Promise((done) => {
        server.once("close", done);
        setTimeout(done, 8000);
    });
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
    process.exitCode = failed ? 1 : 0;
}
