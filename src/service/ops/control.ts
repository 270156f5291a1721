/** The control socket: what the operator of this machine asks the running service. The rights of its file say who may. */
import type { DeviceFigures } from "../../engine/engine.ts";
import { appOf } from "../../http/app.ts";
import { NO_BODY } from "../../http/body-rules.ts";
import type { HttpDeps } from "../../http/deps.ts";
import { NO_KEY, type Reply, route } from "../../http/route.ts";
import { ROBOT, ROBOT_ANSWERS } from "../../robot/errors.ts";
import { Failure, row, table } from "../../std/failure.ts";
import type { Problem } from "../../std/problem.ts";

/** The devices of the running service. */
export interface ControlledDevices {
  /** Undefined until the engine is open. */
  figures(): readonly DeviceFigures[] | undefined;
  /** Begins to empty one of them; a problem says why not, and nothing has changed then. */
  drain(device: string): Problem | undefined;
  /** Ends that while sessions there are still awaited; a problem says why it is too late. */
  resume(device: string): Problem | undefined;
}

const CONTROL = table({
  device_unknown: row(404, { http: "No replica was placed on this device; the message lists the devices in use." }),
  device_not_drained: row(409, {
    http: "A model has no replica that works elsewhere, a model is loading, or the device is lost. Nothing has changed.",
  }),
  device_not_resumed: row(409, {
    http: "The replicas on the device are out already, or the device is lost; a start of the service brings them back.",
  }),
});

type Change = "drain" | "resume";
const REFUSED = { drain: CONTROL.device_not_drained, resume: CONTROL.device_not_resumed };

export function controlApp(http: HttpDeps, devices: ControlledDevices) {
  const list = route({
    method: "GET",
    path: "/devices",
    name: "control",
    key: NO_KEY,
    body: NO_BODY,
    handle: async () => listed(devices),
  });
  const changes = (["drain", "resume"] as const).map((change) =>
    route({
      method: "POST",
      path: `/devices/:device/${change}`,
      name: "control",
      key: NO_KEY,
      body: NO_BODY,
      handle: async ({ params }) => changed(devices, params.device ?? "", change),
    }),
  );
  return appOf(http, [{ tag: "Service", answers: ROBOT_ANSWERS, routes: [list, ...changes] }]);
}

function listed(devices: ControlledDevices): Reply | Failure {
  const figures = devices.figures();
  return figures === undefined ? notOpen() : { status: 200, body: JSON.stringify({ devices: figures.map(onWire) }) };
}

function changed(devices: ControlledDevices, device: string, change: Change): Reply | Failure {
  const figures = devices.figures();
  if (figures === undefined) return notOpen();
  const named = figures.find((one) => one.device === device);
  if (named === undefined) {
    const used = figures.map((one) => one.device).join(", ");
    return new Failure(CONTROL.device_unknown, `no replica is on ${device}; the devices in use are: ${used}`);
  }
  if (named.health === "lost") {
    return new Failure(REFUSED[change], `${device} is lost and runs nothing any more: ${named.reason}`);
  }
  const refused = devices[change](device);
  return refused === undefined ? listed(devices) : new Failure(REFUSED[change], refused.message);
}

function notOpen(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the engine is not open yet; ask again in a second");
}

function onWire({ device, health, reason, replicas, replicasOut, inferences, slots, slotsHeld }: DeviceFigures) {
  const used = { replicas, replicas_out: replicasOut, inferences, slots, slots_held: slotsHeld };
  return { device, health, ...(reason === null ? {} : { reason }), ...used };
}
