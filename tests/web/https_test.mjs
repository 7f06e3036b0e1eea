// https_test.mjs - the page over TLS: it signs in, stays signed in, and is live.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

import { check, expect, finish, freePort, launch, newFolder, serve, show } from "./lib.mjs";

const folder = newFolder();
const key = join(folder, "key.pem");
const certificate = join(folder, "certificate.pem");
const made = spawnSync("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1".split(" "),
    "-keyout",
    key,
    "-out",
    certificate,
]);
expect(made.status === 0, `openssl: ${made.stderr}`);
const port = freePort();
const { server, link } = await serve(folder, port, "--no-agent", "--tls-cert", certificate, "--tls-key", key);
const browser = await launch();

try {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = show(await context.newPage());

    await check("the link signs in over https, and the page is live", async () => {
        expect(link.startsWith("https://"), `the link is ${link}`);
        await page.goto(link);
        await page.getByRole("heading", { name: "Jobs" }).waitFor({ timeout: 10000 });
        await page.getByText("live", { exact: true }).waitFor({ timeout: 15000 });
    });

    await check("the cookie is for this server and encrypted connections alone", async () => {
        const cookie = (await context.cookies()).find((one) => one.name.startsWith("__Host-trainyard_"));
        expect(cookie?.secure && cookie.httpOnly, `the cookie is ${JSON.stringify(cookie)}`);
    });

    await check("what changes something works too", async () => {
        await page.goto(`https://127.0.0.1:${port}/people/users`);
        await page.getByLabel("Name of the user").fill("ana");
        await page.getByRole("button", { name: "Add a user" }).click();
        await page.locator("td", { hasText: "ana" }).waitFor({ timeout: 10000 });
    });
} finally {
    await finish(browser, server, folder);
}
