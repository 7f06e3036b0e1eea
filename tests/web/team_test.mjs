// team_test.mjs - the pages of a team: datasets are sent from the browser, people get in and get rights.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { check, expect, expectNoOverflow, finish, freePort, launch, newFolder, serve, shots, show, trainyard } from "./lib.mjs";

const folder = newFolder();
const files = newFolder();
const port = freePort();
const site = `http://127.0.0.1:${port}`;
const { server, link } = await serve(folder, port);
const browser = await launch();

// A table, a folder of it, and one that is none.
function table(rows) {
    let text = "width,length,label\n";
    for (let i = 0; i < rows; i++) text += `${(i % 7) + (i % 2)},${(i % 5) - (i % 2)},${"ab"[i % 2]}\n`;
    return text;
}
mkdirSync(join(files, "flowers"));
writeFileSync(join(files, "flowers/train.csv"), table(400));
writeFileSync(join(files, "flowers/test.csv"), table(100));
writeFileSync(join(files, "flowers/.hidden"), "stays here");
writeFileSync(join(files, "train.npz"), "not an archive");

try {
    const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
    const page = show(await context.newPage());
    const problems = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => {
        if (message.type() === "error" && !/40[019]|Failed to load/.test(message.text())) problems.push(message.text());
    });
    await page.goto(link);
    await page.getByRole("heading", { name: "Jobs" }).waitFor({ timeout: 5000 });

    await check("without datasets the page says how to get one", async () => {
        await page.getByRole("link", { name: "Datasets" }).click();
        await page.getByText("There is no dataset yet").waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "datasets-empty.png") });
    });

    await check("a folder is sent and becomes a dataset", async () => {
        await page.getByRole("button", { name: "Add a dataset" }).click();
        await page.getByLabel("Name, by which jobs ask for it").fill("flowers");
        await page.locator("input[type=file]").first().setInputFiles(join(files, "flowers"));
        await page.getByText("2 files").waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "datasets-form.png") });
        await page.getByRole("button", { name: "Send" }).click();
        const row = page.locator("tbody tr", { hasText: "flowers" });
        await row.getByText("ready").waitFor({ timeout: 20000 });
        const text = await row.innerText();
        expect(/csv/.test(text) && /400/.test(text) && /100/.test(text) && /admin/.test(text), `the row says ${text}`);
        await row.getByRole("button", { name: "flowers" }).click();
        await page.getByRole("cell", { name: "target", exact: true }).waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "datasets.png") });
    });

    await check("files that are no dataset say why, and can be taken back", async () => {
        await page.getByRole("button", { name: "Add a dataset" }).click();
        await page.getByLabel("Name, by which jobs ask for it").fill("broken");
        await page.locator("input[type=file]").last().setInputFiles(join(files, "train.npz"));
        await page.getByRole("button", { name: "Send" }).click();
        await page.getByRole("alert").filter({ hasText: /train.npz/ }).waitFor({ timeout: 20000 });
        const row = page.locator("tbody tr", { hasText: "broken" });
        await row.getByText("being sent").waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "datasets-broken.png") });
        await row.getByRole("button", { name: "Remove" }).click();
        await row.getByRole("button", { name: "Really remove?" }).click();
        await row.waitFor({ state: "detached", timeout: 5000 });
        await page.getByRole("button", { name: "Close" }).click();
    });

    await check("a name that is taken is told before anything is sent", async () => {
        await page.getByRole("button", { name: "Add a dataset" }).click();
        await page.getByLabel("Name, by which jobs ask for it").fill("flowers");
        await page.getByText("There is a dataset of this name").waitFor({ timeout: 5000 });
        expect(await page.getByRole("button", { name: "Send" }).isDisabled(), "it can be sent all the same");
        await page.getByRole("button", { name: "Close" }).click();
    });

    await check("the form of a job offers it", async () => {
        await page.goto(`${site}/new`);
        await page.locator("#datasets option[value=flowers]").waitFor({ state: "attached", timeout: 5000 });
    });

    let made = "";
    await check("a token is made, shown once, and revoked", async () => {
        await page.goto(`${site}/people`);
        await page.getByLabel("Name of the token").fill("nightly");
        await page.getByRole("button", { name: "Make a token" }).click();
        made = await page.locator(".notice code").innerText({ timeout: 5000 });
        const answer = await fetch(`${site}/api/v1/session`, { headers: { Authorization: `Bearer ${made}` } });
        expect(answer.ok, `the token gets ${answer.status}`);
        await page.screenshot({ path: join(shots, "people-tokens.png") });
        await page.getByRole("button", { name: "Done" }).click();
        const row = page.locator("tbody tr", { hasText: "nightly" });
        await row.getByRole("button", { name: "Revoke" }).click();
        await row.getByRole("button", { name: "Really revoke?" }).click();
        await row.waitFor({ state: "detached", timeout: 5000 });
        const after = await fetch(`${site}/api/v1/session`, { headers: { Authorization: `Bearer ${made}` } });
        expect(after.status === 401, `after that it gets ${after.status}`);
    });

    let way = "";
    await check("a user is added and gets a link", async () => {
        await page.getByRole("link", { name: "users" }).click();
        await page.getByLabel("Name of the user").fill("ana");
        await page.getByLabel("Role in every project").selectOption("none");
        await page.getByRole("button", { name: "Add a user" }).click();
        way = await page.locator(".notice code").innerText({ timeout: 5000 });
        expect(way.startsWith(`${site}/login`), `the link is ${way}`);
        await page.getByLabel("Role of ana").selectOption("viewer");
        await page.waitForFunction(() => document.querySelector('[aria-label="Role of ana"]')?.value === "viewer", null, { timeout: 5000 });
        await page.screenshot({ path: join(shots, "people-users.png") });
        await page.getByRole("button", { name: "Done" }).click();
        await page.getByLabel("Name of the user").fill("ana");
        await page.getByRole("button", { name: "Add a user" }).click();
        await page.getByRole("alert").waitFor({ timeout: 5000 });
    });

    await check("a project gets a member", async () => {
        await page.getByRole("link", { name: "projects" }).click();
        await page.getByLabel("Name of the project").fill("vision");
        await page.getByRole("button", { name: "Add a project" }).click();
        await page.getByRole("button", { name: "vision" }).click();
        await page.getByLabel("User to add to vision").fill("ana");
        await page.getByLabel("Role in vision", { exact: true }).selectOption("viewer");
        await page.getByRole("button", { name: "Add", exact: true }).click();
        await page.getByLabel("Role of ana in vision").waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "people-projects.png") });
    });

    await check("who changed what is in the audit", async () => {
        await page.getByRole("link", { name: "audit" }).click();
        await page.locator("td", { hasText: "/api/v1/projects/vision/members/ana" }).first().waitFor({ timeout: 5000 });
        await page.locator("td", { hasText: "/api/v1/datasets/flowers:publish" }).first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "people-audit.png") });
    });

    trainyard("run", "--detach", "--name", "seen-by-all", "--workdir", "/", "--dir", folder, "--", "true");
    await check("one who may do less sees less", async () => {
        const other = await browser.newContext({ viewport: { width: 1360, height: 860 } });
        const his = await other.newPage();
        await his.goto(way);
        await his.getByRole("heading", { name: "Jobs" }).waitFor({ timeout: 5000 });
        await his.getByRole("link", { name: "People" }).click();
        await his.getByText("You have no tokens").or(his.locator("tbody tr")).first().waitFor({ timeout: 5000 });
        expect((await his.getByRole("link", { name: "audit" }).count()) === 0, "a viewer is offered the audit");
        await his.goto(`${site}/people/audit`);
        await his.getByText("This is for administrators").waitFor({ timeout: 5000 });
        await his.getByRole("link", { name: "Datasets" }).click();
        await his.locator("tbody tr", { hasText: "flowers" }).waitFor({ timeout: 5000 });
        expect((await his.getByRole("button", { name: "Remove" }).count()) === 0, "another's dataset can be removed");
        expect((await his.getByRole("button", { name: "Add a dataset" }).count()) === 0, "a viewer is offered to send a dataset");
        await his.getByRole("link", { name: "Jobs" }).click();
        await his.locator("tbody tr", { hasText: "seen-by-all" }).click();
        await his.getByRole("heading", { name: /seen-by-all/ }).waitFor({ timeout: 5000 });
        expect((await his.getByRole("button", { name: "Clone" }).count()) === 0, "a viewer is offered to clone");
        expect((await his.getByRole("link", { name: "New job" }).count()) === 0, "a viewer is offered to submit");
        await other.close();
    });

    await check("a user who is disabled is out", async () => {
        await page.goto(`${site}/people/users`);
        const row = page.locator("tbody tr", { hasText: "ana" });
        await row.getByRole("button", { name: "Disable" }).click();
        await row.getByRole("button", { name: "Really disable?" }).click();
        await row.getByText("(disabled)").waitFor({ timeout: 5000 });
    });

    await check("much of it, dark and narrow, holds together", async () => {
        for (let i = 0; i < 40; i++) trainyard("user", "add", `someone-with-a-rather-long-name-${i}`, "--role", "viewer", "--dir", folder);
        await page.emulateMedia({ colorScheme: "dark" });
        for (const path of ["/people/users", "/people/tokens", "/people/projects", "/people/audit", "/datasets"]) {
            await page.setViewportSize({ width: 1360, height: 860 });
            await page.goto(site + path);
            await page.locator("table").first().waitFor({ timeout: 5000 });
            await page.screenshot({ path: join(shots, `${path.slice(1).replace("/", "-")}-dark.png`) });
            await page.setViewportSize({ width: 375, height: 780 });
            await expectNoOverflow(page);
            await page.screenshot({ path: join(shots, `${path.slice(1).replace("/", "-")}-narrow.png`) });
        }
    });

    await check("nothing was reported on the browser's console", async () => {
        expect(problems.length === 0, problems.slice(0, 3).join(" | "));
    });
} finally {
    await finish(browser, server, folder);
}
