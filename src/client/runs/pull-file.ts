/** One file of a pull: fetched from where an earlier attempt ended, checked, and only then put under its name. */
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import type { RunName } from "../../std/run-names.ts";
import { NoAnswer } from "../http.ts";
import { isCode, type RunsClient } from "../runs.ts";
import { isThere, Partial } from "./partial.ts";
import type { Manifest } from "./records.ts";
import type { Watcher } from "./watcher.ts";

/** How often a file is fetched anew that arrived damaged. */
const DAMAGED_MAX = 3;

interface Tools {
  readonly client: RunsClient;
  readonly watcher: Watcher;
  readonly folder: string;
  /** All files of the run. */
  readonly paths: ReadonlySet<string>;
}

export class FilePull {
  /** Bytes that the watcher has heard of. */
  private told = 0;

  constructor(
    private readonly run: RunName,
    private readonly file: Manifest["files"][number],
    private readonly tools: Tools,
  ) {}

  async pulled(): Promise<"fetched" | "there" | Problem> {
    const { file, tools } = this;
    const { client, watcher, folder, paths } = tools;
    const target = { folder, path: file.path, paths };
    if (await isThere(target, file, client.signal)) {
      watcher.there(file.size);
      return "there";
    }
    const partial = await Partial.open(target, file.size);
    if (partial instanceof Problem) return partial;
    try {
      this.told = partial.offset;
      watcher.there(partial.offset);
      return (await this.filled(partial)) ?? (await partial.publish()) ?? "fetched";
    } finally {
      await partial.close();
    }
  }

  /** Until the file is whole and right. */
  private async filled(partial: Partial): Promise<Problem | undefined> {
    const { file, tools } = this;
    for (let damaged = 0; ; ) {
      const problem = partial.offset === file.size ? undefined : await this.fetched(partial);
      if (problem !== undefined && !isCode(problem, "invalid_range")) return problem;
      const sha256 = problem ?? (await partial.sha256(tools.client.signal));
      if (sha256 === file.sha256) return undefined;
      if (sha256 instanceof Problem && sha256 !== problem) return sha256;
      damaged += 1;
      if (damaged > DAMAGED_MAX) {
        return new Problem(
          `'${printable(file.path)}' arrived damaged ${damaged} times: its SHA-256 is not ${file.sha256}`,
        );
      }
      const failed = await this.restarted(partial);
      if (failed !== undefined) return failed;
    }
  }

  private async fetched(partial: Partial): Promise<Problem | undefined> {
    const { run, file, tools } = this;
    const from = () => ({ offset: partial.offset, etag: `"sha256-${file.sha256}"` });
    const whole = await tools.client.download(run, file.path, from, (response, blocks) =>
      this.taken(partial, response, blocks),
    );
    return whole instanceof Problem ? whole : undefined;
  }

  private async taken(
    partial: Partial,
    response: Response,
    blocks: AsyncIterable<Uint8Array>,
  ): Promise<"whole" | Problem> {
    const { file } = this;
    const { path, size } = file;
    const range = `bytes ${partial.offset}-${size - 1}/${size}`;
    if (response.status === 206 && response.headers.get("content-range") !== range) {
      return new Problem(`the service sent another range of '${printable(path)}' than was asked for`);
    }
    // The whole file in place of its rest: what was fetched before is of another file, or ranges are not served.
    const anew = response.status !== 206 && partial.offset > 0 ? await this.restarted(partial) : undefined;
    if (anew !== undefined) return anew;
    for await (const block of blocks) {
      if (partial.offset + block.length > size) {
        return new Problem(`the service sent more of '${printable(path)}' than the ${size} bytes that it lists`);
      }
      const problem = await partial.append(block);
      if (problem !== undefined) return problem;
      this.tell(block.length);
    }
    if (partial.offset === size) return "whole";
    return new NoAnswer(
      `the connection ended after ${partial.offset} of the ${size} bytes of '${printable(path)}'`,
      false,
    );
  }

  private async restarted(partial: Partial): Promise<Problem | undefined> {
    this.tell(-this.told);
    return await partial.restart();
  }

  private tell(bytes: number): void {
    this.told += bytes;
    this.tools.watcher.moved(bytes);
  }
}
