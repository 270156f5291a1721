/** Every row of the runs error table (specification, "Robot runs"), on every pair of stores. */
import { expect } from "bun:test";
import { RUNS } from "../../../src/runs/errors.ts";
import { type Answer, fileOf, Person, sha256 } from "../person.ts";
import { DEFAULT, MATRIX, onStores } from "../stage.ts";

const BOUNDS = { runBytesMax: 1_000, runFilesMax: 3, runUploadsMax: 2, accountBytesMax: 1_500 + 4 * 1024 };

const X64 = "x".repeat(64);
const WRONG = { "x-content-sha256": sha256("something else") };

/** A body without a known length. */
function chunked(text: string): ReadableStream {
  const start = (controller: ReadableStreamDefaultController) => {
    controller.enqueue(new TextEncoder().encode(text));
    controller.close();
  };
  return new ReadableStream({ start });
}

/** How each code is brought about. */
const ROWS: Readonly<Record<keyof typeof RUNS, (ann: Person) => Promise<Answer>>> = {
  run_not_found: (ann) => ann.manifest("none"),
  file_not_found: async (ann) => {
    await ann.completed("one", { a: "1" });
    return await ann.get("one", "b");
  },
  upload_not_found: (ann) => ann.uploads("one", "a", "up_0000000000000000"),
  upload_in_progress: async (ann) => {
    await ann.begun("one", "a", { size: 5 });
    return await ann.put("one", "a", "12345");
  },
  run_incomplete: async (ann) => {
    await ann.put("one", "a", "12345");
    return await ann.complete("one", [fileOf("a", "12345"), fileOf("b", "1")]);
  },
  run_completed: async (ann) => {
    await ann.completed("one", { a: "1" });
    return await ann.put("one", "b", "1");
  },
  too_many_uploads: async (ann) => {
    await ann.begun("one", "a", { size: 5 });
    await ann.begun("one", "b", { size: 5 });
    return await ann.begin("one", "c", { size: 5 });
  },
  storage_busy: (ann) => ann.put("busy", "a", "1"),
  length_required: (ann) => ann.send("PUT", "/v1/robot/runs/arm/one/files/a", chunked("12345")),
  request_too_large: (ann) => ann.send("POST", "/v1/robot/runs/arm/one/complete", " ".repeat(2 ** 20 + 1)),
  run_too_large: (ann) => ann.put("one", "a", "x".repeat(1_001)),
  storage_quota_exceeded: async (ann) => {
    await ann.put("one", "a", "x".repeat(1_000));
    return await ann.put("two", "a", "x".repeat(501));
  },
  precondition_failed: (ann) => ann.put("one", "a", "1", { "if-match": "*" }),
  invalid_range: async (ann) => {
    await ann.completed("one", { a: "12345" });
    return await ann.get("one", "a", { range: "bytes=5-" });
  },
  checksum_mismatch: (ann) => ann.put("one", "a", "12345", WRONG),
  invalid_request: (ann) => ann.put("one", "a", "12345", { "x-content-sha256": X64 }),
  storage_unavailable: (ann) => ann.put("down", "a", "1"),
};

onStores(MATRIX, { bounds: BOUNDS }, (test) => {
  for (const [code, bringAbout] of Object.entries(ROWS)) {
    const row = RUNS[code as keyof typeof RUNS];
    test(`${row.status} ${code} has the error object and a request id, and changes nothing`, async ({ at, ann }) => {
      if (code === "storage_busy" || code === "storage_unavailable") at.drills.names.add(code);
      const answer = await bringAbout(ann);
      at.drills.names.clear();
      expect(answer.said).toBe(`${row.status} ${code}`);
      const { error } = answer.json;
      expect(error).toMatchObject({ code, type: row.type, message: expect.stringMatching(/.{10}/) });
      expect(answer.headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{24}$/);
      expect(answer.headers.get("retry-after")).toEqual(row.status === 503 ? expect.stringMatching(/^\d+$/) : null);
      expect(await at.wrong()).toEqual([]);
    });
  }

  test("the first of several faults counts: size, syntax, names, digests, then the run's state", async ({ ann }) => {
    await ann.completed("one", { a: "1" });
    const wrong = ["X-Content-Sha256: x"];
    const puts: readonly (readonly [run: string, length: string, digest: readonly string[], said: string])[] = [
      ["-/one", `Content-Length: ${64 * 2 ** 20 + 1}`, wrong, "413 request_too_large"],
      ["-/one", "Transfer-Encoding: chunked", wrong, "411 length_required"],
      ["-/one", "Content-Length: 5", wrong, "422 invalid_request"],
      ["arm/one", "Content-Length: 5", wrong, "422 invalid_request"],
      // Neither a completed run nor a full one takes a byte.
      ["arm/one", "Content-Length: 5", [], "409 run_completed"],
      ["arm/two", "Content-Length: 1001", [], "413 run_too_large"],
    ];
    for (const [run, length, digest, said] of puts) {
      const half = ann.half("PUT", `/v1/robot/runs/${run}/files/a`, [length, "Connection: close", ...digest]);
      expect([run, length, await half.said]).toEqual([run, length, said]);
    }
    for (const [run, body, said, param] of [
      ["-/one", " ".repeat(2 ** 20 + 1), "413 request_too_large", undefined],
      ["-/one", "{", "422 invalid_request", undefined],
      ["-/one", '{"files":1}', "422 invalid_request", "robot"],
      ["arm/one", '{"files":1}', "422 invalid_request", "files"],
    ] as const) {
      const answer = await ann.send("POST", `/v1/robot/runs/${run}/complete`, body);
      expect([answer.said, answer.json.error.param]).toEqual([said, param]);
    }
  });
});

onStores(DEFAULT, { fresh: true }, (test) => {
  /** With bodies that are wrong, so that only what comes before them can answer. */
  const ROUTES: readonly (readonly [method: string, path: string, body?: string])[] = [
    ["GET", ""],
    ["GET", "/usage"],
    ["GET", "/arm/one"],
    ["DELETE", "/arm/one"],
    ["POST", "/arm/one/complete", "no json"],
    ["PUT", "/arm/one/files/a", "1"],
    ["GET", "/arm/one/files/a"],
    ["HEAD", "/arm/one/files/a"],
    ["DELETE", "/arm/one/files/a"],
    ["GET", "/arm/one/uploads/a"],
    ["POST", "/arm/one/uploads/a", "no json"],
    ["PUT", "/arm/one/uploads/a?upload_id=up_1&part=1", "1"],
    ["DELETE", "/arm/one/uploads/a?upload_id=up_1"],
  ];

  test("the key is checked before the body is read, or anything else", async ({ ann }) => {
    for (const [method, path, body] of ROUTES) {
      for (const authorization of ["", "Bearer tdn_wrong"]) {
        const answer = await ann.send(method, `/v1/robot/runs${path}`, body, { authorization });
        expect([method, path, answer.status]).toEqual([method, path, 401]);
        if (method !== "HEAD")
          expect(answer.json.error.code).toBe(authorization ? "invalid_api_key" : "missing_api_key");
      }
      // The rest of the body never comes.
      if (method !== "PUT") continue;
      const nobody = new Person(ann.url, "tdn_wrong", "", async () => [0, 0]);
      const half = nobody.half(method, `/v1/robot/runs${path}`, ["Content-Length: 1000"], "1");
      expect(await half.said).toBe("401 invalid_api_key");
      half.cut();
    }
  });

  for (const name of ["storage_busy", "storage_unavailable"] as const) {
    test(`the drill ${name} strikes after the names and fields are checked, and says when to retry`, async ({
      at,
      ann,
    }) => {
      at.drills.names.add(name);
      for (const [method, path, body] of ROUTES) {
        const right =
          body === "no json" ? (path.endsWith("complete") ? '{"files":[{"path":"a","size":1}]}' : '{"size":1}') : body;
        const answer = await ann.send(method, `/v1/robot/runs${path}`, right);
        expect([method, path, answer.status]).toEqual([method, path, 503]);
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
        if (method !== "HEAD") expect(answer.json.error.code).toBe(name);
        if (!path.startsWith("/arm")) continue;
        const wrong = await ann.send(method, `/v1/robot/runs${path.replace("arm", "-arm")}`, right);
        expect([method, path, wrong.status]).toEqual([method, path, 422]);
      }
    });
  }

  test("an unknown route, or another method, is 404 not_found with a key and without one", async ({ ann }) => {
    const unknown: readonly (readonly [string, string])[] = [
      ["POST", ""],
      ["DELETE", ""],
      ["PUT", "/usage"],
      ["GET", "/arm"],
      ["PUT", "/arm/one"],
      ["POST", "/arm/one"],
      ["GET", "/arm/one/complete"],
      ["PUT", "/arm/one/complete"],
      ["GET", "/arm/one/files"],
      ["PUT", "/arm/one/files"],
      ["GET", "/arm/one/uploads"],
      ["POST", "/arm/one/uploads"],
      ["POST", "/arm/one/files/a"],
      ["PATCH", "/arm/one/uploads/a"],
      ["GET", "/arm/one/other"],
    ];
    for (const [method, path] of unknown) {
      for (const headers of [{}, { authorization: "" }]) {
        const answer = await ann.send(method, `/v1/robot/runs${path}`, undefined, headers);
        expect([method, path, answer.said]).toEqual([method, path, "404 not_found"]);
      }
    }
  });
});
