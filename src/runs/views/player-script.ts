/** The player's script, and its address, which changes with it: browsers keep it for ever. */
import { playerBundle } from "./player-bundle.ts" with { type: "macro" };

export const PLAYER_SCRIPT: string = playerBundle();

const HASH = new Bun.CryptoHasher("sha256").update(PLAYER_SCRIPT).digest("hex").slice(0, 16);

export const PLAYER_ADDRESS = `/assets/run-player-${HASH}.js`;
