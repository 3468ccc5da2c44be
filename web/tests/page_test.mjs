// Tests of the page in a headless Chromium: QKV_PROGRAM=build/release/qkv node web/tests/page_test.mjs
import { after, before } from "node:test";
import { exploreTests } from "./explore_tests.mjs";
import { cleanUp, launch, runs, serve, trainModels } from "./harness.mjs";
import { unitTests } from "./unit_tests.mjs";
import { viewTests } from "./views_tests.mjs";

const site = { browser: null, server: null, url: "", errors: () => site.server.errors() };

before(async () => {
  trainModels();
  site.server = await serve(runs);
  site.url = site.server.url;
  site.browser = await launch();
});
after(async () => {
  await site.browser?.close();
  await site.server?.stop();
  cleanUp();
});

unitTests();
exploreTests(site);
viewTests(site);
