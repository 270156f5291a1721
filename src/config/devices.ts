/** The devices of a model's replicas, from the keys `device` and `replicas` of its table. */
import type { RobotConfig } from "./robot.ts";

/** A device for all replicas, or one for each: its length is their number. */
export type DeviceChoice = string | readonly string[];

/**
 * A list of devices has at least one replica for each; where `replicas` asks for more, the list is gone through again. A sentence part
 * where that cannot be.
 */
export function placeReplicas({
  device,
  replicas,
}: Pick<RobotConfig, "device" | "replicas">): { readonly device: DeviceChoice; readonly replicas: number } | string {
  if (typeof device === "string") return { device, replicas };
  // One replica is the default: who lists devices wants them all.
  const count = replicas === 1 ? device.length : replicas;
  const [first = "auto"] = device;
  if (device.length > count) return `names ${device.length} devices for ${count} replicas; raise replicas`;
  if (device.every((other) => other === first)) return { device: first, replicas: count };
  const vague = device.find((one) => one === "auto" || one === "echo");
  if (vague !== undefined) return `has '${vague}' in a list of devices; name one where a model runs for each replica`;
  return {
    device: Array.from({ length: count }, (_, replica) => device[replica % device.length] ?? first),
    replicas: count,
  };
}

/** How many replicas may compute on the processor: `auto` may end there. */
export function replicasOnProcessor(device: DeviceChoice, replicas: number): number {
  const mayBe = (one: string) => one === "cpu" || one === "auto";
  return typeof device === "string" ? (mayBe(device) ? replicas : 0) : device.filter(mayBe).length;
}

/** The device itself, of which CUDA and TensorRT are two providers: what is lost or drained. */
export function hardwareOf(device: string): string {
  return device.replace(/^tensorrt:/, "cuda:");
}

/** For people: a device, or which replica is on which. */
export function deviceText(choice: DeviceChoice): string {
  if (typeof choice === "string") return choice;
  const [first] = choice;
  if (first !== undefined && choice.every((device) => device === first)) return first;
  return choice.map((device, replica) => `replica ${replica} on ${device}`).join(", ");
}
