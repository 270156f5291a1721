import { describe, expect, test } from "bun:test";
import { notWritten } from "../../src/cli/admin/store.ts";
import { admin } from "../../src/cli/admin.ts";
import { type Command, given } from "../../src/cli/frame/command.ts";
import { choose, helpOf } from "../../src/cli/frame/group.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { StoreDown } from "../../src/store/store.ts";

/** Name of the chosen command and what is left, or the message of the problem. */
function chosen(...argv: string[]): unknown {
  const found = choose(admin, argv);
  return found instanceof Problem ? found.message : [found.command.name, found.argv];
}

describe("the words of a sub-command", () => {
  test("come first", () => {
    expect(chosen("account", "list", "--json")).toEqual(["admin account list", ["--json"]]);
    expect(chosen("key", "revoke", "--json", "tdn_x")).toEqual(["admin key revoke", ["--json", "tdn_x"]]);
    expect(chosen("--json", "limit")).toContain("a sub-command is missing");
  });

  test("that are unknown are answered with the nearest", () => {
    for (const [words, nearest] of [
      ["acount creat", "account create"],
      ["key delete", "key create"],
      ["ledger", "ledger check"],
      ["credits", "credit"],
      ["lmit", "limit"],
    ] as const) {
      expect(chosen(...words.split(" "))).toContain(`'${words}'; did you mean '${nearest}'?`);
    }
    const nothing = choose(admin, ["--json"]);
    expect(nothing).toBeInstanceOf(Problem);
    expect((nothing as Problem).exit).toBe(EXIT.usage);
  });

  test("have their page, and without them the page has every sub-command with its flags", () => {
    expect(helpOf(admin, ["credit", "--help"])).toStartWith("Usage: tendon admin credit [flags]");
    const page = helpOf(admin, ["--help"]);
    for (const { name, flags } of admin.commands) {
      expect(page).toContain(`tendon ${name}`);
      for (const flag of Object.keys(flags)) expect(page).toContain(`--${flag}`);
    }
  });
});

test("a negative number is the value of the flag before it, not a flag", () => {
  const credit = admin.commands.find(({ name }) => name === "admin credit") as Command;
  const usd = (...argv: string[]) => {
    const parsed = given(credit, ["--account", "a", ...argv]);
    return parsed instanceof Problem ? parsed.exit : parsed.text("usd");
  };
  expect([usd("--usd", "-2.5"), usd("--usd=-2.5"), usd("--usd", "-.5"), usd("--usd", "2")]).toEqual([
    "-2.5",
    "-2.5",
    "-.5",
    "2",
  ]);
  expect([usd("--usd", "--json"), usd("--json", "-5")]).toEqual([EXIT.usage, EXIT.usage]);
});

test("a write whose outcome nobody knows says so, and how to look", () => {
  const unknown = notWritten(new StoreDown("gone", true), "the credit was booked", "account list");
  expect(unknown.message).toContain("it is not known whether the credit was booked");
  expect(unknown.message).toContain("'tendon admin account list'");
  const down = notWritten(new StoreDown("gone"), "the credit was booked", "account list");
  expect(down.message).toContain("nothing was changed");
  expect([unknown.exit, down.exit]).toEqual([EXIT.failed, EXIT.failed]);
});
