// Tests of the page in a headless Chromium: QKV_PROGRAM=build/release/qkv node web/tests/page_test.mjs
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { exploreTests } from "./explore_tests.mjs";
import { cleanUp, launch, runs, serve, trainModels } from "./harness.mjs";
import { hostileTests } from "./hostile_tests.mjs";
import { modelTests } from "./models_tests.mjs";
import { newcomerTests } from "./newcomer_tests.mjs";
import { notebookTests } from "./notebook_tests.mjs";
import { readingTests } from "./reading_tests.mjs";
import { unitTests } from "./unit_tests.mjs";
import { viewTests } from "./views_tests.mjs";
import { workTests } from "./work_tests.mjs";

after(cleanUp);
trainModels();
const server = await serve(runs);
const site = { url: server.url, errors: server.errors, browser: await launch() };

unitTests();
exploreTests(site);
modelTests(site);
newcomerTests(site);
readingTests(site);
workTests(site);
viewTests(site);
notebookTests(site);
hostileTests();

test("the server ends in an orderly way when asked to", async () => {
  await site.browser.close();
  assert.equal(await server.stop(), 0);
});
