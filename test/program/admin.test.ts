/** `tendon admin` as its user has it: on a folder and on PostgreSQL, alone, beside a service, several at once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { sampleFrames } from "../../src/measure/sample/drawing.ts";
import { Problem } from "../../src/std/problem.ts";
import { ENGINES, type EngineName, type Place as Kept, place, startServer, stopServer } from "../store/engines.ts";
import { type Ended, isClear, Place, requestOf, type Server } from "./program.ts";

let request: string;
beforeAll(async () => {
  const frames = await sampleFrames(1);
  if (frames instanceof Problem) throw new Error(frames.message);
  request = requestOf(frames);
  await startServer();
}, 60_000);
afterAll(stopServer);

/** The program, and the store that it is told to use. */
class Desk implements AsyncDisposable {
  private constructor(
    readonly program: Place,
    readonly store: Kept,
    readonly data: string,
  ) {}

  /** `folder`: one that is not there yet, instead of an empty one. */
  static async at(engine: EngineName, folder = ""): Promise<Desk> {
    const store = await place(engine);
    return new Desk(await Place.make(), store, join(store.dir, folder));
  }

  /** `words` separated by single spaces. */
  run(words: string): Promise<Ended> {
    return this.program.run(["admin", ...words.split(" "), "--data", this.data], this.store.environment);
  }

  /** What a command that succeeds prints with `--json`. */
  async json(words: string): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await this.run(`${words} --json`);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n").length).toBe(2);
    return JSON.parse(stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

const ID = /^acct_[0-9A-Za-z]{24}$/;

/** Unix seconds of the last minute. */
function expectNow(seconds: unknown, ahead = 0): void {
  const age = Date.now() / 1000 + ahead - Number(seconds);
  expect([Number.isInteger(seconds), age > -2, age < 60]).toEqual([true, true, true]);
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("each sub-command prints the JSON of the contract", async () => {
      await using desk = await Desk.at(name);
      const made = await desk.json("account create --email Robot@Example.org --credit 5 --spend-limit 2.5");
      expect(made).toEqual({ id: expect.stringMatching(ID), email: "robot@example.org" });
      const { id } = made;
      const other = await desk.json("account create --email later@example.org --payment-method");
      const account = {
        id,
        email: "robot@example.org",
        credits: "5.000000000",
        settled: "0.000000000",
        held: "0.000000000",
        balance: "5.000000000",
        available: "5.000000000",
        spend_limit: "2.500000000",
        payment_method: false,
      };
      const nothing = "0.000000000";
      const later = { credits: nothing, balance: nothing, available: nothing, spend_limit: null, payment_method: true };
      expect(await desk.json("account list")).toEqual({
        data: [account, { ...account, ...later, id: other.id, email: "later@example.org" }],
      });

      const key = await desk.json("key create --account ROBOT@example.org --name arm-1");
      const publicId = String(key.id);
      expect(key).toEqual({
        id: expect.stringMatching(/^[0-9A-Za-z]{12}$/),
        prefix: `tdn_${publicId}`,
        key: expect.stringMatching(new RegExp(`^tdn_${publicId}_[0-9A-Za-z]{42}$`)),
        account: id,
        created_at: expect.any(Number),
      });
      expectNow(key.created_at);
      const { prefix, created_at } = key;
      const listed = { id: publicId, prefix, name: "arm-1", created_at, last_used_at: null, revoked_at: null };
      expect(await desk.json(`key list --account ${id}`)).toEqual({ data: [listed] });
      expect(await desk.json("key list --account later@example.org")).toEqual({ data: [] });
      // With `tdn_` and without, once and again: a revoked key is revoked.
      for (const said of [prefix, publicId]) {
        expect(await desk.json(`key revoke ${said}`)).toEqual({ revoked: true, prefix });
      }
      const [revoked] = (await desk.json(`key list --account ${id}`)).data as [{ revoked_at: number }];
      expect(revoked).toEqual({ ...listed, revoked_at: expect.any(Number) });
      expectNow(revoked.revoked_at);

      expect(await desk.json("credit --account robot@example.org --usd 0.000000001")).toEqual({
        account: id,
        credits: "5.000000001",
        balance: "5.000000001",
      });
      expect(await desk.json(`credit --account ${id} --usd -7.5`)).toMatchObject({ balance: "-2.499999999" });
      expect(await desk.json(`limit --account ${id} --usd 20`)).toEqual({ account: id, spend_limit: "20.000000000" });
      expect(await desk.json(`limit --account ${id} --usd none`)).toEqual({ account: id, spend_limit: null });
      const set = (words: string) => desk.json(`account set --account ${id} ${words}`);
      expect(await set("--payment-method on")).toEqual({ account: id, payment_method: true, verified: true });
      expect(await set("--payment-method off")).toEqual({ account: id, payment_method: false, verified: true });
      expect((await desk.run(`account set --account ${id} --payment-method yes`)).code).toBe(2);
      expect((await desk.run(`account set --account ${id}`)).code).toBe(2);
      expect(await desk.json("ledger check")).toEqual({ ok: true, entries: 6, sum: "0.000000000" });

      const link = await desk.json(`account link --account ${id}`);
      expect(link).toEqual({
        url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:8080\/welcome\?token=[0-9A-Za-z]{43}$/),
        expires_at: expect.any(Number),
      });
      expectNow(link.expires_at, 86_400);
      const token = String(link.url).slice(-43);
      const tokenSha256 = new Uint8Array(new Bun.CryptoHasher("sha256").update(token).digest());
      const { url } = await desk.json(`account link --account ${id} --base-url https://robots.example.org/`);
      expect(url).toStartWith("https://robots.example.org/welcome?token=");

      const found = await (await desk.store.open()).people.linkByToken({
        tokenSha256,
        now: Number(link.expires_at) - 1,
      });
      expect(found).toMatchObject({ kind: "password", accountId: id, expiresAt: link.expires_at });
    }, 60_000);

    test("credit to an account whose e-mail no operator has confirmed needs --unverified, or the confirmation", async () => {
      await using desk = await Desk.at(name);
      await desk.json("account create --email robot@example.org");
      const credit = (more = "") => desk.run(`credit --account robot@example.org --usd 5${more}`);
      // The account is now as an open sign-up leaves it.
      expect(await desk.json("account set --account robot@example.org --verified off")).toMatchObject({
        verified: false,
      });
      const refused = await credit();
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain("no operator has confirmed");
      expect(refused.stderr).toContain("--unverified");
      expect((await credit(" --unverified")).code).toBe(0);
      expect((await desk.run("credit --account robot@example.org --usd -1")).code).toBe(0);
      await desk.json("account set --account robot@example.org --verified on");
      expect((await credit()).code).toBe(0);
      expect(await desk.json("account list")).toMatchObject({ data: [{ credits: "9.000000000" }] });
    }, 60_000);

    test("a reset ends the password and the sign-ins at once, and its link sets another one", async () => {
      await using desk = await Desk.at(name);
      const { id } = await desk.json("account create --email robot@example.org --credit 5");
      await desk.json("key create --account robot@example.org");
      const reset = await desk.json("account reset --account robot@example.org --base-url https://robots.example.org");
      expect(reset).toEqual({
        account: id,
        url: expect.stringMatching(/^https:\/\/robots\.example\.org\/welcome\?token=[0-9A-Za-z]{43}$/),
        expires_at: expect.any(Number),
        keys: 1,
      });
      const again = await desk.json("account reset --account robot@example.org --revoke-keys");
      expect(again).toMatchObject({ keys: 0 });
      const store = await desk.store.open();
      const found = (url: unknown) => {
        const tokenSha256 = new Uint8Array(new Bun.CryptoHasher("sha256").update(String(url).slice(-43)).digest());
        return store.people.linkByToken({ tokenSha256, now: Number(reset.expires_at) - 1 });
      };
      expect([await found(reset.url), await found(again.url)]).toMatchObject([
        undefined,
        { kind: "password", accountId: id },
      ]);
      expect(await store.accounts.accountById(String(id))).toMatchObject({
        password: expect.stringMatching(/^\$argon2id\$/),
      });
    }, 60_000);

    test("beside a service: keys, credit and limits are its own at once, a revoked key ends within a second", async () => {
      await using desk = await Desk.at(name);
      await Bun.write(desk.program.path("tendon.toml"), '[robot."vendorB/molmoact2:yam"]\ndevice = "echo"\n');
      const server = await desk.program.serve(
        ["--data", desk.data, "--config", desk.program.path("tendon.toml")],
        desk.store.environment,
      );
      await desk.json("account create --email robot@example.org --credit 1");
      const { key, prefix } = await desk.json("key create --account robot@example.org");
      const change = (words: string) => desk.json(`${words} --account robot@example.org`);
      const expectSent = async (...expected: [status: number, code: string | undefined, retry: string | null]) =>
        expect(await send(server, String(key))).toEqual(expected);

      await expectSent(200, undefined, null);
      const { data } = (await desk.json("account list")) as { data: { email: string; settled: string }[] };
      const settled = data.find(({ email }) => email === "robot@example.org")?.settled ?? "";
      expect(Number(settled)).toBeGreaterThan(0);
      // One nano-dollar is left, then none.
      const rest = (1_000_000_000n - BigInt(settled.replace(".", "")) - 1n).toString().padStart(10, "0");
      expect(await change(`credit --usd -${rest.slice(0, -9)}.${rest.slice(-9)}`)).toMatchObject({
        balance: "0.000000001",
      });
      await expectSent(402, "insufficient_credit", "false");
      await change("credit --usd -1");
      await expectSent(402, "payment_required", "false");
      await change("credit --usd 10");
      await expectSent(200, undefined, null);
      await change("limit --usd 0.000000001");
      await expectSent(429, "spend_limit_exceeded", "false");
      await change("limit --usd none");
      await expectSent(200, undefined, null);

      await desk.json(`key revoke ${prefix}`);
      const due = performance.now() + 1_000;
      let late = false;
      let status = 200;
      while (status === 200 && !late) {
        late = performance.now() > due;
        [status] = await send(server, String(key));
      }
      expect(status).toBe(401);
      expect(await desk.json("ledger check")).toMatchObject({ ok: true, sum: "0.000000000" });
      expect(await server.stop()).toBe(0);
    }, 60_000);

    test("several at once, the first ones on an empty store: one e-mail is one account, no credit is lost", async () => {
      await using desk = await Desk.at(name, "new");
      const created = await Promise.all([1, 2].map(() => desk.run("account create --email robot@example.org")));
      expect(created.map(({ code }) => code).sort()).toEqual([0, 1]);
      const taken = created.find(({ code }) => code === 1);
      expect([taken?.stdout, taken?.stderr]).toEqual(["", expect.stringContaining("has an account already")]);
      await Promise.all([1, 2, 3, 4].map((usd) => desk.json(`credit --account robot@example.org --usd ${usd}`)));
      expect(await desk.json("account list")).toMatchObject({ data: [{ credits: "10.000000000" }] });
      expect(await desk.json("ledger check")).toEqual({ ok: true, entries: 8, sum: "0.000000000" });
      // PostgreSQL needs no folder; the one that SQLite needs is its owner's alone.
      expect(existsSync(desk.data)).toBe(name === "SQLite");
      if (name === "SQLite") expect(statSync(desk.data).mode & 0o777).toBe(0o700);
    }, 60_000);

    test("a ledger that is off ends with exit 1 and names the row", async () => {
      await using desk = await Desk.at(name);
      const { id } = await desk.json("account create --email robot@example.org --credit 5");
      await desk.store.corrupt("UPDATE accounts SET credits = 7");
      const { code, stdout } = await desk.run("ledger check --json");
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toEqual({
        ok: false,
        entries: 2,
        sum: "0.000000000",
        problem: expect.stringContaining(`account ${id}: credits is 7`),
      });
    }, 60_000);
  });
}

/** Status, code and advice of one request. */
async function send(server: Server, key: string): Promise<[number, string | undefined, string | null]> {
  const response = await server.post(request, { authorization: `Bearer ${key}` });
  const { error } = (await response.json()) as { error?: { code: string } };
  return [response.status, error?.code, response.headers.get("x-should-retry")];
}

describe("what cannot be done", () => {
  test("for the state of things ends with exit 1, for what was typed with exit 2; both say why", async () => {
    await using desk = await Desk.at("SQLite", "new");
    const before = ["account list", "ledger check", "key list --account a", "credit --account a --usd 1"];
    for (const words of [...before, "key revoke x", "limit --account a --usd 1", "account link --account a"]) {
      const { code, stderr } = await desk.run(words);
      expect([words, code, stderr.includes("there is no database in")]).toEqual([words, 1, true]);
    }
    expect(existsSync(desk.data)).toBe(false);
    await desk.json("account create --email robot@example.org");
    const robot = "--account robot@example.org";
    const cases: [exit: number, words: string, says: string][] = [
      [1, "account create --email ROBOT@example.org", "has an account already"],
      [1, "credit --account nobody@example.org --usd 1", "no account 'nobody@example.org'"],
      [1, "limit --account acct_000000000000000000000000 --usd 1", "no account"],
      [1, "key create --account nobody", "no account"],
      [1, "key list --account nobody", "no account"],
      [1, "account link --account nobody", "no account"],
      [1, "key revoke tdn_000000000000", "no key"],
      [1, "key revoke nonsense", "no key"],
      [1, `key create ${robot}`, `tendon admin credit ${robot} --usd N`],
      [2, `credit ${robot} --usd 0`, "--usd must be an amount"],
      [2, `credit ${robot} --usd -0.0000000001`, "--usd must be an amount"],
      [2, `credit ${robot} --usd ten`, "--usd must be an amount"],
      [2, `credit ${robot} --usd none`, "--usd must be an amount"],
      [2, `credit ${robot}`, "--usd N is missing"],
      [2, "credit --usd 1", "--account A is missing"],
      [2, `limit ${robot} --usd -1`, "or none"],
      [2, "account create --email a@b --credit -1", "--credit must be an amount"],
      [2, "account create --email a@b --spend-limit -1", "--spend-limit must be an amount"],
      [2, "account create", "--email E is missing"],
      [2, "account create --email a@b@c", "--email must be"],
      [2, "account create --email @b", "--email must be"],
      [2, "account create --email a@", "--email must be"],
      [2, "account create --email a\t@b", "--email must be"],
      [2, `account create --email a@${"b".repeat(253)}`, "--email must be"],
      [2, `account link ${robot} --base-url ftp://x`, "is not an http:// or https:// address"],
      [2, "key revoke", "expected one PREFIX"],
      [2, "key revoke a b", "expected one PREFIX"],
      [2, "account lsit", "did you mean 'account list'"],
      [2, "account list --usd 1", "unknown option '--usd'"],
      [2, "account list now", "unexpected argument 'now'"],
    ];
    for (const [exit, words, says] of cases) {
      const { code, stdout, stderr } = await desk.run(words);
      expect([words, code, stdout, stderr]).toEqual([words, exit, "", expect.stringContaining(says)]);
      expect(isClear(stderr)).toBe(true);
    }
    expect((await desk.json("account list")).data).toHaveLength(1);
  }, 60_000);

  test("because the database server is down ends with exit 1 and the reason, without the address' password", async () => {
    await using program = await Place.make();
    const DATABASE_URL = "postgres://tendon:secret@127.0.0.1:1/tendon";
    for (const words of ["account list", "account create --email a@b"]) {
      const { code, stderr } = await program.run(["admin", ...words.split(" ")], { DATABASE_URL });
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining("the PostgreSQL server of DATABASE_URL cannot be used"),
      ]);
      expect(stderr).not.toContain("secret");
    }
    expect(existsSync(join(program.home, ".local"))).toBe(false);
  });
});

test("without --json there is text for people: tables, and what to do next", async () => {
  await using desk = await Desk.at("SQLite");
  const said = async (words: string) => {
    const { code, stdout } = await desk.run(words);
    expect(code).toBe(0);
    return stdout;
  };
  expect(await said("account create --email a@b")).toContain("tendon admin credit --account a@b");
  expect(await said("credit --account a@b --usd 3")).toContain("balance 3.000000000");
  expect(await said("key create --account a@b")).toContain("shown this once");
  expect(await said("key list --account a@b")).toMatch(/^prefix +name +created +last used +revoked\ntdn_.* never\n$/);
  expect(await said("account list")).toMatch(/^id +e-mail .*\nacct_.* 3\.000000000 .*no +yes\n$/);
  expect(await said("ledger check")).toContain("the ledger is sound: 2 entries");
  expect(await said("--help")).toContain("--payment-method");
}, 60_000);
