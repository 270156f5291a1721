/** The routes of the pages of runs, and the player's script. The script is no secret: it needs no sign-in. */
import { pageRoutes } from "../../account/pages/page.ts";
import type { Reply } from "../../http/reply.ts";
import type { Surface } from "../../http/surface.ts";
import { PLAYER_ADDRESS, PLAYER_SCRIPT } from "../views/player-script.ts";
import { deleteRun, type RunPagesDeps, sendFile, showManifest, showRun, showRuns } from "./runs.ts";

export function runPages(deps: RunPagesDeps): Surface {
  const { get, post, surface } = pageRoutes(deps);
  return surface([
    get("/account/runs", showRuns),
    post("/account/runs/delete", deleteRun),
    get("/account/runs/:robot/:run", showRun),
    get("/account/runs/:robot/:run/manifest.json", showManifest),
    get("/account/runs/:robot/:run/files/*", sendFile),
    get(PLAYER_ADDRESS, sendPlayer),
  ]);
}

async function sendPlayer(): Promise<Reply> {
  return {
    status: 200,
    body: PLAYER_SCRIPT,
    headers: {
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    },
  };
}
