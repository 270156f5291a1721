/** Cookies, forms and addresses of the pages for people. */
import { resolve } from "node:path";
import { type Stage, stage } from "../../robot/stage.ts";
import { must, type Target } from "../target.ts";

const SRC = resolve(import.meta.dir, "../../../src");
const PATHS = [
  "/sign-in",
  "/sign-up",
  "/welcome",
  "/device",
  "/device/decide",
  "/account/keys",
  "/account/limit",
  "/account/password",
  "/account/runs/delete",
  "/oauth/token",
  "/oauth/device_authorization",
  "/oauth/revoke",
  "/account/identities",
  "/account/identities/disconnect",
];

let at: Promise<Stage> | undefined;

/** One line each: the path's number, the query, the cookie; the rest is the form. */
export const pages: Target = {
  name: "pages",
  guides: [
    `${SRC}/account/pages/page.ts`,
    `${SRC}/account/pages/sign-in.ts`,
    `${SRC}/account/pages/oidc.ts`,
    `${SRC}/account/oauth/oauth.ts`,
    `${SRC}/http/origin.ts`,
  ],
  seeds: [
    "0\nnext=%2Faccount\ntendon=x\nemail=a%40b.org&password=correct+horse&next=/account",
    `5\n\ntendon=${"x".repeat(43)}\ncsrf=1&name=arm`,
    "9\n\n\ngrant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=x&client_id=tendon-cli",
    "a\n\n\nclient_id=tendon-cli&device_name=arm",
  ],
  words: [
    "next=",
    "//evil.example",
    "%0d%0a",
    "tendon=",
    "; ",
    "%",
    "+",
    "&&",
    "=",
    "user_code=BCDF-GHJK",
    "token=",
    "\u0000",
    "é",
  ],
  async run(input) {
    const [which = "", query = "", cookie = "", ...form] = Buffer.from(input).toString("latin1").split("\n");
    const path = PATHS[Number.parseInt(which, 16) % PATHS.length] ?? "/sign-in";
    at ??= stage({ signUpOpen: true });
    const { send, clock } = await at;
    // Tries are throttled by time, which passes.
    clock.advance(3_600_000);
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "sec-fetch-site": "same-origin",
      cookie: cookie.replace(/[\r\0]/g, ""),
    };
    const told: string[] = [path];
    for (const init of [{ headers }, { method: "POST", headers, body: Buffer.from(form.join("\n"), "latin1") }]) {
      const response = await send(`${path}?${query.replace(/[^\x21-\x7e]/g, "")}`, init);
      await response.text();
      must(response.status < 500, `${path}: status ${response.status}`);
      const to = response.headers.get("location");
      must(to === null || /^\/(?!\/|\\)[\x21-\x7e]*$/.test(to), `leads to ${to}`);
      told.push(`${response.status} ${to?.replace(/\?.*/, "")}`);
    }
    return told.join("; ");
  },
};
