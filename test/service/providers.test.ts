import { expect, test } from "bun:test";
import { planProviders } from "../../src/service/providers.ts";
import { systemClock } from "../../src/std/clock.ts";
import { providerConfig } from "../llm/stage.ts";

const config = providerConfig({ base_url: "http://127.0.0.1:1/v1", protocol: "chat", api_key_env: "P_KEY" });
const planned = (key?: string) => {
  const providerKeys = new Map(key === undefined ? [] : [["P_KEY", key]]);
  return planProviders({ llm: new Map([["llm-a-5.3:superfast", config]]), providerKeys }, systemClock);
};

test("a key that cannot stand in the head of a request is refused by its variable's name, never by its value", () => {
  for (const key of [
    "sk-secret\r\nx-admin: 1",
    "sk secret",
    "sk-secret\n",
    "sk-sécret",
    "sk-secret\u0000",
    "\tsk-secret",
  ]) {
    const problem = planned(key);
    expect(problem).toMatchObject({ exit: 2, message: expect.stringContaining("P_KEY") });
    expect(JSON.stringify(problem)).not.toContain("cret");
  }
});

test("a key that is absent or empty is one that is not set", () => {
  for (const key of [undefined, ""]) {
    expect(planned(key)).toMatchObject({ exit: 2, message: expect.stringMatching(/P_KEY .*is not set/) });
  }
});

test("any other key is taken", () => {
  expect(planned("sk-!~/+=_.:1")).toBeInstanceOf(Map);
});
