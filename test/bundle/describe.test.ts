/** The words about a placement say whether the sessions of a device share their weights, and if not, why. */
import { expect, test } from "bun:test";
import { deviceWeightWords } from "../../src/bundle/describe.ts";

const words = (sharedBytes: number, ownBytes: number, reason?: string) =>
  deviceWeightWords({ sharedBytes, ownBytes, reason });

test("weights that are shared, copied, or both are told with their sizes and the reason", () => {
  expect(words(0, 0)).toBeUndefined();
  expect(words(7_511_552, 0)).toBe("7.5 MB of weights on the device once for all sessions");
  expect(words(0, 6.7e9, "no 5 bytes of the device's memory")).toBe(
    "6700.0 MB of weights copied by its sessions (no 5 bytes of the device's memory)",
  );
  expect(words(2e6, 4e5)).toBe(
    "2.0 MB of weights on the device once for all sessions, 0.4 MB of weights copied by its sessions",
  );
});
