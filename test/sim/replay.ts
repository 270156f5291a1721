/** Replays one history with its whole trace: `bun test/sim/replay.ts fake NUMBER`. */
import { print } from "../../src/cli/print.ts";
import { fakeGround, runHistory } from "./sim.ts";

const number = Number(process.argv[3] ?? "0");
const { trace } = await runHistory(fakeGround(), number);
await print(trace.join("\n"));
