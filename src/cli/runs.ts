/** `tendon runs …`: robot runs at a running service. */
import type { CommandGroup } from "./frame/group.ts";
import { runsDelete } from "./runs/delete.ts";
import { runsList } from "./runs/list.ts";
import { runsPull } from "./runs/pull.ts";
import { runsPush } from "./runs/push.ts";
import { runsShow } from "./runs/show.ts";
import { runsUsage } from "./runs/usage.ts";
import { exportRun } from "./runs-export/command.ts";

export const runs: CommandGroup = {
  name: "runs",
  summary: "Store, list, fetch, export and delete the recorded runs of robots.",
  commands: [runsPush, runsList, runsShow, runsPull, runsDelete, runsUsage, exportRun],
};
