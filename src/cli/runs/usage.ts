/** `tendon runs usage`: what the account's runs take of its quota, and this month's traffic. */
import type { RunUsage } from "../../client/runs/records.ts";
import { table } from "../../std/text-table.ts";
import { BASE_URL_FLAG, type Command } from "../frame/command.ts";
import { bytesText, timeText } from "./amounts.ts";
import { asked } from "./run-name.ts";

export const runsUsage: Command = {
  name: "runs usage",
  summary: "Show stored bytes against the quota, and this month's traffic.",
  flags: {
    "base-url": BASE_URL_FLAG,
    json: { about: "Print it as one JSON object." },
  },
  run: (given) => asked(given, (runs) => runs.usage(), usageText),
};

function usageText({ stored_bytes, reserved_bytes, quota_bytes, runs, month }: RunUsage): string {
  const free = Math.max(0, quota_bytes - stored_bytes - reserved_bytes);
  return table([
    ["completed runs", String(runs)],
    ["stored", bytesText(stored_bytes)],
    ["reserved by uploads", bytesText(reserved_bytes)],
    ["free", `${bytesText(free)} of ${bytesText(quota_bytes)}`],
    ["uploaded", `${bytesText(month.uploaded_bytes)} since ${timeText(month.start)}`],
    ["downloaded", bytesText(month.downloaded_bytes)],
    ["requests", String(month.requests)],
  ]);
}
