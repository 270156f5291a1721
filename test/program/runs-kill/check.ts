/** After a restart: what is there is what the clients were told, and of requests without an answer all or nothing. */
import { LIMITS } from "../../../src/limits.ts";
import type { Books } from "../books.ts";
import type { Target } from "../payers.ts";
import { completion, expectFile, uri } from "./clients.ts";
import { sha256Of } from "./content.ts";
import { type Model, type ModelRun, must, type Pending } from "./model.ts";
import { expectBytes, type FoundRun, foundRuns } from "./records.ts";
import { ask, jsonOf, pathOf } from "./requests.ts";

const NOTHING: FoundRun = { files: new Map(), uploads: new Map(), manifest: undefined };

export async function expectKept(books: Books, model: Model, target: Target, accountId: string): Promise<void> {
  const found = await foundRuns(books, accountId);
  await expectBytes(books, found.values());
  const known = new Set(model.runs.map(({ robot, run }) => `${robot}/${run}`));
  for (const name of found.keys()) must(known.has(name), `the run ${name} is there, and nobody made it`);
  for (const run of model.runs) {
    const there = found.get(`${run.robot}/${run.run}`);
    if (run.erased) {
      must(there === undefined, `the run ${run.run} was deleted, and is there`);
      continue;
    }
    adopt(run, there);
    expectSame(run, there ?? NOTHING);
    for (const { id, parts } of run.uploads.values()) if (parts.size > 0) model.interrupted.add(id);
  }
  for (const run of model.runs) await expectShown(model, run, target);
  await expectTotals(model, target);
}

/** Finds out which of the requests without an answer were done. */
function adopt(run: ModelRun, there: FoundRun | undefined): void {
  const { pending } = run;
  run.pending = [];
  run.turns += run.turns % 2;
  for (const one of pending) adoptOne(run, there, one);
}

function adoptOne(run: ModelRun, there: FoundRun | undefined, pending: Pending): void {
  switch (pending.kind) {
    case "erase":
      if (!there) run.clear();
      return;
    case "complete":
      run.manifest = there?.manifest;
      if (run.manifest !== undefined) expectManifest(run, run.manifest);
      return;
    case "put":
      if (there?.files.get(pending.path)?.sha256 === pending.version.sha256)
        run.files.set(pending.path, pending.version);
      return;
    case "drop":
      if (!there?.files.has(pending.path)) run.drop(pending.path);
      return;
    case "start": {
      const { path, version } = pending;
      const upload = there?.uploads.get(path);
      if (!upload) return;
      const partSize = Math.min(version.size, 16 * 1024 * 1024);
      run.uploads.set(path, { id: upload.id, version, partSize, parts: new Map() });
      return;
    }
    case "part": {
      const { path, part, sha256 } = pending;
      if (there?.uploads.get(path)?.parts.get(part)?.sha256 === sha256) run.uploads.get(path)?.parts.set(part, sha256);
      return;
    }
    case "finish":
      if (!there?.uploads.has(pending.path)) run.finish(pending.path);
      return;
    case "abort":
      if (!there?.uploads.has(pending.path)) run.abort(pending.path);
  }
}

function expectSame(run: ModelRun, there: FoundRun): void {
  const files = [...run.files].map(([path, { size, sha256 }]) => `${path} ${size} ${sha256}`);
  const stored = [...there.files].map(([path, { size, sha256 }]) => `${path} ${size} ${sha256}`);
  expectList(`files of ${run.robot}/${run.run}`, stored, files);
  const uploads = [...run.uploads].map(
    ([path, { id, version, parts }]) => `${path} ${id} ${version.size} ${partsText(parts)}`,
  );
  const open = [...there.uploads].map(([path, { id, size, parts }]) => {
    return `${path} ${id} ${size} ${partsText(new Map([...parts].map(([part, { sha256 }]) => [part, sha256])))}`;
  });
  expectList(`uploads of ${run.robot}/${run.run}`, open, uploads);
  must(
    there.manifest === run.manifest,
    `${run.run} is ${there.manifest ? "" : "not "}complete, its client knows better`,
  );
}

function partsText(parts: ReadonlyMap<number, string>): string {
  return JSON.stringify([...parts].sort(([one], [other]) => one - other));
}

function expectList(what: string, found: string[], due: string[]): void {
  const [is, should] = [found.sort().join("\n"), due.sort().join("\n")];
  must(is === should, `${what} are\n${is}\nand should be\n${should}`);
}

/** A manifest that no client has read yet: it lists what the client asked for. */
function expectManifest({ files }: ModelRun, text: string): void {
  const manifest = JSON.parse(text) as { files: { path: string; size: number; sha256: string }[] };
  const listed = manifest.files.map(({ path, size, sha256 }) => `${path} ${size} ${sha256}`);
  const due = [...files].map(([path, { size, sha256 }]) => `${path} ${size} ${sha256}`);
  expectList("files of the manifest", listed, due);
}

/** The same as a client sees it. */
async function expectShown(model: Model, run: ModelRun, target: Target): Promise<void> {
  const shown = await ask(target, pathOf(run));
  if (run.manifest === undefined) {
    must(shown.code === "run_not_found", `the unfinished run ${run.run} is shown`);
    const [path] = run.files.keys();
    const file = path === undefined ? shown : await ask(target, pathOf(run, `/files/${uri(path)}`));
    must(file.code === "run_not_found", `${path} of the unfinished run ${run.run} is readable`);
  } else {
    must(new TextDecoder().decode(shown.bytes) === run.manifest, `the manifest of ${run.run} has changed`);
    const again = await ask(target, pathOf(run, "/complete"), { method: "POST", json: completion(run) });
    must(new TextDecoder().decode(again.bytes) === run.manifest, `completing ${run.run} again is ${again.status}`);
    for (const [path, { sha256 }] of run.files) {
      const { status, bytes } = await ask(target, pathOf(run, `/files/${uri(path)}`));
      must(status === 200 && sha256Of(bytes) === sha256, `${path} of ${run.run} is ${status}, or has other bytes`);
      model.read += 1;
    }
  }
  for (const [path, { id, parts }] of run.uploads) {
    const state = await ask(target, pathOf(run, `/uploads/${uri(path)}?upload_id=${id}`));
    const { received } = jsonOf<{ received: { part: number; sha256: string }[] }>(state.bytes);
    const same = partsText(new Map(received.map(({ part, sha256 }) => [part, sha256]))) === partsText(parts);
    must(same, `the upload of ${path} shows other parts than were acknowledged`);
    const listed = await ask(target, pathOf(run, `/uploads/${uri(path)}`));
    const { data } = jsonOf<{ data: { upload_id: string }[] }>(listed.bytes);
    must(data.map(({ upload_id }) => upload_id).join() === id, `the upload of ${path} is not found by its path`);
  }
  const [last] = [...run.finished].slice(-1);
  if (!last) return;
  const [id, { path, version }] = last;
  const again = await ask(target, pathOf(run, `/uploads/${uri(path)}?upload_id=${id}`), { method: "POST", json: {} });
  must(again.status === 200, `finishing the upload of ${path} again is ${again.status} ${again.code}`);
  expectFile(again, path, version);
}

interface Usage {
  readonly stored_bytes: number;
  readonly reserved_bytes: number;
  readonly runs: number;
}

async function expectTotals(model: Model, target: Target): Promise<void> {
  const sum = (sizes: number[]) => sizes.reduce((total, size) => total + size, 0);
  const { there } = model;
  const files = sum(there.flatMap((run) => [...run.files.values()].map(({ size }) => size)));
  const kept = there.filter((run) => run.files.size + run.uploads.size > 0);
  const records = sum(kept.map((run) => 1 + run.files.size + run.uploads.size)) * LIMITS.runRecordBytes;
  const manifests = sum(kept.map(({ manifest = "" }) => Buffer.byteLength(manifest)));
  const stored = files + records + manifests;
  const reserved = sum(there.flatMap(({ uploads }) => [...uploads.values()].map(({ version }) => version.size)));
  const complete = there.filter(({ manifest }) => manifest !== undefined);
  const usage = jsonOf<Usage>((await ask(target, "/v1/robot/runs/usage")).bytes);
  const is = [usage.stored_bytes, usage.reserved_bytes, usage.runs].join();
  must(
    is === [stored, reserved, complete.length].join(),
    `usage is ${is}, due is ${stored},${reserved},${complete.length}`,
  );
  const listed = jsonOf<{ data: { robot: string; run: string; size: number }[] }>(
    (await ask(target, "/v1/robot/runs?limit=1000")).bytes,
  );
  expectList(
    "listed runs",
    listed.data.map(({ robot, run, size }) => `${robot}/${run} ${size}`),
    complete.map(({ robot, run, files }) => `${robot}/${run} ${sum([...files.values()].map(({ size }) => size))}`),
  );
}
