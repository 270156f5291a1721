/** Everything written in TypeScript that reads what strangers send. What native code reads is fuzzed in `native/fuzz`. */
import type { Target } from "./target.ts";
import { chat, responses } from "./targets/bodies.ts";
import { pages } from "./targets/pages.ts";
import { events } from "./targets/provider.ts";
import { conditions, digests, paths, ranges } from "./targets/runs.ts";
import { socket } from "./targets/socket.ts";

export const TARGETS: readonly Target[] = [
  ...[ranges, conditions, digests, paths],
  ...[chat, responses, pages],
  ...[events, socket],
];
