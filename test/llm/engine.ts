/** A real LLM engine for tests: llama.cpp's server, from the Python package `xllamacpp`, with the tiny model. */
import { join } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { tinyModel } from "./tiny-model.ts";

const PYTHON = "python3";
const REASON =
  "python3 has no xllamacpp; in a virtual environment whose bin is first in PATH, pip install xllamacpp==2026.10.11549";

const installed =
  Bun.which(PYTHON) !== null && Bun.spawnSync([PYTHON, "-c", "import xllamacpp"], { stderr: "ignore" }).exitCode === 0;
const absent = !installed && testRequirement() === "none";

/** Whether its tests cannot run here, and their title. */
export const ENGINE = { absent, title: absent ? `llama.cpp: skipped, ${REASON}` : "llama.cpp" };

export interface Engine extends AsyncDisposable {
  /** The address of its API, with `/v1`. */
  readonly url: string;
}

/** Takes any model name; its own is `tiny`. */
export async function startEngine(): Promise<Engine> {
  const dir = await temporaryFolder();
  const model = join(dir.path, "tiny.gguf");
  await Bun.write(model, tinyModel());
  const child = Bun.spawn([PYTHON, join(import.meta.dir, "engine.py"), model], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const stop = async () => {
    child.kill();
    await child.exited;
    await dir[Symbol.asyncDispose]();
  };
  const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
  const address = /^http:\S+/.exec(value ?? "")?.[0];
  if (address !== undefined) return { url: `${address}/v1`, [Symbol.asyncDispose]: stop };
  await stop();
  throw new Error(`${REASON}, or it did not start: ${await new Response(child.stderr).text()}`);
}
