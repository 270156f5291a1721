/** What `tendon act` sends, from files: the frames of the `--image CAMERA=FILE` flags in the model's camera order, and the state. */
import type { RobotRequest } from "../../client/request.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";

export interface CameraFiles {
  readonly camera: string;
  /** Oldest frame first, as typed. */
  readonly files: readonly string[];
}

export interface Observation extends Omit<RobotRequest, "frames"> {
  /** JPEG files of each camera, oldest first, cameras in the model's order. */
  readonly cameras: readonly (readonly Uint8Array[])[];
}

/** Groups the flags by camera, in the order in which the cameras were first named; or the flag that is wrong. */
export function cameraFiles(flags: readonly string[]): CameraFiles[] | { wrong: string } {
  const cameras = new Map<string, string[]>();
  for (const flag of flags) {
    const cut = flag.indexOf("=");
    const [camera, file] = [flag.slice(0, cut), flag.slice(cut + 1)];
    if (cut < 1 || file === "") return { wrong: flag };
    cameras.set(camera, [...(cameras.get(camera) ?? []), file]);
  }
  return [...cameras].map(([camera, files]) => ({ camera, files }));
}

/** The cameras in the model's order; wrong use when one is missing or is not the model's. */
export function inModelOrder(
  given: readonly CameraFiles[],
  model: string,
  order: readonly string[],
): CameraFiles[] | Problem {
  const named = given.map((item) => item.camera);
  const wanted = `${model} has the cameras ${printable(order.join(", "))}`;
  const strange = named.find((camera) => !order.includes(camera));
  if (strange !== undefined) return new Problem(`no camera '${strange}': ${wanted}`, EXIT.usage);
  const missing = order.find((camera) => !named.includes(camera));
  if (missing !== undefined)
    return new Problem(
      `no frame of camera '${printable(missing)}': ${wanted}; add --image ${printable(missing)}=FILE`,
      EXIT.usage,
    );
  return order.flatMap((camera) => given.filter((item) => item.camera === camera));
}

/** The frames of each camera. Only that they are JPEG files is checked here; the service decodes them. */
export async function readFrames(cameras: readonly CameraFiles[]): Promise<Uint8Array[][] | Problem> {
  const read: Uint8Array[][] = [];
  for (const { files } of cameras) {
    const frames: Uint8Array[] = [];
    for (const path of files) {
      const bytes = await readBytes(path);
      if (bytes instanceof Problem) return bytes;
      if (!(bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff)) {
        return new Problem(`'${path}' is not a JPEG file; camera frames are sent as JPEG`);
      }
      frames.push(bytes);
    }
    read.push(frames);
  }
  return read;
}

/** The state file as a JSON object; the service checks its arrays. */
export async function readState(path: string): Promise<object | Problem> {
  const bytes = await readBytes(path);
  if (bytes instanceof Problem) return bytes;
  try {
    const state: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof state === "object" && state !== null && !Array.isArray(state)) return state;
  } catch {
    // The same message as for JSON of another shape, below.
  }
  return new Problem(
    `'${path}' is not a JSON object with the robot's state, for example {"joint_position":[…],"gripper_position":[…]}`,
  );
}

async function readBytes(path: string): Promise<Uint8Array | Problem> {
  try {
    return await Bun.file(path).bytes();
  } catch (error) {
    return new Problem(`cannot read '${path}': ${(error as Error).message}`);
  }
}
