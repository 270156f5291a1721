/** Clients run apart from the service where the machine allows. */
import { expect, test } from "bun:test";
import { coresOf, pinned, placementOn } from "../../src/measure/placement.ts";

test("a quarter of the cores is the clients', the others the service's; fewer than four are shared", () => {
  expect(placementOn([0, 1, 2])).toBeUndefined();
  expect(placementOn([0, 1, 2, 3])).toEqual({ service: "0,1,2", clients: "3" });
  const sixteen = placementOn(Array.from({ length: 16 }, (_, core) => core));
  expect(sixteen).toEqual({ service: "0,1,2,3,4,5,6,7,8,9,10,11", clients: "12,13,14,15" });
});

test("the list of cores is read as Linux writes it", () => {
  expect(coresOf("0-2,5,8-9")).toEqual([0, 1, 2, 5, 8, 9]);
  expect(coresOf("3")).toEqual([3]);
  expect(coresOf("")).toEqual([]);
});

test.skipIf(Bun.which("taskset") === null)("a pinned command runs on those cores alone", async () => {
  const shown = Bun.spawn(pinned("0", ["grep", "Cpus_allowed_list", "/proc/self/status"]), { stdout: "pipe" });
  expect((await shown.stdout.text()).trim()).toMatch(/:\s*0$/);
});
