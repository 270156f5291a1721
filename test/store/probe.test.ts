/** The write of readiness, on both engines. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { StoreDown } from "../../src/store/store.ts";
import { ENGINES, place, startServer, stopServer } from "./engines.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("it can be repeated, side by side too, and a closed store says that it is down", async () => {
      await using at = await place(name);
      const store = await at.open();
      expect(await store.base.probe()).toBe("kept");
      expect(await Promise.all([store.base.probe(), store.base.probe()])).toEqual(["kept", "kept"]);
      await store.close();
      expect(await store.base.probe()).toBeInstanceOf(StoreDown);
    });
  });
}
