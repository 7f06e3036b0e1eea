// browser_test.mjs - the page in a real browser, against a real server that trains a real job.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { build, check, expect, expectNoOverflow, expectSoon, finish, freePort, launch, newFolder, serve, shots, show, top, trainyard } from "./lib.mjs";

const folder = newFolder();
const port = freePort();
const site = `http://127.0.0.1:${port}`;
let { server, link } = await serve(folder, port);
const browser = await launch();

try {
    const digits = join(folder, "digits-files");
    trainyard("dataset", "make", "digits", digits, "--train", "6000", "--test", "1000");
    trainyard("dataset", "add", "digits", "--from", digits, "--dir", folder);

    const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
    const page = show(await context.newPage());
    const problems = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => {
        if (message.type() === "error" && !message.text().includes("401")) problems.push(message.text());
    });

    await check("without signing in there is only the way in", async () => {
        await page.goto(`${site}/jobs`);
        await page.getByText("Sign in to Trainyard").waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "signed-out.png") });
    });

    await check("a name and a password sign in, and one can leave again", async () => {
        const added = spawnSync(join(build, "trainyard"), ["user", "add", "ana", "--role", "viewer", "--password", "--dir", folder], { input: "correct horse" });
        expect(added.status === 0, String(added.stderr));
        await page.getByLabel("User").fill("ana");
        await page.getByLabel("Password").fill("wrong horse");
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("alert").filter({ hasText: "the user or the password is wrong" }).waitFor({ timeout: 5000 });
        await page.getByLabel("Password").fill("correct horse");
        await page.getByLabel("Password").press("Enter");
        await page.getByRole("heading", { name: "Jobs" }).waitFor({ timeout: 5000 });
        await page.getByTitle("viewer in every project").waitFor({ timeout: 5000 });
        await page.getByRole("button", { name: "Sign out" }).click();
        await page.getByText("Sign in to Trainyard").waitFor({ timeout: 5000 });
    });

    await check("the one-time link signs in and leaves no token in the address", async () => {
        await page.goto(link);
        await page.getByRole("heading", { name: "Jobs" }).waitFor({ timeout: 5000 });
        expect(!page.url().includes("login"), `address is ${page.url()}`);
        await page.getByRole("button", { name: "Run" }).first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "empty.png") });
    });

    await check("the form says what is wrong at the field, and the plan when all is well", async () => {
        await page.getByRole("link", { name: "New job" }).first().click();
        const example = page.getByLabel("Start from an example");
        await example.selectOption("digits-cnn");
        await page.getByText(/parameters/i).first().waitFor({ timeout: 5000 });
        const steps = page.getByLabel("Steps");
        await steps.fill("-3");
        await page.locator(".error-text", { hasText: /step|least|minimum|1/i }).first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "form-wrong.png") });
        await steps.fill("600");
        await page.getByLabel("Name").fill("from-the-form");
        await page.locator("table").first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "form.png") });
    });

    await check("a submitted job draws a growing curve without a reload", async () => {
        await page.evaluate(() => (window.notReloaded = true));
        await page.getByRole("button", { name: "Submit" }).click();
        await page.getByRole("heading", { name: /from-the-form/ }).waitFor({ timeout: 5000 });
        await page.locator(".uplot").first().waitFor({ timeout: 60000 });
        const step = () => page.locator(".figures b").first().innerText();
        const first = await step();
        await page.waitForFunction((old) => document.querySelector(".figures b")?.textContent !== old, first, { timeout: 30000 });
        await page.screenshot({ path: join(shots, "job-running.png") });
        expect(await page.evaluate(() => window.notReloaded === true), "the page was reloaded");
        await page.locator(".state.succeeded").first().waitFor({ timeout: 240000 });
        const accuracy = Number(await page.locator(".figures b").last().innerText());
        expect(accuracy > 0.8, `validation accuracy is ${accuracy}`);
        await page.screenshot({ path: join(shots, "job.png") });
    });

    await check("graph, placement, logs, spec and events have something to say", async () => {
        await page.getByRole("link", { name: "Graph", exact: true }).click();
        await page.locator(".graph svg .scope").first().waitFor({ timeout: 10000 });
        const boxes = await page.locator(".graph svg g").count();
        const hidden = () => page.locator(".graph").evaluate((frame) => frame.scrollWidth - frame.clientWidth);
        await expectSoon(hidden, (pixels) => pixels <= 0, (pixels) => `${pixels} px of the graph are outside its frame`);
        for (let i = 0; i < 6; i++) await page.getByTitle("Larger").click();
        await expectSoon(hidden, (pixels) => pixels > 0, () => "the graph did not grow");
        await page.getByRole("button", { name: "Fit" }).click();
        await page.locator(".graph svg .scope").first().click();
        await page.waitForFunction((old) => document.querySelectorAll(".graph svg g").length > old, boxes, { timeout: 5000 });
        await page.screenshot({ path: join(shots, "graph.png") });
        await page.getByRole("link", { name: "Placement", exact: true }).click();
        await page.locator("td", { hasText: "CPU:0" }).first().waitFor({ timeout: 5000 });
        await expectNoOverflow(page);
        await page.screenshot({ path: join(shots, "placement.png") });
        await page.getByRole("link", { name: "Logs", exact: true }).click();
        await page.locator(".log span").first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "logs.png") });
        await page.getByRole("link", { name: "Spec", exact: true }).click();
        await page.locator(".log", { hasText: "layers" }).waitFor({ timeout: 5000 });
        await page.getByRole("link", { name: "Events", exact: true }).click();
        await page.locator("tbody tr").first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "events.png") });
    });

    await check("the stream goes on after the server was killed", async () => {
        await page.goto(`${site}/new`);
        await page.getByLabel("Start from an example").selectOption("digits-cnn");
        await page.getByLabel("Steps").fill("900");
        await page.getByRole("button", { name: "Submit" }).click();
        await page.locator(".uplot").first().waitFor({ timeout: 60000 });
        server.removeAllListeners("exit");
        const gone = new Promise((done) => server.once("exit", done)); // until then the folder is its
        server.kill("SIGKILL");
        await gone;
        await page.getByText(/reconnecting/).waitFor({ timeout: 10000 });
        ({ server } = await serve(folder, port));
        await page.getByText("live", { exact: true }).waitFor({ timeout: 15000 });
        const now = await page.locator(".figures b").first().innerText();
        await page.waitForFunction((old) => document.querySelector(".figures b")?.textContent !== old, now, { timeout: 30000 });
        await page.locator(".state.succeeded").first().waitFor({ timeout: 240000 });
    });

    await check("a job is paused, resumed and cloned", async () => {
        await page.goto(`${site}/new`);
        await page.getByLabel("Start from an example").selectOption("digits-cnn");
        await page.getByLabel("Steps").fill("100000");
        await page.getByRole("button", { name: "Submit" }).click();
        await page.locator(".state.running").first().waitFor({ timeout: 60000 });
        await page.getByRole("button", { name: "Pause" }).click();
        await page.getByRole("button", { name: "Resume" }).waitFor({ timeout: 30000 });
        await page.locator(".state.queued").first().waitFor({ timeout: 60000 });
        await page.getByRole("button", { name: "Resume" }).click();
        await page.locator(".state.running").first().waitFor({ timeout: 60000 });
        const first = page.url();
        await page.getByRole("button", { name: "Clone" }).click();
        await page.waitForFunction((old) => location.href !== old, first, { timeout: 30000 });
        await page.getByRole("button", { name: "Stop" }).click();
        await page.locator(".state.cancelled").first().waitFor({ timeout: 60000 });
        await page.goto(first);
        await page.getByRole("button", { name: "Stop" }).click();
        await page.locator(".state.cancelled").first().waitFor({ timeout: 60000 });
    });

    await check("a cancelled job says so", async () => {
        await page.goto(`${site}/new`);
        await page.getByLabel("Start from an example").selectOption("digits-cnn");
        await page.getByLabel("Steps").fill("100000");
        await page.getByRole("button", { name: "Submit" }).click();
        await page.locator(".state.running").first().waitFor({ timeout: 60000 });
        await page.getByRole("button", { name: "Stop" }).click();
        await page.locator(".state.cancelled").first().waitFor({ timeout: 60000 });
        await page.screenshot({ path: join(shots, "cancelled.png") });
    });

    await check("the form is live by itself, and names a schedule", async () => {
        await page.goto(`${site}/new`);
        await page.getByText("live", { exact: true }).waitFor({ timeout: 15000 });
        await page.getByLabel("Start from an example").selectOption("word2vec");
        await page.getByText(/--from FOLDER/).first().waitFor({ timeout: 15000 });
        const rate = page.getByLabel("Learning rate");
        expect((await rate.inputValue()) === "", `the learning rate is ${await rate.inputValue()}`);
        expect((await rate.getAttribute("placeholder"))?.startsWith("CosineDecay"), "the schedule has no name");
        await page.screenshot({ path: join(shots, "form-without-data.png"), fullPage: true });
    });

    await check("the form asks for precision and for several tasks", async () => {
        const json = async () => JSON.parse(await page.getByLabel("Job spec").inputValue());
        await page.getByLabel("Start from an example").selectOption("digits-cnn");
        const before = JSON.stringify(await json());
        await page.getByLabel("Precision").selectOption("bfloat16");
        await page.getByLabel("Workers", { exact: true }).fill("2");
        await page.getByLabel("Parameter servers").fill("1");
        let spec = await json();
        expect(spec.train.precision === "bfloat16", `the precision is ${spec.train.precision}`);
        expect(JSON.stringify(spec.tasks) === '{"worker":{"replicas":2},"ps":{"replicas":1}}', `the tasks are ${JSON.stringify(spec.tasks)}`);
        await page.getByText(/bfloat16/).filter({ visible: true }).first().waitFor({ timeout: 15000 });
        await page.screenshot({ path: join(shots, "form-tasks.png"), fullPage: true });
        await page.getByLabel("Precision").selectOption("float32");
        await page.getByLabel("Workers", { exact: true }).fill("");
        await page.getByLabel("Parameter servers").fill("");
        spec = await json();
        expect(JSON.stringify(spec) === before, `what was taken back leaves ${JSON.stringify(spec)}`);
        await page.getByLabel("Workers", { exact: true }).fill("300");
        await page.locator("small.error-text").first().waitFor({ timeout: 15000 });
        await page.getByLabel("Workers", { exact: true }).fill("");
    });

    await check("a job of several tasks shows who waits for whom", async () => {
        const spec = join(folder, "together.json");
        const layers = [{ layer: "Flatten" }, { layer: "Dense", units: 32, activation: "relu" }, { layer: "Dense", units: 10 }];
        writeFileSync(spec, JSON.stringify({
            name: "together", model: { layers }, data: { dataset: "digits", batch_size: 16 },
            train: { steps: 100000, optimizer: { name: "SGD", learning_rate: 0.01 } }, strategy: { mode: "allreduce" }, tasks: { worker: 2 },
        }));
        trainyard("submit", spec, "--dir", folder);
        await page.goto(`${site}/jobs`);
        await page.getByRole("link", { name: "together" }).first().click();
        await page.getByRole("link", { name: "Time" }).click();
        await page.getByText("Nothing has been measured yet").or(page.getByText("A step takes")).waitFor({ timeout: 10000 });
        await page.getByText("A step takes").waitFor({ timeout: 20000 });
        await page.getByRole("heading", { name: "Which task waits for which" }).waitFor({ timeout: 5000 });
        await page.getByRole("cell", { name: "worker:1" }).first().waitFor({ timeout: 5000 });
        const steps = await page.getByText(/up to step \d+/).textContent();
        await page.waitForFunction((before) => !document.body.textContent.includes(before), steps, { timeout: 15000 });
        await expectNoOverflow(page);
        await page.screenshot({ path: join(shots, "time.png") });
        await page.emulateMedia({ colorScheme: "dark" });
        await page.setViewportSize({ width: 420, height: 800 });
        await expectNoOverflow(page);
        await page.screenshot({ path: join(shots, "time-dark-narrow.png"), fullPage: true });
        await page.setViewportSize({ width: 1360, height: 860 });
        await page.emulateMedia({ colorScheme: "light" });
        await page.getByRole("link", { name: "Placement" }).click();
        await page.getByLabel(/Find an op/).fill("MatMul");
        await page.getByText("not on 1 other").first().click();
        await page.getByText("not what was requested").first().waitFor({ timeout: 5000 });
        await page.getByRole("link", { name: "Graph" }).click();
        await page.getByLabel(/Find a node/).fill("dense/MatMul");
        await page.getByRole("button", { name: /dense\/MatMul$/ }).first().click();
        await page.getByText("why there").waitFor({ timeout: 5000 });
        await page.getByText("not on 1 other").click();
        await page.screenshot({ path: join(shots, "why-there.png") });
        await page.getByRole("link", { name: "Overview" }).click();
        await page.locator(".uplot").first().waitFor({ timeout: 10000 });
        expect((await page.locator(".notice").count()) === 0, "a job that just runs has a notice");
        const away = { code: "TASK_AWAY", text: "It runs without worker:1, which was lost on two. Of that task: Waiting for 1 CPU.", blockers: [], suggestions: [] };
        await page.route(/jobs\/[^/]+\/explain$/, (route) => route.fulfill({ json: away }));
        await page.reload();
        await page.locator(".notice.wait", { hasText: "It runs without worker:1" }).waitFor({ timeout: 10000 });
        await page.screenshot({ path: join(shots, "task-away.png") });
        await page.unroute(/jobs\/[^/]+\/explain$/);
        trainyard("kill", "together", "--dir", folder);
    });

    await check("a job of 64 tasks can be read", async () => {
        const names = [...Array(60).keys()].map((i) => `worker:${i}`).concat(["ps:0", "ps:1", "ps:2", "ps:3"]);
        const other = (task) => names.filter((name) => name.slice(0, 2) !== task.slice(0, 2));
        const tasks = names.map((task, i) => ({
            task, us: 9000 + i, wait_us: 5000, receive_us: 1000, send_us: 500,
            from: other(task).map((name) => ({ task: name, wait_us: 80, receive_us: 10, bytes: 4096, tensors: 2 })),
        }));
        const arrivals = names.slice(0, 60).map((task, i) => ({ task, us: 4000 + i, max_us: 9000, input_us: i, others_us: 4030, recent_us: [3900, 4100] }));
        const series = names.map((task, i) => ({ name: "hw/cpu", task: task.replace(":", "/"), steps: [1.7e9, 1.7e9 + 2], values: [i, i + 1] }));
        await page.route(/jobs\/[^/]+\/times$/, (route) => route.fulfill({ json: { step: 9, steps: 9, us: 9100, input_us: 30, tasks, arrivals } }));
        await page.route(/jobs\/[^/]+\/hardware/, (route) => route.fulfill({ json: { series } }));
        await page.goto(`${site}/jobs/1/time`);
        for (const rest of ["that work most; show all 64", "that are last; show all 60"])
            await page.getByRole("button", { name: `The 16 ${rest}` }).waitFor({ timeout: 5000 });
        const columns = await page.locator(".matrix thead th").allInnerTexts();
        expect(columns.slice(1, 7).join() === "ps:0,ps:1,ps:2,ps:3,worker:0,worker:1", `columns are ${columns}`);
        await page.screenshot({ path: join(shots, "time-64.png"), fullPage: true });
        await expectNoOverflow(page);
        await page.goto(`${site}/jobs/1`);
        const cpu = page.locator(".hardware .panel", { hasText: "CPU, cores" });
        await cpu.getByText("the 8 highest of 64").waitFor({ timeout: 5000 });
        const lines = () => cpu.locator(".u-series").count();
        await expectSoon(lines, (count) => count === 9, (count) => `the legend has ${count} lines, not the time and 8 others`);
        await expectNoOverflow(page);
        await page.unroute(/jobs\/[^/]+\/times$/);
        await page.unroute(/jobs\/[^/]+\/hardware/);
    });

    await check("a failed job says why", async () => {
        const bad = join(folder, "missing-dataset.json");
        const spec = JSON.parse(readFileSync(join(top, "examples/digits-cnn.json"), "utf8"));
        spec.name = "no-such-data";
        spec.data.dataset = "no-such-data";
        writeFileSync(bad, JSON.stringify(spec));
        const run = spawnSync(join(build, "trainyard"), ["submit", bad, "--dir", folder], { encoding: "utf8" });
        const text = run.stdout + run.stderr;
        expect(text.includes("no-such-data"), `submit said: ${text}`);
        await page.goto(`${site}/jobs`);
        await page.locator("tbody tr").first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "jobs.png") });
    });

    await check("what a job uses of its machine is drawn as it runs, and again in other colours", async () => {
        writeFileSync(join(folder, "burn.json"), JSON.stringify({ command: ["python3", "-c", "while True: pass"] }));
        const number = trainyard("submit", join(folder, "burn.json"), "--dir", folder).match(/job (\d+)/)[1];
        await page.goto(`${site}/jobs/${number}`);
        const cpu = page.locator(".hardware .panel", { hasText: "CPU, cores" });
        await cpu.locator(".uplot canvas").waitFor({ timeout: 30000 });
        await page.emulateMedia({ colorScheme: "dark" });
        await page.waitForTimeout(100);
        await cpu.locator(".uplot").waitFor({ timeout: 5000 });
        expect((await cpu.locator(".uplot").count()) === 1, "the chart is drawn twice in other colours");
        await page.screenshot({ path: join(shots, "hardware-dark.png"), fullPage: true });
        await page.emulateMedia({ colorScheme: "light" });
        trainyard("kill", number, "--dir", folder);
        await page.locator(".state.cancelled").first().waitFor({ timeout: 20000 });
    });

    await check("dark, narrow and the nodes page hold together", async () => {
        await page.emulateMedia({ colorScheme: "dark" });
        await page.goto(`${site}/jobs/1`);
        await page.locator(".uplot").first().waitFor({ timeout: 10000 });
        await page.screenshot({ path: join(shots, "job-dark.png") });
        await page.goto(`${site}/nodes`);
        await page.locator("tbody tr").first().waitFor({ timeout: 5000 });
        await page.screenshot({ path: join(shots, "nodes-dark.png") });
        await page.setViewportSize({ width: 375, height: 780 });
        await page.goto(`${site}/nodes`);
        await page.locator("tbody tr").first().waitFor({ timeout: 5000 });
        await expectNoOverflow(page);
        await page.goto(`${site}/jobs/1`);
        await page.locator(".uplot").first().waitFor({ timeout: 10000 });
        await page.screenshot({ path: join(shots, "job-narrow.png") });
        await expectNoOverflow(page);
        await page.getByRole("link", { name: "Placement", exact: true }).click();
        await page.locator("td", { hasText: "CPU:0" }).first().waitFor({ timeout: 5000 });
        await expectNoOverflow(page);
    });

    await check("nothing was reported on the browser's console", async () => {
        const real = problems.filter((text) => !/WebSocket|ERR_CONNECTION|Failed to load resource/.test(text));
        expect(real.length === 0, real.slice(0, 3).join(" | "));
    });
} finally {
    await finish(browser, server, folder);
}
