/** What lies of a bundle's weight files in the memory of devices, in words for a person. */
import type { Model } from "./engine.ts";

/** A part of a sentence; undefined where there are none on a device: on a CPU, or of a bundle whose graphs hold their weights. */
export function deviceWeightWords({ sharedBytes, ownBytes, reason }: Model["deviceWeights"]): string | undefined {
  const shared = `${megabytes(sharedBytes)} of weights on the device once for all sessions`;
  const own = `${megabytes(ownBytes)} of weights copied by its sessions${reason === undefined ? "" : ` (${reason})`}`;
  const parts = [...(sharedBytes > 0 ? [shared] : []), ...(ownBytes > 0 ? [own] : [])];
  return parts.length === 0 ? undefined : parts.join(", ");
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
