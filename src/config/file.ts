/** Reads tendon.toml. */
import { EXIT, Problem } from "../error/problem.ts";
import { readText } from "../std/file.ts";

/** The file's keys; none where there is no file and none was asked for. */
export async function readToml(path: string, required: boolean): Promise<Readonly<Record<string, unknown>> | Problem> {
  try {
    const content = await readText(path);
    if (content !== undefined) return { ...Bun.TOML.parse(content) };
    return required ? new Problem(`there is no configuration file at ${path}`, EXIT.usage) : {};
  } catch (error) {
    return new Problem(`${path} cannot be read as TOML: ${(error as Error).message}`, EXIT.usage);
  }
}
