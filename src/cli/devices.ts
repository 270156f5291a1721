/** `tendon devices`: the devices that the running service of this machine uses, and how one is taken out of it. */
import { changeDevice, type UsedDevice, usedDevices } from "../client/control.ts";
import { hardwareOf } from "../config/devices.ts";
import { serveConfig } from "../config/serve.ts";
import { sleep, systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";
import { table } from "../std/text-table.ts";
import { type Command, usageProblem } from "./frame/command.ts";
import { answer } from "./frame/print.ts";
import { CONFIG_FLAG, DATA_FLAG, flagsOf } from "./frame/settings.ts";

/** Between two questions whether the device is drained. */
const LOOK_MS = 500;

export const devices: Command = {
  name: "devices",
  summary: "Show the devices of the service that runs on this machine, or take one out of service.",
  details: [
    "A device that is drained gets no new sessions. Sessions with memory there go on until they end. Chunks without memory",
    "are computed there until then. Then its replicas are out of service until the next start. --resume keeps the device in",
    "service while sessions are awaited. A drain is refused if a model has no other working replica, and it ends if the last",
    "other replica is lost.",
    "health: ready, draining (sessions or inferences are awaited), drained, lost.",
  ],
  flags: {
    drain: { value: "DEVICE", about: "The device to take out of service, such as cuda:1." },
    resume: { value: "DEVICE", about: "A device that is being drained: keep it in service." },
    wait: { about: "With --drain: end when the device is drained. Ctrl-C ends the wait alone." },
    data: DATA_FLAG,
    config: CONFIG_FLAG,
    json: { about: "Print one JSON object." },
  },
  async run(given) {
    const drain = given.text("drain");
    const resume = given.text("resume");
    if (given.on("wait") && drain === undefined) return usageProblem(devices, "--wait is of use with --drain alone");
    if (drain !== undefined && resume !== undefined) {
      return usageProblem(devices, "--drain and --resume are one change each; name one of them");
    }
    const config = await serveConfig(flagsOf(given));
    if (config instanceof Problem) return config;
    const { controlPath } = config;
    const change = drain ?? resume;
    const named = change === undefined ? undefined : hardwareOf(change);
    let used =
      named === undefined
        ? await usedDevices(controlPath)
        : await changeDevice(controlPath, named, drain === undefined ? "resume" : "drain");
    while (given.on("wait") && !(used instanceof Problem) && isDraining(used, named)) {
      await sleep(systemClock, LOOK_MS);
      used = await usedDevices(controlPath);
    }
    if (used instanceof Problem) return used;
    const ended = given.on("wait")
      ? (used.find(({ device }) => device === named)?.health ?? "in use no more")
      : "drained";
    await answer(given, { devices: used }, lines(used));
    if (ended === "drained") return 0;
    return new Problem(`${named} is ${ended}, not drained; the log of the service says why`);
  },
};

function isDraining(used: readonly UsedDevice[], named: string | undefined): boolean {
  return used.some(({ device, health }) => device === named && health === "draining");
}

function lines(used: readonly UsedDevice[]): string {
  const rows = used.map(({ device, health, reason, replicas, replicas_out, inferences, slots, slots_held }) => [
    device,
    health,
    String(replicas - replicas_out),
    String(inferences),
    slots === 0 ? "-" : `${slots_held} of ${slots}`,
    reason ?? "",
  ]);
  return table(
    [["DEVICE", "HEALTH", "REPLICAS", "INFERENCES", "SESSIONS", ""], ...rows],
    ["left", "left", "right", "right", "right"],
  );
}
