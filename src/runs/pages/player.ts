/** The player's script, whose address has its hash in it. It is no secret: nobody needs to be signed in. */

import type { Reply } from "../../http/reply.ts";
import { PLAYER_SCRIPT } from "../views/player-script.ts";

export async function sendPlayer(): Promise<Reply> {
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
