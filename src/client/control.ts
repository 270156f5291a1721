/** What a command says to the service of this machine over its control socket. */
import { LIMITS } from "../limits.ts";
import { printable } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { errorReply } from "./http.ts";

/** A device in use, as the service writes it. */
export interface UsedDevice {
  readonly device: string;
  readonly health: "ready" | "draining" | "drained" | "lost";
  /** Why it is lost. */
  readonly reason?: string;
  readonly replicas: number;
  readonly replicas_out: number;
  readonly inferences: number;
  readonly slots: number;
  readonly slots_held: number;
}

export function usedDevices(socket: string): Promise<readonly UsedDevice[] | Problem> {
  return ask(socket, "GET", "/devices");
}

/** Takes a device out of service, or keeps one that is being taken out. The devices afterwards. */
export function changeDevice(
  socket: string,
  device: string,
  change: "drain" | "resume",
): Promise<readonly UsedDevice[] | Problem> {
  return ask(socket, "POST", `/devices/${encodeURIComponent(device)}/${change}`);
}

async function ask(socket: string, method: "GET" | "POST", path: string): Promise<readonly UsedDevice[] | Problem> {
  try {
    const signal = AbortSignal.timeout(LIMITS.clientAnswerMs);
    const reply = await fetch(`http://tendon${path}`, { method, unix: socket, signal });
    const { ok, status, headers } = reply;
    const body: unknown = await reply.json();
    if (!ok) return errorReply(socket, { ok, status, headers, body });
    return (body as { readonly devices: readonly UsedDevice[] }).devices;
  } catch (error) {
    // Bun's texts are about addresses.
    const reason = printable((error as { code?: string }).code ?? (error as Error).message);
    return new Problem(
      `no service answers on ${socket} (${reason}); start tendon serve, or name the data folder of a running one with --data. ` +
        "The log of a service says why it has no control socket",
      EXIT.unreachable,
    );
  }
}
