/** `tendon runs list`: completed runs, the newest first. */
import type { ListedRun, RunList } from "../../client/runs/records.ts";
import type { RunsClient } from "../../client/runs.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { table } from "../../std/text-table.ts";
import { BASE_URL_FLAG, type Command } from "../frame/command.ts";
import { bytesText, timeText } from "./amounts.ts";
import { asked } from "./run-name.ts";

const NEWEST = 20;
/** The longest page of the service. */
const PAGE_MAX = 1_000;

export const runsList: Command = {
  name: "runs list",
  summary: "List completed runs, the newest first.",
  flags: {
    robot: { value: "NAME", about: "Only runs of this robot." },
    all: { about: `All of them (default: ${NEWEST}).` },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print them as one JSON object." },
  },
  async run(given) {
    const robot = given.text("robot");
    const list = (runs: RunsClient) => (given.on("all") ? wholeList(runs, robot) : runs.list({ robot, limit: NEWEST }));
    return await asked(given, list, listText);
  },
};

/** Every page, as one. */
async function wholeList(client: RunsClient, robot: string | undefined): Promise<RunList | Problem> {
  const data: ListedRun[] = [];
  for (let after: string | undefined; ; ) {
    const page = await client.list({ robot, limit: PAGE_MAX, after });
    if (page instanceof Problem) return page;
    data.push(...page.data);
    if (!page.has_more || page.next === null) return { object: "list", data, has_more: false, next: null };
    // A service that names the same page for ever would never let the command end.
    if (page.next === after)
      return new Problem("the service's list of runs has no end: a page names itself as the next");
    after = page.next;
  }
}

function listText({ data, has_more }: RunList): string {
  if (data.length === 0) return "there are no completed runs; store one with: tendon runs push DIR --robot NAME";
  const rows = data.map(({ robot, run, completed_at, files, size }) => [
    printable(robot),
    printable(run),
    timeText(completed_at),
    String(files),
    bytesText(size),
  ]);
  const align = ["left", "left", "left", "right", "right"] as const;
  const more = has_more ? "there are more: --all lists them\n" : "";
  return table([["robot", "run", "completed", "files", "size"], ...rows], align) + more;
}
