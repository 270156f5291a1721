/** The page about robot runs: `robot-runs.md` with its limits and its table of errors. */
import { errorsTable } from "../../http/document/errors-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { LIMITS } from "../../limits.ts";
import { RUNS } from "../errors.ts";
import text from "./robot-runs.md" with { type: "text" };

export function robotRunsPage(): string {
  return documentPage("Robot runs", text, VALUES, { errors: errorsTable(RUNS) });
}

const whole = (value: number) => value.toLocaleString("en-US");
const mebibytes = (bytes: number) => `${whole(bytes / 2 ** 20)} MiB`;
const gibibytes = (bytes: number) => `${whole(bytes / 2 ** 30)} GiB`;

/** The values that the text refers to as `{{name}}`. */
const VALUES: Readonly<Record<string, string>> = {
  pathBytes: whole(LIMITS.runPathBytesMax),
  pathSegments: whole(LIMITS.runPathSegmentsMax),
  file: mebibytes(LIMITS.runFileBytesMax),
  part: mebibytes(LIMITS.runPartBytes),
  json: mebibytes(LIMITS.runJsonBytesMax),
  runBytes: gibibytes(LIMITS.runBytesMax),
  runFiles: whole(LIMITS.runFilesMax),
  uploads: whole(LIMITS.runUploadsMax),
  account: gibibytes(LIMITS.runsAccountBytesMax),
  bodies: permitsText(LIMITS.runBodies),
  requests: permitsText(LIMITS.runRequests),
  trickle: `${LIMITS.runIdleBytesMin / 1024} KiB`,
  idle: `${LIMITS.runIdleMs / 1000} s`,
  body: `${LIMITS.runBodyMs / 3_600_000} hours`,
  upload: `${LIMITS.runUploadSeconds / 86_400} days`,
  listed: whole(LIMITS.runsListedMax),
  gone: `${LIMITS.runGoneSeconds} s`,
  left: `${LIMITS.runLeftSeconds / 3600} hours`,
};

function permitsText({ runMax, accountMax, max }: typeof LIMITS.runBodies | typeof LIMITS.runRequests): string {
  return `${runMax}, ${accountMax}, ${max}`;
}
