/** `If-Match` and `If-None-Match` on `PUT` of a file (contract section 7; RFC 9110, section 13). */
import { expect } from "bun:test";
import { fileOf, sha256 } from "../person.ts";
import { onStores, RECORDS } from "../stage.ts";

const etag = (bytes: string) => `"sha256-${sha256(bytes)}"`;
const FAILED = "412 precondition_failed";
const NEW = { "if-none-match": "*" };

onStores(RECORDS, {}, (test) => {
  test("If-None-Match: * makes a file and replaces none; If-Match replaces the file that it names alone", async ({
    at,
    ann,
  }) => {
    const said = async (bytes: string, headers: Record<string, string>) =>
      (await ann.put("one", "a", bytes, headers)).said;
    for (const match of ["*", etag("1")]) expect(await said("1", { "if-match": match })).toBe(FAILED);
    // Nothing was stored, so nothing made the run.
    expect(await at.rows("SELECT * FROM robot_runs WHERE run = 'one'")).toEqual([]);
    expect([await said("1", NEW), await said("2", NEW)]).toEqual(["201", FAILED]);
    expect(await said("2", { "if-match": etag("2") })).toBe(FAILED);
    expect(await said("2", { "if-match": `W/${etag("1")}` })).toBe(FAILED);
    expect(await said("2", { "if-match": `"x", ${etag("1")}` })).toBe("200");
    expect(await said("3", { "if-none-match": `W/${etag("2")}` })).toBe(FAILED);
    expect(await said("3", { "if-none-match": etag("1"), "if-match": "*" })).toBe("200");
    expect(await ann.room()).toEqual([1, 0]);
    await ann.complete("one", [fileOf("a", "3")]);
    expect(await said("4", NEW)).toBe("409 run_completed");
  });

  test("a PUT whose condition does not hold is refused before its body is read", async ({ ann }) => {
    await ann.put("early", "a", "1");
    const head = ["Content-Length: 10", "If-None-Match: *"];
    const half = ann.half("PUT", "/v1/robot/runs/arm/early/files/a", head, "12345");
    expect(await half.said).toBe(FAILED);
    half.cut();
    expect(await ann.room()).toEqual([1, 0]);
  });

  test("of PUTs with If-None-Match: * that race, exactly one wins, and nothing of the others stays", async ({
    at,
    ann,
  }) => {
    const racing = Array.from({ length: 8 }, () => {
      const head = ["Content-Length: 10", "If-None-Match: *"];
      return ann.half("PUT", "/v1/robot/runs/arm/race/files/a", head, "12345");
    });
    while ((await ann.room())[1] < 80) await Bun.sleep(5);
    for (const [index, one] of racing.entries()) one.write(String(index).repeat(5));
    const said = await Promise.all(racing.map((one) => one.said));
    expect(said.sort()).toEqual(["201", ...Array(7).fill(FAILED)]);
    expect(await ann.room()).toEqual([10, 0]);
    await ann.remove("race", "a");
    // A file that was deleted while its replacement came, and with it the run.
    await ann.put("race", "a", "1");
    const late = ann.half("PUT", "/v1/robot/runs/arm/race/files/a", ["Content-Length: 2", "If-Match: *"], "1");
    while ((await ann.room())[1] < 2) await Bun.sleep(5);
    await ann.remove("race", "a");
    late.write("2");
    expect(await late.said).toBe(FAILED);
    expect(await at.rows("SELECT * FROM robot_runs WHERE run = 'race'")).toEqual([]);
    await at.sweep(61);
    expect(await at.rows("SELECT * FROM run_blobs WHERE path = 'a'")).toEqual([]);
  });

  test("a condition that is no list of ETags is refused, and not taken for none", async ({ ann }) => {
    for (const value of ["x", '"x', '*, "x"', "", '"x" "y"', "w/*"]) {
      for (const name of ["if-match", "if-none-match"]) {
        const { said, message } = await ann.put("bad", "a", "1", { [name]: value });
        expect([name, value, said]).toEqual([name, value, "422 invalid_request"]);
        expect(message?.toLowerCase()).toContain(name);
      }
    }
    expect((await ann.manifest("bad")).said).toBe("404 run_not_found");
  });
});
